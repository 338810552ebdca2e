//! Passwords: rules and storage. Hashing is slow by intent. So two hashes run at once, off the threads that serve
//! requests, and a bounded number waits.

use super::denied::Denied;
use super::random;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use shared::secret::Secret;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use unicode_normalization::UnicodeNormalization;

/// Memory of one hash, KiB; rounds; lanes.
const PARAMETERS: (u32, u32, u32) = (19_456, 2, 1);

/// Prefix of a hash with the present parameters.
const TODAY: &str = "$argon2id$v=19$m=19456,t=2,p=1$";

/// Hash to check when there is no password, so that the answer takes as long. No known password matches it.
const DUMMY: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Concurrent hashes, and the maximum number of waiting ones.
const AT_ONCE: usize = 2;
const WAITING: usize = 32;

/// Lengths in bytes after normalization.
const MIN_BYTES: usize = 12;
const MAX_BYTES: usize = 1_024; // bytes, no unit is converted
/// Maximum length before normalization.
const LONGEST_TYPED: usize = 4_096;

/// Rows of keys, and parts of common passwords.
const ROWS: [&str; 6] =
    ["0123456789", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "qwertzuiop", "asdfghjkl", "azertyuiop"];
const COMMON: [&str; 24] = [
    "password",
    "passwort",
    "admin",
    "administrator",
    "letmein",
    "welcome",
    "watchglass",
    "changeme",
    "iloveyou",
    "secret",
    "master",
    "monkey",
    "dragon",
    "sunshine",
    "princess",
    "football",
    "baseball",
    "superman",
    "trustno",
    "login",
    "test",
    "user",
    "root",
    "hub",
];

/// The form in which a password is checked and hashed.
///
/// # Errors
/// It is too long.
fn normal(password: &Secret) -> Result<Vec<u8>, Denied> {
    let typed = password.reveal();
    if typed.len() > LONGEST_TYPED {
        return Err(Denied::invalid(format!("a password has at most {MAX_BYTES} bytes")));
    }
    Ok(typed.nfkc().collect::<String>().into_bytes())
}

/// Checks the rules of a new password.
///
/// # Errors
/// The reason of the refusal, as a sentence without the password.
pub(super) fn check(password: &Secret, name: &str) -> Result<(), Denied> {
    let normal = normal(password)?;
    if !(MIN_BYTES..=MAX_BYTES).contains(&normal.len()) {
        return Err(Denied::invalid(format!("a password has {MIN_BYTES} to {MAX_BYTES} bytes; use a longer one")));
    }
    let text = String::from_utf8_lossy(&normal).to_lowercase();
    let easy = if text.contains(&name.to_lowercase()) && text.chars().count() < name.chars().count() + MIN_BYTES / 2 {
        Some("it is similar to the name")
    } else if text.chars().collect::<BTreeSet<_>>().len() < 5 {
        Some("it has too few different letters")
    } else if is_repeated(&text) {
        Some("it repeats itself")
    } else if words_left(&text) < 5 {
        Some("it consists of common words and rows of keys")
    } else {
        None
    };
    match easy {
        Some(why) => Err(Denied::invalid(format!("this password is easy to guess: {why}; choose another one"))),
        None => Ok(()),
    }
}

/// Whether a text repeats a shorter one.
fn is_repeated(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    (1..=letters.len() / 2).any(|period| letters.iter().zip(&letters[period..]).all(|(a, b)| a == b))
}

/// Number of letters left without common words, rows of three and more keys, digits and signs.
fn words_left(text: &str) -> usize {
    // Digits in place of letters, as people write them.
    let plain: String = text
        .chars()
        .map(|letter| match letter {
            '0' => 'o',
            '1' | '!' => 'i',
            '3' => 'e',
            '4' | '@' => 'a',
            '5' | '$' => 's',
            '7' => 't',
            other => other,
        })
        .collect();
    let count = |text: String| {
        let mut left = text;
        for word in COMMON {
            left = left.replace(word, " ");
        }
        let letters: Vec<char> = left.chars().collect();
        let in_row = |at: usize| {
            let run: String = letters[at..(at + 3).min(letters.len())].iter().collect();
            let back: String = run.chars().rev().collect();
            run.chars().count() == 3 && ROWS.iter().any(|row| row.contains(&run) || row.contains(&back))
        };
        let taken: BTreeSet<usize> = (0..letters.len()).filter(|at| in_row(*at)).flat_map(|at| at..at + 3).collect();
        (0..letters.len()).filter(|at| !taken.contains(at) && letters[*at].is_alphabetic()).count()
    };
    count(plain).min(count(text.to_string()))
}

/// Queue of hash computations.
#[derive(Debug)]
pub(super) struct Passwords {
    at_work: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Passwords {
    pub(super) fn new() -> Self {
        Passwords { at_work: Arc::new(Semaphore::new(AT_ONCE)), waiting: AtomicUsize::new(0) }
    }

    /// The hash of a password, as a PHC string. It takes some 20 ms of a core and 19 MiB.
    ///
    /// # Errors
    /// [`Denied::Busy`], and [`Denied::Invalid`] for one that is too long.
    pub(super) async fn hash(&self, password: &Secret) -> Result<String, Denied> {
        let normal = normal(password)?;
        let hashed = self.work(move || {
            let hash = argon2()?.hash_password_with_salt(&normal, &random::bytes::<16>()).ok()?;
            Some(hash.to_string())
        });
        hashed.await?.ok_or(Denied::Unavailable)
    }

    /// Whether a password matches a hash; without a hash it takes as long, and never matches.
    ///
    /// # Errors
    /// [`Denied::Busy`].
    pub(super) async fn is_right(&self, password: &Secret, hash: Option<String>) -> Result<bool, Denied> {
        // A password that is too long never matches; the work is the same.
        let normal = normal(password).unwrap_or_default();
        let known = hash.is_some() && !normal.is_empty();
        let hash = hash.unwrap_or_else(|| DUMMY.into());
        let right = self.work(move || Some(argon2()?.verify_password(&normal, hash.as_str()).is_ok())).await?;
        Ok(known && right == Some(true))
    }

    /// Whether a hash was made with weaker parameters than the present ones.
    pub(super) fn is_old(hash: &str) -> bool {
        !hash.starts_with(TODAY)
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Result<Option<T>, Denied> {
        let busy = Denied::Busy { retry_after: Duration::from_secs(2) };
        let _waits = Waits::new(&self.waiting).ok_or(busy)?;
        let slot = self.at_work.clone().acquire_owned().await.map_err(|_| Denied::Unavailable)?;
        // The slot is released with the work, which ends even without a waiting caller.
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(slot);
            done
        });
        done.await.map_err(|_| Denied::Unavailable)
    }
}

/// Counts a computation that waits or runs.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Option<Self> {
        let waits = Waits(count);
        (count.fetch_add(1, Ordering::Relaxed) < AT_ONCE + WAITING).then_some(waits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn argon2() -> Option<Argon2<'static>> {
    let (memory, rounds, lanes) = PARAMETERS;
    Some(Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(memory, rounds, lanes, None).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text)
    }

    #[test]
    fn easy_passwords_are_refused_and_long_plain_ones_are_not() {
        for easy in [
            "short",
            "elevenbytes",
            "aaaaaaaaaaaa",
            "abababababab",
            "123456789012",
            "password1234",
            "P4ssw0rd!2024",
            "qwertyuiop12",
            "qwerty123456",
            "passwordpassword",
            "Watchglass-2024",
            "admin-admin-admin",
            "mara-schmidt1",
            "abcdefghijkl",
            "zyxwvutsrqpo",
            "asdfghjkl123",
        ] {
            assert!(check(&secret(easy), "mara-schmidt").is_err(), "{easy}");
        }
        for good in [
            "correct horse battery",
            "kiwi lamp under rain",
            "x7#Lq92!vTzp",
            "ein langer Satz zum Merken",
            "пароль длинный очень",
        ] {
            assert_eq!(check(&secret(good), "mara-schmidt"), Ok(()), "{good}");
        }
        assert!(check(&secret(&"kiwi lamp under rain ".repeat(60)), "mara").is_err(), "longer than 1,024 bytes");
        assert!(check(&secret(&"x".repeat(5_000)), "mara").is_err());
        let told = check(&secret("hunter2hunter2"), "mara").expect_err("repeats itself").to_string();
        assert!(!told.contains("hunter2"), "{told}");
    }

    #[tokio::test]
    async fn the_same_password_in_another_spelling_is_right_and_no_other() {
        let passwords = Passwords::new();
        let hash = passwords.hash(&secret("Scho\u{308}ne Gru\u{308}\u{df}e hier")).await.expect("a hash");
        assert!(hash.starts_with(TODAY) && !Passwords::is_old(&hash), "{hash}");
        assert!(Passwords::is_old("$argon2id$v=19$m=4096,t=2,p=1$AAAA$AAAA"));
        let right = async |password: &str, hash: Option<&str>| {
            passwords.is_right(&secret(password), hash.map(String::from)).await.expect("not busy")
        };
        assert!(right("Sch\u{f6}ne Gr\u{fc}\u{df}e hier", Some(&hash)).await);
        assert!(!right("Schone Grusse hier", Some(&hash)).await);
        assert!(!right("", Some(&hash)).await);
        assert!(!right("Sch\u{f6}ne Gr\u{fc}\u{df}e hier", None).await, "nobody has the dummy's password");
        assert!(!right("x", Some("no hash")).await);
        let dummy = argon2::password_hash::phc::PasswordHash::new(DUMMY).expect("as good as a real one");
        assert_eq!((dummy.salt.map(|s| s.len()), dummy.hash.map(|h| h.len())), (Some(16), Some(32)));
    }

    #[test]
    fn who_waits_is_bounded() {
        let passwords = Passwords::new();
        let held: Vec<_> = (0..AT_ONCE + WAITING).map(|_| Waits::new(&passwords.waiting)).collect();
        assert!(held.iter().all(Option::is_some) && Waits::new(&passwords.waiting).is_none());
        drop(held);
        assert!(Waits::new(&passwords.waiting).is_some());
        assert_eq!(passwords.waiting.load(Ordering::Relaxed), 0);
    }
}
