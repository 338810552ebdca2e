//! Redaction of secrets in a text that repeats a user's input.

use toml::Value;

/// The text with `***` in place of user, password and query of every address in it.
pub fn hidden(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || "\"'`<>".contains(c);
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(ends) {
        let word = piece.trim_end_matches(ends);
        match word.split_once("://") {
            Some((before, address)) => {
                let (address, query) = address.split_once('?').map_or((address, ""), |(address, _)| (address, "?***"));
                let (user, rest) = address.rsplit_once('@').map_or(("", address), |(_, rest)| ("***@", rest));
                shown.extend([before, "://", user, rest, query, &piece[word.len()..]]);
            }
            None => shown.push_str(piece),
        }
    }
    shown
}

/// An address as in a file, without its secrets.
#[allow(clippy::ptr_arg, reason = "a kind of a key takes the field as it is")]
pub fn show_url(url: &String) -> Option<Value> {
    Some(hidden(url).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_what_is_no_secret() {
        for (text, shown) in [
            ("plain text, did you mean port?", "plain text, did you mean port?"),
            ("open http://localhost:7171/ then", "open http://localhost:7171/ then"),
            ("'a=http://me:s3cret@b/x'\n", "'a=http://***@b/x'\n"),
            ("\"http://me:s/3@cret@b/?key=s3cret&x=http://c\" is", "\"http://***@b/?***\" is"),
            ("http://?s3cret\thttps://s3cret@", "http://?***\thttps://***@"),
            ("", ""),
        ] {
            assert_eq!(hidden(text), shown);
        }
    }
}
