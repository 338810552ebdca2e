//! Tests with a fake tool that behaves in every way known from real ones.

use super::*;
use fake_tool::{place, starts};
use tempfile::TempDir;

const NO_ARGS: [&str; 0] = [];
/// Longer than any wait of a passing test.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn within(deadline: Duration) -> RunLimits {
    RunLimits::within(deadline)
}

/// Polls until the condition holds.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LONG_TIMEOUT, "{what}: not after {LONG_TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(target_os = "linux")]
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name's parenthesis; a zombie has ended.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn what_a_tool_prints_comes_back_whole_with_its_status() {
    let dir = folder();
    std::fs::write(dir.path().join("text"), "one\ntwo").unwrap();
    let tool = place(dir.path(), "smi", "print text\nsay careful\nexit 3");
    let output = run(&tool, &["-q", "-x"], &within(LONG_TIMEOUT)).unwrap();
    assert_eq!(output.stdout, b"one\ntwo");
    assert_eq!(output.errors, "careful\n");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(starts(&tool), ["-q -x"]);
    assert_eq!(output.failure_message(&tool), format!("{} said: careful", tool.display()));
}

#[test]
fn one_that_hangs_is_killed_at_the_deadline_even_when_it_ignores_signals() {
    let dir = folder();
    let tool = place(dir.path(), "smi", "ignore\nhalf some\nwait 600000");
    let begin = Instant::now();
    let error = run(&tool, &NO_ARGS, &within(Duration::from_millis(300))).unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert!(matches!(error, ExecError::Hung(..)), "{error}");
    assert_eq!(error.to_string(), format!("{} timed out after 0.3 s and was killed", tool.display()));
}

#[test]
fn a_flood_ends_at_the_limit() {
    let dir = folder();
    let tool = place(dir.path(), "smi", "flood 100000000");
    let error = run(&tool, &NO_ARGS, &within(LONG_TIMEOUT)).unwrap_err();
    assert!(matches!(error, ExecError::Flood(_, 4_194_304)), "{error}");
    let errors = place(dir.path(), "loud", "errors big\nline done");
    std::fs::write(dir.path().join("big"), "x".repeat(1 << 20) + "end").unwrap();
    let output = run(&errors, &NO_ARGS, &within(LONG_TIMEOUT)).unwrap();
    assert_eq!((output.errors.len(), output.errors.ends_with("xend")), (MAX_ERROR_BYTES, true));
    assert_eq!(output.stdout, b"done\n");
}

#[test]
fn a_tool_that_dies_by_a_signal_gives_what_it_printed() {
    let dir = folder();
    let tool = place(dir.path(), "smi", "half some\ndie");
    let output = run(&tool, &NO_ARGS, &within(LONG_TIMEOUT)).unwrap();
    assert_eq!(output.stdout, b"some");
    assert!(!output.status.success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_grandchild_that_holds_the_pipe_neither_delays_nor_survives() {
    let dir = folder();
    let tool = place(dir.path(), "smi", "grandchild 600000\nline done");
    let begin = Instant::now();
    let output = run(&tool, &NO_ARGS, &within(LONG_TIMEOUT)).unwrap();
    assert_eq!(output.stdout, b"done\n");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    let pid = std::fs::read_to_string(dir.path().join("smi.grandchild")).unwrap();
    wait_for("the grandchild ends", || !runs(&pid));
    // Parent and child hang until the timeout, and are killed together. A busy machine may take longer to start them.
    let tool = place(dir.path(), "hangs", "grandchild 600000\nwait 600000");
    let pid = [500, 2_000, 8_000, 30_000].iter().find_map(|ms| {
        assert!(matches!(run(&tool, &NO_ARGS, &within(Duration::from_millis(*ms))), Err(ExecError::Hung(..))));
        std::fs::read_to_string(dir.path().join("hangs.grandchild")).ok().filter(|pid| !pid.is_empty())
    });
    let pid = pid.expect("a grandchild was started");
    wait_for("the grandchild ends", || !runs(&pid));
}

#[cfg(target_os = "linux")]
#[test]
fn a_grandchild_outside_the_group_delays_nobody() {
    let dir = folder();
    let tool = place(dir.path(), "smi", "escape 20000\nline done");
    let begin = Instant::now();
    assert_eq!(run(&tool, &NO_ARGS, &within(LONG_TIMEOUT)).unwrap().stdout, b"done\n");
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    let pid = std::fs::read_to_string(dir.path().join("smi.grandchild")).unwrap();
    // SAFETY: a plain system call on a process that this test started.
    unsafe { libc::kill(pid.parse().unwrap(), libc::SIGKILL) };
}

#[test]
fn a_file_that_is_no_program_says_so() {
    let dir = folder();
    let tool = dir.path().join("smi");
    assert!(matches!(run(&tool, &NO_ARGS, &within(LONG_TIMEOUT)), Err(ExecError::Start(..))));
}

#[test]
fn a_stream_gives_each_complete_line_once_with_its_age() {
    let dir = folder();
    let tool = place(dir.path(), "monitor", "line one\nline two\nhalf thr\nwait 600000");
    let stream = Stream::start(&tool, &["-c", "x"], LONG_TIMEOUT);
    let mut lines = Vec::new();
    wait_for("two lines", || {
        lines.extend(stream.take());
        lines.len() == 2
    });
    assert_eq!(lines.iter().map(|l| l.text.as_slice()).collect::<Vec<_>>(), [b"one", b"two"]);
    assert!(lines[1].at.elapsed() < LONG_TIMEOUT);
    assert!(stream.take().is_empty());
    assert_eq!(stream.trouble(), None);
    assert_eq!(starts(&tool), ["-c x"]);
}

#[test]
fn a_stream_that_ends_is_started_again_and_says_why_it_ended() {
    let dir = folder();
    let tool = place(dir.path(), "monitor", "line one\nsay no device\nexit 1");
    let stream = Stream::start(&tool, &[], LONG_TIMEOUT);
    let reason = format!("{} ended: no device", tool.display());
    wait_for("the reason", || stream.trouble().as_deref() == Some(&reason));
    wait_for("a second start", || starts(&tool).len() >= 2);
}

#[test]
fn a_stream_that_falls_silent_is_started_again() {
    let dir = folder();
    let tool = place(dir.path(), "monitor", "line one\nignore\nwait 600000");
    let stream = Stream::start(&tool, &[], Duration::from_millis(300));
    wait_for("a second start", || starts(&tool).len() >= 2);
    assert!(stream.take().len() <= starts(&tool).len());
}

#[test]
fn a_long_line_comes_whole_and_one_beyond_the_limit_is_left_out() {
    let dir = folder();
    let tool = place(dir.path(), "monitor", "fill 15000000\nline small\nfill 17000000\nline last\nwait 600000");
    let stream = Stream::start(&tool, &[], LONG_TIMEOUT);
    let mut sizes = Vec::new();
    wait_for("three lines", || {
        sizes.extend(stream.take().iter().map(|line| line.text.len()));
        sizes.len() == 3
    });
    assert_eq!(sizes, [15_000_000, 5, 4]);
}

#[test]
fn a_stream_that_nobody_reads_keeps_the_newest_lines() {
    let dir = folder();
    let tool = place(dir.path(), "monitor", "flood 2000000\nline last\nwait 600000");
    let stream = Stream::start(&tool, &[], LONG_TIMEOUT);
    let mut all = Vec::new();
    wait_for("the last line", || {
        let lines = stream.take();
        assert!(lines.len() <= 1000);
        all.extend(lines);
        all.last().is_some_and(|line| line.text.ends_with(b"last"))
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_stream_takes_its_tool_and_all_below_it_along() {
    let dir = folder();
    let tool = place(dir.path(), "monitor", "ignore\ngrandchild 600000\nline one\nwait 600000");
    let stream = Stream::start(&tool, &[], LONG_TIMEOUT);
    wait_for("a line", || !stream.take().is_empty());
    drop(stream);
    let pid = std::fs::read_to_string(dir.path().join("monitor.grandchild")).unwrap();
    wait_for("the grandchild ends", || !runs(&pid));
    assert_eq!(starts(&tool).len(), 1);
}

#[test]
fn recorded_failures_come_back_as_they_were() {
    plays("failures/constructed.json", 5);
}

#[test]
#[ignore = "reads recordings that are not published; WATCHGLASS_RECORDINGS names their folder"]
fn with_recordings_failures_of_real_tools_come_back_as_they_were() {
    plays("failures/tool-failures.json", 16);
}

/// Replays each recorded failure: the tool's output and its exit status are returned unchanged.
fn plays(recording: &str, failures: usize) {
    let cases: Vec<serde_json::Value> = serde_json::from_str(&crate::recordings::text(recording)).unwrap();
    assert_eq!(cases.len(), failures);
    for (i, case) in cases.iter().enumerate() {
        let dir = folder();
        let part = |key: &str| case[key].as_str().unwrap();
        let name = part("tool").replace(' ', "-");
        std::fs::write(dir.path().join("stdout"), part("stdout")).unwrap();
        std::fs::write(dir.path().join("stderr"), part("stderr")).unwrap();
        let end = match case["hang_seconds"].as_u64() {
            Some(seconds) => format!("wait {}", seconds * 1000),
            None => format!("exit {}", case["exit"]),
        };
        let tool = place(dir.path(), &name, &format!("print stdout\nerrors stderr\n{end}"));
        let hangs = case["exit"].is_null();
        let limits = within(if hangs { Duration::from_millis(300) } else { LONG_TIMEOUT });
        match run(&tool, &NO_ARGS, &limits) {
            Err(ExecError::Hung(..)) => assert!(hangs, "case {i}: {}", part("case")),
            Err(error) => panic!("case {i}: {error}"),
            Ok(output) => {
                assert!(!hangs, "case {i}: {}", part("case"));
                assert_eq!(output.stdout, part("stdout").as_bytes(), "case {i}");
                assert_eq!(output.errors, part("stderr"), "case {i}");
                assert_eq!(output.status.code().map(i64::from), case["exit"].as_i64(), "case {i}");
                let said = output.failure_message(&tool);
                assert!(said.contains(" said: ") || said.contains("printed nothing"), "case {i}: {said}");
            }
        }
    }
}
