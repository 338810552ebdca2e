//! Maximum length of functions and components of the product.

use super::source::Source;

/// Maximum number of lines of a function, from `fn` to its closing brace.
const MAX_LINES: usize = 80;

/// The name of the function that begins on a line.
fn begun(line: &str) -> Option<&str> {
    let words = line.trim_start();
    let words = match words.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => words.strip_prefix("pub ").unwrap_or(words),
    };
    let qualifiers = ["const ", "async ", "unsafe ", "extern \"C\" ", "extern \"\" "];
    let words = qualifiers.iter().fold(words, |words, qualifier| words.strip_prefix(qualifier).unwrap_or(words));
    let name = words.strip_prefix("fn ")?;
    Some(&name[..name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len())])
}

/// Line, name and length of each function. Code is as `cargo fmt` leaves it: a function ends at the brace below its `fn`.
fn functions(code: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = begun(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| ["}", ";"].contains(&rest.trim_end()));
        let is_whole = line.trim_end().ends_with([';', '}']);
        let after = lines[at + 1..].iter().position(ends).filter(|_| !is_whole);
        all.push((at + 1, name, after.map_or(1, |after| after + 2)));
    }
    all
}

/// Functions of the product that are too long.
pub fn long(sources: &[Source]) -> Vec<String> {
    let product =
        |source: &&Source| source.path.ends_with(".rs") && !source.is_test() && !source.path.starts_with("xtask/");
    let mut faults = Vec::new();
    for source in sources.iter().filter(product) {
        for (line, name, length) in functions(&source.code).into_iter().filter(|(.., length)| *length > MAX_LINES) {
            faults.push(format!(
                "{}:{line}: `{name}` has {length} lines: split it along its meaning, at most {MAX_LINES}",
                source.path
            ));
        }
    }
    faults
}
