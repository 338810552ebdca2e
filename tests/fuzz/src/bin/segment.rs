//! A segment file of any bytes: opened, rescued, read whole; and as a recording.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shared::recording::Recording;
use shared::segment::Reader;

fn read(reader: &Reader<&[u8]>) {
    for (block, entry) in reader.contents().blocks.iter().enumerate() {
        if let Ok(times) = reader.times(block) {
            assert_eq!(times.len(), entry.ticks as usize);
        }
        for column in reader.entries(block).0 {
            if let Ok(values) = reader.values(block, &column) {
                assert!(values.iter().all(|v| v.is_finite() || v.is_nan()));
            }
            // What is damaged is told; nothing else is asked of it here.
            let _ = (reader.tier(block, column.id), reader.span(block, column.id));
        }
    }
    let _ = reader.verify();
}

fuzz_target!(|bytes: &[u8]| {
    for reader in [Reader::open(bytes), Reader::rescue(bytes)].into_iter().flatten() {
        read(&reader);
    }
    // Refused or opened as far as it is sound.
    let _ = Recording::open(bytes);
});
