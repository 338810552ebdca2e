//! People, keys and machines of a hub: authentication, permissions and changes, through [`Accounts`]. Every change and
//! its row of the audit log share one transaction. Affected sockets are notified after it.
//!
//! Permissions are checked here once more, beside the table of routes: for the principal and the object's team, by the
//! call that fetches the object. An object of another team is [`Denied::Unknown`], like one that never existed.

mod agents;
mod attempts;
mod audit_file;
mod configured_keys;
mod database;
mod denied;
mod enrol;
mod erase;
mod flow;
mod invites;
mod join;
mod key;
mod labels;
mod link;
mod log;
pub mod logins;
mod me;
mod password;
mod people;
mod principal;
mod principal_cache;
mod provided;
mod random;
mod removals;
mod sent;
mod service_keys;
mod services;
mod session;
mod shares;
mod teams;
mod usage;
mod views;
mod vouched;
mod watchers;

pub use audit_file::{AuditFile, AuditFileFigures};
pub use configured_keys::{ConfiguredKey, new_join_key};
pub use database::Database;
pub use denied::Denied;
pub use enrol::Enrolment;
pub use flow::{Flow, FlowSecret};
pub use invites::InviteTaken;
pub use join::NewKey;
pub use link::{Era, Heard, Identity, LinkDenied};
pub use log::LogFilter;
pub use principal::{Network, Principal, Who};
pub use provided::{Proof, Proved};
pub use random::id as random_id;
pub use removals::{REMOVALS_FILE, RemovalList};
pub use session::Begun;
pub use teams::gpu_hours_limit;
pub use usage::{GpuTimeTeam, UsageBy, UsageCount, UsageFilter, UsageHomes, usage_csv};
pub use views::{
    MAX_TEAM_VIEWS, NotSaved, built_in_views, checked_name as checked_view_name, checked_query as checked_view_query,
};
pub use vouched::{GroupRole, Vouched};
pub use watchers::Ended;

/// The name of the database in the data folder of a hub.
pub const FILE: &str = records::FILE;

/// Copies the database of a data folder to a file, also while a hub runs, and audits it.
///
/// # Errors
/// [`OpenError`]: there is no database, or the file already exists.
pub async fn backup(folder: &Path, file: &Path, clock: &dyn Clock, uid: u32) -> Result<(), OpenError> {
    let by = Principal::local(uid);
    let entry = audit::AuditRow {
        id: 0,
        t: clock.wall(),
        who: by.name(),
        by: by.means(),
        network: by.network.text().into(),
        action: "backup".into(),
        team: None,
        object: file.display().to_string(),
        before: None,
        after: None,
        result: "ok".into(),
    };
    records::backup(folder, file, &entry).await
}

/// Reason why the database cannot be opened.
pub type OpenError = records::OpenError;

use attempts::{Attempts, Limit};
use parking_lot::Mutex;
use password::Passwords;
use records::teams as team_rows;
use records::{Change, Connection, Reader, Records, audit};
use session::{IDLE, MAX_LIFETIME};
use shared::role::{KeyScope, Role};
use shared::scope::Scope;
use shared::session::TeamRole;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stream::clock::Clock;
use tokio::sync::watch;
use watchers::{Ends, Watchers};

/// The team that exists from the start.
const MAIN_TEAM: &str = "main";

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Default retention of rows of the audit log, and of ended keys.
const DEFAULT_RETENTION: i64 = 400 * DAY;

/// Whether another hub of a cluster has the link of a machine, by its ID.
type LinkedElsewhere = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// People, keys and machines of a hub. Cheap to clone.
#[derive(Clone)]
pub struct Accounts(Arc<Inner>);

struct Inner {
    records: Records,
    clock: Arc<dyn Clock>,
    instance: String,
    set_up: AtomicBool,
    passwords: Passwords,
    attempts: Attempts,
    judged: principal_cache::PrincipalCache,
    /// Time at which the proxy last authenticated an account, by its id; wall.
    brought: Mutex<HashMap<String, i64>>,
    people: Watchers<Ended>,
    links: Watchers<LinkDenied>,
    sources: watch::Sender<u64>,
    /// Whether an admin has to confirm a known machine that enrolls again.
    confirms_rejoins: AtomicBool,
    /// Set in a cluster.
    linked_elsewhere: OnceLock<LinkedElsewhere>,
    has_no_share_links: AtomicBool,
    has_no_user_names: AtomicBool,
    /// Time of the next removal of expired rows, wall.
    tidy_at: AtomicI64,
    /// Retention of rows of the audit log, milliseconds.
    audit_kept: AtomicI64,
    /// Idle timeout and maximum lifetime of a session, milliseconds.
    idle: AtomicI64,
    longest: AtomicI64,
    /// Failed sign-ins that are not in the log, because of the limit per network.
    unwritten: AtomicU64,
}

impl Accounts {
    /// Opens the database of a hub in its data folder, which is created if missing.
    ///
    /// # Errors
    /// [`OpenError`]: a newer version wrote it, or it cannot be used.
    pub async fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Accounts, OpenError> {
        Accounts::open_in(&Database::in_folder(folder), clock).await
    }

    /// Likewise in the named database.
    ///
    /// # Errors
    /// As [`Accounts::open`]; or it is a new PostgreSQL, and an existing file was not moved to it.
    pub async fn open_in(database: &Database, clock: Arc<dyn Clock>) -> Result<Accounts, OpenError> {
        let records = database.open().await?;
        let (instance, set_up) = begin(&records).await.map_err(|error| database.failed(&error))?;
        Ok(Accounts(Arc::new(Inner {
            records,
            clock,
            instance,
            set_up: AtomicBool::new(set_up),
            passwords: Passwords::new(),
            attempts: Attempts::default(),
            judged: principal_cache::PrincipalCache::default(),
            brought: Mutex::default(),
            people: Watchers::new(),
            links: Watchers::new(),
            sources: watch::Sender::new(0),
            confirms_rejoins: AtomicBool::new(false),
            linked_elsewhere: OnceLock::new(),
            has_no_share_links: AtomicBool::new(false),
            has_no_user_names: AtomicBool::new(false),
            tidy_at: AtomicI64::new(0),
            audit_kept: AtomicI64::new(DEFAULT_RETENTION),
            idle: AtomicI64::new(IDLE),
            longest: AtomicI64::new(MAX_LIFETIME),
            unwritten: AtomicU64::new(0),
        })))
    }

    /// Sets the retention of the audit log.
    pub fn keep_audit(&self, kept: Duration) {
        self.0.audit_kept.store(i64::try_from(kept.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Requires confirmation by an admin when a known machine enrolls again.
    pub fn confirm_rejoins(&self) {
        self.0.confirms_rejoins.store(true, Ordering::Relaxed);
    }

    /// Asks this whether another hub of the cluster has the link of a machine, by its ID. A machine that is linked there
    /// is not given to another one that says the same of itself. Called once, before the first machine enrolls; it is
    /// called within a change of the database, so it must not wait.
    pub fn ask_other_hubs(&self, is_linked: impl Fn(&str) -> bool + Send + Sync + 'static) {
        let _ = self.0.linked_elsewhere.set(Box::new(is_linked));
    }

    /// Hides names of users and of people from the viewers and share links of all teams.
    pub fn hide_user_names(&self) {
        self.0.has_no_user_names.store(true, Ordering::Relaxed);
    }

    /// Turns share links off for all teams.
    pub fn forbid_share_links(&self) {
        self.0.has_no_share_links.store(true, Ordering::Relaxed);
    }

    /// The database, for other records of the hub.
    pub fn records(&self) -> Records {
        self.0.records.clone()
    }

    /// Closes the database in order.
    pub async fn close(&self) {
        self.0.records.close().await;
    }

    /// Failed sign-ins since the start that are not in the audit log, because of the limit per network.
    pub fn unwritten_sign_ins(&self) -> u64 {
        self.0.unwritten.load(Ordering::Relaxed)
    }

    /// Counts a sign-in that is refused without a check, and adds no row to the log.
    fn leave_unwritten(&self) {
        self.0.unwritten.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there is an account. Without one nobody can sign in.
    pub fn is_set_up(&self) -> bool {
        self.0.set_up.load(Ordering::Acquire)
    }

    /// Eight letters in the name of this hub's cookie, generated with its database.
    pub fn instance(&self) -> &str {
        &self.0.instance
    }

    /// Whether the principal may see the arguments of processes of a source, by its id: members of its team may, keys
    /// may not.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn shows_arguments(&self, by: &Principal, source: &str) -> Result<bool, Denied> {
        match by.scopes.is_some() {
            true => Ok(false),
            false => self.is_member_at(by, source).await,
        }
    }

    /// Whether the principal is at least a member of a team that sees a source, by its id. Each team counts by itself:
    /// a viewer in a team that sees the source stays a viewer, also as a member of another team.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn is_member_at(&self, by: &Principal, source: &str) -> Result<bool, Denied> {
        if by.hub_admin {
            return Ok(true);
        }
        let teams = records::grants::teams(&mut *self.read().await?, source).await?;
        Ok(teams.iter().any(|team| by.may(team, Role::Member)))
    }

    /// A number that grows when a machine joins, is removed, renamed, confirmed or labeled, and with any foreign
    /// change.
    pub fn sources_changed(&self) -> watch::Receiver<u64> {
        self.0.sources.subscribe()
    }

    /// A receiver of the reason when the principal's session, key or link ends: their socket closes within a second.
    pub fn watch(&self, by: &Principal) -> watch::Receiver<Option<Ended>> {
        self.0.people.watch(&by.holder, Ended::Rights)
    }

    async fn read(&self) -> Result<Reader, Denied> {
        Ok(self.0.records.read().await?)
    }

    /// Begins a change; once an hour it also removes expired rows.
    async fn begin_change(&self) -> Result<Change, Denied> {
        let mut change = self.0.records.change().await?;
        let now = self.now();
        let at = self.0.tidy_at.load(Ordering::Relaxed);
        // A clock that was set back would else be waited for.
        if !(at - HOUR..at).contains(&now) {
            tidy(&mut change, now, (self.idle(), self.0.audit_kept.load(Ordering::Relaxed))).await?;
            self.0.tidy_at.store(now + HOUR, Ordering::Relaxed);
        }
        Ok(change)
    }

    /// Begins a change of marks and figures, which affects no authorization.
    async fn begin_note(&self) -> Result<Change, Denied> {
        Ok(self.0.records.note().await?)
    }

    /// Wall time, milliseconds since the Unix epoch.
    fn now(&self) -> i64 {
        self.0.clock.wall()
    }

    fn attempt(&self, by: &[(Limit, &str)]) -> Result<(), Denied> {
        let begun = self.0.attempts.begin(self.0.clock.steady(), by);
        begun.map_err(|retry_after| Denied::Throttled { retry_after: retry_after.max(Duration::from_secs(1)) })
    }

    /// The scope of these roles.
    async fn scope_of(&self, on: &mut Connection, hub_admin: bool, teams: &[TeamRole]) -> Result<Scope, Denied> {
        if hub_admin {
            return Ok(Scope::All);
        }
        let (mut named, mut nameless) = (BTreeSet::new(), BTreeSet::new());
        for team in teams {
            let hides = team.role == Role::Viewer && self.hides_names(on, &team.id).await?;
            let seen = if hides { &mut nameless } else { &mut named };
            seen.extend(records::sources::ids(on, &team.id).await?);
            nameless.extend(hides.then(|| team.id.clone()));
        }
        // One team that shows the names of a source is enough.
        nameless.retain(|id| !named.contains(id));
        let own: BTreeSet<String> = teams.iter().map(|team| team.id.clone()).collect();
        let sources = named.into_iter().chain(nameless.iter().filter(|id| !own.contains(*id)).cloned());
        Ok(Scope::only(own.clone(), sources.collect::<Vec<_>>()).without_names(nameless))
    }

    /// Whether names of users and of people are hidden from the viewers and share links of a team, by its id.
    async fn hides_names(&self, on: &mut Connection, team: &str) -> Result<bool, Denied> {
        if self.0.has_no_user_names.load(Ordering::Relaxed) {
            return Ok(true);
        }
        Ok(team_rows::find(on, team).await?.is_some_and(|team| teams::hides_names(&team)))
    }

    /// A team by its id or name, if the principal has at least this role.
    async fn team(
        &self,
        on: &mut Connection,
        by: &Principal,
        word: &str,
        role: Role,
    ) -> Result<team_rows::Team, Denied> {
        let team =
            team_rows::find(on, word).await?.filter(|team| by.role_in(&team.id).is_some()).ok_or(Denied::Unknown)?;
        if !by.may(&team.id, role) {
            return Err(Denied::Forbidden(format!(
                "this needs the role {role} in team {:?}; ask someone who has it",
                team.name
            )));
        }
        if role == Role::Admin && !by.allows(KeyScope::TeamAdmin) && !by.allows(KeyScope::HubAdmin) {
            return Err(Denied::Forbidden(format!("this needs a key with the scope {}", KeyScope::TeamAdmin)));
        }
        Ok(team)
    }

    /// The named team; without a name the only one.
    async fn named_team(&self, on: &mut Connection, word: Option<&str>) -> Result<team_rows::Team, Denied> {
        match word {
            Some(word) => team_rows::find(on, word).await?.ok_or(Denied::Unknown),
            None => match <[team_rows::Team; 1]>::try_from(team_rows::all(on).await?) {
                Ok([only]) => Ok(only),
                Err(_) => Err(Denied::invalid("there are several teams; choose one with team")),
            },
        }
    }

    fn need_hub_admin(&self, by: &Principal) -> Result<(), Denied> {
        match by.is_hub_admin() {
            true => Ok(()),
            false => Err(Denied::Forbidden("this needs an admin of the hub".into())),
        }
    }

    /// Requires a password entered within 15 minutes, for changes that create keys or admins.
    fn need_fresh(&self, by: &Principal) -> Result<(), Denied> {
        match by.is_fresh(self.now()) {
            true => Ok(()),
            false => Err(Denied::Again),
        }
    }

    /// Writes an audit row in the transaction of the change.
    async fn audit(&self, on: &mut Connection, by: &Principal, what: Done<'_>) -> Result<(), Denied> {
        let (who, means) = (by.name(), by.means());
        self.write_audit(on, (&who, &means, by.network.text()), what, "ok").await
    }

    async fn write_audit(
        &self,
        on: &mut Connection,
        (who, by, network): (&str, &str, &str),
        what: Done<'_>,
        result: &str,
    ) -> Result<(), Denied> {
        let entry = audit::AuditRow {
            id: 0,
            t: self.now(),
            who: who.into(),
            by: by.into(),
            network: network.into(),
            action: what.action.into(),
            team: what.team.map(String::from),
            object: what.object.into(),
            before: what.before,
            after: what.after,
            result: result.into(),
        };
        Ok(audit::add(on, &entry).await?)
    }

    fn sources_have_changed(&self) {
        self.0.sources.send_modify(|changes| *changes += 1);
    }

    fn end_people(&self, ends: Ends, why: Ended) {
        self.0.people.end(ends, why);
    }
}

/// An action, for the audit log.
#[derive(Default)]
struct Done<'a> {
    action: &'a str,
    team: Option<&'a str>,
    object: &'a str,
    before: Option<String>,
    after: Option<String>,
}

/// Creates the rows that every database has: the letters of its cookie, and a team. Existing ones are not written, so
/// that a hub starts on a full disk, too.
async fn begin(records: &Records) -> Result<(String, bool), records::Error> {
    // A failed read is no error: a server that is slow at the first connection has a longer timeout in a change.
    if let Ok(mut on) = records.read().await
        && let Ok(Some(instance)) = records::meta::get(&mut on, "instance").await
        && !team_rows::all(&mut on).await?.is_empty()
    {
        return Ok((instance, records::accounts::count(&mut on).await? > 0));
    }
    let mut change = records.change().await?;
    let instance = match records::meta::get(&mut change, "instance").await? {
        Some(instance) => instance,
        None => {
            let instance = random::instance();
            records::meta::put(&mut change, "instance", &instance).await?;
            instance
        }
    };
    if team_rows::all(&mut change).await?.is_empty() {
        let main = team_rows::Team { id: random::id(), name: MAIN_TEAM.into(), settings: "{}".into() };
        team_rows::add(&mut change, &main).await?;
    }
    let set_up = records::accounts::count(&mut change).await? > 0;
    change.commit().await?;
    Ok((instance, set_up))
}

/// Removes expired rows.
async fn tidy(change: &mut Change, now: i64, (idle, audit_kept): (i64, i64)) -> Result<(), records::Error> {
    records::sessions::forget(change, now, now - idle).await?;
    records::codes::forget(change, now).await?;
    records::shares::forget(change, now).await?;
    usage::forget(change, now).await?;
    log::blur(change, now).await?;
    records::keys::forget(change, now - DEFAULT_RETENTION).await?;
    records::sources::forget_aliases(change, now).await?;
    records::enrolments::forget(change, now - enrol::REPEATED, now - enrol::PENDING).await?;
    audit::forget(change, now.saturating_sub(audit_kept)).await
}

#[cfg(test)]
mod tests;
