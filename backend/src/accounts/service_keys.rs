//! Keys of programs: made for a team, for what they are for alone, and ended.

use super::attempts::Limit;
use super::key::{self, Claimed, KeyKind};
use super::watchers::{Ended, Ends, Holder};
use super::{Accounts, DAY, Denied, Done, HOUR, Network, Principal, Who, random};
use records::keys::Key;
use records::{keys, teams};
use shared::people::{MadeKey, NewServiceKey, ServiceKey};
use shared::role::{KeyScope, Role};
use shared::session::TeamRole;

/// How long a key holds unless it is said.
const HOLDS: i64 = 400 * DAY;
/// The longest of one that administers the hub.
const HUB_ADMIN_HOLDS: i64 = 90 * DAY;
/// Keys of a team.
const KEYS: usize = 200;

impl Accounts {
    /// Who holds a key; none when it is none, does not hold, or is an agent's.
    ///
    /// # Errors
    /// [`Denied::Throttled`] after too many that are none, [`Denied::Unavailable`].
    pub async fn key(&self, text: &str, network: &Network) -> Result<Option<Principal>, Denied> {
        let (now, seen) = (self.now(), self.0.people.now());
        let Some(key) = self.proven(text, &[KeyKind::Person, KeyKind::Service]).await?.filter(|key| holds(key, now))
        else {
            self.attempt(&[(Limit::Key, network.text())])?;
            return Ok(None);
        };
        let mut on = self.read().await?;
        let scopes: Vec<KeyScope> = key.scopes.split(' ').filter_map(|scope| scope.parse().ok()).collect();
        let hub_admin = scopes.contains(&KeyScope::HubAdmin);
        let teams = match hub_admin {
            true => teams::all(&mut on).await?,
            false => teams::find(&mut on, &key.team).await?.into_iter().collect(),
        };
        // A service may what its keys are for.
        let role =
            if hub_admin { Some(Role::Admin) } else { scopes.iter().filter_map(|scope| scope.least_role()).max() };
        let role = role.unwrap_or(Role::Viewer);
        let mut principal = Principal {
            who: Who::Key { id: key.id.clone(), name: key.name.clone() },
            hub_admin,
            teams: teams.into_iter().map(|team| TeamRole { id: team.id, name: team.name, role }).collect(),
            scopes: Some(scopes),
            ends: key.ends,
            network: network.clone(),
            sources: Vec::new(),
            // A key has no password to give again; what it is for was decided when it was made.
            fresh_until: i64::MAX,
            holder: Holder { own: key.id.clone(), of: key.team.clone(), since: seen },
            session: None,
        };
        principal.sources = self.sources_of(&mut on, &principal).await?;
        drop(on);
        self.mark_used(&key, network).await;
        Ok(Some(principal))
    }

    /// A key came where it is written down by others, such as an address: it is ended if its secret is right.
    ///
    /// # Errors
    /// [`Denied::Unavailable`], [`Denied::Throttled`].
    pub async fn leaked(&self, text: &str, network: &Network) -> Result<(), Denied> {
        let kinds = [KeyKind::Person, KeyKind::Service, KeyKind::Agent, KeyKind::Join];
        let Some(key) = self.proven(text, &kinds).await?.filter(|key| key.ended.is_none()) else {
            return self.attempt(&[(Limit::Key, network.text())]);
        };
        let mut change = self.begin_change().await?;
        keys::end(&mut change, &key.id, self.now(), "leaked").await?;
        let done = Done { action: "key.leaked", team: Some(&key.team), object: &key.id, ..Done::default() };
        self.write_audit(&mut change, ("hub", "a key in an address", network.text()), done, "ended").await?;
        change.commit().await?;
        self.end_people(Ends::One(key.id.clone()), Ended::Key);
        self.0.links.end(Ends::One(key.id), super::LinkDenied::Revoked);
        Ok(())
    }

    /// The keys of a team's programs that hold, the newest first.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn service_keys(&self, by: &Principal, team: &str) -> Result<Vec<ServiceKey>, Denied> {
        let mut on = self.read().await?;
        let team = self.team(&mut on, by, team, Role::Admin).await?;
        let rows = keys::of(&mut on, Some(&team.id), KeyKind::Service.letter(), self.now()).await?;
        let shown = rows.into_iter().map(|key| ServiceKey {
            scopes: key.scopes.split(' ').filter_map(|scope| scope.parse().ok()).collect(),
            id: key.id,
            name: key.name,
            team: team.name.clone(),
            service: None,
            made: key.made / 1_000,
            ends: key.ends.map(|ends| ends / 1_000),
            used: key.used.map(|used| used / 1_000),
            network: key.network,
        });
        Ok(shown.collect())
    }

    /// Makes a key for a program of a team.
    ///
    /// # Errors
    /// [`Denied`]: a scope that who asks does not have, or none at all; too many keys.
    pub async fn add_service_key(&self, by: &Principal, team: &str, wanted: &NewServiceKey) -> Result<MadeKey, Denied> {
        let name = wanted.name.trim();
        if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
            return Err(Denied::invalid("say what the key is for: a name of 1 to 64 letters"));
        }
        if wanted.scopes.is_empty() {
            return Err(Denied::invalid("say what the key is for: at least one scope, such as data:read"));
        }
        if let Some(scope) =
            wanted.scopes.iter().find(|scope| matches!(scope, KeyScope::AgentJoin | KeyScope::AgentWrite))
        {
            return Err(Denied::invalid(format!("{scope} is for machines that join; make a join key instead")));
        }
        let now = self.now();
        let mut ends = key::end_of(wanted.expires.as_deref(), Some(HOLDS), now)?;
        let mut change = self.begin_change().await?;
        let team = self.team(&mut change, by, team, Role::Admin).await?;
        self.need_fresh(by)?;
        for &scope in &wanted.scopes {
            let has = match scope.least_role() {
                Some(role) => by.may(&team.id, role),
                None => by.is_hub_admin(),
            };
            if !has || !by.allows(scope) {
                return Err(Denied::Forbidden(format!("nobody gives what they do not have themselves: {scope}")));
            }
        }
        if wanted.scopes.contains(&KeyScope::HubAdmin) {
            ends = Some(ends.unwrap_or(i64::MAX).min(now + HUB_ADMIN_HOLDS));
        }
        if keys::of(&mut change, Some(&team.id), KeyKind::Service.letter(), now).await?.len() >= KEYS {
            return Err(Denied::conflict(format!("a team has at most {KEYS} keys; end one first")));
        }
        let minted = key::mint(KeyKind::Service);
        let scopes: Vec<&str> = wanted.scopes.iter().map(|scope| scope.text()).collect();
        let row =
            Key { name: name.into(), scopes: scopes.join(" "), ends, ..row(&minted, KeyKind::Service, &team.id, now) };
        keys::add(&mut change, &row).await?;
        let done = Done {
            action: "key.add",
            team: Some(&team.id),
            object: &minted.id,
            after: Some(format!("{name}: {}", row.scopes)),
            ..Done::default()
        };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        Ok(MadeKey { id: minted.id, key: minted.text })
    }

    /// Ends a key of a team's programs; its sockets close at once.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn end_service_key(&self, by: &Principal, team: &str, id: &str) -> Result<(), Denied> {
        self.end_key(by, team, id, KeyKind::Service).await
    }

    /// Ends a key of a team.
    pub(super) async fn end_key(&self, by: &Principal, team: &str, id: &str, kind: KeyKind) -> Result<(), Denied> {
        let mut change = self.begin_change().await?;
        let team = self.team(&mut change, by, team, Role::Admin).await?;
        let key = keys::get(&mut change, id).await?.ok_or(Denied::Unknown)?;
        if key.team != team.id || key.kind != kind.letter() || !holds(&key, self.now()) {
            return Err(Denied::Unknown);
        }
        keys::end(&mut change, id, self.now(), "ended").await?;
        let done = Done { action: "key.end", team: Some(&team.id), object: id, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.end_people(Ends::One(id.into()), Ended::Key);
        Ok(())
    }

    /// The row of a key whose secret is right, of one of some kinds; it need not hold any longer.
    pub(super) async fn proven(&self, text: &str, kinds: &[KeyKind]) -> Result<Option<Key>, Denied> {
        let Some(Claimed { kind, id, hash }) = key::read(text).filter(|claimed| kinds.contains(&claimed.kind)) else {
            return Ok(None);
        };
        let row = keys::get(&mut *self.read().await?, id).await?;
        // An id that is not there costs a comparison, too.
        let kept = row.as_ref().map_or([0; 32].as_slice(), |row| &row.hash);
        let right = random::same(kept, &hash);
        Ok(row.filter(|row| right && row.kind == kind.letter()))
    }

    /// When it was last used is known to the hour; a mark that cannot be written stops nobody.
    pub(super) async fn mark_used(&self, key: &Key, network: &Network) {
        let now = self.now();
        if key.used.is_some_and(|used| now < used + HOUR) && key.network.as_deref() == Some(network.text()) {
            return;
        }
        let mark = async {
            let mut change = self.begin_change().await?;
            keys::used(&mut change, &key.id, now, network.text()).await?;
            Ok::<(), Denied>(change.commit().await?)
        };
        if let Err(error) = mark.await {
            tracing::debug!(%error, "the last use of a key is not written down");
        }
    }
}

/// Whether nobody has ended a key, nor time.
pub(super) fn holds(key: &Key, now: i64) -> bool {
    key.ended.is_none() && key.ends.is_none_or(|ends| now < ends)
}

/// A row for a key that may nothing yet.
pub(super) fn row(minted: &key::Minted, kind: KeyKind, team: &str, now: i64) -> Key {
    Key {
        id: minted.id.clone(),
        hash: minted.hash.into(),
        kind: kind.letter().into(),
        name: String::new(),
        team: team.into(),
        owner: None,
        scopes: String::new(),
        source: None,
        settings: "{}".into(),
        uses: None,
        joined: 0,
        made: now,
        ends: None,
        ended: None,
        why: None,
        used: None,
        network: None,
    }
}
