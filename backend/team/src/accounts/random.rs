//! Ids, tokens and codes from the system's random generator, and their stored hashes.

use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

/// Crockford's letters, lower case: no two look alike.
const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Random bytes.
pub(super) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system always has random bytes once it has started");
    bytes
}

/// Random letters of five bits each.
fn base32<const N: usize>() -> String {
    bytes::<N>().iter().map(|byte| char::from(BASE32[usize::from(byte & 31)])).collect()
}

/// The id of an account, a team, a source or a stream: 130 bits in 26 letters.
pub fn id() -> String {
    base32::<26>()
}

/// The letters in the name of a hub's cookie.
pub(super) fn instance() -> String {
    base32::<8>()
}

/// A one-time code: 160 bits in 32 letters.
pub(super) fn code() -> String {
    base32::<32>()
}

/// Letters and digits with equal probability; 43 of them have 256 bits.
pub(super) fn base62(letters: usize) -> String {
    let mut text = String::with_capacity(letters);
    while text.len() < letters {
        let fair = bytes::<64>().map(|byte| usize::from(byte & 63));
        let fair = fair.iter().filter_map(|at| BASE62.get(*at)).map(|letter| char::from(*letter));
        text.extend(fair.take(letters - text.len()));
    }
    text
}

/// A number in six letters.
pub(super) fn checksum_text(mut number: u32) -> String {
    let mut letters = [b'0'; 6];
    for letter in letters.iter_mut().rev() {
        *letter = BASE62[(number % 62) as usize];
        number /= 62;
    }
    letters.iter().map(|letter| char::from(*letter)).collect()
}

/// The stored hash of a secret.
pub(super) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Whether two hashes are equal, in constant time.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    let differs = a.iter().zip(b).fold(0, |differs, (a, b)| differs | std::hint::black_box(a ^ b));
    a.len() == b.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn lengths_and_letters_are_those_that_are_promised() {
        assert_eq!((id().len(), instance().len(), code().len(), base62(43).len()), (26, 8, 32, 43));
        let letters: BTreeSet<char> = (0..200).flat_map(|_| base62(43).chars().collect::<Vec<_>>()).collect();
        assert_eq!(letters.len(), 62, "every letter comes");
        assert!(id().bytes().all(|letter| BASE32.contains(&letter)));
        assert_ne!(id(), id());
    }

    #[test]
    fn hashes_are_compared_whole() {
        let kept = hash("secret");
        assert!(same(&kept, &hash("secret")) && !same(&kept, &hash("secreT")) && !same(&kept, &kept[..31]));
        let mut last = kept;
        last[31] ^= 1;
        assert!(!same(&kept, &last) && !same(&[], &kept));
    }

    #[test]
    fn a_checksum_has_six_letters() {
        assert_eq!([0, 61, 62, u32::MAX].map(checksum_text), ["000000", "00000z", "000010", "4gfFC3"]);
    }
}
