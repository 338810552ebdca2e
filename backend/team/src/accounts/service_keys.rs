//! Keys of programs: of a team, of its services and of people. Each has scopes and can be ended. Its rights are its
//! scopes, limited by the present rights of its owner.

use super::attempts::Limit;
use super::key::{self, Claimed, KeyKind};
use super::watchers::{Ended, Ends, KeyHolder};
use super::{Accounts, DAY, Denied, Done, HOUR, Network, Principal, Who, principal_cache, random};
use records::accounts::Account;
use records::keys::Key;
use records::{Change, Connection, accounts, keys, services, teams};
use shared::people::{MadeKey, NewServiceKey, ServiceKey};
use shared::role::{KeyScope, Role};
use shared::scope::Bounds;
use shared::session::TeamRole;

/// Default lifetime of a key, and the maximum for a person's key.
const DEFAULT_LIFETIME: i64 = 400 * DAY;
/// Maximum lifetime of a key that administers the hub.
const HUB_ADMIN_HOLDS: i64 = 90 * DAY;
/// Maximum number of keys of a team, including its services, and of a person.
const KEYS: usize = 200;
const OWN_KEYS: usize = 50;

/// Owner of a key.
pub(super) enum Whose {
    /// A team's own.
    Team(teams::Team),
    /// A service's of a team.
    Service(teams::Team, services::Service),
    /// A person's; its row belongs to a team, and it is valid in all of theirs.
    Person(Account, String),
}

impl Whose {
    fn kind(&self) -> KeyKind {
        match self {
            Whose::Person(..) => KeyKind::Person,
            _ => KeyKind::Service,
        }
    }

    fn team(&self) -> &str {
        match self {
            Whose::Team(team) | Whose::Service(team, _) => &team.id,
            Whose::Person(_, team) => team,
        }
    }

    fn has(&self, key: &Key) -> bool {
        key.kind == self.kind().letter()
            && match self {
                Whose::Team(team) => key.team == team.id && key.service.is_none(),
                Whose::Service(_, service) => key.service.as_ref() == Some(&service.id),
                Whose::Person(account, _) => key.owner.as_ref() == Some(&account.id),
            }
    }
}

impl Accounts {
    /// The principal of a key. None if it is not a key, is not valid any more, or is an agent's.
    ///
    /// # Errors
    /// [`Denied::Throttled`] after too many invalid ones, [`Denied::Unavailable`].
    pub async fn key(&self, text: &str, network: &Network) -> Result<Option<Principal>, Denied> {
        let known = principal_cache::known("key", text);
        if let Some(principal) = self.judged(&known, network).await {
            return Ok(Some(principal));
        }
        let generation = self.0.records.generation();
        let proven = self.proven(text, &[KeyKind::Person, KeyKind::Service]).await?;
        let Some(key) = proven.filter(|key| holds(key, self.now())) else {
            self.attempt(&[(Limit::Key, network.text())])?;
            return Ok(None);
        };
        let principal = self.key_of(&key, network).await?;
        if let Some(principal) = &principal {
            self.mark_used(&key, network).await;
            self.keep_judged(known, generation, principal);
        }
        Ok(principal)
    }

    /// The principal of a key's row; none when the key is not valid any more.
    pub(super) async fn key_of(&self, key: &Key, network: &Network) -> Result<Option<Principal>, Denied> {
        let seen = self.0.people.now();
        let mut on = self.read().await?;
        let granted = match holds(key, self.now()) {
            true => self.granted(&mut on, key).await?,
            false => None,
        };
        let Some(granted) = granted else { return Ok(None) };
        Ok(Some(Principal {
            who: Who::Key { id: key.id.clone(), name: granted.name },
            hub_admin: granted.hub_admin,
            scope: self.scope_of(&mut on, granted.hub_admin, &granted.teams).await?,
            teams: granted.teams,
            scopes: Some(granted.scopes),
            ends: key.ends,
            network: network.clone(),
            owner: key.owner.clone(),
            bounds: Bounds::All,
            home: None,
            // A key has no password to enter again; its scopes were fixed at its creation.
            fresh_until: i64::MAX,
            holder: KeyHolder { own: key.id.clone(), of: granted.of, since: seen },
            session: None,
        }))
    }

    /// The present rights of a key; none when its owner has no rights any more.
    async fn granted(&self, on: &mut Connection, key: &Key) -> Result<Option<Granted>, Denied> {
        let scopes: Vec<KeyScope> = key.scopes.split(' ').filter_map(|scope| scope.parse().ok()).collect();
        // The scopes of a key limit its role.
        let most = scopes.iter().filter_map(|scope| scope.least_role()).max().unwrap_or(Role::Viewer);
        let wants_hub = scopes.contains(&KeyScope::HubAdmin);
        let in_team = |team: teams::Team, role| TeamRole { id: team.id, name: team.name, role };
        if let Some(owner) = &key.owner {
            let account = accounts::by_id(on, owner).await?.filter(|account| account.state == "active");
            let Some(account) = account else { return Ok(None) };
            let hub_admin = wants_hub && account.hub_admin;
            let own = self.team_roles(on, &account).await?.into_iter();
            let most = if hub_admin { Role::Admin } else { most };
            return Ok(Some(Granted {
                name: format!("{}/{}", account.name, key.name),
                teams: own.map(|team| TeamRole { role: team.role.min(most), ..team }).collect(),
                scopes,
                hub_admin,
                of: account.id,
            }));
        }
        let (of, name, role) = match &key.service {
            Some(service) => {
                let service = services::get(on, service).await?.filter(|service| service.state == "active");
                let Some(service) = service else { return Ok(None) };
                let Ok(role) = service.role.parse::<Role>() else { return Ok(None) };
                (service.id, format!("{}/{}", service.name, key.name), role)
            }
            None => (key.team.clone(), key.name.clone(), Role::Admin),
        };
        let hub_admin = wants_hub && role == Role::Admin;
        let (all, most) = match hub_admin {
            true => (teams::all(on).await?, Role::Admin),
            false => (teams::find(on, &key.team).await?.into_iter().collect(), most.min(role)),
        };
        let teams = all.into_iter().map(|team| in_team(team, most)).collect();
        // Scopes above its role are ignored.
        let scopes = scopes.into_iter().filter(|scope| scope.least_role().is_none_or(|least| least <= role)).collect();
        Ok(Some(Granted { of, name, hub_admin, teams, scopes }))
    }

    /// Handles a key that was sent where it gets logged, such as in an address: ends it if its secret is right.
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

    /// The valid keys of a team, newest first, without those of its services.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn service_keys(&self, by: &Principal, team: &str) -> Result<Vec<ServiceKey>, Denied> {
        let mut on = self.read().await?;
        let team = self.team(&mut on, by, team, Role::Admin).await?;
        self.shown_keys(&mut on, &Whose::Team(team)).await
    }

    /// Creates a key for a program of a team.
    ///
    /// # Errors
    /// [`Denied`]: a scope that the principal does not have, or none at all; too many keys.
    pub async fn add_service_key(&self, by: &Principal, team: &str, wanted: &NewServiceKey) -> Result<MadeKey, Denied> {
        check(wanted)?;
        let mut change = self.begin_change().await?;
        let team = self.team(&mut change, by, team, Role::Admin).await?;
        let made = self.make_key(&mut change, by, &Whose::Team(team), wanted).await?;
        change.commit().await?;
        Ok(made)
    }

    /// Ends a key of a team's programs; its sockets close at once.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn end_service_key(&self, by: &Principal, team: &str, id: &str) -> Result<(), Denied> {
        self.end_key(by, team, id, KeyKind::Service).await
    }

    /// The principal's own valid keys, newest first.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn own_keys(&self, by: &Principal) -> Result<Vec<ServiceKey>, Denied> {
        let mut on = self.read().await?;
        let account = self.own(&mut on, by).await?;
        self.shown_keys(&mut on, &Whose::Person(account, String::new())).await
    }

    /// Creates a key of the principal's own.
    ///
    /// # Errors
    /// [`Denied`]: a scope that the principal has in no team; too many keys; a key that never expires.
    pub async fn add_own_key(&self, by: &Principal, wanted: &NewServiceKey) -> Result<MadeKey, Denied> {
        let mut change = self.begin_change().await?;
        let account = self.own(&mut change, by).await?;
        let home = self.team_roles(&mut change, &account).await?.into_iter().next();
        let home = home.ok_or_else(|| Denied::conflict("you are in no team; ask an admin for an invitation"))?;
        let made = self.make_key(&mut change, by, &Whose::Person(account, home.id), wanted).await?;
        change.commit().await?;
        Ok(made)
    }

    /// Ends a key of the principal's own; its sockets close at once.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn end_own_key(&self, by: &Principal, id: &str) -> Result<(), Denied> {
        let mut change = self.begin_change().await?;
        let account = self.own(&mut change, by).await?;
        self.end_key_of(change, by, &Whose::Person(account, String::new()), id).await
    }

    /// The valid keys of a person, newest first.
    ///
    /// # Errors
    /// [`Denied::Forbidden`] without hub admin rights; [`Denied::Unknown`].
    pub async fn keys_of_person(&self, by: &Principal, word: &str) -> Result<Vec<ServiceKey>, Denied> {
        self.need_hub_admin(by)?;
        let mut on = self.read().await?;
        let account = self.account(&mut on, word).await?;
        self.shown_keys(&mut on, &Whose::Person(account, String::new())).await
    }

    /// Creates a key of a person, only for the owner of the hub's files, who could set that person's password, too. A
    /// hub admin elsewhere could otherwise act under the name of another.
    ///
    /// # Errors
    /// [`Denied`]: a scope that the person has in no team; too many keys; a key that never expires.
    pub async fn add_key_of_person(
        &self,
        by: &Principal,
        word: &str,
        wanted: &NewServiceKey,
    ) -> Result<MadeKey, Denied> {
        self.need_hub_admin(by)?;
        let mut change = self.begin_change().await?;
        let account = self.account(&mut change, word).await?;
        if !matches!(by.who, Who::Local { .. }) {
            let sentence = "a key of another person cannot be created remotely; they create it on the page, under \
                Your account";
            return Err(Denied::Forbidden(sentence.into()));
        }
        if account.state != "active" {
            return Err(Denied::conflict(format!("{} is disabled; enable the account first", account.name)));
        }
        let teams = self.team_roles(&mut change, &account).await?;
        for scope in &wanted.scopes {
            let has = scope.least_role().is_some_and(|least| teams.iter().any(|team| team.role >= least));
            if !has && !account.hub_admin {
                let sentence = format!("{} lacks {scope} in every team, so their keys cannot have it", account.name);
                return Err(Denied::Forbidden(sentence));
            }
        }
        let home = teams.into_iter().next();
        let home =
            home.ok_or_else(|| Denied::conflict(format!("{} is in no team; invite them first", account.name)))?;
        let made = self.make_key(&mut change, by, &Whose::Person(account, home.id), wanted).await?;
        change.commit().await?;
        Ok(made)
    }

    /// Ends a key of a person; its sockets close at once.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn end_key_of_person(&self, by: &Principal, word: &str, id: &str) -> Result<(), Denied> {
        self.need_hub_admin(by)?;
        let mut change = self.begin_change().await?;
        let account = self.account(&mut change, word).await?;
        self.end_key_of(change, by, &Whose::Person(account, String::new()), id).await
    }

    /// The keys of an owner, as lists show them.
    pub(super) async fn shown_keys(&self, on: &mut Connection, whose: &Whose) -> Result<Vec<ServiceKey>, Denied> {
        let rows = self.keys_of(on, whose).await?;
        let (team, service) = match whose {
            Whose::Team(team) => (team.name.clone(), None),
            Whose::Service(team, service) => (team.name.clone(), Some(service.name.clone())),
            Whose::Person(..) => (String::new(), None),
        };
        let shown = rows.into_iter().map(|key| ServiceKey {
            scopes: key.scopes.split(' ').filter_map(|scope| scope.parse().ok()).collect(),
            id: key.id,
            name: key.name,
            team: team.clone(),
            service: service.clone(),
            made: key.made / 1_000,
            ends: key.ends.map(|ends| ends / 1_000),
            used: key.used.map(|used| used / 1_000),
            network: key.network,
        });
        Ok(shown.collect())
    }

    async fn keys_of(&self, on: &mut Connection, whose: &Whose) -> Result<Vec<Key>, Denied> {
        let mut rows = match whose {
            Whose::Person(account, _) => keys::of_owner(on, &account.id, self.now()).await?,
            _ => keys::list(on, Some(whose.team()), whose.kind().letter(), self.now()).await?,
        };
        rows.retain(|key| whose.has(key));
        Ok(rows)
    }

    /// Creates a key in the transaction of the permission check. A principal grants only rights of their own.
    pub(super) async fn make_key(
        &self,
        change: &mut Change,
        by: &Principal,
        whose: &Whose,
        wanted: &NewServiceKey,
    ) -> Result<MadeKey, Denied> {
        let name = check(wanted)?;
        self.need_fresh(by)?;
        let now = self.now();
        let mut ends = key::end_of(wanted.expires.as_deref(), Some(DEFAULT_LIFETIME), now)?;
        for &scope in &wanted.scopes {
            let has = match (scope.least_role(), whose) {
                (Some(role), Whose::Team(team)) => by.may(&team.id, role),
                (Some(role), Whose::Service(team, service)) => {
                    if service.role.parse::<Role>().is_ok_and(|own| own < role) {
                        let sentence =
                            format!("service {:?} has the role {}, which lacks {scope}", service.name, service.role);
                        return Err(Denied::Forbidden(sentence));
                    }
                    by.may(&team.id, role)
                }
                (Some(role), Whose::Person(..)) => by.hub_admin || by.teams.iter().any(|team| team.role >= role),
                (None, Whose::Service(_, service)) => by.is_hub_admin() && service.role == Role::Admin.text(),
                (None, _) => by.is_hub_admin(),
            };
            if !has || !by.allows(scope) {
                return Err(Denied::Forbidden(format!("you cannot give a right that you do not have: {scope}")));
            }
        }
        if wanted.scopes.contains(&KeyScope::HubAdmin) {
            ends = Some(ends.unwrap_or(i64::MAX).min(now + HUB_ADMIN_HOLDS));
        }
        let most = match whose {
            Whose::Person(..) if ends.is_none_or(|ends| ends > now + DEFAULT_LIFETIME) => {
                return Err(Denied::invalid("a personal key lasts at most 400d; create one for a service instead"));
            }
            Whose::Person(account, _) => (keys::of_owner(change, &account.id, now).await?.len(), OWN_KEYS),
            _ => (keys::list(change, Some(whose.team()), whose.kind().letter(), now).await?.len(), KEYS),
        };
        if most.0 >= most.1 {
            return Err(Denied::conflict(format!("the limit of {} keys is reached; revoke one first", most.1)));
        }
        let minted = key::mint(whose.kind());
        let scopes: Vec<&str> = wanted.scopes.iter().map(|scope| scope.text()).collect();
        let (owner, service) = match whose {
            Whose::Team(_) => (None, None),
            Whose::Service(_, service) => (None, Some(service.id.clone())),
            Whose::Person(account, _) => (Some(account.id.clone()), None),
        };
        let plain = row(&minted, whose.kind(), whose.team(), now);
        let row = Key { name: name.into(), scopes: scopes.join(" "), ends, owner, service, ..plain };
        keys::add(change, &row).await?;
        let called = match whose {
            Whose::Person(account, _) => format!("{}/{name}", account.name),
            _ => name.to_string(),
        };
        let done = Done {
            action: "key.add",
            team: (whose.kind() == KeyKind::Service).then(|| whose.team()),
            object: &minted.id,
            after: Some(format!("{called}: {}", row.scopes)),
            ..Done::default()
        };
        self.audit(change, by, done).await?;
        Ok(MadeKey { id: minted.id, key: minted.text })
    }

    /// Ends a key, after the permission check.
    pub(super) async fn end_key_of(
        &self,
        mut change: Change,
        by: &Principal,
        whose: &Whose,
        id: &str,
    ) -> Result<(), Denied> {
        let key = keys::get(&mut change, id).await?.ok_or(Denied::Unknown)?;
        if !whose.has(&key) || !holds(&key, self.now()) {
            return Err(Denied::Unknown);
        }
        keys::end(&mut change, id, self.now(), "ended").await?;
        let team = (whose.kind() == KeyKind::Service).then_some(key.team.as_str());
        self.audit(&mut change, by, Done { action: "key.end", team, object: id, ..Done::default() }).await?;
        change.commit().await?;
        self.end_people(Ends::One(id.into()), Ended::Key);
        Ok(())
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

    /// The row of a key of one of these kinds, if its secret is right. The key may have ended.
    pub(super) async fn proven(&self, text: &str, kinds: &[KeyKind]) -> Result<Option<Key>, Denied> {
        let Some(Claimed { kind, id, hash }) = key::read(text).filter(|claimed| kinds.contains(&claimed.kind)) else {
            return Ok(None);
        };
        let row = keys::get(&mut *self.read().await?, id).await?;
        // A missing id costs a comparison, too.
        let kept = row.as_ref().map_or([0; 32].as_slice(), |row| &row.hash);
        let right = random::same(kept, &hash);
        Ok(row.filter(|row| right && row.kind == kind.letter()))
    }

    /// Marks the last use, to the hour. A failed write is ignored.
    pub(super) async fn mark_used(&self, key: &Key, network: &Network) {
        let now = self.now();
        if key.used.is_some_and(|used| now < used + HOUR) && key.network.as_deref() == Some(network.text()) {
            return;
        }
        let mark = async {
            let mut change = self.begin_note().await?;
            keys::used(&mut change, &key.id, now, network.text()).await?;
            Ok::<(), Denied>(change.commit().await?)
        };
        if let Err(error) = mark.await {
            tracing::debug!(%error, "the last use of a key is not written down");
        }
    }
}

/// The rights of a key.
struct Granted {
    /// Its name, after the owner's name if it has one.
    name: String,
    hub_admin: bool,
    teams: Vec<TeamRole>,
    scopes: Vec<KeyScope>,
    /// Its owner: an account or a service, else a team.
    of: String,
}

/// Validates the name and the scopes of a key; returns the name.
fn check(wanted: &NewServiceKey) -> Result<&str, Denied> {
    let name = wanted.name.trim();
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(Denied::invalid("the name of the key is missing: write 1 to 64 letters"));
    }
    if wanted.scopes.is_empty() {
        return Err(Denied::invalid("the scopes of the key are missing: give at least one, such as data:read"));
    }
    match wanted.scopes.iter().find(|scope| matches!(scope, KeyScope::AgentJoin | KeyScope::AgentWrite)) {
        Some(scope) => Err(Denied::invalid(format!("{scope} is for machines that join; create a join key instead"))),
        None => Ok(name),
    }
}

/// Whether a key has neither ended nor expired.
pub(super) fn holds(key: &Key, now: i64) -> bool {
    key.ended.is_none() && key.ends.is_none_or(|ends| now < ends)
}

/// The row of a key without rights.
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
        service: None,
    }
}
