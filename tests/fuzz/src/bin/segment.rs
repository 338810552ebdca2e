//! Opens arbitrary bytes as a segment file, rescues it and reads all of it; also as a recording.
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
            // Damage is reported; nothing else is checked here.
            let _ = (reader.tier(block, column.id), reader.span(block, column.id));
        }
    }
    let _ = reader.verify();
}

fuzz_target!(|bytes: &[u8]| {
    for reader in [Reader::open(bytes), Reader::rescue(bytes)].into_iter().flatten() {
        read(&reader);
    }
    // The file is rejected, or opened up to the first damage.
    let _ = Recording::open(bytes);
});
