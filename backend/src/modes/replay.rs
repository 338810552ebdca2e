//! Serves a recording.

use super::jobs::Jobs;
use super::{Served, Serving, idle, random, serve};
use crate::config::Config;
use shared::recording::Recording;
use stream::live::Live;
use stream::recording;

/// Serves a recording until `stop` becomes true. Nothing is measured, stored or fetched.
pub async fn run(config: Config, recording: Recording, serving: Serving) {
    let (Some(recorded), simulated) = (recording.describe(), recording.simulated()) else { return };
    let store = recording::store(recording, &collectors::catalog());
    let live = Live::of_recording(store, random(), recorded, simulated);
    serve(&config, Served::alone(live, None, Jobs::new(&config, None, None)), serving, idle).await;
}
