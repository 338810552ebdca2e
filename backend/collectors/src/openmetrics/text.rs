//! Parses Prometheus text 0.0.4 and OpenMetrics 1.0 alike, line by line, without copying.
//!
//! It accepts the syntax of both: names with colons, samples without metadata, blanks after commas, escapes,
//! timestamps, exemplars, NaN, infinities and exponents. Any other line makes the whole page [`Bad`], because a page
//! damaged in one place cannot be trusted in another. For a page of OpenMetrics `strict.rs` runs before.

use super::key;
use std::borrow::Cow;

/// A page that is not, or not completely, in one of these formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// The page ends within a line, or before the `# EOF` of OpenMetrics.
    Truncated,
    /// The line with this number is neither a comment nor a sample.
    Line(usize),
    /// The line with this number breaks this rule of OpenMetrics.
    Rule(usize, &'static str),
}

/// Type in a `# TYPE` line.
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
    pub(super) fn read(word: &str) -> Option<Type> {
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

/// Content of a metadata comment for a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About<'a> {
    Type(Type),
    Help(&'a str),
    Unit(&'a str),
}

/// Family and content of a metadata comment; none for any other comment.
pub(super) fn about(line: &str) -> Option<(Cow<'_, str>, About<'_>)> {
    let rest = line.strip_prefix('#')?.trim_start_matches([' ', '\t']);
    let (word, rest) = rest.split_once([' ', '\t'])?;
    let rest = rest.trim_start_matches([' ', '\t']).trim_end_matches('\r');
    let (family, said) = key::family(rest)?;
    let said = said.trim_matches([' ', '\t', '\r']);
    let about = match word {
        "TYPE" => About::Type(Type::read(said)?),
        "HELP" => About::Help(said),
        "UNIT" => About::Unit(said),
        _ => return None,
    };
    Some((family, about))
}

/// Whether a page is complete: it ends with a line end, and with `# EOF` if it is OpenMetrics.
pub(super) fn whole(page: &str, open: bool) -> Result<(), Bad> {
    let trimmed = page.trim_end_matches(['\n', '\r']);
    let ended = trimmed == "# EOF" || trimmed.ends_with("\n# EOF");
    if ended || (!open && (page.is_empty() || trimmed.len() < page.len())) { Ok(()) } else { Err(Bad::Truncated) }
}

/// The value after a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value {
    /// The number; none for a native histogram, which is skipped.
    pub number: Option<f64>,
    /// The timestamp, in the format's own unit. It only orders samples of one series.
    pub stamp: Option<f64>,
    /// Length of the rest of the line, including its end.
    pub taken: usize,
}

/// Parses the value after a key. Exemplar and timestamp are skipped: the present value of the endpoint counts, at the
/// tick's own time.
pub(super) fn value(text: &str) -> Option<Value> {
    let end = text.find('\n').unwrap_or(text.len());
    let line = text[..end].trim_matches([' ', '\t', '\r']);
    let taken = (end + 1).min(text.len());
    if line.starts_with('{') {
        return line.contains('}').then_some(Value { number: None, stamp: None, taken });
    }
    let (number, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim_start_matches([' ', '\t']);
    let mut stamp = None;
    if !rest.is_empty() && !rest.starts_with('#') {
        let (printed, rest) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        stamp = Some(printed.parse::<f64>().ok()?);
        let rest = rest.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with('#') {
            return None;
        }
    }
    Some(Value { number: Some(number.parse().ok()?), stamp, taken })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(line: &str) -> Option<(String, f64)> {
        let end = key::key(line)?;
        let value = value(&line[end..])?;
        let (name, labels, _) = key::parts(&line[..end]);
        Some((format!("{name}{}", key::write_labels(&labels)), value.number?))
    }

    #[test]
    fn a_native_histogram_is_read_over() {
        let text = "x{a=\"1\"} {count:2,sum:3,schema:0,positive_spans:[0:1],positive_deltas:[2]} 5 # {} 1\ny 1";
        let found = value(&text[key::key(text).expect("a key")..]).expect("a value");
        assert_eq!((found.number, &text[text.len() - 3..]), (None, "y 1"));
        assert_eq!(value(" {count:2\n"), None);
        assert_eq!(value(" 1 17 # {} 1\n").and_then(|v| v.stamp), Some(17.0));
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
        for (comment, family, said) in [
            ("# TYPE a:b counter\r", "a:b", About::Type(Type::Counter)),
            ("#  HELP x  Some  text. ", "x", About::Help("Some  text.")),
            ("# HELP x", "x", About::Help("")),
            ("# UNIT x_seconds seconds", "x_seconds", About::Unit("seconds")),
            ("# HELP \"a b.c\" Some text.", "a_b_c", About::Help("Some text.")),
        ] {
            assert_eq!(about(comment), Some((family.into(), said)), "{comment}");
        }
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
            if let Some(end) = key::key(&text) {
                let _ = value(&text[end..]);
            }
        }
    }
}
