//! Validation of a channel: the fields of its kind, and its target.

use crate::address::Allowed;
use crate::settings::{Address, Key, Settings};
use crate::sinks::{self, Field, Sink};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use client::http::Uri;
use lettre::message::Mailbox;
use shared::alert::{ChannelInput, MAX_TITLE_BYTES};
use shared::secret::Secret;
use url::Url;

/// Maximum number of e-mail addresses of one channel.
pub const MAX_RECIPIENTS: usize = 20;

/// Maximum number of other addresses of one channel.
pub const MAX_ADDRESSES: usize = 8;

/// Maximum bytes of an address.
const MAX_ADDRESS_BYTES: usize = 2_000;

impl Settings {
    /// Validates a channel as it was created or stored: the fields of its kind, and its target. `mail`: whether a
    /// server for e-mail is configured.
    ///
    /// # Errors
    /// The fault and the action to take, in a sentence without a secret or an address.
    pub fn check(input: &ChannelInput, allowed: &Allowed, mail: bool) -> Result<Settings, String> {
        let name = input.name.trim();
        if name.is_empty() || name.len() > MAX_TITLE_BYTES || crate::text::clean(name) != name {
            return Err(format!("the name of a channel is one line of 1 to {MAX_TITLE_BYTES} bytes"));
        }
        let sink = sinks::find(&input.kind)?;
        for (field, given) in given(input) {
            let asked = sink.needs.contains(&field) || sink.takes.contains(&field);
            if given && !asked {
                return Err(format!("{} does not use {}: leave it out", sink.kind, field.as_str()));
            }
            if !given && sink.needs.contains(&field) {
                return Err(format!("{} needs {}: {}", sink.kind, field.as_str(), sink.help));
            }
        }
        let mut written: Vec<&Secret> = input.address.iter().filter(full).collect();
        written.extend(&input.addresses);
        if written.len() > MAX_ADDRESSES {
            return Err(format!("a channel has at most {MAX_ADDRESSES} addresses"));
        }
        let own = sink.address.map(Secret::new);
        if written.is_empty() {
            written.extend(&own);
        }
        let addresses: Vec<Address> =
            written.into_iter().map(|address| checked(address, allowed)).collect::<Result<_, _>>()?;
        let mut settings = Settings {
            name: name.to_string(),
            kind: sink.kind,
            target: String::new(),
            addresses,
            to: recipients(&input.to)?,
            topic: input.topic.as_deref().unwrap_or("").trim().to_string(),
            secret: input.secret.clone(),
            keys: Vec::new(),
            cloud_events: match input.format.as_deref() {
                None | Some("" | "json") => false,
                Some("cloudevents") => true,
                Some(_) => return Err("the format is json or cloudevents".into()),
            },
        };
        if sink.signs {
            settings.keys = [&input.secret, &input.old_secret]
                .into_iter()
                .flatten()
                .filter(full)
                .map(key)
                .collect::<Result<_, _>>()?;
        }
        if sink.kind == "email" && !mail {
            return Err("no SMTP server is configured: write [smtp] with host and from into the configuration".into());
        }
        (sink.check)(&settings)?;
        settings.target = target(sink, &settings);
        Ok(settings)
    }
}

/// The part of a channel's target that may be shown.
fn target(sink: &Sink, settings: &Settings) -> String {
    let and = |first: String, all: usize| match all {
        0 | 1 => first,
        all => format!("{first} and {} more", all - 1),
    };
    match sink.shows {
        Field::To => and(settings.to.first().map(|to| to.email.to_string()).unwrap_or_default(), settings.to.len()),
        Field::Addresses => and(
            settings.addresses.first().map(|address| address.place().1).unwrap_or_default(),
            settings.addresses.len(),
        ),
        Field::Topic => tail(&settings.topic),
        Field::Secret | Field::OldSecret => tail(settings.secret.as_ref().map_or("", Secret::reveal)),
        Field::Address | Field::Format => {
            tail(&settings.addresses.first().map(|address| address.0.to_string()).unwrap_or_default())
        }
    }
}

/// The last four letters of a secret that is long enough to reveal them.
fn tail(secret: &str) -> String {
    let letters = secret.chars().count();
    let shown = if letters >= 16 { 4 } else { 0 };
    format!("…{}", secret.chars().skip(letters - shown).collect::<String>())
}

/// Whether it has text.
fn full(secret: &&Secret) -> bool {
    !secret.reveal().trim().is_empty()
}

fn given(input: &ChannelInput) -> [(Field, bool); 7] {
    let full = |secret: &Option<Secret>| secret.as_ref().is_some_and(|secret| full(&secret));
    let text = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    [
        (Field::Address, full(&input.address)),
        (Field::Addresses, !input.addresses.is_empty()),
        (Field::To, !input.to.is_empty()),
        (Field::Topic, text(&input.topic)),
        (Field::Secret, full(&input.secret)),
        (Field::OldSecret, full(&input.old_secret)),
        (Field::Format, text(&input.format)),
    ]
}

/// Parses an address as browsers do, so that an odd spelling of a number is resolved here already. Checks its target,
/// as far as possible without a lookup.
fn checked(written: &Secret, allowed: &Allowed) -> Result<Address, String> {
    let text = written.reveal().trim();
    let wrong = || "an address looks like https://host/path".to_string();
    if text.len() > MAX_ADDRESS_BYTES || text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(format!("{}, without spaces, of at most {MAX_ADDRESS_BYTES} bytes", wrong()));
    }
    let url = Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address must not contain a user or password: use the field for the secret".into());
    }
    // The fragment is for browsers only.
    let mut url = url;
    url.set_fragment(None);
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return Err(wrong()) };
    if url.scheme() == "http" && !allowed.plain(host, port) {
        return Err("an address begins with https://; plain http is allowed only for [alerts] allow_targets in the \
            configuration"
            .into());
    }
    let literal = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    if literal.is_ok_and(|ip| !crate::address::is_public(ip) && !allowed.plain(host, port)) {
        return Err("the address is not public; add it to [alerts] allow_targets in the configuration".into());
    }
    let uri: Uri = url.as_str().parse().map_err(|_| wrong())?;
    // Both parsers must find the same host; otherwise the checked host could differ from the requested one.
    let same = uri.host() == Some(host) && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if same { Ok(Address(uri)) } else { Err(wrong()) }
}

fn recipients(written: &[String]) -> Result<Vec<Mailbox>, String> {
    if written.len() > MAX_RECIPIENTS {
        return Err(format!(
            "a channel has at most {MAX_RECIPIENTS} e-mail addresses: use a list of your mail server for more"
        ));
    }
    let mut to: Vec<Mailbox> = Vec::new();
    for (i, text) in written.iter().enumerate() {
        let wrong =
            || format!("the {}. e-mail address is invalid: write one per field, such as ops@example.org", i + 1);
        if text.contains(|c: char| c.is_control()) {
            return Err(wrong());
        }
        let email: lettre::Address = text.trim().parse().map_err(|_| wrong())?;
        if !to.iter().any(|known| known.email == email) {
            to.push(Mailbox::new(None, email));
        }
    }
    Ok(to)
}

/// A key of Standard Webhooks: base64 of 24 to 64 bytes, with `whsec_` before it or without.
fn key(secret: &Secret) -> Result<Key, String> {
    let text = secret.reveal().trim();
    let bytes = BASE64.decode(text.strip_prefix("whsec_").unwrap_or(text)).unwrap_or_default();
    if !(24..=64).contains(&bytes.len()) {
        return Err(
            "a signing secret is whsec_ and 24 to 64 bytes in base64: create one with `openssl rand -base64 32`".into(),
        );
    }
    Ok(Key(bytes))
}

/// A changed channel. Omitted secrets are taken from before, as long as kind and hosts stay the same. So nobody can
/// send another person's secret to a host of their own.
///
/// # Errors
/// The secret that has to be entered again, and the reason.
pub fn merged(old: &ChannelInput, mut new: ChannelInput) -> Result<ChannelInput, String> {
    // An empty field counts as omitted.
    for field in [&mut new.address, &mut new.secret, &mut new.old_secret] {
        field.take_if(|secret| secret.reveal().trim().is_empty());
    }
    if old.kind != new.kind {
        let missing = new.secret.is_none() && new.address.is_none() && new.addresses.is_empty() && new.to.is_empty();
        return if missing { Err("the kind changes: enter address and secret again".into()) } else { Ok(new) };
    }
    let places = |input: &ChannelInput| -> Option<Vec<(String, String, Option<u16>)>> {
        let written = input.address.iter().chain(&input.addresses);
        written
            .map(|address| {
                let url = Url::parse(address.reveal().trim()).ok()?;
                Some((url.scheme().to_string(), url.host_str()?.to_string(), url.port_or_known_default()))
            })
            .collect()
    };
    let told = new.address.is_some() || !new.addresses.is_empty();
    if !told {
        new.address.clone_from(&old.address);
        new.addresses.clone_from(&old.addresses);
    }
    let all_known = match (places(old), places(&new)) {
        (Some(old), Some(new)) => new.iter().all(|place| old.contains(place)),
        _ => false,
    };
    if new.secret.is_none() && old.secret.is_some() {
        if !all_known {
            return Err("the host changes: enter the secret again".into());
        }
        new.secret.clone_from(&old.secret);
        new.old_secret = new.old_secret.or_else(|| old.old_secret.clone());
    }
    Ok(new)
}
