//! Reports steps: their work, their result, their time, and the remaining parts. The times are written to
//! `target/steps.json`.

use crate::cpu::cpu;
use crate::measured::{self, Measured};
use std::time::{Duration, Instant};

/// Number of the longest steps that are named at the end.
const LONGEST_STEPS: usize = 5;

/// The result of a step that did not fail.
#[derive(Debug)]
pub enum Done {
    /// There was no work. The text names the existing result.
    Already(String),
    /// The work was done now. The text names the result.
    Now(String),
    /// The work was done, with a remark that must not get lost. The text is the remark, which is also printed in the
    /// table of steps.
    But(String),
    /// The work could not be done, and the other steps go on without it. The text names the consequence, and the
    /// command that would help.
    Without(String),
}

/// A part of the work that takes minutes.
pub struct StepPart {
    /// Name of the step that makes the part.
    pub name: &'static str,
    /// Wall time of the part when it was last built, in seconds.
    pub seconds: u64,
}

/// The steps so far, and the remaining parts.
pub struct Steps {
    /// The command that runs these steps.
    command: &'static str,
    started: Instant,
    /// CPU time of this process and of its ended children when the first step began.
    began_at: Option<Duration>,
    rows: Vec<StepRow>,
    left: Vec<StepPart>,
}

struct StepRow {
    name: String,
    took: Duration,
    /// CPU time, user and system, of all programs that the step started and waited for.
    cpu: Option<Duration>,
    /// True when the step was announced as a part that takes minutes.
    part: bool,
    outcome: Result<String, String>,
}

impl Steps {
    /// Begins without steps. The total time counts from here.
    pub fn new(command: &'static str) -> Self {
        Self { command, started: Instant::now(), began_at: cpu(), rows: Vec::new(), left: Vec::new() }
    }

    /// Announces the parts to be built and their times. The step of each part then reports its start and the remaining
    /// time.
    pub fn expect(&mut self, parts: Vec<StepPart>) {
        self.left = parts;
        if !self.left.is_empty() {
            let parts: Vec<String> =
                self.left.iter().map(|part| format!("{} {}", part.name, usual(part.seconds))).collect();
            eprintln!("To be made, once: {}; about {} on two cores.", parts.join(", "), self.rest());
        }
    }

    /// Usual time for all remaining parts, in words.
    fn rest(&self) -> String {
        usual(self.left.iter().map(|part| part.seconds).sum())
    }

    /// Runs one step and prints its result on one line. The returned error does not repeat the reason of a failure.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Done, String>) -> Result<(), String> {
        let part = self.left.iter().position(|part| part.name == name).map(|at| self.left.remove(at));
        if let Some(part) = &part {
            eprintln!("[{name}] begins: about {}", usual(part.seconds));
        }
        let (started, before) = (Instant::now(), cpu());
        let outcome = work();
        let took = started.elapsed();
        let cpu = cpu().zip(before).map(|(now, before)| now.saturating_sub(before));
        let outcome = match outcome {
            Ok(Done::Already(found)) => {
                eprintln!("[{name}] ready: {found}");
                Ok(measured::READY.to_owned())
            }
            Ok(Done::Now(result)) => {
                eprintln!("[{name}] done in {}: {result}{}", seconds(took), self.still());
                Ok(measured::DONE.to_owned())
            }
            Ok(Done::But(remark)) => {
                eprintln!("[{name}] done in {}, BUT {remark}", seconds(took));
                Ok(format!("done, BUT {remark}"))
            }
            Ok(Done::Without(reason)) => {
                eprintln!("[{name}] left out: {reason}");
                Ok("left out".to_owned())
            }
            Err(reason) => {
                eprintln!("[{name}] FAILED after {}: {reason}", seconds(took));
                Err(reason)
            }
        };
        self.rows.push(StepRow { name: name.to_owned(), took, cpu, part: part.is_some(), outcome: outcome.clone() });
        outcome.map(|_| ()).map_err(|_| format!("{name} failed, as said above"))
    }

    /// The remaining parts, as the end of a line; empty when there are none.
    fn still(&self) -> String {
        let names: Vec<&str> = self.left.iter().map(|part| part.name).collect();
        if names.is_empty() {
            return String::new();
        }
        format!(". Left: {}, about {}", names.join(", "), self.rest())
    }

    /// Stores the times of the steps, and prints the minutes of the announced parts on one line. Prints nothing when
    /// there were none.
    pub fn note(&self) {
        self.keep();
        if self.rows.iter().any(|row| row.part) {
            eprintln!("{} The next start makes only what has changed.", self.sum());
        }
    }

    /// Whether a step has failed.
    pub fn has_failed(&self) -> bool {
        self.rows.iter().any(|row| row.outcome.is_err())
    }

    /// Prints the table of all steps, and stores it. Returns an error with the names of the failed ones.
    pub fn finish(self) -> Result<(), String> {
        self.keep();
        eprintln!("\n{:<34} {:>9} {:>9}  result", "step", "wall", "CPU");
        for row in &self.rows {
            let result = match &row.outcome {
                Ok(text) => text.as_str(),
                Err(_) => "FAILED",
            };
            let cpu = row.cpu.map_or_else(String::new, seconds);
            eprintln!("{:<34} {:>9} {cpu:>9}  {result}", row.name, seconds(row.took));
        }
        eprintln!("{}", self.sum());
        let failed: Vec<&str> =
            self.rows.iter().filter(|row| row.outcome.is_err()).map(|row| row.name.as_str()).collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }

    /// CPU time of all steps.
    fn cpu(&self) -> Option<Duration> {
        cpu().zip(self.began_at).map(|(now, before)| now.saturating_sub(before))
    }

    /// The total and the longest steps, in one line.
    fn sum(&self) -> String {
        let mut rows: Vec<&StepRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.took));
        let longest = rows.iter().take(LONGEST_STEPS).map(|row| format!("{} {}", row.name, seconds(row.took)));
        let cpu = self.cpu().map(|cpu| format!(" ({} of CPU)", seconds(cpu))).unwrap_or_default();
        let longest = longest.collect::<Vec<_>>().join(", ");
        format!("Together {}{cpu}; longest: {longest}.", seconds(self.started.elapsed()))
    }

    fn keep(&self) {
        let measured = |name: &str, took: Duration, cpu: Option<Duration>, result: &str| Measured {
            name: name.to_owned(),
            wall_s: took.as_secs_f64(),
            cpu_s: cpu.map(|cpu| cpu.as_secs_f64()),
            result: result.to_owned(),
        };
        let rows = self.rows.iter().map(|row| {
            let result = row.outcome.as_deref().unwrap_or("failed");
            measured(&row.name, row.took, row.cpu, result)
        });
        let all = measured(self.command, self.started.elapsed(), self.cpu(), measured::ALL);
        let rows: Vec<Measured> = rows.chain([all]).collect();
        if let Err(reason) = measured::keep(&rows) {
            eprintln!("The times of the steps are not kept: {reason}");
        }
    }
}

/// A duration in words: `0.2 s`, `95 s`.
pub fn seconds(took: Duration) -> String {
    if took < Duration::from_secs(10) {
        format!("{:.1} s", took.as_secs_f64())
    } else {
        format!("{} s", took.as_secs())
    }
}

/// A usual time in words, rounded to half minutes: `30 s`, `2.5 min`.
fn usual(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min", (seconds as f64 / 30.0).round() / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::{Done, StepPart, Steps, usual};

    #[test]
    fn what_it_takes_is_said_in_half_minutes() {
        assert_eq!([usual(30), usual(60), usual(140), usual(410)], ["30 s", "1 min", "2.5 min", "7 min"]);
    }

    #[test]
    fn what_is_left_goes_down_by_what_is_done() {
        let mut steps = Steps::new("test");
        steps.expect(vec![StepPart { name: "wasm-bindgen", seconds: 120 }, StepPart { name: "page", seconds: 90 }]);
        steps.step("small", || Ok(Done::Now("made".into()))).expect("it is done");
        assert_eq!(steps.still(), ". Left: wasm-bindgen, page, about 3.5 min");
        steps.step("wasm-bindgen", || Ok(Done::Already("there".into()))).expect("it is done");
        assert_eq!(steps.still(), ". Left: page, about 1.5 min");
        steps.step("page", || Err("no".into())).expect_err("it failed");
        assert_eq!(steps.still(), "");
        assert_eq!(steps.rows.iter().map(|row| row.part).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn a_step_has_the_time_of_what_it_started() {
        let mut steps = Steps::new("test");
        let work = || {
            crate::exec::cmd("sh").args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]).run()?;
            Ok(Done::Now("counted".into()))
        };
        steps.step("count", work).expect("a shell counts");
        let cpu = steps.rows[0].cpu;
        // On systems other than Linux it is unknown and absent.
        assert_eq!(cpu.is_some(), cfg!(target_os = "linux"));
        assert!(cpu.is_none_or(|cpu| !cpu.is_zero()), "{cpu:?}");
        assert!(steps.sum().contains("longest: count "), "{}", steps.sum());
    }
}
