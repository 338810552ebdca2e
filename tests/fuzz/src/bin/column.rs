//! Decodes arbitrary bytes as a column, and as a column of times.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shared::column;

fuzz_target!(|input: (u16, &[u8])| {
    let (ticks, bytes) = (usize::from(input.0), input.1);
    if let Ok(values) = column::decode(bytes, ticks) {
        assert_eq!(values.len(), ticks);
        assert!(values.iter().all(|v| v.is_finite() || v.is_nan()), "absent or a number");
        let again = column::decode(&column::encode(&values, 100.0), ticks).expect("what was encoded is decoded");
        assert!(values.iter().zip(&again).all(|(a, b)| a == b || a.is_nan() && b.is_nan()));
    }
    if let Ok(times) = column::decode_times(bytes, ticks) {
        assert_eq!(times.len(), ticks);
    }
});
