//! What looks like a secret is left out: of arguments of processes, and of what jobs print.

use std::ops::Range;

/// Most bytes that are kept.
const MAX_BYTES: usize = 1024;
/// A word that has one of these may be a secret, or the next word may be.
const TELLING: [&str; 6] = ["key", "token", "secret", "passw", "auth", "credential"];
/// So many letters and digits in a row may be a key.
const MAX_RUN: usize = 32;
/// What stands in the place of a secret.
pub const HIDDEN: &str = "…";

/// The arguments of a `cmdline` file, where each ends with a zero byte, in one line of at most 1 KiB.
pub fn arguments(text: &[u8]) -> String {
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
    let mut shown = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let run = key_length(rest);
        let end = if run == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { run };
        shown.push_str(if is_key(&rest[..run]) { HIDDEN } else { &rest[..end] });
        rest = &rest[end..];
    }
    shown
}

/// Bytes at the begin of a text that a key may be made of.
fn key_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || "+=_-".contains(c))).unwrap_or(text.len())
}

/// Whether such bytes are long and mixed enough to be one.
fn is_key(run: &str) -> bool {
    run.len() >= MAX_RUN && run.contains(|c: char| c.is_ascii_digit()) && run.contains(char::is_alphabetic)
}

/// Words between the name of a secret and the secret.
const BETWEEN: [&str; 8] = ["is", "was", "are", "=", ":", "=>", "->", "set"];
/// What stands before a secret in a header.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "token"];
/// Ends of words that are the name of what follows them.
const NAMES: [&str; 9] =
    ["key", "token", "secret", "password", "passwd", "auth", "authorization", "credential", "credentials"];
/// Ends of names of what Python raises: `KeyError: 'lr'` tells of no secret.
const RAISED: [&str; 4] = ["error", "exception", "warning", "interrupt"];

/// The parts of a line of console output that look like secrets, rising and apart. Words are told as those of arguments are;
/// since a line is also prose, a word such as `tokenizer` or `keys` is no secret itself, and `tokens: 1024` is a count.
pub fn secrets(line: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    // Whether the word before announced a secret, and whether as something that is counted.
    let (mut told, mut counted) = (false, false);
    for (at, word) in words(line) {
        let lower = word.to_ascii_lowercase();
        let bare = lower.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_raised = RAISED.iter().any(|end| bare.ends_with(end));
        let name = TELLING.iter().filter_map(|part| lower.find(part)).min().filter(|_| !is_raised);
        if told {
            let ends_open = lower.ends_with([':', '=']);
            if BETWEEN.contains(&lower.as_str()) || ends_open && name.is_none() {
                continue;
            }
            if SCHEMES.contains(&bare) {
                found.push(at..at + word.len());
                continue;
            }
            let is_count = counted && is_number(word);
            if !(ends_open || is_count || word.starts_with('-')) {
                found.push(at..at + word.len());
                told = false;
                continue;
            }
            told = false;
        }
        let Some(name) = name else {
            found.extend(hidden_within(word).map(|part| at + part.start..at + part.end));
            continue;
        };
        let plural = lower.contains("tokens") || lower.contains("keys");
        let value = lower[name..].find([':', '=']).map(|from| name + from + 1);
        match value.map(|from| (from, word[from..].trim_matches(['"', '\'', ',', ')', '}', ']']))) {
            Some((_, "")) => (told, counted) = (true, plural),
            Some((_, text)) if plural && is_number(text) => {}
            Some((from, text)) => {
                found.push(at + from..at + word.len());
                (told, counted) = (SCHEMES.contains(&text.to_ascii_lowercase().as_str()), false);
            }
            None if word.starts_with('-') => (told, counted) = (true, false),
            None => {
                let is_plain = !word.contains(|c: char| c.is_ascii_digit());
                if !is_plain {
                    found.push(at..at + word.len());
                }
                (told, counted) = (is_plain && NAMES.iter().any(|end| bare.ends_with(end)), false);
            }
        }
    }
    found
}

/// Words of a line and where they begin.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_whitespace().map(move |word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}

/// Whether it is a number, perhaps with a unit: `1,024`, `3.5k`, `12%`.
fn is_number(text: &str) -> bool {
    let of_one = |c: char| c.is_ascii_digit() || ".,+-_%eEkKMGBTs/|".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') && text.chars().all(of_one)
}

/// The parts of a word that [`without_userinfo`] and [`without_keys`] would hide.
fn hidden_within(word: &str) -> impl Iterator<Item = Range<usize>> {
    let userinfo = word.split_once("://").and_then(|(scheme, rest)| {
        let (begin, end) = (scheme.len() + 3, rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        rest[..end].rfind('@').map(|at| begin..begin + at)
    });
    let behind = userinfo.as_ref().map_or(0, |part| part.end);
    let mut keys = Vec::new();
    let mut at = behind;
    while at < word.len() {
        let run = key_length(&word[at..]);
        if is_key(&word[at..at + run]) {
            keys.push(at..at + run);
        }
        at += if run == 0 { word[at..].chars().next().map_or(1, char::len_utf8) } else { run };
    }
    userinfo.into_iter().chain(keys)
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
            assert_eq!(arguments(&text), shown);
        }
        assert_eq!(arguments(b""), "");
        let long: Vec<u8> = (0..1_000).flat_map(|_| "wörd\0".bytes()).collect();
        assert!((MAX_BYTES - 8..=MAX_BYTES).contains(&arguments(&long).len()));
        assert_eq!(arguments(b"x\0--token=\xff\0"), "x --token=…");
    }

    #[test]
    fn of_a_line_what_looks_like_a_secret_is_hidden_and_prose_and_counts_stay() {
        let shown = |line: &str| {
            let mut line = line.to_string();
            let found = secrets(&line);
            assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start), "{found:?} of {line}");
            found.into_iter().rev().for_each(|part| line.replace_range(part, HIDDEN));
            line
        };
        for (line, kept) in [
            (
                "step 3 loss=0.25 tokens/s: 1,234.5 | n_tokens=4096",
                "step 3 loss=0.25 tokens/s: 1,234.5 | n_tokens=4096",
            ),
            ("<All keys matched successfully>", "<All keys matched successfully>"),
            ("Loading the tokenizer of the author", "Loading the tokenizer of the author"),
            ("KeyError: 'lr'", "KeyError: 'lr'"),
            ("RuntimeError: CUDA out of memory", "RuntimeError: CUDA out of memory"),
            ("password: hunter2", "password: …"),
            ("the password is hunter2 !", "the password is … !"),
            ("API_KEY=abc DB_PASSWORD = x1", "API_KEY=… DB_PASSWORD = …"),
            ("Authorization: Bearer abc.def", "Authorization: … …"),
            ("{\"api_key\": \"abc\", \"lr\": 3}", "{\"api_key\": … \"lr\": 3}"),
            ("{\"api_key\":\"abc\"} x", "{\"api_key\":… x"),
            ("+ python t.py --token abc --lr 3", "+ python t.py --token … --lr 3"),
            ("password=1234", "password=…"),
            ("  indented\tpassword:\tx  y", "  indented\tpassword:\t…  y"),
            ("to https://me:pw@host.example/a and on", "to https://…@host.example/a and on"),
            ("got hf_0123456789abcdef0123456789abcdef!", "got …!"),
            ("usé tökens 数 mytoken7", "usé tökens 数 …"),
            (
                "AuthenticationError: Incorrect API key provided: sk-abc",
                "AuthenticationError: Incorrect API key provided: …",
            ),
        ] {
            assert_eq!(shown(line), kept);
        }
    }
}
