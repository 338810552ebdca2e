//! A pin: the one public key that is trusted, as text.

use std::fmt;

/// SHA-256 of the public key of a hub's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin(pub [u8; 32]);

impl Pin {
    /// Reads `sha256/BASE64`, as a hub prints it.
    ///
    /// # Errors
    /// The rest of a sentence that says what to write.
    pub fn parse(text: &str) -> Result<Pin, String> {
        let wrong = || format!("\"{text}\" is no pin; copy it from the hub's join line, like sha256/47DEQpj8HBSa...");
        let inner = text.strip_prefix("sha256/").ok_or_else(wrong)?;
        let mut bytes = Vec::with_capacity(33);
        let (mut bits, mut held) = (0u32, 0);
        for c in inner.trim_end_matches('=').bytes() {
            let six = BASE64.iter().position(|known| *known == c).ok_or_else(wrong)? as u32;
            (bits, held) = (bits << 6 | six, held + 6);
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
                bits &= (1 << held) - 1;
            }
        }
        bytes.try_into().map(Pin).map_err(|_| wrong())
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256/{}", base64(&self.0))
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The base64 form of bytes, with padding (RFC 4648).
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        let digit = |i: usize| if i <= part.len() { BASE64[(bits >> (18 - 6 * i)) as usize & 63] } else { b'=' };
        text.extend((0..4).map(|i| char::from(digit(i))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_comes_back_and_nothing_else_is_one() {
        for bytes in [[0; 32], [255; 32], std::array::from_fn(|i| i as u8 * 7)] {
            assert_eq!(Pin::parse(&Pin(bytes).to_string()), Ok(Pin(bytes)));
        }
        assert_eq!(base64(b"user:pass"), "dXNlcjpwYXNz");
        assert_eq!(["", "f", "fo", "foo"].map(|text| base64(text.as_bytes())), ["", "Zg==", "Zm8=", "Zm9v"]);
        for text in ["", "sha256/", "sha256/AAAA", "md5/AAAA", "sha256/*"] {
            assert!(Pin::parse(text).expect_err(text).contains("join line"));
        }
    }
}
