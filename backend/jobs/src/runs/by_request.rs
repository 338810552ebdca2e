//! Runs of this machine that launchers without our binary report by requests.

use super::reported::{MAX_REPORTED, RefusedReport, Report, Reported};
use super::track::{Tracker, append};
use shared::run::{BEGIN_KIND, Begun, END_KIND, How, Over, Paused, STATE_KIND};
use std::time::Duration;
use tokio::time::Instant;

/// A run is unheard after this time without a request, and given up after the second one.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(60);
const GIVEN_UP: Duration = Duration::from_secs(12 * 3600);
/// Time for which a repeated end is recognized.
const REPEATED_END: Duration = Duration::from_secs(600);

fn is_recent(at: Instant) -> bool {
    at.elapsed() < REPEATED_END
}

impl Tracker {
    /// Takes a report of a launcher; true if it begins or ends a run, and is no repetition.
    pub(super) fn report(&mut self, report: Report) -> Result<bool, RefusedReport> {
        let now = self.live.clock.wall();
        match report {
            Report::Begin(id, about) => {
                if let Some(known) = self.reported.get_mut(&id) {
                    known.heard = Instant::now();
                    return Ok(false);
                }
                // An ID of a run that a user began on this machine belongs to that user: no other launcher may report
                // it.
                if self.is_running(&id) || self.owners.is_somebodys(&id) {
                    return Err(RefusedReport::Other(id));
                }
                if self.reported.len() >= MAX_REPORTED {
                    self.drop_one();
                    return Err(RefusedReport::TooMany);
                }
                let begun = Begun { run: id.clone(), t: now, told: true, about, ..Begun::default() };
                self.store(now, BEGIN_KIND, &begun)?;
                self.owners.take(&begun);
                self.reported.insert(id, Reported { begun, heard: Instant::now(), unheard: false });
                Ok(true)
            }
            Report::Heartbeat(id) => {
                let Some(known) = self.reported.get_mut(&id) else { return Err(RefusedReport::Unknown(id)) };
                known.heard = Instant::now();
                if std::mem::take(&mut known.unheard) {
                    self.append(now, STATE_KIND, &Paused { run: id, pid: 0, stopped: false, unheard: None });
                }
                Ok(false)
            }
            Report::End(id, how) => {
                let Some(known) = self.reported.get(&id) else {
                    // A launcher repeats an end that was not answered.
                    let is_repeated = self.reported_ends.iter().any(|(known, at)| *known == id && is_recent(*at));
                    return if is_repeated { Ok(false) } else { Err(RefusedReport::Unknown(id)) };
                };
                let over = Over { begun: known.begun.clone(), t: now, how };
                self.store(now, END_KIND, &over)?;
                self.reported.remove(&id);
                self.reported_ends.retain(|(_, at)| is_recent(*at));
                if self.reported_ends.len() >= MAX_REPORTED {
                    self.reported_ends.pop_front();
                }
                self.reported_ends.push_back((id, Instant::now()));
                Ok(true)
            }
        }
    }

    /// Stores a record that a launcher is told of.
    fn store(&self, t: i64, kind: &str, body: &impl serde::Serialize) -> Result<(), RefusedReport> {
        let body = serde_json::to_vec(body).expect("texts and numbers only");
        let stored = self.live.append_record(self.source, t, kind, body);
        stored.map(|_| ()).map_err(|why| RefusedReport::NotStored(why.to_string()))
    }

    /// Marks launchers that have gone silent, and gives up runs that were silent for half a day.
    pub(super) fn look_at_reported(&mut self) {
        let now = self.live.clock.wall();
        let mut given_up = Vec::new();
        for (id, one) in &mut self.reported {
            let silent = one.heard.elapsed();
            if silent >= GIVEN_UP {
                given_up.push(id.clone());
            } else if silent >= UNREACHABLE_TIMEOUT && !std::mem::replace(&mut one.unheard, true) {
                let unheard = Some(now - silent.as_millis() as i64);
                let body = Paused { run: id.clone(), pid: 0, stopped: false, unheard };
                append(&self.live, self.source, now, STATE_KIND, &body);
            }
        }
        for id in given_up {
            if let Some(one) = self.reported.remove(&id) {
                self.append(now, END_KIND, &Over { begun: one.begun, t: now, how: How::default() });
            }
        }
    }
}
