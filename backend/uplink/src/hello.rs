//! Start of a link: the upgrade to a WebSocket with the agent's key, our hello, the hub's welcome.

use super::evidence::Evidence;
use super::identity::{AgentIdentity, Shift};
use super::reply::{authorization, moved, pause};
use super::road::{Road, RoadEnd, STEP_TIMEOUT, Stage, Trail, Wire, no_web_server};
use crate::settings::HubUrl;
use api::Operation;
use futures_util::{SinkExt, StreamExt};
use shared::agent::{
    self, AgentHello, AgentMessage, HubMessage, MAX_FACT_BYTES, MAX_FACTS, MAX_LABELS, MAX_MESSAGE, MAX_OFFERS, Offer,
    PROTOCOL_NAME, Welcome, is_label, is_text,
};
use shared::wire::SourceId;
use std::time::Duration;
use stream::clock::{Clock, System};
use stream::live::Live;
use stream::store::{MAX_SEQUENCE, Run};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The link's socket.
pub(super) type LinkSocket = WebSocketStream<Box<dyn Wire>>;

/// End of a link, or of an attempt to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UplinkEnd {
    /// A network error: the step, and a sentence.
    Lost(RoadEnd),
    /// The hub requests a later retry: the reason, and the pause.
    Later(String, Option<Duration>),
    /// The hub refuses this agent: a code of [`agent::close`], or 401 for an invalid key.
    Refused(u16, String),
    /// This process is stopping.
    Stopped,
}

impl From<RoadEnd> for UplinkEnd {
    fn from(end: RoadEnd) -> Self {
        UplinkEnd::Lost(end)
    }
}

/// HTTP status of an unknown key, before the upgrade.
pub(super) const NO_KEY: u16 = 401;

/// Connects, and opens the WebSocket with the agent's key.
pub(super) async fn upgrade(road: &Road, url: &HubUrl, key: &str, trail: &mut Trail) -> Result<LinkSocket, UplinkEnd> {
    let failed = |why: String| UplinkEnd::Lost(RoadEnd::new(Stage::Upgrade, why));
    let wire = road.connect(url, trail).await?;
    let scheme = if url.tls { "wss" } else { "ws" };
    let target =
        format!("{scheme}://{}{}{}", url.authority(), url.base.trim_end_matches('/'), Operation::LinkAgent.path());
    let mut request = target.into_client_request().map_err(|error| failed(error.to_string()))?;
    let mut secret = HeaderValue::from_str(&authorization(key))
        .map_err(|_| UplinkEnd::Refused(NO_KEY, "the key is invalid: it must be one line of visible text".into()))?;
    secret.set_sensitive(true);
    let headers = request.headers_mut();
    headers.insert(header::AUTHORIZATION, secret);
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL_NAME));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("watchglass/", env!("CARGO_PKG_VERSION"))));
    let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
    let opened = timeout(STEP_TIMEOUT, client_async_with_config(request, wire, Some(config))).await;
    let opened = opened.map_err(|_| failed(format!("the upgrade timed out after {} s", STEP_TIMEOUT.as_secs())))?;
    match opened {
        Ok((socket, answer)) => {
            trail.push((Stage::Upgrade, PROTOCOL_NAME.into()));
            trail.extend(skew(answer.headers()).map(|skew| (Stage::Clock, skew.to_string())));
            Ok(socket)
        }
        Err(Error::Http(answer)) => {
            trail.extend(skew(answer.headers()).map(|skew| (Stage::Clock, skew.to_string())));
            let text = |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
            let said: Option<serde_json::Value> =
                answer.body().as_ref().and_then(|body| serde_json::from_slice(body).ok());
            let said = said.and_then(|said| said["error"].as_str().map(str::to_string));
            let said = |other: &str| said.clone().unwrap_or_else(|| other.into());
            let status = answer.status();
            Err(match status {
                StatusCode::UNAUTHORIZED => UplinkEnd::Refused(NO_KEY, said("the hub rejects this key")),
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                    UplinkEnd::Later(said("the hub is busy"), text(header::RETRY_AFTER).and_then(pause))
                }
                StatusCode::UPGRADE_REQUIRED => {
                    failed(said("the hub has another protocol version; install the version of the hub here"))
                }
                StatusCode::NOT_FOUND => failed("there is no Watchglass hub at this address (404)".into()),
                status if status.is_redirection() => {
                    failed(text(header::LOCATION).map_or("it redirects".into(), moved))
                }
                status => failed(said(&format!("the hub, or a proxy before it, returns {}", status.as_u16()))),
            })
        }
        Err(Error::Protocol(ProtocolError::HttparseError(_))) => Err(failed(no_web_server(url))),
        Err(Error::Io(error)) => Err(failed(format!("the connection was lost during the upgrade: {error}"))),
        Err(error) => Err(failed(format!("the server does not upgrade to a WebSocket: {error}"))),
    }
}

/// Offset of our clock ahead of the `Date` header of the response, seconds.
fn skew(headers: &HeaderMap) -> Option<i64> {
    let date = httpdate::parse_http_date(headers.get(header::DATE)?.to_str().ok()?).ok()?;
    let theirs = date.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs() as i64;
    Some(System.wall() / 1_000 - theirs)
}

/// Pairs of name and value.
pub(super) type TextPairs = Vec<(String, String)>;

/// Origin of a link's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// This process measures the machine.
    Measured,
    /// An endpoint that this process scrapes tells of the machine: nothing of ours runs there.
    Found,
    /// A hub relays another machine.
    Relayed,
}

/// The constant parts of a link's hello.
pub(super) struct Introduction {
    pub instance: u64,
    pub folder: u64,
    pub started: i64,
    pub evidence: Evidence,
    /// Labels of the configuration.
    pub labels: Vec<(String, String)>,
    /// Nothing is stored on disk.
    pub memory: bool,
    /// Where the samples come from.
    pub origin: Origin,
    /// Version of the program that measures.
    pub version: String,
}

impl Introduction {
    /// Operating system and processor of the machine, if they are known.
    pub fn platform(&self) -> Option<String> {
        (self.origin == Origin::Measured).then(|| format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH))
    }

    /// Host name, facts and labels in the form that a hub accepts.
    pub fn facts(&self, live: &Live, source: SourceId) -> (TextPairs, TextPairs) {
        let all = live.store().source(source).map(|(s, _)| s.facts.clone()).unwrap_or_default();
        let fits = |text: &String| text.len() <= MAX_FACT_BYTES && is_text(text);
        let own = match self.origin {
            Origin::Measured => self.evidence.labels(&all),
            Origin::Found => self.evidence.host_label().into_iter().collect(),
            Origin::Relayed => live.source(source).labels(),
        };
        let mut labels: Vec<(String, String)> = own.into_iter().filter(|(key, value)| is_label(key, value)).collect();
        labels.retain(|(key, _)| self.labels.iter().all(|(given, _)| given != key));
        labels.extend(self.labels.iter().cloned());
        labels.truncate(MAX_LABELS);
        let facts = all.into_iter().filter(|(word, value)| fits(word) && fits(value)).take(MAX_FACTS).collect();
        (facts, labels)
    }

    /// The current hello.
    fn hello(&self, live: &Live, source: SourceId, known: &AgentIdentity) -> AgentHello {
        let (facts, labels) = self.facts(live, source);
        let (interval, seq, record, life, runs) = {
            let store = live.store();
            let interval = store.source(source).map_or(1_000, |(s, _)| s.interval);
            let seq = store.state(source).map_or(0, |state| state.seq());
            // An agent also offers damaged blocks, because their intact part exists only here. A relaying hub does not:
            // it requests the whole block from the agent again.
            let runs = match self.origin {
                Origin::Relayed => store.runs(source),
                Origin::Measured | Origin::Found => store.runs_with_damaged(source),
            };
            (interval, seq, store.last_record(source), store.life(source), runs)
        };
        AgentHello {
            instance: self.instance,
            folder: self.folder,
            boot: self.evidence.boot,
            machine: self.evidence.machine,
            host: self.evidence.host.clone(),
            version: self.version.clone(),
            started: self.started,
            interval,
            facts,
            labels,
            now: live.clock.wall(),
            life,
            seq,
            record,
            retention: live.retention,
            memory: self.memory,
            offers: offers(&runs, known),
        }
    }
}

/// Offers for these runs: from the first sequence that is ours, in the hub's numbers, the newest open-ended.
fn offers(runs: &[Run], known: &AgentIdentity) -> Vec<Offer> {
    let own = runs.iter().filter(|run| run.last >= known.from);
    let own = own.map(|run| Run { first: run.first.max(known.from), ..*run });
    let mut offers: Vec<Offer> = own.flat_map(|run| shifted(run, &known.shifts)).collect();
    offers.sort_unstable_by_key(|offer| offer.first);
    if let Some(newest) = offers.last_mut() {
        (newest.last, newest.to) = (u64::MAX, i64::MAX);
    }
    // Joined runs include ticks that do not exist; these are not sent.
    let more = offers.len().saturating_sub(MAX_OFFERS - 1);
    if more > 1 {
        let joined = Offer { last: offers[more - 1].last, to: offers[more - 1].to, ..offers[0] };
        offers.splice(..more, [joined]);
    }
    offers
}

/// A run in the hub's numbers, split where the offset changes.
fn shifted(run: Run, shifts: &[Shift]) -> Vec<Offer> {
    let mut parts = Vec::new();
    let mut first = run.first;
    while first <= run.last {
        let within = shifts.iter().find(|shift| (shift.first..=shift.last).contains(&first));
        let next = shifts.iter().map(|shift| shift.first).filter(|begin| *begin > first).min();
        let last = within.map_or(next.map_or(run.last, |next| next - 1), |shift| shift.last).min(run.last);
        let add = within.map_or(0, |shift| shift.add);
        // A part keeps the times of the whole run: the hub uses them only for the age of a range.
        parts.push(Offer { first: first + add, last: last + add, from: run.from, to: run.to });
        first = last + 1;
    }
    parts
}

/// Sends the hello and waits for the welcome.
pub(super) async fn greet(
    socket: &mut LinkSocket,
    told: &Introduction,
    live: &Live,
    source: SourceId,
    known: &AgentIdentity,
) -> Result<Welcome, UplinkEnd> {
    let lost = |why: String| UplinkEnd::Lost(RoadEnd::new(Stage::Key, why));
    let hello = AgentMessage::Hello(Box::new(told.hello(live, source, known)));
    let greeted = async {
        let said = socket.send(Message::Binary(agent::encode(&hello).into())).await;
        loop {
            match next(socket).await {
                Ok(HubMessage::Welcome(welcome)) => return Ok(welcome),
                Ok(HubMessage::Goodbye { code, reason, wait }) => return Err(goodbye(code, reason, wait)),
                Ok(_) => {}
                Err(UplinkEnd::Lost(end)) => match &said {
                    Err(error) => return Err(lost(error.to_string())),
                    Ok(()) => return Err(UplinkEnd::Lost(end)),
                },
                Err(end) => return Err(end),
            }
        }
    };
    let welcome = timeout(STEP_TIMEOUT, greeted).await;
    let welcome = welcome.map_err(|_| lost(format!("no welcome within {} s", STEP_TIMEOUT.as_secs())))??;
    match welcome.holds < MAX_SEQUENCE / 2 {
        true => Ok(welcome),
        false => Err(lost("the hub claims to have a tick from the future".into())),
    }
}

/// Converts a goodbye of the hub.
pub(super) fn goodbye(code: u16, reason: String, wait: u32) -> UplinkEnd {
    let wait = (wait > 0).then(|| Duration::from_millis(u64::from(wait)));
    let reason: String = reason.chars().filter(|c| !c.is_control()).take(300).collect();
    match code {
        agent::close::REVOKED | agent::close::UNKNOWN | agent::close::REPLACED | agent::close::IN_USE => {
            UplinkEnd::Refused(code, reason)
        }
        _ => UplinkEnd::Later(reason, wait),
    }
}

/// The next message of the hub of a known kind.
pub(super) async fn next<S>(socket: &mut S) -> Result<HubMessage, UplinkEnd>
where
    S: StreamExt<Item = Result<Message, Error>> + Unpin,
{
    let lost = |why: String| UplinkEnd::Lost(RoadEnd::new(Stage::Key, why));
    loop {
        match socket.next().await {
            Some(Ok(Message::Binary(bytes))) => match agent::decode_hub(&bytes) {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(why) => return Err(lost(format!("the message of the hub is {why}"))),
            },
            Some(Ok(Message::Close(Some(frame)))) => {
                return Err(goodbye(frame.code.into(), frame.reason.as_str().into(), 0));
            }
            Some(Ok(Message::Close(None))) | None => return Err(lost("the hub has closed the link".into())),
            Some(Ok(_)) => {}
            Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => {
                return Err(lost("the link was lost: the hub or the network closed it".into()));
            }
            Some(Err(error)) => return Err(lost(format!("the link was lost: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(from: u64, shifts: &[(u64, u64, u64)]) -> AgentIdentity {
        AgentIdentity {
            hub: String::new(),
            source: String::new(),
            name: String::new(),
            key: String::new(),
            pin: None,
            machine: None,
            join: None,
            from,
            shifts: shifts.iter().map(|&(first, last, add)| Shift { first, last, add }).collect(),
        }
    }

    fn ranges(runs: &[(u64, u64)], known: &AgentIdentity) -> Vec<(u64, u64)> {
        let runs: Vec<Run> = runs.iter().map(|&(first, last)| Run { first, last, from: 1, to: 2 }).collect();
        offers(&runs, known).iter().map(|offer| (offer.first, offer.last)).collect()
    }

    #[test]
    fn what_is_there_is_offered_in_the_hubs_numbers_and_the_newest_has_no_end() {
        assert_eq!(ranges(&[], &known(0, &[])), []);
        assert_eq!(ranges(&[(1, 5), (9, 12)], &known(0, &[])), [(1, 5), (9, u64::MAX)]);
        assert_eq!(ranges(&[(1, 5), (9, 12)], &known(10, &[])), [(10, u64::MAX)]);
        // After a wrong clock: the hub held up to 102, and the life from 3 on continues with numbers above that.
        let shifts = known(0, &[(3, 5, 100)]);
        assert_eq!(ranges(&[(1, 5), (106, 107)], &shifts), [(1, 2), (103, 105), (106, u64::MAX)]);
    }

    #[test]
    fn of_very_many_the_oldest_are_joined() {
        let runs: Vec<(u64, u64)> = (0..5_000).map(|i| (i * 10 + 1, i * 10 + 5)).collect();
        let offered = ranges(&runs, &known(0, &[]));
        assert_eq!((offered.len(), offered[0].0, offered[MAX_OFFERS - 1].1), (MAX_OFFERS, 1, u64::MAX));
        assert_eq!(offered[1].0, runs[5_000 - MAX_OFFERS + 1].0);
    }

    #[test]
    fn a_goodbye_is_a_refusal_or_a_pause() {
        assert_eq!(goodbye(4_003, "revoked\n".into(), 0), UplinkEnd::Refused(4_003, "revoked".into()));
        assert_eq!(
            goodbye(1_001, "upgrade".into(), 5_000),
            UplinkEnd::Later("upgrade".into(), Some(Duration::from_secs(5)))
        );
    }
}
