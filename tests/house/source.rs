//! Sources in the form that the rules check: code without comments, strings and tests; and the strings in the code.

use std::path::Path;
use std::sync::OnceLock;

/// A file of the tree.
#[derive(Clone)]
pub struct Source {
    /// Path from the root of the tree, with slashes.
    pub path: String,
    /// Complete text.
    pub text: String,
    /// Rust code with comments and literals blanked out, line by line as in the text, without its inline tests.
    pub code: String,
    /// Line (from 1) and text of each string literal outside of the inline tests.
    pub literals: Vec<(usize, String)>,
}

impl Source {
    /// A file with this text.
    pub fn new(path: &str, text: &str) -> Source {
        let (code, literals) = if path.ends_with(".rs") { read(without_tests(text)) } else { Default::default() };
        Source { path: path.into(), text: text.into(), code, literals }
    }

    /// Whether the whole file is tests.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || ["/tests/", "/testing/"].iter().any(|folder| self.path.contains(folder))
            || self.path.ends_with("tests.rs")
    }
}

/// Every file of the tree that a person writes. It is read once for all rules.
pub fn tree() -> &'static [Source] {
    static TREE: OnceLock<Vec<Source>> = OnceLock::new();
    TREE.get_or_init(read_tree)
}

fn read_tree() -> Vec<Source> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let ignored = std::fs::read_to_string(root.join(".gitignore")).expect("the tree has a .gitignore");
    let ignored: Vec<&str> = ignored.lines().map(|line| line.trim_matches('/')).chain([".git"]).collect();
    let mut sources = Vec::new();
    walk(root, "", &ignored, &mut sources);
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(sources.iter().any(|s| s.path == "tests/house/source.rs"), "the tree was not found");
    sources
}

fn walk(folder: &Path, name: &str, ignored: &[&str], sources: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the tree can be read") {
        let entry = entry.expect("a folder of the tree can be read");
        let own = entry.file_name().to_string_lossy().into_owned();
        let path = if name.is_empty() { own.clone() } else { format!("{name}/{own}") };
        if ignored.iter().any(|i| *i == path || *i == own) {
            continue;
        }
        let kind = entry.file_type().expect("an entry of the tree has a type");
        if kind.is_dir() {
            walk(&entry.path(), &path, ignored, sources);
        } else if kind.is_file()
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            sources.push(Source::new(&path, &text)); // other files are pictures or recordings
        }
    }
}

fn without_tests(text: &str) -> &str {
    let mut from = 0;
    while let Some(at) = text[from..].find("#[cfg(test)]\nmod ").map(|at| from + at) {
        let line = text[at..].lines().nth(1).unwrap_or("");
        if line.ends_with('{') {
            return &text[..at]; // inline tests are at the end
        }
        from = at + 1;
    }
    text
}

/// Code with comments and literals blanked, and the string literals.
fn read(text: &str) -> (String, Vec<(usize, String)>) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut literals, mut line, mut i) = (String::with_capacity(text.len()), Vec::new(), 1, 0);
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    while i < chars.len() {
        let end = match at(i) {
            '/' if at(i + 1) == '/' => (i..chars.len()).find(|&k| at(k) == '\n').unwrap_or(chars.len()),
            '/' if at(i + 1) == '*' => block_comment(&chars, i),
            '"' => {
                let end = string(&chars, i);
                literals.push((line, unescape(&chars[i + 1..end - 1])));
                end
            }
            'r' if (at(i + 1) == '"' || at(i + 1) == '#') && !is_word_char(if i > 0 { at(i - 1) } else { ' ' }) => {
                match raw_string(&chars, i) {
                    Some((begin, finish, end)) => {
                        literals.push((line, chars[begin..finish].iter().collect()));
                        end
                    }
                    None => i + 1,
                }
            }
            '\'' if at(i + 1) == '\\' => (i + 3..chars.len()).find(|&k| at(k) == '\'').map_or(chars.len(), |k| k + 1),
            '\'' if at(i + 2) == '\'' => i + 3,
            _ => i,
        };
        if end == i || (end == i + 1 && at(i) == 'r') {
            code.push(at(i));
            line += usize::from(at(i) == '\n');
            i += 1;
        } else {
            for &c in &chars[i..end] {
                code.push(if c == '\n' { '\n' } else { ' ' });
                line += usize::from(c == '\n');
            }
            i = end;
        }
    }
    (code, literals)
}

/// Whether the character may be part of a name.
pub fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn block_comment(chars: &[char], from: usize) -> usize {
    let (mut depth, mut i) = (0, from);
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') if depth == 1 => return i + 2,
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
    }
    chars.len()
}

fn string(chars: &[char], from: usize) -> usize {
    let mut i = from + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(chars.len())
}

fn raw_string(chars: &[char], from: usize) -> Option<(usize, usize, usize)> {
    let hashes = chars[from + 1..].iter().take_while(|c| **c == '#').count();
    let begin = from + 2 + hashes;
    if chars.get(begin - 1) != Some(&'"') {
        return None; // a raw name, r#type
    }
    let closes =
        |k: usize| chars[k] == '"' && chars[k + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    let finish = (begin..chars.len()).find(|&k| closes(k))?;
    Some((begin, finish, finish + 1 + hashes))
}

fn unescape(chars: &[char]) -> String {
    let mut text = String::new();
    let mut chars = chars.iter();
    while let Some(&c) = chars.next() {
        text.push(if c == '\\' { *chars.next().unwrap_or(&'\\') } else { c });
    }
    text
}

#[test]
fn comments_and_literals_are_told_from_code() {
    let text = r##"//! "a"
use x::y; // "b"
fn f<'a>(s: &'a str) -> char { let t = "c\"d // e"; let r = r#"f"g"#; /* "h" /* */ */ if '"' == '\'' { '\\' } else { '"' } }
#[cfg(test)]
mod tests;
#[cfg(test)]
mod more {
    const T: &str = "i";
}
"##;
    let source = Source::new("a.rs", text);
    assert_eq!(source.literals, [(3, "c\"d // e".to_string()), (3, "f\"g".to_string())]);
    assert!(source.code.contains("use x::y;") && source.code.contains("mod tests;"), "{}", source.code);
    assert!(!source.code.contains(['"', '\'']) || source.code.contains("'a"), "{}", source.code);
    assert_eq!(source.code.lines().count(), 5);
}
