//! Formats of service keys, at any position; and text that is long and mixed enough to be a key.

use std::ops::Range;

/// A run of this many letters and digits may be a key.
const MAX_RUN: usize = 32;

/// Characters of a key after its prefix.
#[derive(Clone, Copy)]
enum Of {
    /// Letters and digits.
    Plain,
    /// Likewise, `_` and `-`.
    Url,
    /// Likewise, and dots.
    Dotted,
    /// Digits and lower-case letters up to f.
    Hex,
    /// Digits and capital letters.
    Capitals,
    /// Characters of an address.
    Path,
}

impl Of {
    fn has(self, byte: u8) -> bool {
        match self {
            Of::Plain => byte.is_ascii_alphanumeric(),
            Of::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Of::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Of::Hex => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            Of::Capitals => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
            Of::Path => byte.is_ascii_alphanumeric() || b"_-./%+=~".contains(&byte),
        }
    }
}

/// Prefixes of keys, the characters that follow, and their minimum number in bytes. With a shorter rest it is a word.
const SHAPES: [(&str, Of, usize); 62] = [
    ("hf_", Of::Plain, 30),      // Hugging Face
    ("api_org_", Of::Plain, 30), // Hugging Face, organizations
    ("glpat-", Of::Url, 16),     // GitLab
    ("gldt-", Of::Url, 16),
    ("glrt-", Of::Url, 16),
    ("glptt-", Of::Url, 16),
    ("glcbt-", Of::Url, 16),
    ("glsoat-", Of::Url, 16),
    ("ghp_", Of::Plain, 30), // GitHub
    ("gho_", Of::Plain, 30),
    ("ghu_", Of::Plain, 30),
    ("ghs_", Of::Plain, 30),
    ("ghr_", Of::Plain, 30),
    ("github_pat_", Of::Url, 30),
    ("sk-ant-", Of::Url, 16),  // Anthropic
    ("sk-proj-", Of::Url, 16), // OpenAI
    ("sk-or-", Of::Url, 16),   // OpenRouter
    ("sk-svcacct-", Of::Url, 16),
    ("sk-", Of::Plain, 20),
    ("sess-", Of::Plain, 30),
    ("gsk_", Of::Plain, 30),    // Groq
    ("r8_", Of::Plain, 30),     // Replicate
    ("nvapi-", Of::Url, 30),    // NVIDIA
    ("pplx-", Of::Plain, 30),   // Perplexity
    ("xai-", Of::Plain, 30),    // xAI
    ("tskey-", Of::Url, 16),    // Tailscale
    ("wandb_v1_", Of::Url, 16), // Weights & Biases
    ("npm_", Of::Plain, 36),
    ("pypi-", Of::Url, 40),
    ("xoxb-", Of::Url, 10), // Slack
    ("xoxp-", Of::Url, 10),
    ("xoxa-", Of::Url, 10),
    ("xoxr-", Of::Url, 10),
    ("xoxs-", Of::Url, 10),
    ("xoxe.", Of::Dotted, 10),
    ("xapp-", Of::Url, 10),
    ("hooks.slack.com/", Of::Path, 10),
    ("discord.com/api/webhooks/", Of::Path, 10),
    ("discordapp.com/api/webhooks/", Of::Path, 10),
    (".webhook.office.com/", Of::Path, 10),
    ("AKIA", Of::Capitals, 16), // AWS
    ("ASIA", Of::Capitals, 16),
    ("AIza", Of::Url, 30), // Google
    ("ya29.", Of::Url, 20),
    ("GOCSPX-", Of::Url, 20),
    ("eyJ", Of::Dotted, 20),     // JWT
    ("sk_live_", Of::Plain, 16), // Stripe
    ("sk_test_", Of::Plain, 16),
    ("rk_live_", Of::Plain, 16),
    ("rk_test_", Of::Plain, 16),
    ("whsec_", Of::Plain, 16),
    ("sq0csp-", Of::Url, 20),    // Square
    ("SK", Of::Hex, 32),         // Twilio
    ("SG.", Of::Dotted, 30),     // SendGrid
    ("key-", Of::Hex, 32),       // Mailgun
    ("dop_v1_", Of::Hex, 40),    // DigitalOcean
    ("dckr_pat_", Of::Url, 20),  // Docker
    ("lin_api_", Of::Plain, 30), // Linear
    ("shpat_", Of::Hex, 30),     // Shopify
    ("hvs.", Of::Url, 20),       // Vault
    ("ATATT3", Of::Path, 30),    // Atlassian
    ("AGE-SECRET-KEY-", Of::Capitals, 40),
];

/// Finds keys with such a format in a line.
pub(super) fn find(line: &str, found: &mut Vec<Range<usize>>) {
    userinfo(line, found);
    let bytes = line.as_bytes();
    // End of the run of bytes that was already judged as a whole.
    let (mut at, mut judged) = (0, 0);
    let mut is_aws = false;
    while at < bytes.len() {
        // A key begins at the start of a word.
        let is_begin = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let shape = SHAPES.iter().filter(|_| is_begin && line.is_char_boundary(at)).find_map(|(begin, of, least)| {
            let rest = bytes[at..].strip_prefix(begin.as_bytes())?;
            let length = rest.iter().take_while(|byte| of.has(**byte)).count();
            // The address of a webhook shows its service; the rest is the key.
            let shown = if matches!(of, Of::Path) && begin.ends_with('/') { begin.len() } else { 0 };
            (length >= *least).then(|| (at + shown..at + begin.len() + length, *begin))
        });
        if let Some((part, begin)) = shape {
            is_aws |= matches!(begin, "AKIA" | "ASIA");
            at = part.end;
            found.push(part);
            continue;
        }
        if at >= judged && is_of_key(bytes[at]) {
            let run = bytes[at..].iter().take_while(|byte| is_of_key(**byte)).count();
            judged = at + run;
            if is_key(&line[at..judged]) {
                found.push(at..judged);
                at = judged;
                continue;
            }
        }
        // Within a run, keys begin after its signs.
        let word = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        at += word.max(1);
    }
    if is_aws {
        secret_of_aws(line, found);
    }
}

/// Names and passwords before hosts: `https://me:pw@host`.
fn userinfo(line: &str, found: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(begin) = line[at..].find("://").map(|sign| at + sign + 3) {
        let rest = &line[begin..];
        let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c)).unwrap_or(rest.len());
        if let Some(sign) = rest[..end].rfind('@') {
            found.push(begin..begin + sign);
        }
        at = begin + end;
    }
}

/// The secret key beside the id of a key of AWS: 40 letters, digits, `/` and `+`.
fn secret_of_aws(line: &str, found: &mut Vec<Range<usize>>) {
    for word in line.split(|c: char| !(c.is_ascii_alphanumeric() || "/+".contains(c))) {
        let at = word.as_ptr() as usize - line.as_ptr() as usize;
        if word.len() == 40 && changes(word) >= 6 {
            found.push(at..at + 40);
        }
    }
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'_' | b'-')
}

/// Whether these bytes are long and mixed enough to be a key. Names of files are long, and mixed little; hashes of
/// commits and of files, and ids of GPUs, are no secrets.
fn is_key(run: &str) -> bool {
    let has = |of: fn(&u8) -> bool| run.as_bytes().iter().any(of);
    run.len() >= MAX_RUN
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && changes(run) * 4 >= run.len()
        && !is_hash(run)
        && !is_uuid(run)
}

/// Number of changes between digits, lower-case letters and capitals. The capital that begins a word within one counts
/// once.
fn changes(text: &str) -> usize {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => Some(0),
        b'a'..=b'z' => Some(1),
        b'A'..=b'Z' => Some(2),
        _ => None,
    };
    let kinds: Vec<Option<u8>> = text.bytes().map(kind).collect();
    let pairs = kinds.windows(2).filter(|pair| pair[0].is_some() && pair[1].is_some() && pair[0] != pair[1]).count();
    pairs - kinds.windows(3).filter(|three| *three == [Some(1), Some(2), Some(1)]).count()
}

/// SHA-1 and SHA-256, as git and container registries write them.
fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| Of::Hex.has(byte))
}

/// `7c1a4f5e-...`, also after a word such as `GPU-` or `MIG-GPU-`.
fn is_uuid(text: &str) -> bool {
    let Some(from) = text.len().checked_sub(36) else { return false };
    let (begin, id) = text.split_at(from);
    let is_id = id.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    is_id && begin.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))
}

/// Whether a word is in no language: it has digits or signs among its letters, or capitals within.
pub(super) fn is_odd(word: &str) -> bool {
    let bare = word.trim_end_matches(['.', '!', '?']);
    let has = |of: fn(char) -> bool| bare.contains(of);
    !is_number(bare)
        && bare.len() > 3
        && (has(|c| c.is_ascii_digit()) || has(|c| "!@#$%^&*+=~".contains(c)) || changes(bare) > 2)
}

/// Whether it is a number, perhaps with a unit: `1,024`, `3.5k`, `12%`.
pub(super) fn is_number(text: &str) -> bool {
    let of_one = |c: char| c.is_ascii_digit() || ".,+-_%eEkKMGBTs/|".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') && text.chars().all(of_one)
}
