//! Repeats the output of failed tests at the end of the run: the runner prints it amid thousands of lines.

/// Maximum number of tests, of lines of each, and of characters of a line that are repeated.
const MAX_TESTS: usize = 12;
const MAX_LINES: usize = 8;
const MAX_CHARS: usize = 300;

/// The output of failed tests, read from the lines of test runners.
#[derive(Default)]
pub struct Failures {
    tests: Vec<FailedTest>,
    /// The current line belongs to the output of the last test.
    is_within: bool,
    /// Number of failed tests beyond the maximum.
    more: usize,
}

struct FailedTest {
    name: String,
    lines: Vec<String>,
    more: usize,
}

impl Failures {
    /// Reads the next line of a test runner.
    pub fn read(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.is_within = self.tests.len() < MAX_TESTS;
            match self.is_within {
                true => self.tests.push(FailedTest { name: name.to_owned(), lines: Vec::new(), more: 0 }),
                false => self.more += 1,
            }
        } else if ["failures:", "stack backtrace:"].contains(&line) || line.starts_with("test result: ") {
            self.is_within = false;
        } else if let Some(test) = self.tests.last_mut().filter(|_| self.is_within && !line.trim().is_empty()) {
            match test.lines.len() < MAX_LINES {
                true => test.lines.push(line.chars().take(MAX_CHARS).collect()),
                false => test.more += 1,
            }
        }
    }

    /// Prints what was read, if anything.
    pub fn tell(&self) {
        for test in &self.tests {
            eprintln!("\n{} printed:", test.name);
            test.lines.iter().for_each(|line| eprintln!("  {line}"));
            if test.more > 0 {
                eprintln!("  ({} more lines stand above)", test.more);
            }
        }
        if self.more > 0 {
            eprintln!("\n({} more tests failed; their output stands above)", self.more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Failures, MAX_CHARS, MAX_LINES, MAX_TESTS};

    #[test]
    fn the_output_of_each_failed_test_is_kept_and_bounded() {
        let mut failures = Failures::default();
        for line in ["test a::b ... FAILED", "", "failures:", "", "---- a::b stdout ----", "", "thread panicked", "why"]
        {
            failures.read(line);
        }
        // A backtrace is left out and does not count.
        ["stack backtrace:", "   0: a::b", "             at ./b.rs:1"].into_iter().for_each(|line| failures.read(line));
        failures.read("---- c::d stdout ----");
        (0..20).for_each(|n| failures.read(&format!("{n}{}", "x".repeat(1_000))));
        for line in ["failures:", "    a::b", "    c::d", "test result: FAILED. 1 passed; 2 failed", "not of a test"] {
            failures.read(line);
        }
        let [first, second] = &failures.tests[..] else { panic!("two tests") };
        assert_eq!(
            (first.name.as_str(), &first.lines[..]),
            ("a::b", &["thread panicked".to_owned(), "why".to_owned()][..])
        );
        assert_eq!((second.lines.len(), second.more), (MAX_LINES, 20 - MAX_LINES));
        assert!(second.lines.iter().all(|line| line.chars().count() <= MAX_CHARS));
        (0..MAX_TESTS).for_each(|n| failures.read(&format!("---- e::{n} stdout ----")));
        assert_eq!((failures.tests.len(), failures.more), (MAX_TESTS, 2));
    }
}
