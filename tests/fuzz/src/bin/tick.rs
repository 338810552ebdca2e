//! Applies arbitrary bytes as frames to one state, one after the other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shared::tick::TickState;

fuzz_target!(|input: (u8, Vec<&[u8]>)| {
    let mut state = TickState::default();
    state.extend((0..input.0).map(|i| if i % 3 == 0 { 0.0 } else { 100.0 }));
    for frame in input.1 {
        let (before, seq) = (state.clone(), state.seq());
        match state.apply(frame) {
            Ok(_) => {
                assert!(state.values().iter().all(|v| v.is_finite() || v.is_nan()));
                let mut other = TickState::default();
                other.extend(state.steps().iter().copied());
                if state.t() >= 0 {
                    other.apply(&state.keyframe()).expect("a keyframe of a sound state is sound");
                    let same = state.values().iter().zip(other.values());
                    assert!(same.into_iter().all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()));
                }
            }
            Err(_) => {
                assert_eq!(state.seq(), seq);
                state = before; // The frame is damaged, so a reader waits for the next keyframe.
            }
        }
    }
});
