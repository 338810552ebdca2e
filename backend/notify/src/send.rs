//! The only module that connects: it sends requests, and converts responses to outcomes.

use crate::address::{Allowed, Rule};
use crate::backoff::{GIVE_UP_AFTER, WHOLE, backoff, retry_after};
use crate::mail::{MessageOutcome, Smtp};
use crate::settings::Settings;
use crate::sinks::{self, Post, Request};
use client::{Client, Limits, MaxBytes};
use shared::alert::{Notice, NoticeKind};
use shared::secret::Secret;
use shared::unit::duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout of one request.
const LIMIT: Duration = Duration::from_secs(10);

/// Maximum bytes read of a response.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;

/// Delivery settings, from the configuration.
#[derive(Clone, Debug, Default)]
pub struct Road {
    /// `[alerts] allow_targets`.
    pub allowed: Allowed,
    /// `[alerts] proxy`: `http://` or `https://`; may contain user and password.
    pub proxy: Option<Secret>,
    /// `[smtp]`.
    pub smtp: Option<Smtp>,
}

/// One try.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Seconds since the Unix epoch.
    pub now: i64,
    /// Number of this try, from 1 on.
    pub tries: u32,
    /// Random, 0 to 1: spreads the next try.
    pub random: f64,
}

/// Result of a try, with a sentence for people: status, time, address family, action to take. It contains no address
/// and no text of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted.
    Done {
        /// As `accepted (200) in 180 ms over IPv4`.
        sentence: String,
    },
    /// To be tried again.
    Again {
        /// After this time.
        after: Duration,
        /// As `502 in 40 ms over IPv6, tried 4 times, again in 8 s`.
        sentence: String,
    },
    /// A retry is useless.
    GivenUp {
        /// As `404 in 90 ms over IPv4: there is nothing at that address: …`.
        sentence: String,
    },
}

impl Outcome {
    /// Its sentence.
    pub fn sentence(&self) -> &str {
        match self {
            Outcome::Done { sentence } | Outcome::Again { sentence, .. } | Outcome::GivenUp { sentence } => sentence,
        }
    }
}

/// Sends notices, one at a time; each thread has its own. No connection is kept open.
#[derive(Debug)]
pub struct Sender {
    client: Client,
    rule: Arc<Rule>,
    by_proxy: bool,
    smtp: Option<Smtp>,
}

/// Result of one request, before the time of the next try is known.
enum Met {
    Done(String),
    Again(Option<Duration>, String),
    GivenUp(String),
}

impl Sender {
    /// A sender without state.
    ///
    /// # Errors
    /// The proxy's address is invalid.
    pub fn new(road: &Road) -> Result<Self, String> {
        Self::by_rule(road, Rule::new(road.allowed.clone()))
    }

    pub(crate) fn by_rule(road: &Road, rule: Rule) -> Result<Self, String> {
        let limits = Limits { connect: LIMIT, whole: LIMIT, idle: Duration::ZERO };
        let rule = Arc::new(rule);
        let proxy = road.proxy.as_ref().map(Secret::reveal);
        let client = Client::gated(limits, rule.clone(), proxy).map_err(|why| format!("[alerts] proxy: {why}"))?;
        Ok(Sender { client, rule, by_proxy: proxy.is_some(), smtp: road.smtp.clone() })
    }

    /// Sends a notice to a channel. It blocks: at most 10 s for each request, 20 s for each response of a mail server.
    /// After 40 s no further request begins.
    pub fn send(&mut self, settings: &Settings, notice: &Notice, attempt: Attempt) -> Outcome {
        let requests = sinks::requests(settings, notice, attempt.now);
        let cluster = settings.kind() == "alertmanager";
        let mut all: Vec<Met> = Vec::new();
        let started = Instant::now();
        for request in requests {
            if started.elapsed() > WHOLE {
                all.push(Met::Again(
                    None,
                    format!("the timeout was reached before all requests were sent, after {}", time(started)),
                ));
                break;
            }
            let met = self.one(settings, &request, notice, attempt);
            let done = matches!(met, Met::Done(_));
            all.push(met);
            // Later requests depend on earlier ones; only the members of a cluster are independent.
            if !done && !cluster {
                break;
            }
        }
        settled(together(all, cluster), notice, attempt)
    }

    fn one(&self, settings: &Settings, request: &Request, notice: &Notice, attempt: Attempt) -> Met {
        let started = Instant::now();
        match request {
            Request::Post(post) => self.post(settings, post, attempt.now, started),
            Request::Mail(mail) => {
                let Some(smtp) = &self.smtp else {
                    return Met::GivenUp("no SMTP server is configured: write [smtp] into the configuration".into());
                };
                let answer = smtp.send(mail, &notice.host, attempt.tries);
                let took = time(started);
                match answer {
                    MessageOutcome::Done(besides) if besides.is_empty() => Met::Done(format!("accepted in {took}")),
                    MessageOutcome::Done(besides) => Met::Done(format!("accepted {besides}, in {took}")),
                    MessageOutcome::Again(why) => Met::Again(None, format!("{why}, in {took}")),
                    MessageOutcome::GivenUp(why) => Met::GivenUp(format!("{why} (in {took})")),
                }
            }
        }
    }

    fn post(&self, settings: &Settings, post: &Post, now: i64, started: Instant) -> Met {
        if self.by_proxy
            && let Err(why) = self.rule.before_proxy(&post.uri, LIMIT)
        {
            return Met::Again(None, why);
        }
        let headers = post.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let answer = self.client.post(&post.uri, headers, &post.body);
        let over = self.over(self.client.met());
        let response = match answer {
            Ok(response) => response,
            Err(why) => return Met::Again(None, format!("{why}{over}")),
        };
        let status = response.status().as_u16();
        let after = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let after = after.and_then(|text| retry_after(text, now));
        // A server may treat a request as aborted unless its response is read. The text is ignored.
        drop(client::read(response, MaxBytes { sent: MAX_RESPONSE_BYTES, unpacked: MAX_RESPONSE_BYTES }));
        let took = format!("in {}{over}", time(started));
        match status {
            200..=299 => Met::Done(format!("accepted ({status}) {took}")),
            408 | 425 | 429 | 500.. => Met::Again(after, format!("{status} {took}")),
            _ => Met::GivenUp(format!("{status} {took}: {}", advice(status, settings))),
        }
    }

    fn over(&self, met: Option<SocketAddr>) -> &'static str {
        match met {
            Some(_) if self.by_proxy => " via the proxy",
            Some(address) if address.ip().to_canonical().is_ipv4() => " over IPv4",
            Some(_) => " over IPv6",
            None => "",
        }
    }
}

/// The elapsed time. A response within a millisecond counts as 1 ms, since none takes no time.
fn time(started: Instant) -> String {
    duration(i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX).max(1))
}

/// Action for a response that a retry will not change.
fn advice(status: u16, settings: &Settings) -> String {
    let help = sinks::find(settings.kind()).map_or("", |sink| sink.help);
    match status {
        300..=399 => {
            "it redirects, and notifications do not follow redirects: enter the final address in the channel".into()
        }
        401 | 403 => format!("authentication failed: enter a new secret in the channel ({help})"),
        404 | 410 => {
            format!("the address does not exist (any more): enter a new one in the channel ({help})")
        }
        413 => "it rejects messages of that size".into(),
        _ => format!("it rejects messages of kind {}: check that kind and address match ({help})", settings.kind()),
    }
}

/// Combined result of all requests of one notice. One accepting member of a cluster is enough, as members share alerts.
/// Otherwise all must accept.
fn together(all: Vec<Met>, cluster: bool) -> Met {
    let count = all.len();
    let (mut done, mut again, mut given_up) = (Vec::new(), None, None);
    for met in all {
        match met {
            Met::Done(sentence) => done.push(sentence),
            Met::Again(after, sentence) => again = again.or(Some((after, sentence))),
            Met::GivenUp(sentence) => given_up = given_up.or(Some(sentence)),
        }
    }
    let taken = done.len();
    match (done.pop(), again, given_up) {
        (Some(last), again, given_up) if cluster && (again.is_some() || given_up.is_some()) => {
            let why = again.map(|(_, why)| why).or(given_up).unwrap_or_default();
            Met::Done(format!("{last} by {taken} of {count}; another one: {why}"))
        }
        (_, Some((after, why)), _) => Met::Again(after, why),
        (_, None, Some(why)) => Met::GivenUp(why),
        (Some(last), ..) if taken > 1 => Met::Done(format!("{taken} times {last}")),
        (Some(last), ..) => Met::Done(last),
        // A group of Alertmanager's without an alert: there is nothing to send.
        (None, None, None) => Met::Done("nothing to send".into()),
    }
}

/// Time of the next try, or none.
fn settled(met: Met, notice: &Notice, attempt: Attempt) -> Outcome {
    match met {
        Met::Done(sentence) => Outcome::Done { sentence },
        Met::GivenUp(sentence) => Outcome::GivenUp { sentence },
        Met::Again(asked, why) => {
            let after = asked.unwrap_or_else(|| backoff(attempt.tries, attempt.random));
            let tried = match attempt.tries {
                0 | 1 => String::new(),
                tries => format!(", tried {tries} times"),
            };
            let age = attempt.now.saturating_sub(notice.at).max(0).unsigned_abs();
            if age.saturating_add(after.as_secs()) > GIVE_UP_AFTER.as_secs() {
                let after = duration(i64::try_from(GIVE_UP_AFTER.as_millis()).unwrap_or(i64::MAX));
                return Outcome::GivenUp { sentence: format!("{why}{tried}, given up after {after}") };
            }
            if notice.kind == NoticeKind::Test {
                return Outcome::Again { after, sentence: why };
            }
            let pause = duration(i64::try_from(after.as_millis().max(1_000)).unwrap_or(i64::MAX));
            Outcome::Again { after, sentence: format!("{why}{tried}, retry in {pause}") }
        }
    }
}
