//! Tests of the table of collectors.

use crate::machine::{Machine, TESTED_TAGS};
use crate::{cpu, disk, infiniband, memory, mount, network, power, pressure, process};
use collectors::{COLLECTORS, HOST_COLLECTORS, Options, Out, Roots};
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
        assert!(!entry.metrics.is_empty(), "{}", entry.name);
    }
}

/// The same rule as in `golden.rs`, for the collectors of the host.
#[test]
fn every_row_of_the_host_is_put_by_a_golden_test() {
    cpu::sixty_four_cores();
    cpu::the_packages_sensors_speak_for_the_processor();
    memory::the_whole_host();
    memory::paging_counts_from_the_start();
    pressure::totals_become_shares_of_the_time_between();
    disk::forty_disks_with_all_that_lies_on_them();
    network::links_that_are_part_of_another_count_once();
    infiniband::traffic_is_read_at_every_tick_and_errors_every_ten_seconds();
    process::a_groups_limits_are_the_capacity();
    process::processes_in_uninterruptible_sleep_are_counted();
    mount::nfs_mounts_are_read_by_the_kernels_counts();
    power::packages_and_memory_are_counted_apart_and_through_a_wrap();
    power::the_meters_of_a_grace_module_are_told_apart();
    process::the_service_of_wandb_is_counted_with_its_direct_children();
    process::a_rank_is_counted_with_its_descendants();
    Machine::new().open("disk_usage").next();
    let rows = COLLECTORS.iter().filter(|entry| HOST_COLLECTORS.contains(&entry.name)).flat_map(|entry| entry.metrics);
    let shown = TESTED_TAGS.take();
    let missing: Vec<&str> = rows.copied().flatten().map(|row| row.tag).filter(|tag| !shown.contains(tag)).collect();
    assert!(missing.is_empty(), "no golden test looks at {missing:#?}");
}

#[test]
fn every_collector_of_this_machine_opens_or_says_why_not() {
    for entry in COLLECTORS {
        match entry.open_here(&Options::default(), &Roots::default()) {
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
