//! Tests of Trainium with recordings, reports of our own, and a fake neuron-monitor.

use super::*;
use crate::{OwnOptions, recordings};
use fake_tool::{place, starts};
use serde_json::{Value, json};

type Read = (Vec<(String, f64)>, Option<String>);

/// The values put for a line, and its trouble; none if it is no report.
fn read(line: &[u8], pids: &[u32]) -> Option<Read> {
    let report = NeuronReport::read(line, |pid| pids.is_empty() || pids.contains(&pid))?;
    let mut out = Out::default();
    out.begin(Duration::ZERO);
    report.put(&mut out);
    Some((out.present(), report.trouble))
}

fn values(line: &Value, pids: &[u32]) -> Vec<(String, f64)> {
    read(line.to_string().as_bytes(), pids).unwrap().0
}

/// A process that uses one core and `host` bytes.
fn runtime(pid: u32, core: &str, used: f64, host: u64) -> Value {
    json!({"pid": pid, "error": "", "report": {
        "neuroncore_counters": {"period": 1.5, "error": "", "neuroncores_in_use": {core: {"neuroncore_utilization": used, "flops": 7}}},
        "memory_used": {"period": 1.0, "error": "", "neuron_runtime_used_bytes": {
            "host": host, "neuron_device": 10,
            "usage_breakdown": {
                "host": {"tensors": host, "later_part": 5},
                "neuroncore_memory_usage": {core: {"tensors": 4, "unknown": 9}}}}}}})
}

fn report(runtimes: &[Value]) -> Value {
    json!({"neuron_runtime_data": runtimes, "system_data": {}, "neuron_hardware_info": {"error": ""}})
}

#[test]
fn memory_is_summed_over_the_processes_that_are_watched() {
    let both = report(&[runtime(10, "0", 25.0, 100), runtime(11, "3", 50.0, 200), runtime(12, "3", 10.0, 1)]);
    let tags = |pids: &[u32]| values(&both, pids).into_iter().map(|(tag, v)| format!("{tag} {v}")).collect::<Vec<_>>();
    assert_eq!(
        tags(&[10, 11]),
        [
            "trn.0.neuroncore_memory_usage.tensors 4",
            "trn.0.neuroncore_utilization 25",
            "trn.3.neuroncore_memory_usage.tensors 4",
            "trn.3.neuroncore_utilization 50",
            "trn.host_memory_usage.later_part 10",
            "trn.host_memory_usage.tensors 300",
            "trn.host_total_memory_usage 300",
            "trn.neuron_device_total_memory_usage 20",
        ]
    );
    assert!(tags(&[]).contains(&"trn.host_total_memory_usage 301".to_string()), "all when none is watched");
    assert!(tags(&[]).contains(&"trn.3.neuroncore_memory_usage.tensors 8".to_string()));
    assert!(tags(&[13]).is_empty());
}

#[test]
fn a_group_with_an_error_is_left_out_alone() {
    let mut one = runtime(10, "0", 25.0, 100);
    one["report"]["memory_used"]["error"] = "failed to read".into();
    let (read, trouble) = self::read(report(&[one.clone()]).to_string().as_bytes(), &[]).unwrap();
    assert_eq!(read, [("trn.0.neuroncore_utilization".to_string(), 25.0)]);
    assert_eq!(trouble.as_deref(), Some("memory_used of process 10: failed to read"));
    one["error"] = "process exited".into();
    let (read, trouble) = self::read(report(&[one]).to_string().as_bytes(), &[]).unwrap();
    assert_eq!((read.len(), trouble.as_deref()), (0, Some("process 10: process exited")));
    let mut impossible = runtime(10, "0", 250.0, 100);
    impossible["report"]["memory_used"]["neuron_runtime_used_bytes"] = json!({"host": -1, "neuron_device": "many"});
    assert_eq!(values(&report(&[impossible]), &[]), []);
}

#[test]
fn a_report_stands_for_three_of_its_periods() {
    let period = |json: &Value| NeuronReport::read(json.to_string().as_bytes(), |_| true).unwrap().period;
    assert_eq!(period(&report(&[runtime(10, "0", 1.0, 1)])), Duration::from_millis(1500));
    assert_eq!(period(&report(&[])), Duration::from_secs(5));
}

/// Checks that no prefix of a line is a report or panics.
fn cut(line: &[u8]) {
    (0..line.trim_ascii_end().len()).for_each(|end| assert!(read(&line[..end], &[]).is_none(), "cut at {end}"));
}

#[test]
fn a_part_of_a_line_is_no_report() {
    cut(report(&[runtime(10, "0", 25.0, 100)]).to_string().as_bytes());
}

#[test]
fn recordings_give_their_lists() {
    let first = recordings::text("trainium/neuron-monitor_trn1.2xlarge.jsonl");
    let cases = [(0, 1337, "line1_pid1337"), (1, 16851, "line2_pid16851")];
    for (line, pid, list) in cases {
        let line = first.lines().nth(line).unwrap().as_bytes();
        recordings::check(&format!("trainium_neuron-monitor_trn1_{list}"), &read(line, &[pid]).unwrap().0);
        recordings::check(&format!("trainium_neuron-monitor_trn1_{list}"), &read(line, &[]).unwrap().0);
        assert_eq!(read(line, &[1]).unwrap().0, []);
        // Every cut parses the text before it; some hundred cuts are enough for lines this long.
        (0..line.len()).step_by(37).for_each(|end| assert!(read(&line[..end], &[]).is_none(), "cut at {end}"));
    }
    let failures = recordings::text("trainium/neuron-monitor_failures_CONSTRUCTED.jsonl");
    let read: Vec<_> = failures.lines().map(|line| read(line.as_bytes(), &[4321])).collect();
    let shown: Vec<Option<(usize, Option<&str>)>> =
        read.iter().map(|r| r.as_ref().map(|(values, trouble)| (values.len(), trouble.as_deref()))).collect();
    assert_eq!(
        shown,
        [
            Some((0, None)),
            Some((0, Some("neuron-monitor: Neuron driver not found"))),
            Some((2, Some("memory_used of process 4321: failed to read memory usage"))),
            Some((0, Some("process 4321: process exited"))),
            None,
            None,
        ]
    );
}

#[test]
#[ignore = "reads recordings that are not published; WATCHGLASS_RECORDINGS names their folder"]
fn with_recordings_a_report_put_together_from_documents_gives_its_list() {
    let docs = recordings::text("trainium/neuron-monitor_trn2_FROM-DOCS.jsonl");
    recordings::check("trainium_neuron-monitor_trn2_pid4321", &read(docs.trim().as_bytes(), &[4321]).unwrap().0);
    cut(docs.as_bytes());
}

#[test]
fn numbers_of_recordings_that_are_altered_never_panic_and_invent_no_tag() {
    let text = recordings::text("trainium/neuron-monitor_trn1.2xlarge.jsonl");
    let line = text.lines().next().unwrap();
    let tags: Vec<String> = read(line.as_bytes(), &[]).unwrap().0.into_iter().map(|(tag, _)| tag).collect();
    for (from, to) in [("1", "9"), ("0", "null"), ("5", "-5"), ("8", "1e300"), ("6", "\"\"")] {
        // Only whole numbers as values: after a colon.
        let altered = line.replace(&format!(": {from}"), &format!(": {to}"));
        if let Some((read, _)) = read(altered.as_bytes(), &[]) {
            assert!(read.iter().all(|(tag, value)| tags.contains(tag) && *value >= 0.0), "{from} to {to}");
        }
    }
}

fn open_with(tool: &Path, config: Option<&Path>) -> Result<Vec<Part>, OpenError> {
    let own = OwnOptions::default().with(&COMMAND, tool);
    let own = config.into_iter().fold(own, |own, config| own.with(&TOOL_CONFIG, config));
    open(&Options { own, ..Options::default() }, &Roots::default())
}

/// Reads until the condition holds, and returns the result of the last reading.
fn until(
    part: &mut Part,
    holds: impl Fn(&[(String, f64)], &Result<(), CollectError>) -> bool,
) -> Result<(), CollectError> {
    let begin = Instant::now();
    let mut out = Out::default();
    loop {
        out.begin(begin.elapsed());
        let result = part.collector.collect(&mut out);
        if holds(&out.present(), &result) {
            return result;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?} {result:?}", out.present());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn reports_of_a_running_tool_are_read_and_an_old_one_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    // Longer than a pipe's buffer and than the limit of W&B's reader, and without a later line.
    let mut long = report(&[runtime(10, "0", 25.0, 100)]);
    long["padding"] = "x".repeat(300_000).into();
    std::fs::write(dir.path().join("lines"), format!("starting\n{long}\n")).unwrap();
    let tool = place(dir.path(), "neuron-monitor", "print lines\nwait 600000");
    let mut part = open_with(&tool, None).unwrap().remove(0);
    assert_eq!(until(&mut part, |values, _| values.len() == 6), Ok(()));
    let error = until(&mut part, |values, _| values.is_empty()).unwrap_err();
    assert!(error.reason.contains("has printed no report for 4 s"), "{}", error.reason);
    #[cfg(target_os = "linux")]
    assert!(starts(&tool)[0].starts_with("-c /proc/"), "{:?}", starts(&tool));
}

#[cfg(target_os = "linux")]
#[test]
fn our_configuration_can_be_read_by_its_path() {
    let (_file, path) = in_memory(CONFIG).unwrap();
    let read: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(read["neuron_runtimes"][0]["metrics"][1]["type"], "memory_used");
}

#[test]
fn a_tool_that_ends_or_prints_text_gives_its_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("monitor.json");
    std::fs::write(&config, CONFIG).unwrap();
    let tool = place(dir.path(), "neuron-monitor", "say nrt_init failed: no neuron device found\nexit 1");
    let mut part = open_with(&tool, Some(&config)).unwrap().remove(0);
    let error = until(&mut part, |_, result| result.is_err()).unwrap_err();
    assert_eq!(error.reason, format!("{} ended: nrt_init failed: no neuron device found", tool.display()));
    assert_eq!(starts(&tool)[0], format!("-c {}", config.display()));

    let tool = place(dir.path(), "texts", "line no driver\nwait 600000");
    let mut part = open_with(&tool, None).unwrap().remove(0);
    let error = until(&mut part, |_, result| result.is_err()).unwrap_err();
    assert_eq!(error.reason, format!("{} printed no report but: no driver", tool.display()));
}

#[test]
fn a_machine_without_the_tool_says_so() {
    let absent = open(&Options::default(), &Roots::default()).err().unwrap();
    assert_eq!((absent.kind, absent.reason.as_str()), (OpenErrorKind::Absent, "neuron-monitor was not found"));
    assert!(absent.tried.contains(&"/opt/aws/neuron/bin/neuron-monitor".to_string()));
    assert!(absent.remedy.contains("[collectors.trainium]"));
    let dir = tempfile::tempdir().unwrap();
    let tool = place(dir.path(), "neuron-monitor", "exit 0");
    let missing = open_with(&tool, Some(Path::new("/nowhere/monitor.json"))).err().unwrap();
    assert_eq!(missing.kind, OpenErrorKind::Failed);
    assert!(missing.remedy.contains("config under [collectors.trainium]"), "{}", missing.remedy);
    assert_eq!(starts(&tool), [""; 0]);
}
