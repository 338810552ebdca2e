//! Runs of this machine that launchers without our binary report by requests.

use super::reported::{MAX_REPORTED, RefusedReport, Report, Reported};
use super::track::{Tracker, append};
use shared::run::{BEGIN_KIND, Begun, END_KIND, How, Over, Paused, STATE_KIND};
use std::time::Duration;
use tokio::time::Instant;

/// A run is unheard after this time without a request, and given up after the second one.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(60);
const GIVEN_UP: Duration = Duration::from_secs(12 * 3600);

impl Tracker {
    /// Takes a report of a launcher; true if its run is new.
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
                self.append(now, BEGIN_KIND, &begun);
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
                let Some(known) = self.reported.remove(&id) else { return Err(RefusedReport::Unknown(id)) };
                self.append(now, END_KIND, &Over { begun: known.begun, t: now, how });
                Ok(false)
            }
        }
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
