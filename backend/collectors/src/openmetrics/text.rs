//! Reads Prometheus text 0.0.4 and OpenMetrics 1.0 alike, a line at a time, without copying.
//!
//! What both allow is read: names with colons, samples that nothing announces, blanks after commas, escapes, time
//! stamps, exemplars, NaN, infinities and exponents. A line that is none of this makes the whole page [`Bad`], since a
//! page that is damaged in one place cannot be trusted in another.

/// A page that is not, or not wholly, of these formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// The page breaks off within a line, or before the `# EOF` that OpenMetrics ends with.
    Truncated,
    /// The line with this number is neither a comment nor a sample.
    Line(usize),
}

/// What a `# TYPE` line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Counter,
    Gauge,
    Histogram,
    GaugeHistogram,
    Summary,
    Info,
    StateSet,
}

impl Type {
    fn read(word: &str) -> Option<Type> {
        Some(match word {
            "counter" => Type::Counter,
            "gauge" => Type::Gauge,
            "histogram" => Type::Histogram,
            "gaugehistogram" => Type::GaugeHistogram,
            "summary" => Type::Summary,
            "info" => Type::Info,
            "stateset" => Type::StateSet,
            _ => return None, // untyped, unknown
        })
    }
}

/// A comment that says something of a family of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About<'a> {
    Type(Type),
    Help(&'a str),
    Unit(&'a str),
}

/// Family and statement of a comment line; none for any other comment.
pub(super) fn about(line: &str) -> Option<(&str, About<'_>)> {
    let rest = line.strip_prefix('#')?.trim_start_matches([' ', '\t']);
    let (word, rest) = rest.split_once([' ', '\t'])?;
    let rest = rest.trim_start_matches([' ', '\t']);
    let (family, said) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    let said = said.trim_matches([' ', '\t', '\r']);
    let about = match word {
        "TYPE" => About::Type(Type::read(said)?),
        "HELP" => About::Help(said),
        "UNIT" => About::Unit(said),
        _ => return None,
    };
    Some((family.trim_end_matches('\r'), about))
}

/// Whether a page is whole: it ends with a line's end, and with `# EOF` when it is OpenMetrics.
pub(super) fn whole(page: &str, open: bool) -> Result<(), Bad> {
    let trimmed = page.trim_end_matches(['\n', '\r']);
    let ended = trimmed == "# EOF" || trimmed.ends_with("\n# EOF");
    if ended || (!open && (page.is_empty() || trimmed.len() < page.len())) { Ok(()) } else { Err(Bad::Truncated) }
}

/// Name with labels as printed: how much of `text` they take. None when it does not begin with them.
pub(super) fn key(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = name_end(bytes, 0, b":")?;
    if bytes.get(at) != Some(&b'{') {
        return Some(at);
    }
    at = blanks(bytes, at + 1);
    while bytes.get(at) != Some(&b'}') {
        at = blanks(bytes, name_end(bytes, at, b"")?);
        at = blanks(bytes, expect(bytes, at, b'=')?);
        at = blanks(bytes, quoted_end(bytes, expect(bytes, at, b'"')?)?);
        match bytes.get(at)? {
            b',' => at = blanks(bytes, at + 1),
            b'}' => {}
            _ => return None,
        }
    }
    Some(at + 1)
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

/// Past the closing quote.
fn quoted_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\n' => return None,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The value behind a key, and how much of `text` the rest of the line takes, its end included. Time stamp and exemplar
/// are read over: what counts is what the endpoint says now, at the tick's own time.
pub(super) fn value(text: &str) -> Option<(f64, usize)> {
    let end = text.find('\n').unwrap_or(text.len());
    let line = text[..end].trim_matches([' ', '\t', '\r']);
    let (number, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim_start_matches([' ', '\t']);
    if !rest.is_empty() && !rest.starts_with('#') {
        let (stamp, rest) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        stamp.parse::<f64>().ok()?;
        let rest = rest.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with('#') {
            return None;
        }
    }
    Some((number.parse().ok()?, (end + 1).min(text.len())))
}

/// Name and labels of a key that [`key`] accepted, values unescaped, in order of name.
pub(super) fn parts(key: &str) -> (&str, Vec<(&str, String)>) {
    let Some((name, mut rest)) = key.split_once('{') else { return (key, Vec::new()) };
    let mut labels = Vec::new();
    while let Some((label, after)) = rest.split_once('=') {
        let Some(after) = after.trim_start().strip_prefix('"') else { break };
        let Some(end) = quoted_end(after.as_bytes(), 0) else { break };
        labels.push((label.trim_matches([' ', '\t', ',']), unescape(&after[..end - 1])));
        rest = &after[end..];
    }
    labels.sort_by(|a, b| a.0.cmp(b.0));
    (name, labels)
}

fn unescape(text: &str) -> String {
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

/// Labels as they stand in a tag: `{a="1",b="2"}`, sorted and escaped; nothing when there are none.
pub(super) fn write_labels(labels: &[(&str, String)]) -> String {
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

    fn sample(line: &str) -> Option<(String, f64)> {
        let end = key(line)?;
        let (value, _) = value(&line[end..])?;
        let (name, labels) = parts(&line[..end]);
        Some((format!("{name}{}", write_labels(&labels)), value))
    }

    #[test]
    fn samples_of_both_formats_are_read() {
        for (line, tag, v) in [
            ("up 1\n", "up", 1.0),
            (
                "vllm:num_requests_running{model_name=\"a/b\"} 0.5\r\n",
                "vllm:num_requests_running{model_name=\"a/b\"}",
                0.5,
            ),
            ("x{b=\"2\", a=\"1\" ,} 2.189426688e+10 1395066363000", "x{a=\"1\",b=\"2\"}", 2.189426688e10),
            ("x{ a = \"say \\\"no\\\" \\\\ \\n\" }\t-3 # {id=\"7\"} 1 2", r#"x{a="say \"no\" \\ \n"}"#, -3.0),
            ("x{} 7 1.5 # {} 1", "x", 7.0),
            ("x{a=\"}{ 5\"} +Inf", "x{a=\"}{ 5\"}", f64::INFINITY),
            ("x{a=\"é\"} -Inf", "x{a=\"é\"}", f64::NEG_INFINITY),
        ] {
            assert_eq!(sample(line), Some((tag.to_string(), v)), "{line}");
        }
        assert!(sample("x NaN").expect("a sample").1.is_nan());
    }

    #[test]
    fn what_is_no_sample_is_refused() {
        for line in [
            "<html>",
            "x",
            "x ",
            "x{a=\"1\"",
            "x{a=\"1\"}",
            "x{a=1} 2",
            "x{a=\"1\" b=\"2\"} 3",
            "1x 2",
            "x 1x",
            "x 1 y",
            "x 1 2 3",
            "x{a} 1",
            "{a=\"1\"} 2",
            "x-y 1",
            "x{a=\"1\n\"} 2",
        ] {
            assert_eq!(sample(line), None, "{line}");
        }
    }

    #[test]
    fn comments_are_told_apart() {
        assert_eq!(about("# TYPE a:b counter\r"), Some(("a:b", About::Type(Type::Counter))));
        assert_eq!(about("#  HELP x  Some  text. "), Some(("x", About::Help("Some  text."))));
        assert_eq!(about("# HELP x"), Some(("x", About::Help(""))));
        assert_eq!(about("# UNIT x_seconds seconds"), Some(("x_seconds", About::Unit("seconds"))));
        for comment in ["# TYPE x untyped", "# TYPE x unknown", "# EOF", "#", "# a comment", "x 1"] {
            assert_eq!(about(comment), None, "{comment}");
        }
    }

    #[test]
    fn a_page_that_breaks_off_is_known_by_its_end() {
        for (page, open) in [("", false), ("a 1\n", false), ("a 1\n# EOF", true), ("# EOF\n", true), ("a 1\r\n", false)]
        {
            assert_eq!(whole(page, open), Ok(()), "{page:?}");
        }
        for (page, open) in
            [("a 1", false), ("a 1\n", true), ("a 1\n# EO", true), ("a 1\n#", false), ("a# EOF", true), ("", true)]
        {
            assert_eq!(whole(page, open), Err(Bad::Truncated), "{page:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_but_never_panics(text in "[a-z_{}\"=, \\\\#\n0-9é.+:-]{0,60}|.{0,60}") {
            let _ = (about(&text), value(&text), whole(&text, true));
            if let Some(end) = key(&text) {
                let _ = parts(&text[..end]);
                let _ = value(&text[end..]);
            }
        }

        #[test]
        fn labels_come_back(labels in prop::collection::btree_map("[a-zA-Z_][a-zA-Z0-9_]{0,5}", ".{0,8}", 0..4)) {
            let labels: Vec<(&str, String)> = labels.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
            let text = format!("x{} 1", write_labels(&labels));
            let end = key(&text).expect("a key");
            prop_assert_eq!(&text[end..], " 1");
            let (name, read) = parts(&text[..end]);
            prop_assert_eq!((name, read), ("x", labels));
        }
    }
}
