//! Ids that are the same on each hub and after each restart.

use sha2::{Digest, Sha256};

/// Letters of ids: digits and lower-case letters without `i`, `l`, `o` and `u`.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// 26 letters of the SHA-256 of the parts.
pub fn from_parts(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // Lengths keep ("a", "bc") and ("ab", "c") apart.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    let (mut bits, mut have, mut next) = (0u32, 0, bytes.iter());
    (0..26)
        .map(|_| {
            if have < 5 {
                bits = bits << 8 | u32::from(*next.next().expect("26 letters are 130 of 256 bits"));
                have += 8;
            }
            have -= 5;
            char::from(LETTERS[(bits >> have & 31) as usize])
        })
        .collect()
}

/// Id of an alert.
pub fn alert(rule: &str, subject: &str, began: i64) -> String {
    from_parts(&["alert", rule, subject, &began.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_for_the_same_and_others_for_others() {
        let id = alert("r", "node-1 gpu.0.temp", 1_700_000_000_000);
        assert_eq!(id.len(), 26);
        assert_eq!(id, alert("r", "node-1 gpu.0.temp", 1_700_000_000_000));
        assert_ne!(id, alert("r", "node-1 gpu.0.temp", 1_700_000_000_001));
        assert_ne!(from_parts(&["a", "bc"]), from_parts(&["ab", "c"]));
        assert!(id.bytes().all(|b| LETTERS.contains(&b)));
    }
}
