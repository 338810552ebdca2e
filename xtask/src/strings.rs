//! `cargo xtask strings`: every text that a user can read, in one list for a review in one go.
//!
//! The list is a reading aid and not exact: it contains the literals of shipped code that look like words, and the doc
//! comments that become help texts. Names, CSS classes, log lines and panic messages are excluded.

use crate::Failure;
use crate::source::{Source, tree};
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};

/// Calls and attributes whose texts are for developers, operators or machines.
const NOT_READ: [&str; 15] = [
    "expect(",
    "panic!(",
    "unreachable!(",
    "assert!(",
    "assert_eq!(",
    "debug!(",
    "info!(",
    "warn!(",
    "error!(",
    "trace!(",
    "#[serde(",
    "#[cfg(",
    "#[allow(",
    "env!(",
    "include_str!(",
];

/// Markup attributes whose value is not a text.
const NAMES: [&str; 6] = ["class=", "class:", "style=", "style:", "key=", "id="];

/// Folders without product code.
const OUTSIDE: [&str; 4] = ["xtask/", "/examples/", "/benches/", "/bin/"];

/// Prints the list.
pub fn strings(args: &[String]) -> Result<(), Failure> {
    let (mut list, mut count, mut files) = (String::new(), 0, 0);
    for source in tree().iter().filter(|source| is_product(source) && args.iter().all(|arg| source.path.contains(arg)))
    {
        let texts = texts(source);
        files += usize::from(!texts.is_empty());
        count += texts.len();
        for (line, text) in texts {
            let _ = writeln!(list, "{}:{line}: {text}", source.path); // a String takes it
        }
    }
    eprintln!("xtask: {count} strings in {files} files");
    match std::io::stdout().write_all(list.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::from(format!("standard output: {error}"))),
        _ => Ok(()),
    }
}

fn is_product(source: &Source) -> bool {
    source.path.ends_with(".rs")
        && !source.is_test()
        && !OUTSIDE.iter().any(|folder| format!("/{}", source.path).contains(folder))
}

/// Line and text of each string of a file that a user can read, in the order of the file.
fn texts(source: &Source) -> Vec<(usize, String)> {
    let code: Vec<&str> = source.code.lines().collect();
    let written: Vec<&str> = source.text.lines().collect();
    let literals =
        source.literals.iter().filter(|(line, text)| is_words(text) && is_read(&code, &written, *line, text));
    let mut texts: Vec<(usize, String)> =
        literals.map(|(line, text)| (*line, one_line(text))).chain(helps(source)).collect();
    texts.sort();
    texts
}

/// Whether a text is for people: words with a space between them, or one capitalized word.
fn is_words(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let markup = text.starts_with(['<', '.', '#', '/', '&']) || text.contains("var(--") || text.contains("px");
    let sql =
        ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER "].iter().any(|word| text.starts_with(word));
    let spaced = text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count() > 1;
    let capital =
        text.starts_with(char::is_uppercase) && text.chars().any(char::is_lowercase) && !text.contains(['_', '/']);
    letters > 1 && !markup && !sql && (spaced || capital || text.starts_with(' '))
}

/// Whether the call or attribute around a literal reaches a user. A call over several lines begins above.
fn is_read(code: &[&str], written: &[&str], line: usize, text: &str) -> bool {
    let first = text.lines().next().unwrap_or("");
    let before = written[line - 1].split(first).next().unwrap_or("").trim_end_matches('"');
    let above = line.checked_sub(2).and_then(|at| code.get(at)).filter(|above| above.trim_end().ends_with('('));
    let is_for_others = |code: &str| NOT_READ.iter().any(|call| code.contains(call));
    !NAMES.iter().any(|name| before.ends_with(name))
        && !is_for_others(before)
        && !above.is_some_and(|above| is_for_others(above))
}

/// The doc comments that clap shows as help: those of types that derive `Args`, `Parser` or `Subcommand`.
fn helps(source: &Source) -> Vec<(usize, String)> {
    let (mut found, mut inside, mut comment) = (Vec::new(), false, Vec::new());
    for (at, line) in source.text.lines().enumerate() {
        let trimmed = line.trim();
        if line.starts_with("#[derive(") {
            inside = ["Args", "Parser", "Subcommand"].iter().any(|name| line.contains(name));
        } else if line == "}" {
            inside = false;
        } else if let (true, Some(text)) = (inside, trimmed.strip_prefix("///")) {
            comment.push(text.trim());
        } else if !comment.is_empty() {
            found.push((at, comment.join(" ")));
            comment.clear();
        }
    }
    found
}

fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim_start).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::texts;
    use crate::source::Source;

    #[test]
    fn texts_for_users_are_listed_and_others_are_not() {
        let text = r##"
#[derive(Clone, Args)]
struct Flags {
    /// Print one snapshot and exit
    once: bool,
}
/// No help of clap
fn f() {
    let error = "the file cannot be read";
    let view = view! { <p class="left wide">"Machines"</p> };
    warn!("a log line");
    x.expect("a reason for developers");
    g("tag.name", "SELECT a FROM b");
}
"##;
        let found = texts(&Source::new("backend/src/a.rs", text));
        let expected = [(4, "Print one snapshot and exit"), (9, "the file cannot be read"), (10, "Machines")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }
}
