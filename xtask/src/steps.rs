//! How a step is told: what it does, how it ended, how long it took.

use std::time::{Duration, Instant};

/// How a step ended well.
pub enum Done {
    /// Nothing was to be done; what was found.
    Already(String),
    /// It was done now; what came of it.
    Now(String),
    /// It could not be done, and the work goes on without it; what is lost, and the command that would do it.
    Without(String),
}

/// The steps so far, for the summary.
pub struct Steps {
    started: Instant,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    took: Duration,
    outcome: Result<String, String>,
}

impl Steps {
    /// No steps yet; the whole is timed from here.
    pub fn new() -> Self {
        Self { started: Instant::now(), rows: Vec::new() }
    }

    /// Runs one step and says on one line how it ended.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Done, String>) -> Result<(), String> {
        let started = Instant::now();
        let outcome = work();
        let took = started.elapsed();
        let outcome = match outcome {
            Ok(Done::Already(found)) => {
                eprintln!("[{name}] ready: {found}");
                Ok("ready".to_owned())
            }
            Ok(Done::Now(result)) => {
                eprintln!("[{name}] done in {}: {result}", seconds(took));
                Ok("done".to_owned())
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
        self.rows.push(Row { name: name.to_owned(), took, outcome: outcome.clone() });
        outcome.map(|_| ())
    }

    /// The table of all steps, and an error that names those that failed.
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

/// A duration as people read it: `0.2 s`, `95 s`.
pub fn seconds(took: Duration) -> String {
    if took < Duration::from_secs(10) {
        format!("{:.1} s", took.as_secs_f64())
    } else {
        format!("{} s", took.as_secs())
    }
}
