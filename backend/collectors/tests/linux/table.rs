//! The table of collectors.

use collectors::{COLLECTORS, Options, Out, Roots};
use std::collections::HashSet;
use std::time::Duration;

#[test]
fn the_table_has_no_fault() {
    assert_eq!(shared::catalog::faults(&collectors::catalog()), Vec::<String>::new());
}

#[test]
fn names_are_unique_and_sayings_are_sentences() {
    let names: HashSet<_> = COLLECTORS.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), COLLECTORS.len());
    for entry in COLLECTORS {
        assert!(entry.about.ends_with('.') && entry.about.starts_with(char::is_uppercase), "{}", entry.about);
        assert!(!entry.metrics.is_empty() || entry.name == "processes", "{}", entry.name); // a table, no series
    }
}

#[test]
fn every_collector_of_this_machine_opens_or_says_why_not() {
    for entry in COLLECTORS {
        match (entry.open)(&Options::default(), &Roots::default()) {
            Ok(parts) => {
                assert!(!parts.is_empty(), "{}", entry.name);
                for mut part in parts {
                    let mut out = Out::default();
                    for second in 0..2 {
                        out.begin(Duration::from_secs(second));
                        let outcome = part.collector.collect(&mut out);
                        assert!(outcome.is_ok() || out.slots().count() == 0, "{}: {outcome:?}", entry.name);
                    }
                }
            }
            Err(error) => assert!(!error.reason.is_empty() && !error.reason.ends_with('.'), "{error:?}"),
        }
    }
}

#[test]
fn facts_of_this_machine_are_known() {
    let facts = collectors::facts(&Roots::default());
    for word in ["os", "kernel", "cores", "memory"] {
        assert!(facts.iter().any(|(found, value)| found == word && !value.is_empty()), "{word}: {facts:?}");
    }
    assert!(collectors::host_name().is_some());
}
