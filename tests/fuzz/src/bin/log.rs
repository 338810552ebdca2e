//! Reads arbitrary bytes as a log file.
#![no_main]

use history::log;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (records, gaps) = log::scan(bytes);
    assert!(records.iter().all(|(at, _)| *at < bytes.len() as u64));
    assert!(records.is_sorted_by_key(|(at, _)| *at) && gaps.len() <= bytes.len());
    let _ = log::version(bytes);
});
