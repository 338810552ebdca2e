//! Faults of the doctor, its list of families, and redaction of a bundle.

use super::*;

fn check(id: &str, state: CheckState, reason: &str) -> Check {
    Check {
        id: id.into(),
        state,
        tried: vec!["/somewhere".into()],
        found: "Something.".into(),
        reason: reason.into(),
        remedy: String::new(),
    }
}

const FAMILIES: &[&str] = &[
    "cpu",
    "memory",
    "pressure",
    "disk",
    "disk_usage",
    "network",
    "process",
    "monitor",
    "nvidia",
    "amd",
    "intel",
    "ascend",
    "apple",
    "graphcore",
    "tpu",
    "trainium",
    "openmetrics",
];

#[test]
fn every_family_is_listed_once_whatever_runs() {
    for checks in [Vec::new(), vec![check("cpu", CheckState::Ok, "")]] {
        let all = complete(checks.clone());
        for family in FAMILIES {
            assert_eq!(all.iter().filter(|c| c.id == *family).count(), 1, "{family}");
        }
        let cpu = all.iter().find(|c| c.id == "cpu").expect("it is listed");
        assert_eq!(cpu.state == CheckState::Ok, !checks.is_empty());
        assert!(
            all.iter().filter(|c| c.state == CheckState::Absent).all(|c| !c.reason.is_empty() && !c.found.is_empty())
        );
    }
}

/// The sentences.
fn faults(checks: &[Check], config: &Config, gpus: &BTreeSet<u32>) -> Vec<String> {
    super::faults(checks, config, gpus).into_iter().map(|(_, sentence)| sentence).collect()
}

#[test]
fn absent_is_a_fault_only_when_it_was_asked_for() {
    let absent =
        [check("process", CheckState::Absent, "no such process"), check("nvidia", CheckState::Absent, "no library")];
    let none = BTreeSet::new();
    let plain = Config::default();
    assert_eq!(faults(&absent, &plain, &none), Vec::<String>::new());
    let watched = Config { pids: vec![9], ..Config::default() };
    assert_eq!(faults(&absent, &watched, &none), ["process, requested by --pid 9: no such process"]);
    let mut library = Config::default();
    let nvidia = library.collectors.iter_mut().find(|collector| collector.name == "nvidia").expect("it is known");
    nvidia.own.insert("library", vec!["/x/nvml.so".into()]);
    assert!(faults(&absent, &library, &none)[0].starts_with("nvidia, requested by library of [collectors.nvidia]"));
    let gpus = Config { gpus: vec![0, 7], ..Config::default() };
    assert_eq!(faults(&absent, &gpus, &none), ["GPU 0, 7, requested by --gpu: the machine has none"]);
    assert_eq!(faults(&absent, &gpus, &BTreeSet::from([0, 1])), ["GPU 7, requested by --gpu: the machine has 0, 1"]);
    assert_eq!(faults(&absent, &gpus, &BTreeSet::from([0, 7])), Vec::<String>::new());
    for state in [CheckState::Failed, CheckState::Denied, CheckState::Hung, CheckState::Partial, CheckState::Starting] {
        assert_eq!(
            faults(&[check("nvidia", state, "x")], &plain, &none).len(),
            1,
            "{state:?}: it is here and does not work"
        );
    }
}

#[test]
fn a_gpu_whose_driver_requires_an_action_is_told_with_the_next_step() {
    let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: 60_000, bytes: 1 << 20 });
    let source = store.add_source(String::new(), 1_000, Vec::new());
    let metric = store.catalog().metrics.iter().position(|m| m.tag == gpu_health::RECOVERY_ACTION.tag).expect("a row");
    for gpu in 0..3 {
        store.intern(source, SeriesDef { metric: metric as u16, instance: gpu.to_string() }).expect("room");
    }
    store.append(source, 1_000, false, &[0.0, 4.0, f64::NAN]).expect("a tick");
    store.append(source, 2_000, false, &[f64::NAN; 3]).expect("a tick");
    let words = "GPU 1 needs a reset once its jobs have ended, as its driver reports: Start no further jobs on the GPU, \
                 let the running ones end, then reset it";
    assert_eq!(super::needs(&store, source), [words]);
}

#[test]
fn the_report_names_reason_remedy_and_what_was_tried() {
    let mut broken = check("nvidia", CheckState::Failed, "the library is of another version than the driver");
    broken.remedy = "sudo reboot".into();
    let checks = vec![check("cpu", CheckState::Ok, ""), broken, check("apple", CheckState::Absent, "only on macOS")];
    let faults = super::faults(&checks, &Config::default(), &BTreeSet::new());
    let text = report(&Examination { checks, faults, health: Vec::new() });
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} in {text}"));
    assert!(at("Needs attention") < at("nvidia") && at("nvidia") < at("Works") && at("Works") < at("Not available"));
    assert!(at("why    the library is of another") < at("do     sudo reboot") && at("tried  /somewhere") < at("Works"));
    assert!(text.contains("1 of 3 families work here") && text.contains("only on macOS"));
    assert!(text.ends_with("Problems:\n  - nvidia: the library is of another version than the driver\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100 && line == line.trim_end()));
    assert!(text.contains("/docs/start/collectors.html"), "{text}");
    let checks = vec![check("cpu", CheckState::Ok, "")];
    let text = report(&Examination { checks, faults: Vec::new(), health: Vec::new() });
    assert!(!text.contains("/docs/"), "{text}");
}

/// Names in their usual form, which must not appear.
const HOSTS: &[&str] = &["GPU-7.lab.example.org", "db", "a+b(c)", "zürich-01"];
const USERS: &[&str] = &["zoë", "o'brien", "ann", "DOMAIN\\jane.doe", "x", "日本"];

#[test]
fn a_bundle_names_nobody_and_no_place() {
    let scrub = Scrub::new(HOSTS.iter().copied(), USERS.iter().copied());
    let mut lines = String::new();
    for name in HOSTS.iter().chain(USERS) {
        for form in [name.to_string(), name.to_uppercase(), name.to_lowercase()] {
            lines +=
                &format!("{form}\n{form}: /data/{form}/runs, ({form}) \"{form}\" {form}.\n/home/{form}/x {form}-2\n");
        }
    }
    lines += "gpu-7 and GPU-7 and xxgpu-7xx\n";
    let places = [
        "10.1.2.3",
        "192.168.0.17:9400",
        "[fe80::12:ab]:8431",
        "2001:db8::7",
        "fe80::1%eth0",
        "172.16.0.1/12",
        "aa:bb:cc:0d:ee:ff",
        "::ffff:10.9.8.7",
        "[2001:db8::9]",
    ];
    for place in places {
        lines += &format!("{place}\naddr:{place} from {place}, Interface:{place}; ({place})\nat {place}.\n");
    }
    lines += "http://me:hunter2@metrics.example.net:9400/path?key=s3cr3t#x and wss://[2001:db8::5]:1/live\n";
    lines += "password = \"hunter2\"\nAuthorization: Bearer hunter2\nheaders = { api_key = \"hunter2\" }\n/Users/Jane Roe/data\n";
    let text = scrub.text(&lines);
    let lower = text.to_lowercase();
    for word in
        ["gpu-7", "lab.example", "a+b", "zürich", "zoë", "o'brien", "jane", "日本", "hunter2", "s3cr3t", "example.net"]
    {
        assert!(!lower.contains(word), "{word} in {text}");
    }
    for word in ["10.1.2.3", "192.168", "fe80", "db8", "172.16", "aa:bb", "10.9.8", "9400"] {
        assert!(!lower.contains(word), "{word} in {text}");
    }
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    assert!(!words.iter().any(|word| ["ann", "db", "x"].contains(word)), "{text}");
    assert_eq!(text.lines().count(), lines.lines().count());
}

#[test]
fn what_names_nobody_stays() {
    let scrub = Scrub::new(["node-5"], ["ann", "root"]);
    let text = "version 0.1.0, driver 535.129.03, GPU 0000:3b:00.0, /proc/self/statm, 2026-11-21T13:55:33Z backend::demo\n\
        annotation std::fs::File /sys/fs/cgroup [collectors.nvidia] cpu: 14 values, 100 % of 8431, root, a.b.c.d dead:beef\n";
    assert_eq!(scrub.text(text), text);
    assert_eq!(scrub.text("listening on 127.0.0.1:7171 and [::1]:7171"), "listening on <loopback> and <loopback>");
    assert_eq!(scrub.text("http://127.0.0.1:9400/metrics"), "http://<host>/metrics");
}

#[test]
fn the_tail_of_a_log_is_bounded_and_begins_with_a_whole_line() {
    use std::io::Write;
    let mut tail = Tail::default();
    assert_eq!(tail.text(), "");
    for n in 0..20_000 {
        writeln!(tail, "line {n}").expect("memory takes it");
    }
    let text = tail.text();
    assert!(text.len() <= 64 << 10 && text.starts_with("line ") && text.ends_with("line 19999\n"));
}
