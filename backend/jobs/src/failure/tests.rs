//! Labeled ends of logs, known ones, held-out ones and further ones, get their classes.

use super::*;
use shared::run::MemoryKill;
use std::collections::BTreeMap;

/// A labeled end of a log.
struct Tail {
    class: FailureClass,
    how: How,
    thread: &'static str,
    lines: Vec<&'static str>,
}

fn how(end: &str) -> How {
    let mut how = How::default();
    let mut words = end.split(' ');
    while let Some(word) = words.next() {
        match word {
            "exit" => how.exit = words.next().and_then(|status| status.parse().ok()),
            "asked" => how.asked = words.next().map(String::from),
            "killed" => how.memory = Some(MemoryKill { kills: 1, limit: Some(1 << 30), peak: None }),
            signal => how.signal = Some(signal.into()),
        }
    }
    how
}

fn tails(file: &'static str) -> Vec<Tail> {
    let mut all: Vec<Tail> = Vec::new();
    for line in file.lines().filter(|line| !line.starts_with("# ")) {
        match line.strip_prefix("=== ") {
            Some(head) => {
                let [class, end, thread] = head.split("; ").collect::<Vec<_>>()[..] else { panic!("{head}") };
                let class = FailureClass::named(class).unwrap_or_else(|| panic!("{head}"));
                all.push(Tail { class, how: how(end), thread, lines: Vec::new() });
            }
            None => all.last_mut().expect("a head").lines.push(line),
        }
    }
    all
}

/// The class of a tail, read as the server reads output: without the prefixes of launchers.
fn class_of(tail: &Tail) -> Option<FailureClass> {
    let bare: Vec<&str> = tail.lines.iter().map(|line| crate::runs::bare(line)).collect();
    classify(&tail.how, &bare).map(|failure| failure.class)
}

/// The mean over the classes of F1, the harmonic mean of precision and recall. It prints each class, and each mistake.
fn macro_f1(name: &str, tails: &[Tail]) -> f64 {
    let mut counts: BTreeMap<FailureClass, [f64; 3]> = BTreeMap::new();
    for tail in tails {
        let found = class_of(tail).unwrap_or(FailureClass::Unknown);
        counts.entry(tail.class).or_default()[2] += 1.0;
        counts.entry(found).or_default()[1] += 1.0;
        match found == tail.class {
            true => counts.entry(found).or_default()[0] += 1.0,
            false => println!("{name}: {} is {}, read as {}", tail.thread, tail.class.name(), found.name()),
        }
    }
    let f1 = |[right, found, real]: &[f64; 3]| 2.0 * right / (found + real);
    for (class, count) in &counts {
        println!("{name}: {:18} {:3} tails, F1 {:.3}", class.name(), count[2], f1(count));
    }
    let mean = counts.values().map(f1).sum::<f64>() / counts.len() as f64;
    println!("{name}: {} tails, macro-F1 {mean:.3}", tails.len());
    mean
}

#[test]
fn the_class_of_a_failure_is_right_on_known_on_held_out_and_on_further_ends_of_logs() {
    let known = tails(include_str!("tails_known.txt"));
    let held_out = tails(include_str!("tails_held_out.txt"));
    let further = tails(include_str!("tails_further.txt"));
    for (name, tails) in [("known", &known), ("held out", &held_out), ("further", &further)] {
        for class in FailureClass::ALL {
            assert!(tails.iter().filter(|tail| tail.class == class).count() >= 5, "{name}: {class:?}");
        }
        assert!(macro_f1(name, tails) >= 0.95, "{name}");
    }
}

#[test]
fn the_line_that_names_the_class_is_that_of_the_cause() {
    let failed = How { exit: Some(1), ..How::default() };
    let line = |lines: &[&str]| classify(&failed, lines).and_then(|failure| failure.line);
    let explained =
        ["DistBackendError: NCCL error, unhandled cuda error", "Last error:", "Cuda failure 2 'out of memory'"];
    assert_eq!(line(&explained), Some(2));
    // Code in a traceback is no message, and neither is a figure.
    let code =
        ["  File \"a.py\", line 3, in f", "    raise Odd(\"CUDA error\")", "lib.Odd: no score", "Test Error: 0.1"];
    assert_eq!(line(&code), Some(2));
    // More lines of a footer than those after which an error is overcome.
    let follows = |further: &[&str]| {
        let further = further.iter().copied().cycle().take(2 * OVERCOME_LINES);
        line(&std::iter::once("KeyError: 'a'").chain(further).collect::<Vec<_>>())
    };
    assert_eq!(follows(&["wandb: a 1", "srun: error: node-1: task 3: Exited with exit code 1", "======"]), Some(0));
    assert_eq!(follows(&["  1%|1 | 1/99 [00:01<01:39]"]), None, "it went on");
}

#[test]
fn a_signal_is_explained_only_by_a_line_that_can_have_caused_it() {
    let class = |signal: Option<&str>, exit: Option<i32>, line: &str| {
        let how = How { signal: signal.map(String::from), exit, ..How::default() };
        classify(&how, &[line]).map(|failure| failure.class)
    };
    let stopped = Some(FailureClass::Stopped);
    for status in STOP_STATUSES {
        assert_eq!(class(None, Some(status), "BrokenPipeError: [Errno 32] Broken pipe"), stopped, "{status}");
    }
    assert_eq!(class(Some("SIGTERM"), None, "ValueError: no rows"), stopped);
    assert_eq!(class(Some("SIGTERM"), None, "CUDA out of memory"), Some(FailureClass::OutOfGpuMemory));
    assert_eq!(
        class(Some("SIGKILL"), None, "ls: cannot access 'a': No such file or directory"),
        Some(FailureClass::Unknown)
    );
    assert_eq!(class(Some("SIGKILL"), None, "ValueError: no rows"), Some(FailureClass::Exception));
    assert_eq!(class(None, Some(1), "x.errors.ChildFailedError:"), Some(FailureClass::Unknown));
}
