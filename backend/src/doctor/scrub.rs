//! Redacts text: names of machines and users, addresses, and likely secrets.

use std::net::{IpAddr, SocketAddr};

/// Shorter names are redacted as whole words only; longer ones anywhere.
const MIN_LENGTH_ANYWHERE: usize = 4;

/// Words whose values are secret.
const SECRETS: &[&str] = &["password", "passwd", "secret", "token", "authorization", "api_key", "apikey", "cookie"];

/// Folders below which the next name is a user's.
const HOMES: &[&str] = &["/home/", "/Users/", "\\Users\\"];

/// Names to redact.
#[derive(Clone, Debug, Default)]
pub struct Scrub {
    /// Name and its replacement; the longest first.
    names: Vec<(Vec<char>, &'static str)>,
}

impl Scrub {
    /// Names of machines (a long one also by its first part) and of users.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a str>, users: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names: Vec<(Vec<char>, &'static str)> = Vec::new();
        let mut add = |name: &str, place| {
            let letters: Vec<char> = name.trim().chars().flat_map(char::to_lowercase).collect();
            if !letters.is_empty() && !names.iter().any(|(known, _)| *known == letters) {
                names.push((letters, place));
            }
        };
        for host in hosts {
            add(host, "<host>");
            if host.parse::<IpAddr>().is_err() {
                add(host.split('.').next().unwrap_or_default(), "<host>");
            }
        }
        // The account root exists on every system and identifies nobody.
        users.into_iter().filter(|user| *user != "root").for_each(|user| add(user, "<user>"));
        names.sort_by_key(|(letters, _)| std::cmp::Reverse(letters.len()));
        Scrub { names }
    }

    /// The redacted text.
    pub fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let line = secrets(line);
            out.push_str(&addresses(&homes(&self.names(&urls(&line)))));
        }
        out
    }

    fn names(&self, line: &str) -> String {
        // One letter can become two in lower case. Comparing the first of them is enough to find a name.
        let letters: Vec<char> = line.chars().collect();
        let lower: Vec<char> = letters.iter().map(|c| c.to_lowercase().next().unwrap_or(*c)).collect();
        let mut out = String::with_capacity(line.len());
        let mut at = 0;
        while at < letters.len() {
            let found = self.names.iter().find(|(name, _)| {
                let end = at + name.len();
                let edge = |i: Option<usize>| i.and_then(|i| letters.get(i)).is_none_or(|c| !c.is_alphanumeric());
                lower[at..].starts_with(name)
                    && (name.len() >= MIN_LENGTH_ANYWHERE || (edge(at.checked_sub(1)) && edge(Some(end))))
            });
            match found {
                Some((name, place)) => {
                    out.push_str(place);
                    at += name.len();
                }
                None => {
                    out.push(letters[at]);
                    at += 1;
                }
            }
        }
        out
    }
}

/// Keeps only the word of `password = "x"` and the like.
fn secrets(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    for (at, word) in SECRETS.iter().flat_map(|word| lower.match_indices(word)) {
        let behind = &line[at + word.len()..];
        let Some(sign) = behind.find(['=', ':']).filter(|sign| *sign < 4) else { continue };
        let end = if line.ends_with('\n') { "\n" } else { "" };
        return format!("{}{} ***{end}", &line[..at + word.len()], &behind[..=sign]);
    }
    line.to_string()
}

/// Keeps only scheme and path of a URL.
fn urls(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, behind) = rest.split_at(at + 3);
        out.push_str(before);
        let ends = |c: char| c.is_whitespace() || "\"'<>,;)]}".contains(c);
        // Brackets also enclose an IPv6 address.
        let from = behind.find(']').filter(|_| behind.starts_with('[')).map_or(0, |at| at + 1);
        let url = &behind[..behind[from..].find(ends).map_or(behind.len(), |end| from + end)];
        let host = url.find(['/', '?', '#']).unwrap_or(url.len());
        let query = url.find(['?', '#']).unwrap_or(url.len());
        out.push_str("<host>");
        out.push_str(&url[host..query]);
        rest = &behind[url.len()..];
    }
    out + rest
}

/// The name of a home folder is that of its user.
fn homes(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((at, home)) = HOMES.iter().filter_map(|home| Some((rest.find(home)?, home))).min() {
        let (before, behind) = rest.split_at(at + home.len());
        out.push_str(before);
        let name = &behind[..behind.find(['/', '\\', '"', '\'', ',', '\n']).unwrap_or(behind.len())];
        out.push_str(if name.is_empty() || name == "<user>" { name } else { "<user>" });
        rest = &behind[name.len()..];
    }
    out + rest
}

/// IP addresses, with or without a port, and hardware addresses.
fn addresses(line: &str) -> String {
    let part = |c: char| c.is_ascii_hexdigit() || ".:[]".contains(c);
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(part) {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let run = &behind[..behind.find(|c| !part(c)).unwrap_or(behind.len())];
        rest = &behind[run.len()..];
        // `Interface:10.0.0.1` begins with letters that could be digits.
        let (word_before, label) = (word(out.chars().next_back()), run.find(':').map_or(0, |at| at + 1));
        let whole = if word_before { None } else { found(run) };
        // The end of a name and the beginning of the next look like `d::f` in the path of a module.
        match whole.or_else(|| found(&run[label..])).filter(|_| !word(rest.chars().next())) {
            Some(place) => out.push_str(place),
            None => out.push_str(run),
        }
    }
    out + rest
}

/// The replacement of an address, with any marks around it.
fn found(run: &str) -> Option<&'static str> {
    let marks: [&[char]; 3] = [&[], &['.', '[', ']'], &['.', ':', '[', ']']];
    let ended = run.trim_end_matches([':', '.']);
    marks.iter().map(|marks| run.trim_matches(*marks)).chain([ended]).find_map(address)
}

fn address(text: &str) -> Option<&'static str> {
    let ip = text.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    let hardware = || {
        let pairs: Vec<&str> = text.split(':').collect();
        pairs.len() == 6 && pairs.iter().all(|pair| pair.len() == 2)
    };
    match ip {
        Some(IpAddr::V4(ip)) if ip.is_loopback() => Some("<loopback>"),
        Some(IpAddr::V6(ip)) if ip.is_loopback() => Some("<loopback>"),
        Some(_) => Some("<address>"),
        None => hardware().then_some("<address>"),
    }
}
