//! Labeled ends of logs, known ones and held-out ones, get their classes.

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
fn the_class_of_a_failure_is_right_on_known_and_on_held_out_ends_of_logs() {
    let known = tails(include_str!("tails_known.txt"));
    let held_out = tails(include_str!("tails_held_out.txt"));
    for (name, tails) in [("known", &known), ("held out", &held_out)] {
        for class in FailureClass::ALL {
            assert!(tails.iter().filter(|tail| tail.class == class).count() >= 5, "{name}: {class:?}");
        }
        assert!(macro_f1(name, tails) >= 0.95, "{name}");
    }
}
