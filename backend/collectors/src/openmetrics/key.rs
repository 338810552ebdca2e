//! Name and labels before a sample's value, in both formats, including quoted names.
//!
//! Some names are only allowed in quotes (`{"my.metric","a.b"="c"} 1`). Every character that a plain name cannot
//! contain is replaced by `_`, as exporters do for readers without support for quotes.

use std::borrow::Cow;

/// The labels of a sample, values unescaped, ordered by name.
pub(super) type Labels<'a> = Vec<(Cow<'a, str>, String)>;

/// A piece of a key, without quotes, escapes as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// The name of the sample. It is quoted inside the braces.
    Name { name: &'a str, quoted: bool },
    /// A label; its name may be quoted, and its value always is.
    Label { name: &'a str, quoted: bool, value: &'a str },
}

/// Label name that stands for the name of the sample.
pub(super) const NAME: &str = "__name__";

/// Length of the name and labels at the start of `text`. None if it does not begin with them.
pub(super) fn key(text: &str) -> Option<usize> {
    let mut named = false;
    let end = walk(text, |piece| match piece {
        Piece::Name { .. } | Piece::Label { name: NAME, .. } => named = true,
        Piece::Label { .. } => {}
    })?;
    named.then_some(end)
}

/// Calls `each` for each piece of the key at the start of `text`. Returns the position after the key; none if there is
/// no key.
pub(super) fn walk<'a>(text: &'a str, mut each: impl FnMut(Piece<'a>)) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    if bytes.first() != Some(&b'{') {
        at = name_end(bytes, 0, b":")?;
        each(Piece::Name { name: &text[..at], quoted: false });
        let brace = blanks(bytes, at);
        // After a blank, a brace may begin the value of a native histogram.
        let none = bytes.get(brace) != Some(&b'{') || (brace > at && within(text, brace, |_| ()).is_none());
        if none {
            return Some(at);
        }
        at = brace;
    }
    within(text, at, each)
}

fn within<'a>(text: &'a str, brace: usize, mut each: impl FnMut(Piece<'a>)) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = blanks(bytes, brace + 1);
    if bytes.get(at) == Some(&b',') {
        at = blanks(bytes, at + 1);
    }
    while bytes.get(at) != Some(&b'}') {
        let quoted = bytes.get(at) == Some(&b'"');
        let end = if quoted { quoted_end(bytes, at + 1)? } else { name_end(bytes, at, b"")? };
        let name = if quoted { &text[at + 1..end - 1] } else { &text[at..end] };
        at = blanks(bytes, end);
        if quoted && bytes.get(at) != Some(&b'=') {
            each(Piece::Name { name, quoted });
        } else {
            let begin = expect(bytes, blanks(bytes, expect(bytes, at, b'=')?), b'"')?;
            let end = quoted_end(bytes, begin)?;
            each(Piece::Label { name, quoted, value: &text[begin..end - 1] });
            at = blanks(bytes, end);
        }
        match bytes.get(at)? {
            b',' => at = blanks(bytes, at + 1),
            b'}' => {}
            _ => return None,
        }
    }
    Some(at + 1)
}

/// The family name in a comment, and the text after it.
pub(super) fn family(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let quoted = text.starts_with('"');
    let end = if quoted { quoted_end(text.as_bytes(), 1)? } else { text.find([' ', '\t']).unwrap_or(text.len()) };
    let name = if quoted { &text[1..end - 1] } else { &text[..end] };
    Some((if quoted { plain(name, true, ":") } else { name.into() }, text[end..].trim_start_matches([' ', '\t'])))
}

fn blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes[at.min(bytes.len())..].iter().take_while(|&&b| b == b' ' || b == b'\t').count()
}

fn expect(bytes: &[u8], at: usize, byte: u8) -> Option<usize> {
    (bytes.get(at) == Some(&byte)).then_some(at + 1)
}

fn name_end(bytes: &[u8], at: usize, more: &[u8]) -> Option<usize> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || more.contains(&b);
    let n = bytes.get(at..)?.iter().take_while(|&&b| fits(b)).count();
    (n > 0 && !bytes[at].is_ascii_digit()).then_some(at + n)
}

/// Position after the closing quote.
fn quoted_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\n' => return None,
            b'\\' if bytes.get(at + 1) != Some(&b'\n') => at += 2,
            _ => at += 1,
        }
    }
}

/// Reason why name and labels of a sample are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    /// The sample has two names.
    TwoNames,
    /// A label is repeated.
    Twice,
    /// A label's name begins with `__`, which is reserved for Prometheus.
    Reserved,
    /// A name is empty.
    Empty,
}

/// Name and labels of a key that [`key`] accepted, and the fault in them if any.
pub(super) fn parts(text: &str) -> (Cow<'_, str>, Labels<'_>, Option<Odd>) {
    let (mut names, mut labels) = (Vec::new(), Labels::new());
    walk(text, |piece| match piece {
        Piece::Name { name, quoted } => names.push(plain(name, quoted, ":")),
        // The name may be written as a label, too.
        Piece::Label { name: NAME, value, .. } => names.push(Cow::from(legal(&unescape(value), ":").into_owned())),
        Piece::Label { name, quoted, value } => labels.push((plain(name, quoted, ""), unescape(value))),
    });
    labels.sort_by(|a, b| a.0.cmp(&b.0));
    let wrong = |why: Odd, is: bool| is.then_some(why);
    let odd = wrong(Odd::TwoNames, names.len() > 1)
        .or(wrong(Odd::Twice, labels.windows(2).any(|pair| pair[0].0 == pair[1].0)))
        .or(wrong(Odd::Reserved, labels.iter().any(|(name, _)| name.starts_with("__"))))
        .or(wrong(Odd::Empty, names.iter().chain(labels.iter().map(|(name, _)| name)).any(|name| name.is_empty())));
    (names.into_iter().next().unwrap_or_default(), labels, odd)
}

fn plain<'a>(name: &'a str, quoted: bool, more: &str) -> Cow<'a, str> {
    match quoted && name.contains('\\') {
        true => legal(&unescape(name), more).into_owned().into(),
        false => legal(name, more),
    }
}

/// A name with `_` for characters that a plain name cannot contain.
fn legal<'a>(name: &'a str, more: &str) -> Cow<'a, str> {
    let fits =
        |i: usize, c: char| c.is_ascii_alphabetic() || c == '_' || more.contains(c) || (i > 0 && c.is_ascii_digit());
    match name.char_indices().all(|(i, c)| fits(i, c)) {
        true => name.into(),
        false => name.char_indices().map(|(i, c)| if fits(i, c) { c } else { '_' }).collect::<String>().into(),
    }
}

/// The unescaped text of a label's value.
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(c @ ('\\' | '"')) => out.push(c),
                Some(c) => out.extend(['\\', c]),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

/// Labels in the form of a tag: `{a="1",b="2"}`, sorted and escaped; empty if there are none.
pub(super) fn write_labels(labels: &[(Cow<'_, str>, String)]) -> String {
    let mut out = String::new();
    for (name, value) in labels {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(name);
        out.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    if !out.is_empty() {
        out.push('}');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<(String, &str)> {
        let end = key(text)?;
        let (name, labels, odd) = parts(&text[..end]);
        assert_eq!(odd, None, "{text}");
        Some((format!("{name}{}", write_labels(&labels)), &text[end..]))
    }

    #[test]
    fn names_in_quotes_are_read_under_plain_ones() {
        for (text, tag, rest) in [
            ("{\"my.metric\"} 1", "my_metric", " 1"),
            ("{\"my.metric\", \"a.b\"=\"c\"} 1", "my_metric{a_b=\"c\"}", " 1"),
            ("{ a=\"}\" , \"é \\\" x\" } 2", "____x{a=\"}\"}", " 2"),
            ("{\"9 to 5\",} 3", "__to_5", " 3"),
            ("x{\"a.b\"=\"c.d\",c=\"\"} 4", "x{a_b=\"c.d\",c=\"\"}", " 4"),
            ("{__name__=\"x\",a=\"1\"} 5", "x{a=\"1\"}", " 5"),
            ("x {a=\"1\"} 6", "x{a=\"1\"}", " 6"),
            ("x{ , } 7", "x", " 7"),
            ("x {count:1,sum:2}", "x", " {count:1,sum:2}"),
            ("{\"x\"} {count:1}", "x", " {count:1}"),
        ] {
            assert_eq!(read(text), Some((tag.to_string(), rest)), "{text}");
        }
        for text in ["{} 1", "{a=\"1\"} 1", "{\"a\" \"b\"} 1", "{\"a} 1", "x{\"a\"=1} 1", "x{a=\"\\\n\"} 1", "x{a} 1"] {
            assert_eq!(key(text), None, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_kept_says_why() {
        for (text, why) in [
            ("x{\"y\"}", Odd::TwoNames),
            ("x{__name__=\"y\"}", Odd::TwoNames),
            ("{\"x\",\"y\"}", Odd::TwoNames),
            ("x{a=\"1\",b=\"2\",a=\"1\"}", Odd::Twice),
            ("x{a_b=\"1\",\"a.b\"=\"2\"}", Odd::Twice),
            ("x{__address__=\"1\"}", Odd::Reserved),
            ("x{\"..\"=\"1\"}", Odd::Reserved),
            ("{\"\"}", Odd::Empty),
            ("x{\"\"=\"1\"}", Odd::Empty),
        ] {
            assert_eq!(key(text), Some(text.len()), "{text}");
            assert_eq!(parts(text).2, Some(why), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_key_is_read_or_refused_but_never_panics(text in "[a-z_{}\"=, \\\\\n0-9é.:]{0,40}|.{0,40}") {
            if let Some(end) = key(&text) {
                let (name, labels, odd) = parts(&text[..end]);
                let fits = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
                prop_assert!(odd.is_some() || (!name.is_empty() && fits(&name) && labels.iter().all(|l| fits(&l.0))));
            }
        }

        #[test]
        fn labels_come_back(labels in prop::collection::btree_map("[a-zA-Z_][a-zA-Z0-9]{0,5}", ".{0,8}", 0..4)) {
            let labels: Labels<'_> = labels.iter().map(|(k, v)| (k.as_str().into(), v.clone())).collect();
            let text = format!("x{} 1", write_labels(&labels));
            let end = key(&text).expect("a key");
            prop_assert_eq!(&text[end..], " 1");
            let (name, read, odd) = parts(&text[..end]);
            prop_assert_eq!((&*name, read, odd), ("x", labels, None));
        }
    }
}
