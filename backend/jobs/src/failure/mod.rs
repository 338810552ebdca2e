//! The class of a failure: from the end of a process as the kernel and the scheduler report it, and from the last lines
//! of its output. Pure: it reads no file and no clock.
//!
//! - [`patterns`]: the texts that tools print, with the class of each.
//! - `tails_known.txt`, `tails_held_out.txt`: labeled ends of logs. The patterns were written with the first file at hand.
//!   The second one, a third of all, was held out: it was written after the patterns, and no line of it has changed them.

mod patterns;

use patterns::{Hit, Weight, is_noise, is_trouble};
use shared::failure::FailureClass;
use shared::run::{How, RunState};

/// Ordinary lines after an error from which on the job has overcome it: an error that it caught and reported.
const OVERCOME_LINES: usize = 20;

/// Signals by which a scheduler or a person ends a job.
const STOP_SIGNALS: [&str; 7] = ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGQUIT"];

/// Exit statuses of shells for SIGINT and SIGTERM.
const STOP_STATUSES: [i32; 2] = [130, 143];

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
    let line_of = |class| read.filter(|(found, _)| *found == class).map(|(_, line)| line);
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
    if let Some((class, line)) = read {
        return Some(Failure { class, line: Some(line) });
    }
    let is_stop = how.signal.as_deref().is_some_and(|signal| STOP_SIGNALS.contains(&signal))
        || how.exit.is_some_and(|status| STOP_STATUSES.contains(&status));
    let class = if is_stop { FailureClass::Stopped } else { FailureClass::Unknown };
    Some(Failure { class, line: None })
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
fn of_lines(lines: &[&str]) -> Option<(FailureClass, usize)> {
    let mut best: Option<(Hit, usize)> = None;
    let mut ordinary = 0;
    for (at, line) in lines.iter().enumerate() {
        if line.trim().is_empty() || is_noise(line) {
            continue;
        }
        let Some(hit) = patterns::hit(line) else {
            ordinary += usize::from(!is_trouble(line));
            continue;
        };
        if ordinary >= OVERCOME_LINES {
            best = None;
        }
        ordinary = 0;
        let is_better = best.is_none_or(|(known, _)| match hit.weight {
            Weight::Exception | Weight::Complaint | Weight::Launcher => hit.weight >= known.weight,
            _ => hit.weight > known.weight,
        });
        if is_better {
            best = Some((hit, at));
        }
    }
    best.filter(|_| ordinary < OVERCOME_LINES).map(|(hit, at)| (hit.class, at))
}

#[cfg(test)]
mod tests;
