//! Arguments of processes, for operators who asked for them: without what looks like a secret.

/// Most bytes that are kept.
const MAX_BYTES: usize = 1024;
/// A word that has one of these may be a secret, or the next word may be.
const TELLING: [&str; 6] = ["key", "token", "secret", "passw", "auth", "credential"];
/// So many letters and digits in a row may be a key.
const MAX_RUN: usize = 32;
/// What stands in the place of a secret.
const HIDDEN: &str = "…";

/// The arguments of a `cmdline` file, where each ends with a zero byte, in one line.
pub(super) fn redacted(text: &[u8]) -> String {
    let mut all = String::new();
    let mut told = false;
    for word in text.split(|b| *b == 0).filter(|word| !word.is_empty()) {
        let word: String = String::from_utf8_lossy(word).chars().filter(|c| !c.is_control()).collect();
        let tells = tells(&word);
        // An option announces what follows it; else the word itself is what it tells of.
        let shown = match word.split_once('=') {
            Some((name, value)) if tells || told => format!("{name}={}", if value.is_empty() { "" } else { HIDDEN }),
            _ if told && !word.starts_with('-') || tells && !word.starts_with('-') => HIDDEN.to_string(),
            _ => without_keys(&without_userinfo(&word)),
        };
        told = tells && word.starts_with('-') && !word.contains('=');
        if !all.is_empty() {
            all.push(' ');
        }
        all.push_str(&shown);
        if all.len() > MAX_BYTES {
            let end = (0..=MAX_BYTES).rev().find(|n| all.is_char_boundary(*n)).unwrap_or(0);
            all.truncate(end);
            break;
        }
    }
    all
}

fn tells(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    TELLING.iter().any(|part| word.contains(part))
}

/// An address without the name and the password before its host.
fn without_userinfo(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_string() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{HIDDEN}{}", &rest[at..]),
        None => word.to_string(),
    }
}

/// A word without its long runs of what keys are made of.
fn without_keys(word: &str) -> String {
    let of_a_key = |c: char| c.is_ascii_alphanumeric() || "+=_-".contains(c);
    let mut shown = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let run = rest.find(|c| !of_a_key(c)).unwrap_or(rest.len());
        let end = if run == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { run };
        let mixed = rest[..run].contains(|c: char| c.is_ascii_digit()) && rest[..run].contains(char::is_alphabetic);
        shown.push_str(if run >= MAX_RUN && mixed { HIDDEN } else { &rest[..end] });
        rest = &rest[end..];
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_left_out_and_the_rest_is_kept() {
        for (words, shown) in [
            (&["python3", "train.py", "--lr", "1e-4"][..], "python3 train.py --lr 1e-4"),
            (&["x", "--api-key", "abc", "--n", "3"], "x --api-key … --n 3"),
            (&["x", "--api-key=abc", "WANDB_API_KEY=abc"], "x --api-key=… WANDB_API_KEY=…"),
            (&["x", "-H", "Authorization: Bearer abc"], "x -H …"),
            (&["x", "--PASSWORD", "a b", "c"], "x --PASSWORD … c"),
            (&["x", "--token", "--quiet"], "x --token --quiet"),
            (&["git", "clone", "https://me:pw@host.example/a@b"], "git clone https://…@host.example/a@b"),
            (&["x", "https://host.example/a@b"], "x https://host.example/a@b"),
            (&["x", "0123456789abcdef0123456789abcdef"], "x …"),
            (&["x", "run=0123456789abcdef0123456789abcdef/1"], "x …/1"),
            (
                &["/srv/a-very-long-path-without-any-number-in-it/train.py"],
                "/srv/a-very-long-path-without-any-number-in-it/train.py",
            ),
            (&["a\nb\u{1b}[2J"], "ab[2J"),
        ] {
            let text: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
            assert_eq!(redacted(&text), shown);
        }
        assert_eq!(redacted(b""), "");
        let long: Vec<u8> = (0..1_000).flat_map(|_| "wörd\0".bytes()).collect();
        assert!((MAX_BYTES - 8..=MAX_BYTES).contains(&redacted(&long).len()));
        assert_eq!(redacted(b"x\0--token=\xff\0"), "x --token=…");
    }
}
