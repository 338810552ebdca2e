//! Serves a recording.

use super::{Serving, random, serve};
use crate::config::Config;
use crate::live::Live;
use crate::recording;
use shared::recording::Recording;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Serves a recording until `stop` becomes true. Nothing is measured, stored or asked for.
pub async fn run(config: Config, recording: Recording, serving: Serving) {
    let (Some(recorded), simulated) = (recording.told(), recording.simulated()) else { return };
    let store = recording::store(recording, &collectors::catalog());
    let live = Live::of_recording(store, random(), recorded, simulated);
    let idle = |told: Arc<AtomicBool>| {
        while !told.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_secs(60));
        }
    };
    serve(&config, live, None, serving, idle).await;
}
