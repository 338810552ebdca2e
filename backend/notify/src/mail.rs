//! E-mail: the configured server, the format of messages, and the meaning of its responses.

use crate::backoff::WHOLE;
use crate::sinks::Mail;
use lettre::address::Envelope;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::{Error, SmtpTransport};
use lettre::{Address, Transport};
use shared::secret::Secret;
use std::net::IpAddr;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Timeout of a server's response. Spam checks delay the response, and a message abandoned before it is delivered
/// twice. A longer timeout would exceed the notice's lease of a minute.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Number of tries in which a message waits for recipients that the server refuses for now: some nine minutes, longer
/// than servers delay a first contact. After that the other recipients get it.
const MAX_JOINT_TRIES: u32 = 9;

/// Protection of the connection to the e-mail server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmtpTls {
    /// Plain at first, with a required change to TLS, as on port 587.
    #[default]
    StartTls,
    /// TLS from the first byte on, as on port 465.
    Implicit,
    /// None: only within this machine.
    None,
}

/// The e-mail server, from the configuration.
#[derive(Clone, Debug)]
pub struct Smtp {
    host: String,
    port: u16,
    tls: SmtpTls,
    credentials: Option<(String, Secret)>,
    from: Mailbox,
    /// PEM of an additional trusted authority.
    authority: Option<String>,
}

impl Smtp {
    /// Validates the settings. The default port is 587, 465, or 25 without TLS. `from` is an address, as
    /// `watchglass@example.org` or `Watchglass <watchglass@example.org>`.
    ///
    /// # Errors
    /// The fault and the action to take, a sentence that names the field.
    pub fn new(
        host: &str,
        port: Option<u16>,
        tls: SmtpTls,
        user: Option<&str>,
        password: Option<Secret>,
        from: &str,
    ) -> Result<Self, String> {
        let host = host.trim();
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let named = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        if literal.is_err() && !named {
            return Err("[smtp] host is the name or address of a host, without a port".into());
        }
        let loopback = host.eq_ignore_ascii_case("localhost") || literal.is_ok_and(|ip| ip.is_loopback());
        if tls == SmtpTls::None && !loopback {
            return Err("[smtp] tls = \"none\" is allowed only for a server on this machine: write starttls or \
                implicit"
                .into());
        }
        let from: Mailbox = from
            .trim()
            .parse()
            .map_err(|_| "[smtp] from is an e-mail address, such as watchglass@example.org".to_string())?;
        let credentials = match (user, password) {
            (None, None) => None,
            (Some(user), Some(password)) => Some((user.to_string(), password)),
            _ => return Err("[smtp] user and password_file belong together: write both or none".into()),
        };
        let port = port.unwrap_or(match tls {
            SmtpTls::StartTls => 587,
            SmtpTls::Implicit => 465,
            SmtpTls::None => 25,
        });
        let host = host.trim_matches(['[', ']']).to_string();
        Ok(Smtp { host, port, tls, credentials, from, authority: None })
    }

    /// Trusts this authority's certificate, in PEM, in addition to those of the system.
    #[must_use]
    pub fn trusting(mut self, pem: &str) -> Self {
        self.authority = Some(pem.to_string());
        self
    }

    fn transport(&self, hello: &str) -> Result<SmtpTransport, Error> {
        let tls = match self.tls {
            SmtpTls::None => Tls::None,
            SmtpTls::StartTls => Tls::Required(self.parameters()?),
            SmtpTls::Implicit => Tls::Wrapper(self.parameters()?),
        };
        let mut builder = SmtpTransport::builder_dangerous(&self.host)
            .port(self.port)
            .tls(tls)
            .timeout(Some(RESPONSE_TIMEOUT))
            .hello_name(ClientId::Domain(self.hello(hello).to_string()));
        if let Some((user, password)) = &self.credentials {
            builder = builder.credentials(Credentials::new(user.clone(), password.reveal().to_string()));
        }
        Ok(builder.build())
    }

    fn parameters(&self) -> Result<TlsParameters, Error> {
        let mut parameters = TlsParameters::builder(self.host.clone());
        if let Some(pem) = &self.authority {
            parameters = parameters.add_root_certificate(Certificate::from_pem(pem.as_bytes())?);
        }
        parameters.build()
    }

    /// Name in our greeting: this host if its name is fully qualified, else the domain of the sender.
    fn hello<'a>(&'a self, host: &'a str) -> &'a str {
        let whole = host.contains('.') && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
        if whole { host } else { self.from.email.domain() }
    }

    /// A message in its sent form.
    ///
    /// # Errors
    /// Reason why it cannot be built, which earlier validation rules out.
    pub(crate) fn message(&self, mail: &Mail) -> Result<Message, String> {
        let domain = self.from.email.domain();
        let thread = format!("<{}@{domain}>", mail.thread);
        let at = UNIX_EPOCH + Duration::from_secs(u64::try_from(mail.at).unwrap_or(0));
        let mut message = Message::builder()
            .from(self.from.clone())
            .date(at)
            .message_id(Some(format!("<{}@{domain}>", mail.id)))
            .references(thread.clone())
            .header(AutoSubmitted)
            .header(ContentType::TEXT_PLAIN)
            .subject(&mail.subject);
        if mail.follows {
            message = message.in_reply_to(thread);
        }
        for to in &mail.to {
            message = message.to(to.clone());
        }
        message.body(mail.text.clone()).map_err(|error| format!("the message cannot be created: {error}"))
    }

    /// Sends a message, for the time of this number. If the server permanently refuses some addresses, the others still
    /// get it; so do they after [`MAX_JOINT_TRIES`] if it refuses some for now, such as a full mailbox.
    pub(crate) fn send(&self, mail: &Mail, host: &str, tries: u32) -> MessageOutcome {
        let started = Instant::now();
        let message = match self.message(mail) {
            Ok(message) => message.formatted(),
            Err(why) => return MessageOutcome::GivenUp(why),
        };
        let transport = match self.transport(host) {
            Ok(transport) => transport,
            Err(error) => return answered(&error),
        };
        let to: Vec<Address> = mail.to.iter().map(|to| to.email.clone()).collect();
        let send = |to: Vec<Address>| {
            let envelope = Envelope::new(Some(self.from.email.clone()), to);
            envelope.map(|envelope| transport.send_raw(&envelope, &message))
        };
        let waits = tries <= MAX_JOINT_TRIES;
        match send(to.clone()) {
            Ok(Ok(_)) => MessageOutcome::Done(String::new()),
            Ok(Err(error)) if to.len() > 1 && (refuses_a_recipient(&error) || !waits && delays_a_recipient(&error)) => {
                one_by_one(to, (started, waits), answered(&error), send)
            }
            Ok(Err(error)) => answered(&error),
            Err(_) => MessageOutcome::GivenUp("it has no e-mail address".into()),
        }
    }
}

/// Sends a message to each address alone. `waits`: a temporary error of one address is worth a retry for all.
fn one_by_one<E, R>(
    to: Vec<Address>,
    (started, waits): (Instant, bool),
    mut last: MessageOutcome,
    send: impl Fn(Vec<Address>) -> Result<Result<R, Error>, E>,
) -> MessageOutcome {
    let (all, mut taken) = (to.len(), 0);
    for one in to {
        if started.elapsed() > WHOLE {
            return MessageOutcome::Again("the timeout was reached before all recipients were tried".into());
        }
        match send(vec![one]) {
            Ok(Ok(_)) => taken += 1,
            Ok(Err(error)) => {
                let answer = answered(&error);
                if let (MessageOutcome::Again(_), true) = (&answer, waits) {
                    return answer;
                }
                last = answer;
            }
            Err(_) => {}
        }
    }
    match taken {
        0 => last,
        _ => MessageOutcome::Done(format!("for {taken} of {all} addresses, {} refused", all - taken)),
    }
}

/// Result of a message.
pub(crate) enum MessageOutcome {
    /// Accepted, with a remark, which is often empty.
    Done(String),
    /// Reason for a retry.
    Again(String),
    /// Reason why a retry is useless.
    GivenUp(String),
}

fn code(error: &Error) -> Option<String> {
    error.status().map(|code| code.to_string())
}

/// Whether TLS failed under an error that looks like a lost connection: only its source shows it.
fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let said = error.to_string().to_ascii_lowercase();
    ["certificate", "handshake", "corrupt message", "tls"].iter().any(|part| said.contains(part))
        || error.source().is_some_and(is_tls)
        // An I/O error does not return the wrapped error as its source.
        || error.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData)
}

fn refuses_a_recipient(error: &Error) -> bool {
    error.is_permanent() && code(error).is_some_and(|code| ["550", "551", "552", "553", "554", "501"].contains(&&*code))
}

/// Whether the server may refuse a recipient for now: a full mailbox, or a first contact.
fn delays_a_recipient(error: &Error) -> bool {
    code(error).is_some_and(|code| ["450", "451", "452"].contains(&&*code))
}

/// The class of an error; the server's own text is not included.
fn answered(error: &Error) -> MessageOutcome {
    if let Some(code) = code(error) {
        let what = match code.as_str() {
            "530" => "it requires TLS or a user: check tls, user and password_file of [smtp]",
            "534" | "535" | "538" => "authentication failed: check user and password_file of [smtp]",
            "550" | "551" | "553" => {
                "it rejects the recipient or the sender: check to of the channel and from of [smtp]"
            }
            "552" | "554" => "it rejects the message: check its log",
            _ if error.is_permanent() => "it rejects the message: check its log",
            _ => return MessageOutcome::Again(code),
        };
        return MessageOutcome::GivenUp(format!("{code}: {what}"));
    }
    MessageOutcome::Again(if error.is_timeout() {
        "the response timed out".into()
    } else if error.is_tls() || is_tls(error) {
        "TLS failed: check host and tls of [smtp], and that the system trusts the server's certificate".into()
    } else if error.is_client() {
        "it does not support the settings of [smtp]: check tls and user".into()
    } else {
        "no connection to the server of [smtp]".into()
    })
}

/// Marks the message as automatic, so that absence notices do not answer it.
#[derive(Clone, Copy)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(AutoSubmitted)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".into())
    }
}
