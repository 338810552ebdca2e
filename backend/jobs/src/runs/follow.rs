//! Runs of this machine while they run: what launchers tell of them, what is found of them, and what the kernel says of their
//! ends, one after the other.

use super::RunsSettings;
use super::detection::Detection;
use super::messages::{Messages, Received};
use super::permit::Owners;
use super::registry::RunRegistry;
use super::reported::{RefusedReport, Report, ReportAsk};
use super::slurm::RunTool;
use super::socket::RunSocket;
use super::spool::{self, Spool};
use super::track::Tracker;
use crate::code_alerts::Calls;
use crate::markers::Markers;
use shared::run::{END_KIND, Over};
use shared::wire::SourceId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

/// How often is looked at what launchers wrote, and who of those that tell by requests is not heard any more.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// A run that lives longer than samples are kept is told again so often.
const REPEAT_INTERVAL: Duration = Duration::from_secs(3600);

/// Follows the runs of this machine until `stop` becomes true: what launchers tell on the socket and by requests, what they
/// wrote into the data folder or that of this user, and what ran when this process started. `tree` has the control groups of
/// the machine.
pub async fn follow(
    (live, registry): (Arc<Live>, Arc<RunRegistry>),
    source: SourceId,
    (socket, mut reports): (RunSocket, mpsc::Receiver<ReportAsk>),
    (folder, of_user): (&Path, Option<PathBuf>),
    (markers, calls): (Arc<Markers>, Arc<Calls>),
    (settings, run_tool, tree): (RunsSettings, RunTool, PathBuf),
    mut stop: watch::Receiver<bool>,
) {
    let detect = settings.detect;
    let owners = Owners::new(folder, socket.trusted());
    let mut tracker = Tracker::new((live, registry.clone()), source, owners, &settings, (run_tool, tree.clone()));
    let spool = folder.canonicalize().ok();
    let spool = spool.and_then(|folder| Spool::of_server(&folder.join(spool::FOLDER), socket.trusted()));
    tracker.take_up(spool.as_ref());
    let mut messages = Messages::new(socket, folder, spool, (markers, calls));
    // A home may be on a disk that does not answer.
    let (trusted, of_user) = (messages.socket.trusted(), of_user.filter(|path| *path != folder));
    let mut of_user = tokio::task::spawn_blocking(move || {
        let spool = Spool::of_user(&of_user?.join(spool::FOLDER), trusted)?;
        let read = spool.read(true);
        Some((spool, read))
    });
    let mut is_read = false;
    let half = Duration::from_millis(tracker.live.retention.unsigned_abs() / 2 + 1);
    let mut again = tokio::time::interval(REPEAT_INTERVAL.min(half));
    again.tick().await;
    let mut look = tokio::time::interval(CHECK_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut detection = Detection::new(detect, tree);
    loop {
        tracker.tell_collectors();
        tokio::select! {
            (message, sender) = messages.socket.next() => {
                if messages.receive(&mut tracker, message, &sender) == Received::Told {
                    detection.soon();
                }
            }
            found = &mut of_user, if !is_read => {
                is_read = true;
                if let Ok(Some((spool, read))) = found {
                    tracker.take(&spool, read);
                }
            }
            Some(ended) = tracker.ends.join_next() => {
                // An end that another source has reported is no longer awaited.
                if let Ok((key, begun, t, how)) = ended {
                    tracker.gone(key, begun, t, how);
                }
            }
            Some(Ok((over, Some(how)))) = tracker.claims.join_next() => {
                tracker.append(over.t, END_KIND, &Over { how, ..over });
            }
            Some(Ok(Some(over))) = tracker.classes.join_next() => {
                tracker.append(over.t, END_KIND, &over);
            }
            found = detection.next() => match found {
                Some((found, stopped)) => {
                    tracker.found_all(found);
                    tracker.paused(&stopped);
                }
                None => detection.search(tracker.here(), tracker.live.clock.wall()),
            },
            Some(ReportAsk { report, answer }) = reports.recv() => {
                let _ = answer.send(requested(&mut tracker, &messages, report));
            }
            requests = registry.stacks.next() => messages.send_requests(&requests),
            _ = look.tick() => {
                tracker.look_at_reported();
                messages.socket.renew(&settings);
                if let Some(spool) = &messages.spool {
                    tracker.take(spool, spool.read(false));
                }
            }
            _ = again.tick() => tracker.again(),
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Takes a report by request; true if its run is new.
fn requested(tracker: &mut Tracker, messages: &Messages, report: Report) -> Result<bool, RefusedReport> {
    match messages.limit.check() {
        Ok(()) => tracker.report(report),
        Err(_) => {
            tracker.drop_one();
            Err(RefusedReport::TooMany)
        }
    }
}
