//! Reports steps: what a step does, how it ended, how long it took, and what is left after it.

use std::time::{Duration, Instant};

/// The result of a step that did not fail.
pub enum Done {
    /// There was nothing to do. The text says what was found.
    Already(String),
    /// The work was done now. The text says what came of it.
    Now(String),
    /// The work was done, with something that must not get lost. The text says what; it stands in the table of steps, too.
    But(String),
    /// The work could not be done, and the other steps go on without it. The text says what is lost, and the command
    /// that would help.
    Without(String),
}

/// A part of the work that takes minutes.
pub struct Part {
    /// Name of the step that makes the part.
    pub name: &'static str,
    /// Usual time for the part in seconds.
    pub seconds: u64,
}

/// The steps so far, and the parts that are left.
pub struct Steps {
    started: Instant,
    rows: Vec<Row>,
    left: Vec<Part>,
}

struct Row {
    name: String,
    took: Duration,
    /// True when the step was announced as a part that takes minutes.
    part: bool,
    outcome: Result<String, String>,
}

impl Steps {
    /// Begins without steps; the total time counts from here.
    pub fn new() -> Self {
        Self { started: Instant::now(), rows: Vec::new(), left: Vec::new() }
    }

    /// Announces the parts to be made and their times. The step of each part then says when it begins and what is left.
    pub fn expect(&mut self, parts: Vec<Part>) {
        self.left = parts;
        if !self.left.is_empty() {
            let parts: Vec<String> =
                self.left.iter().map(|part| format!("{} {}", part.name, usual(part.seconds))).collect();
            eprintln!("To be made, once: {}; about {} on two idle cores.", parts.join(", "), self.rest());
        }
    }

    /// Usual time for all parts that are left, in words.
    fn rest(&self) -> String {
        usual(self.left.iter().map(|part| part.seconds).sum())
    }

    /// Runs one step and prints on one line how it ended. The returned error does not repeat the reason of a failure.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Done, String>) -> Result<(), String> {
        let part = self.left.iter().position(|part| part.name == name).map(|at| self.left.remove(at));
        if let Some(part) = &part {
            eprintln!("[{name}] begins: about {}", usual(part.seconds));
        }
        let started = Instant::now();
        let outcome = work();
        let took = started.elapsed();
        let outcome = match outcome {
            Ok(Done::Already(found)) => {
                eprintln!("[{name}] ready: {found}");
                Ok("ready".to_owned())
            }
            Ok(Done::Now(result)) => {
                eprintln!("[{name}] done in {}: {result}{}", seconds(took), self.still());
                Ok("done".to_owned())
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
        self.rows.push(Row { name: name.to_owned(), took, part: part.is_some(), outcome: outcome.clone() });
        outcome.map(|_| ()).map_err(|_| format!("{name} failed, as said above"))
    }

    /// The parts that are left, as the end of a line; empty when there are none.
    fn still(&self) -> String {
        let names: Vec<&str> = self.left.iter().map(|part| part.name).collect();
        if names.is_empty() {
            return String::new();
        }
        format!(". Left: {}, about {}", names.join(", "), self.rest())
    }

    /// Prints in one line the minutes of the announced parts; prints nothing when there were none.
    pub fn note(&self) {
        let parts: Vec<String> = self
            .rows
            .iter()
            .filter(|row| row.part)
            .map(|row| format!("{} {:.1} min", row.name, row.took.as_secs_f64() / 60.0))
            .collect();
        if !parts.is_empty() {
            let all = self.started.elapsed().as_secs_f64() / 60.0;
            eprintln!("Made in {all:.1} min: {}. The next start makes only what has changed.", parts.join(", "));
        }
    }

    /// Prints the table of all steps. Returns an error that names those that failed.
    pub fn finish(self) -> Result<(), String> {
        eprintln!("\n{:<28} {:>9}  result", "step", "time");
        for row in &self.rows {
            let result = match &row.outcome {
                Ok(text) => text.as_str(),
                Err(_) => "FAILED",
            };
            eprintln!("{:<28} {:>9}  {result}", row.name, seconds(row.took));
        }
        eprintln!("{:<28} {:>9}", "together", seconds(self.started.elapsed()));
        let failed: Vec<&str> =
            self.rows.iter().filter(|row| row.outcome.is_err()).map(|row| row.name.as_str()).collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
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
    use super::{Done, Part, Steps, usual};

    #[test]
    fn what_it_takes_is_said_in_half_minutes() {
        assert_eq!([usual(30), usual(60), usual(140), usual(410)], ["30 s", "1 min", "2.5 min", "7 min"]);
    }

    #[test]
    fn what_is_left_goes_down_by_what_is_done() {
        let mut steps = Steps::new();
        steps.expect(vec![Part { name: "trunk", seconds: 120 }, Part { name: "page", seconds: 90 }]);
        steps.step("small", || Ok(Done::Now("made".into()))).expect("it is done");
        assert_eq!(steps.still(), ". Left: trunk, page, about 3.5 min");
        steps.step("trunk", || Ok(Done::Already("there".into()))).expect("it is done");
        assert_eq!(steps.still(), ". Left: page, about 1.5 min");
        steps.step("page", || Err("no".into())).expect_err("it failed");
        assert_eq!(steps.still(), "");
        assert_eq!(steps.rows.iter().map(|row| row.part).collect::<Vec<_>>(), [false, true, true]);
    }
}
