//! The class of a failure: from the end of a process as the kernel and the scheduler report it, and from the last lines
//! of its output. Pure: it reads no file and no clock.
//!
//! - [`patterns`]: the texts that tools print, with the class of each.
//! - `tails_known.txt`, `tails_held_out.txt`: labeled ends of logs. The patterns were written with the first file at hand.
//!   The second one was held out: it was written after the patterns, and no line of it has changed them.
//! - `tails_further.txt`: more of them in further forms, with which the patterns were mended later.

mod patterns;

use patterns::{
    Hit, TracebackPlace, Tracebacks, Weight, is_chain, is_lost_peer, is_mild, is_noise, is_trouble, without_prefix,
};
use shared::failure::FailureClass;
use shared::run::{How, RunState};

/// Ordinary lines after an error from which on the job has overcome it: an error that it caught and reported.
const OVERCOME_LINES: usize = 20;

/// Signals by which a scheduler or a person ends a job.
const STOP_SIGNALS: [&str; 7] = ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGQUIT"];

/// Exit statuses of shells for the same signals, in the numbers of x86 and ARM.
const STOP_STATUSES: [i32; 7] = [129, 130, 131, 138, 140, 143, 152];

/// The class of a failure, and the line that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub class: FailureClass,
    /// Index of the line among the given ones; None if the kernel or the scheduler says so.
    pub line: Option<usize>,
}

/// The class of the end of a process with these last lines of its output, without colors and launchers' prefixes, oldest
/// first. None if it has not failed: it runs, it finished, or its end is unknown.
pub fn classify(how: &How, lines: &[&str]) -> Option<Failure> {
    let read = of_lines(lines);
    let line_of = |class| read.filter(|(hit, _)| hit.class == class).map(|(_, line)| line);
    let certain = |class| Some(Failure { class, line: line_of(class) });
    match how.state() {
        RunState::OutOfMemory => return certain(FailureClass::OutOfHostMemory),
        RunState::Preempted | RunState::TimedOut | RunState::Cancelled | RunState::NodeFailed => {
            return certain(FailureClass::Stopped);
        }
        RunState::Failed | RunState::Crashed => {}
        _ => return None,
    }
    // The kernel killed a process of the job, such as a worker of its loader; the job only reports that one is gone.
    if how.memory.is_some() {
        return certain(FailureClass::OutOfHostMemory);
    }
    let class = match read {
        Some((hit, _)) if hit.weight >= least_weight(how) && hit.class != FailureClass::Unknown => hit.class,
        _ if is_stop(how) => FailureClass::Stopped,
        _ => FailureClass::Unknown,
    };
    Some(Failure { class, line: line_of(class) })
}

/// Whether a scheduler or a person ended it, by its signal or its status.
fn is_stop(how: &How) -> bool {
    how.signal.as_deref().is_some_and(|signal| STOP_SIGNALS.contains(&signal))
        || how.exit.is_some_and(|status| STOP_STATUSES.contains(&status))
}

/// The least weight of a line that explains this end. A job that is stopped reports what the stop has broken, and a
/// signal of the kernel does not follow from a mere complaint. The runtime of C++ aborts after an exception.
fn least_weight(how: &How) -> Weight {
    match how.signal.as_deref() {
        _ if is_stop(how) => Weight::Root,
        None | Some("SIGABRT") => Weight::Launcher,
        Some(_) => Weight::Exception,
    }
}

/// The class of the end of a process: that of its output, if its machine has read one, unless the kernel or the scheduler
/// knows more. None if it has not failed.
pub fn class_of(how: &How) -> Option<FailureClass> {
    let class = classify(how, &[])?.class;
    let may_be_read = matches!(how.state(), RunState::Failed | RunState::Crashed) && how.memory.is_none();
    Some(how.failure.filter(|_| may_be_read).unwrap_or(class))
}

/// The class that the lines name, and the index of the line that names it. The heaviest line counts. The first of equal
/// lines counts, because later ones are mostly its consequences. The last of several exceptions counts, because the
/// program ended with it.
fn of_lines(lines: &[&str]) -> Option<(Hit, usize)> {
    let mut best: Option<(Hit, usize)> = None;
    let (mut ordinary, mut is_chained) = (0, false);
    let mut tracebacks = Tracebacks::default();
    for (at, line) in lines.iter().enumerate() {
        let line = without_prefix(line);
        is_chained |= is_chain(line);
        if line.trim().is_empty() || is_noise(line) {
            continue;
        }
        let place = tracebacks.place_of(line);
        let is_silent = place == TracebackPlace::Within || is_mild(line);
        let Some(hit) = Some(line).filter(|_| !is_silent).and_then(|line| patterns::hit(line, place)) else {
            ordinary += usize::from(place == TracebackPlace::Outside && !is_trouble(line));
            continue;
        };
        if ordinary >= OVERCOME_LINES {
            best = None;
        }
        ordinary = 0;
        // The peers of a rank that has failed lose it.
        let is_of_peer = !is_chained && hit.class == FailureClass::NcclError && is_lost_peer(line);
        let is_better = best.is_none_or(|(known, _)| match hit.weight {
            Weight::Cause if known.weight == Weight::Exception && is_of_peer => false,
            Weight::Exception | Weight::Complaint | Weight::Launcher => hit.weight >= known.weight,
            _ => hit.weight > known.weight,
        });
        if is_better {
            best = Some((hit, at));
            is_chained = false;
        }
    }
    best.filter(|_| ordinary < OVERCOME_LINES)
}

#[cfg(test)]
mod tests;
