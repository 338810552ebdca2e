//! The query of a page's address, as a hub stores it in saved views and share links. Only names that a page knows are
//! kept: they are decoded, checked and encoded again.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Names of the parameters that make up a view; each may be repeated.
pub const VIEW_NAMES: [&str; 30] = [
    "w", "from", "to", "theme", "source", "hide", "open", "shut", "front", "card", "layout", "only", "off", "pin",
    "over", "vs", "heat", "page", "with", "find", "by", "run", "align", "state", "sort", "columns", "finding",
    "kernel", "tab", "alert",
];
/// Names of the parameters about the reader: no view and no link keeps them.
const READER_NAMES: [&str; 3] = ["team", "view", "share"];

/// Names of all parameters in the address of a page.
pub fn names() -> impl Iterator<Item = &'static str> {
    VIEW_NAMES.into_iter().chain(READER_NAMES)
}

/// Characters that are encoded in a value.
const VALUE: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',').remove(b':').remove(b'/');

/// Maximum number of pairs that are read; further ones are ignored.
const MAX_PAIRS: usize = 200;

/// Decoded names and values of a query, with or without its `?`; pairs with an unknown name or no value are left out.
pub fn pairs(query: &str) -> Vec<(&'static str, String)> {
    let query = query.trim().trim_start_matches('?');
    let all = query.split('&').filter_map(|pair| pair.split_once('=')).filter_map(|(name, value)| {
        let name = decoded(name);
        let known = VIEW_NAMES.iter().find(|known| **known == name)?;
        let value = decoded(value);
        (!value.is_empty()).then_some((*known, value))
    });
    all.take(MAX_PAIRS).collect()
}

/// A query composed of its pairs, without `?`.
pub fn written<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        text.push_str(name);
        text.push('=');
        text.extend(utf8_percent_encode(value, VALUE));
    }
    text
}

/// A query with only the known names, as it is stored.
pub fn rewritten(query: &str) -> String {
    let pairs = pairs(query);
    written(pairs.iter().map(|(name, value)| (*name, value.as_str())))
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    // Invalid UTF-8 cannot come from a page.
    percent_decode_str(&text).decode_utf8_lossy().replace(|letter: char| letter.is_control(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_page_knows_is_kept_and_it_means_the_same() {
        for (query, kept) in [
            ("", ""),
            ("?w=5m&source=node%203+%26+co", "w=5m&source=node%203%20%26%20co"),
            ("page=fleet&utm_source=x&find=rack:r1%20state:late", "page=fleet&find=rack:r1%20state:late"),
            ("view=abc&share=x&team=main&w=1h", "w=1h"),
            ("w=1h&w=", "w=1h"),
            ("only=temp~GPU+3&only=disk~%2Fmnt%2Fa", "only=temp~GPU%203&only=disk~/mnt/a"),
            ("w=%3Cscript%3E\u{0}", "w=%3Cscript%3E"),
            ("source=%ff%zz%", "source=%EF%BF%BD%25zz%25"),
            ("no pairs at all", ""),
            (
                "page=runs&run=a&run=b&align=clock&columns=user&finding=f&kernel=k&tab=rules&alert=x",
                "page=runs&run=a&run=b&align=clock&columns=user&finding=f&kernel=k&tab=rules&alert=x",
            ),
        ] {
            assert_eq!(rewritten(query), kept, "{query}");
            assert_eq!(rewritten(kept), kept, "written once, it stays");
            assert_eq!(pairs(query), pairs(kept));
        }
        assert_eq!(pairs(&"w=1h&".repeat(1_000)).len(), MAX_PAIRS);
    }
}
