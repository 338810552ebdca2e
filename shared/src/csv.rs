//! Cells of CSV files, with untrusted names.

use crate::controls::replaced;

/// A text that no spreadsheet reads as a formula.
pub fn plain(text: &str) -> String {
    // Spreadsheets ignore blanks before a sign.
    let formula = text.trim_start().starts_with(['=', '+', '-', '@']) || text.starts_with(['\t', '\r', '\n']);
    if formula { format!("'{text}") } else { text.to_string() }
}

/// A text as a cell: quoted where needed, never a formula, and without control characters.
pub fn cell(text: &str) -> String {
    let text = plain(&replaced(text));
    if text.contains([',', '"', '\n', '\r', '\t']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        for (text, written) in [
            ("disk./a,b.usageGB", "\"disk./a,b.usageGB\""),
            ("say \"hi\", then", "\"say \"\"hi\"\", then\""),
            ("=1+1", "'=1+1"),
            (" =1+1", "' =1+1"),
            ("@x", "'@x"),
            ("\t=1", "\"'\t=1\""),
            ("plain", "plain"),
            ("a\u{1b}[2J\u{7}\u{9b}\u{202e}\rb", "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}b"),
            ("a\nb", "\"a\nb\""),
        ] {
            assert_eq!(cell(text), written);
        }
    }
}
