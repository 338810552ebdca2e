//! A pin: the only trusted public key, as text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use settings::Written;
use std::fmt;
use toml::Value;

/// SHA-256 of the public key of a hub's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin(pub [u8; 32]);

impl Pin {
    /// Reads `sha256/BASE64`, as a hub prints it.
    ///
    /// # Errors
    /// The rest of a sentence with the expected form.
    pub fn parse(text: &str) -> Result<Pin, String> {
        let wrong =
            || format!("\"{text}\" is not a pin; copy it from the hub's join line, like sha256/47DEQpj8HBSa...");
        let inner = text.strip_prefix("sha256/").ok_or_else(wrong)?;
        let bytes = STANDARD_NO_PAD.decode(inner.trim_end_matches('=')).map_err(|_| wrong())?;
        bytes.try_into().map(Pin).map_err(|_| wrong())
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256/{}", STANDARD.encode(self.0))
    }
}

impl Written for Pin {
    fn show(&self) -> Value {
        self.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_comes_back_and_nothing_else_is_one() {
        for bytes in [[0; 32], [255; 32], std::array::from_fn(|i| i as u8 * 7)] {
            assert_eq!(Pin::parse(&Pin(bytes).to_string()), Ok(Pin(bytes)));
        }
        for text in ["", "sha256/", "sha256/AAAA", "md5/AAAA", "sha256/*", &format!("sha256/{}B", "A".repeat(42))] {
            assert!(Pin::parse(text).expect_err(text).contains("join line"));
        }
    }
}
