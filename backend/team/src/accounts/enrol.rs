//! Enrollment of machines: the rules that recognize a known machine, and answers to repeated requests.

use super::attempts::Limit;
use super::join::JoinSettings;
use super::key::{self, KeyKind};
use super::labels::{check_labels, json, labels_of};
use super::service_keys::{holds, row};
use super::watchers::Ends;
use super::{Accounts, DAY, Denied, Done, HOUR, LinkDenied, Network, random};
use records::enrolments::Enrolment as Request;
use records::keys::Key;
use records::sources::{ReportedFacts, Source};
use records::{Change, Connection, enrolments, keys, sources};
use shared::enrol::{EnrolRequest, Enrolled};
use shared::role::KeyScope;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A request repeated within this time is answered as the same machine, with a new key.
pub(super) const REPEATED: i64 = HOUR;
/// Time without a request after which a pending machine is dropped.
pub(super) const PENDING: i64 = DAY;

/// Number of looks whether a link at another hub has ended, and the delay between them: 3 s in all. The other hubs tell
/// their state each second, with many machines each two seconds, and a container may be started again faster.
const MAX_LOOKS: u32 = 30;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Maximum number of sources of a hub.
const SOURCES: i64 = 10_000;
/// Maximum length of a source's name.
const NAME: usize = 63;
const LINKS: usize = 64;

/// The answer to a machine that wants to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enrolment {
    /// It has joined.
    Enrolled(Enrolled),
    /// An admin has to confirm it; the machine repeats the same request.
    Pending,
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || ".-_".contains(letter)
}

/// Checks the name of a source.
pub(super) fn check_name(name: &str) -> Result<(), Denied> {
    match (1..=NAME).contains(&name.len()) && name.chars().all(is_name_letter) {
        true => Ok(()),
        false => Err(Denied::invalid(format!(
            "the name of a machine has 1 to {NAME} letters, digits, \".\", \"-\" or \"_\""
        ))),
    }
}

/// Validates a request: no data of an agent is trusted.
fn check(request: &EnrolRequest) -> Result<(), Denied> {
    let hex = |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !hex(&request.request, 32) {
        return Err(Denied::invalid("request has 32 hexadecimal digits, the same for each try"));
    }
    if let Some(name) = &request.name {
        check_name(name)?;
    }
    if request.machine.as_ref().is_some_and(|machine| !hex(machine, 64))
        || request.links.len() > LINKS
        || !request.links.iter().all(|link| hex(link, 64))
    {
        return Err(Denied::invalid(format!("machine and at most {LINKS} links are SHA-256 as 64 hexadecimal digits")));
    }
    let plain = |text: &str, most| text.len() <= most && !text.chars().any(char::is_control);
    let told = [(Some(&request.host), 255), (request.platform.as_ref(), 256), (request.version.as_ref(), 64)];
    if told.iter().any(|(text, most)| text.is_some_and(|text| !plain(text, *most))) {
        return Err(Denied::invalid("host, platform and version are short plain texts"));
    }
    Ok(())
}

/// The name requested for a new source: the given one, else its host name up to the first dot.
fn wanted_name(request: &EnrolRequest) -> String {
    request.name.clone().unwrap_or_else(|| name_of_host(&request.host))
}

/// The name for a machine of this host name: up to the first dot, of the letters that a name may have.
pub(super) fn name_of_host(host: &str) -> String {
    let first = host.split('.').next().unwrap_or_default();
    let name: String = first.chars().filter(|letter| is_name_letter(*letter)).take(NAME).collect();
    if name.is_empty() { "machine".into() } else { name }
}

/// The known sources that a machine may be, by its own statements. It is the first one that is not connected.
async fn known_sources(
    on: &mut Connection,
    request: &EnrolRequest,
    join: &Key,
    settings: &JoinSettings,
) -> Result<Vec<Source>, Denied> {
    let mut known = Vec::new();
    // A reinstalled machine has the same machine id, host name and network card. A clone is still connected, or has
    // another card.
    if let Some(machine) = request.machine.as_ref().filter(|_| !request.container) {
        let has_card = |source: &Source| {
            let cards: Vec<String> = serde_json::from_str(&source.links).unwrap_or_default();
            cards.iter().any(|card| request.links.contains(card))
        };
        let same = sources::of_machine(on, &join.team, machine, &request.host).await?;
        known.extend(same.into_iter().filter(has_card));
    }
    // A container has no identity but its name.
    let nameless = request.container || request.machine.is_none();
    if let Some(name) = request.name.as_ref().filter(|_| nameless && settings.by_name) {
        known.extend(sources::of_name(on, &join.team, name).await?);
    }
    Ok(known)
}

/// Checks that there is room for one more machine.
///
/// # Errors
/// [`Denied::Conflict`] if there is none.
pub(super) async fn need_room(change: &mut Change) -> Result<(), Denied> {
    match sources::count(change).await? >= SOURCES {
        true => Err(Denied::conflict(format!("a hub has at most {SOURCES} machines; remove one first"))),
        false => Ok(()),
    }
}

impl Accounts {
    /// Enrolls a machine by a join key.
    ///
    /// # Errors
    /// [`Denied::SignIn`] for a text that is no join key, [`Denied::Forbidden`] for an expired or ended one and for a
    /// revoked machine, [`Denied::Invalid`], [`Denied::Conflict`], [`Denied::Throttled`].
    pub async fn enrol(&self, text: &str, request: &EnrolRequest, network: &Network) -> Result<Enrolment, Denied> {
        check(request)?;
        let Some(join) = self.proven(text, &[KeyKind::Join]).await? else {
            self.attempt(&[(Limit::Key, network.text())])?;
            return Err(Denied::SignIn("this is not a join key of this hub; copy the whole join line".into()));
        };
        let settings: JoinSettings = serde_json::from_str(&join.settings).unwrap_or_default();
        self.wait_for_hubs(request, &join, &settings).await?;
        let now = self.now();
        let mut change = self.begin_change().await?;
        // Read again inside the change: two machines may share the last use.
        let join = keys::get(&mut change, &join.id).await?.ok_or(Denied::Unknown)?;
        if join.ended.is_some() {
            return Err(Denied::Forbidden("this join key was revoked; ask an admin for a new line".into()));
        }
        let source = match self.asked_before(&mut change, request, &join).await? {
            Some(Before { source, pending: false }) => source,
            Some(Before { pending: true, .. }) => {
                enrolments::asked(&mut change, &request.request, now).await?;
                change.commit().await?;
                return Ok(Enrolment::Pending);
            }
            None => {
                if !holds(&join, now) {
                    return Err(Denied::Forbidden("this join key has expired; ask an admin for a new line".into()));
                }
                if !keys::join(&mut change, &join.id).await? {
                    let sentence = "the limit of machines for this join key is reached; ask an admin for a new line";
                    return Err(Denied::Forbidden(sentence.into()));
                }
                let (source, is_known) = self.choose(&mut change, request, &join, &settings).await?;
                let waits = settings.approve || is_known && self.0.confirms_rejoins.load(Ordering::Relaxed);
                let state = if waits { "pending" } else { "approved" };
                let row = Request {
                    request: request.request.clone(),
                    source: source.id.clone(),
                    join_key: join.id.clone(),
                    state: state.into(),
                    made: now,
                    asked: now,
                };
                enrolments::add(&mut change, &row).await?;
                if waits {
                    let done =
                        Done { action: "agent.asks", team: Some(&join.team), object: &source.name, ..Done::default() };
                    self.write_audit(&mut change, ("agent", &by_join(&join), network.text()), done, "pending").await?;
                    change.commit().await?;
                    self.mark_used(&join, network).await;
                    self.sources_have_changed();
                    return Ok(Enrolment::Pending);
                }
                source
            }
        };
        let enrolled = self.admit(&mut change, request, source, &join, network, &settings).await?;
        change.commit().await?;
        self.0.links.end(Ends::AllOf(enrolled.source.clone(), None), LinkDenied::Replaced);
        self.sources_have_changed();
        self.mark_used(&join, network).await;
        Ok(Enrolment::Enrolled(enrolled))
    }

    /// The earlier result of this request.
    async fn asked_before(
        &self,
        change: &mut Change,
        request: &EnrolRequest,
        join: &Key,
    ) -> Result<Option<Before>, Denied> {
        let Some(before) = enrolments::get(change, &request.request).await? else { return Ok(None) };
        if before.join_key != join.id {
            return Err(Denied::conflict("this request used another join key; begin with a new request"));
        }
        let (now, pending) = (self.now(), before.state == "pending");
        if !pending && now >= before.asked + REPEATED {
            enrolments::remove(change, &request.request).await?;
            return Ok(None);
        }
        let source = sources::get(change, &before.source).await?.ok_or(Denied::Unknown)?;
        if source.state == "revoked" {
            return Err(revoked());
        }
        Ok(Some(Before { source, pending }))
    }

    /// The source of a machine, by the first rule that fits; a new one if none does. Also whether it was recognized by
    /// its own statements alone.
    async fn choose(
        &self,
        change: &mut Change,
        request: &EnrolRequest,
        join: &Key,
        settings: &JoinSettings,
    ) -> Result<(Source, bool), Denied> {
        if let Some(bound) = &settings.source {
            let found = sources::get(change, bound).await?;
            let found = found.ok_or_else(|| Denied::conflict("the machine of this join key was removed"))?;
            // A host that an agent found in a page has a name only. It is not the machine of the agent.
            if request.platform.is_none() && found.host.as_ref().is_some_and(|host| *host != request.host) {
                return Err(Denied::conflict(format!(
                    "this join key is for the machine {:?} alone; found hosts need a key without --as",
                    found.name
                )));
            }
            return Ok((found, false));
        }
        let is_linked = |id: &str| self.0.links.is_watched(id) || self.is_linked_elsewhere(id);
        let known = known_sources(change, request, join, settings).await?;
        match known.into_iter().find(|source| !is_linked(&source.id)) {
            Some(source) => Ok((source, true)),
            None => Ok((self.new_source(change, request, join, settings).await?, false)),
        }
    }

    fn is_linked_elsewhere(&self, source: &str) -> bool {
        self.0.linked_elsewhere.get().is_some_and(|asked| asked(source))
    }

    /// Waits for the other hubs, if all that a machine may be is linked there: its own link may have ended just now.
    async fn wait_for_hubs(&self, request: &EnrolRequest, join: &Key, settings: &JoinSettings) -> Result<(), Denied> {
        if settings.source.is_some() || self.0.linked_elsewhere.get().is_none() {
            return Ok(());
        }
        let mut known = known_sources(&mut *self.read().await?, request, join, settings).await?;
        known.retain(|source| !self.0.links.is_watched(&source.id));
        for _ in 0..MAX_LOOKS {
            if known.is_empty() || known.iter().any(|source| !self.is_linked_elsewhere(&source.id)) {
                break;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok(())
    }

    async fn new_source(
        &self,
        change: &mut Change,
        request: &EnrolRequest,
        join: &Key,
        settings: &JoinSettings,
    ) -> Result<Source, Denied> {
        need_room(change).await?;
        let source = Source {
            id: random::id(),
            team: join.team.clone(),
            name: self.free_name(change, &wanted_name(request)).await?,
            labels: json(&settings.labels),
            state: if settings.approve { "pending" } else { "active" }.into(),
            ephemeral: settings.ephemeral,
            by_name: request.name.clone(),
            machine: request.machine.clone(),
            links: json(&request.links),
            host: Some(request.host.clone()),
            platform: request.platform.clone(),
            version: request.version.clone(),
            facts: None,
            first_seen: self.now(),
            last_seen: None,
        };
        sources::add(change, &source).await?;
        Ok(source)
    }

    /// A free name, by `-2`, `-3`, ... after the wanted one.
    pub(super) async fn free_name(&self, change: &mut Change, wanted: &str) -> Result<String, Denied> {
        let now = self.now();
        for number in 1..=SOURCES + 1 {
            let end = if number == 1 { String::new() } else { format!("-{number}") };
            let name = format!("{}{end}", &wanted[..wanted.len().min(NAME - end.len())]);
            if !sources::is_taken(change, &name, now).await? {
                return Ok(name);
            }
        }
        Err(Denied::conflict("all names like this one are in use; choose another one with --name"))
    }

    /// Gives a machine the key of its source; an earlier key is replaced.
    async fn admit(
        &self,
        change: &mut Change,
        request: &EnrolRequest,
        source: Source,
        join: &Key,
        network: &Network,
        settings: &JoinSettings,
    ) -> Result<Enrolled, Denied> {
        let now = self.now();
        sources::set_state(change, &source.id, "active").await?;
        let (machine, links) = (request.machine.as_deref(), json(&request.links));
        sources::set_machine(change, &source.id, machine, &links, request.name.as_deref()).await?;
        let told = ReportedFacts {
            host: Some(&request.host),
            platform: request.platform.as_deref(),
            version: request.version.as_deref(),
            facts: None,
        };
        sources::record_reception(change, &source.id, now, told).await?;
        // Labels set by an admin override those of the join key.
        let mut labels = settings.labels.clone();
        labels.extend(labels_of(&source));
        check_labels(&labels)?;
        sources::set_labels(change, &source.id, &json(&labels)).await?;
        let replaced = keys::end_of_source(change, &source.id, now, "replaced").await?;
        let minted = key::mint(KeyKind::Agent);
        let key = Key {
            scopes: KeyScope::AgentWrite.text().into(),
            source: Some(source.id.clone()),
            ..row(&minted, KeyKind::Agent, &source.team, now)
        };
        keys::add(change, &key).await?;
        let done = Done {
            action: "agent.enrol",
            team: Some(&source.team),
            object: &source.name,
            before: (!replaced.is_empty()).then(|| format!("key {}", replaced.join(", "))),
            after: Some(format!("key {}, host {:?}", minted.id, request.host)),
        };
        self.write_audit(change, ("agent", &by_join(join), network.text()), done, "ok").await?;
        Ok(Enrolled { source: source.id, name: source.name, key: minted.text, labels })
    }
}

/// The earlier result of a request.
struct Before {
    source: Source,
    pending: bool,
}

fn by_join(join: &Key) -> String {
    format!("join key {}", join.id)
}

fn revoked() -> Denied {
    Denied::Forbidden("this machine was revoked; an admin can restore it with watchglass agents join --as NAME".into())
}
