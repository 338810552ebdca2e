//! Serves a team: receives samples of agents, measures its own machine by default, and has accounts.

use super::jobs::Jobs;
use super::machine::{KnownSources, OF_NOTEBOOKS};
use super::{MAX_HUB_MEMORY_BYTES, Served, Serving, found, idle, machine, sent, serve, socket_of};
use crate::config::{Config, KeepRules, PublicUrl, Rejoin};
use crate::control::FolderSocket;
use crate::data::Data;
use crate::http::JoinRoad;
use crate::http::hub::Hub;
use crate::http::tls::Certificate;
use cluster::{Bus, Cluster, Others};
use fleet::ingest::{Ingest, IngestLimits, OtherHubs};
use providers::Providers;
use shared::connection_state::ConnectionState;
use shared::secret::Secret;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::clock;
use stream::live::{Holder, Live};
use stream::store::Retentions;
use system::user::own_uid;
use team::accounts::{Accounts, AuditFile, ConfiguredKey, Database, Denied, Principal, RemovalList, new_join_key};
use team::usage::{self, Meter};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Timeout of the last writes of usage and audit entries at shutdown.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Interval of the checks whether all clients have disconnected at shutdown,
const LET_GO_INTERVAL: Duration = Duration::from_millis(100);
/// and the grace period for the last ones.
const LET_GO_GRACE: Duration = Duration::from_millis(1_500);

/// Maximum size of a join key's file, bytes.
const MAX_KEY_BYTES: u64 = 1 << 10;

/// Assumed interval of a machine's ticks until it is known, milliseconds.
const SOURCE_INTERVAL_MS: i64 = 1_000;

/// Time until the machines are read again after they could not be read.
const READ_AGAIN: Duration = Duration::from_secs(5);

/// Interval of the checks for ended machines.
const END_INTERVAL: Duration = Duration::from_secs(60);

/// State that a hub opens before it serves.
pub struct Opened {
    data: Data,
    accounts: Accounts,
    certificate: Option<Arc<Certificate>>,
    public: PublicUrl,
    port: u16,
    providers: Arc<Providers>,
    /// The connection to the other replicas, if there are several.
    bus: Option<Bus>,
    /// Lines for the person who starts it: how to make the first admin, and how the first machine joins. Empty if
    /// there is an account.
    pub sentences: Vec<Secret>,
}

/// Opens the accounts in the data folder, and reads the certificate.
///
/// # Errors
/// The exit status and its sentence.
pub async fn open(config: &Config, data: Data, address: SocketAddr) -> Result<Opened, (u8, String)> {
    let certificate = match (&config.tls_cert, &config.tls_key) {
        (Some(chain), Some(key)) => Some(Arc::new(Certificate::read(chain, key).map_err(|why| (2, why))?)),
        _ => None,
    };
    let (url, password_file) = (config.database.url.as_deref(), config.database.password_file.as_deref());
    let database = Database::from_settings(data.path(), url, password_file).map_err(|why| (2, why))?;
    let opened = Accounts::open_in(&database, Arc::new(clock::System)).await;
    let accounts = opened.map_err(|why| (4, why.to_string()))?;
    accounts.keep_audit(config.audit.keep);
    accounts.limit_sessions(config.sessions.idle, config.sessions.longest);
    if config.agent_limits.rejoin == Rejoin::Approve {
        accounts.confirm_rejoins();
    }
    if !config.sharing.links {
        accounts.forbid_share_links();
    }
    if !config.sharing.user_names {
        accounts.hide_user_names();
    }
    let public = public(config, address.port());
    let clock: Arc<dyn clock::Clock> = Arc::new(clock::System);
    let providers =
        Arc::new(Providers::new(config.sign_in.providers(), &public.to_string(), &clock).map_err(|why| (2, why))?);
    let failed = |why: Denied| (4, why.to_string());
    let code = unless_full(accounts.setup_code().await, "the link for the first admin").map_err(failed)?.flatten();
    let join = unless_full(accounts.printed_join().await, "the first join key").map_err(failed)?.flatten();
    unless_full(configured_joins(config, &accounts).await, "the keys of agents.join")
        .map_err(|why| (2, why.to_string()))?;
    let unencrypted = Hub::is_unencrypted(config, &public);
    let first = code.map(|code| {
        let code = code.reveal();
        Secret::new(format!(
            "There is no account yet. Open {public}#setup={code} to create the first admin (24 h, once)."
        ))
    });
    let machine = join.map(|key| {
        let pin = certificate.as_ref().and_then(|certificate| certificate.pin());
        let line = JoinRoad { public: &public, unencrypted, pin }.line(&key, true);
        Secret::new(format!("To add machines, run this on each of them (24 h, any number of machines):\n  {line}"))
    });
    let bus = match &config.cluster.nats {
        Some(_) => Some(Bus::connect(&config.cluster, &called(address.port())).await.map_err(|why| (2, why))?),
        None => None,
    };
    let sentences = first.into_iter().chain(machine).collect();
    Ok(Opened { data, accounts, certificate, public, port: address.port(), providers, bus, sentences })
}

/// None if the disk is full: the stored state applies, and the hub starts.
fn unless_full<T>(done: Result<T, Denied>, what: &str) -> Result<Option<T>, Denied> {
    match done {
        Err(why @ Denied::Full) => {
            tracing::warn!("{what}: {why}");
            Ok(None)
        }
        done => done.map(Some),
    }
}

/// Display name of this replica: its machine and its port.
fn called(port: u16) -> String {
    const MAX_NAME_CHARS: usize = 56;
    format!("{}:{port}", machine::name().chars().filter(char::is_ascii).take(MAX_NAME_CHARS).collect::<String>())
}

/// Creates the join keys of the configuration. A missing key file is created, readable by our user only.
async fn configured_joins(config: &Config, accounts: &Accounts) -> Result<(), Denied> {
    let mut all = Vec::new();
    for join in &config.agent_limits.join {
        let path = &join.token_file;
        let key = match key_of(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => new_key_in(path),
            read => read,
        };
        let key = key.map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull => Denied::Full,
            _ => Denied::Invalid(format!("agents.join {:?}: {}: {error}", join.name, path.display())),
        })?;
        all.push(ConfiguredKey { name: &join.name, team: join.team.as_deref(), labels: &join.labels, key });
    }
    accounts.register_configured_joins(&Principal::local(own_uid()), &all).await
}

fn key_of(path: &Path) -> io::Result<Secret> {
    let mut text = String::new();
    system::file::open(path)?.take(MAX_KEY_BYTES).read_to_string(&mut text)?;
    Ok(Secret::new(text.trim()))
}

fn new_key_in(path: &Path) -> io::Result<Secret> {
    let key = new_join_key();
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create_new(true).open(path)?;
    file.write_all(format!("{}\n", key.reveal()).as_bytes())?;
    file.sync_all()?;
    tracing::info!(
        "a join key was written to {}; give it to machines: watchglass agent --hub URL --key-file FILE",
        path.display()
    );
    Ok(key)
}

/// The public address: the configured one, or a host name of ours with the port.
fn public(config: &Config, port: u16) -> PublicUrl {
    config.public_url.clone().unwrap_or_else(|| {
        let scheme = if config.tls_cert.is_some() { "https" } else { "http" };
        let host = config.hosts.first().cloned().unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        PublicUrl { origin: format!("{scheme}://{host}:{port}"), base: config.base_path.clone() }
    })
}

/// Serves until `stop` becomes true. Then agents, pages and scripts are closed gradually within 10 s, while all other
/// requests are still answered. It returns some seconds later.
pub async fn run(config: Config, opened: Opened, mut serving: Serving) {
    let Opened { data, accounts, certificate, public, port, providers, bus, .. } = opened;
    let control = socket_of(data.path(), FolderSocket::Control);
    let folder = data.path().to_path_buf();
    let own = (!config.no_local).then(machine::name);
    if let Some(name) = &own
        && let Err(error) = unless_full(accounts.own_machine(name).await, "the hub's own machine")
    {
        return tracing::error!(%error, "the hub's own machine cannot be entered among its sources");
    }
    let changed = accounts.sources_changed();
    let Some((list, known)) = known_sources(&config, &accounts, &folder).await else { return };
    let opened = machine::stream(&config, Some(data), MAX_HUB_MEMORY_BYTES, own.clone(), known);
    let Some((live, archive, source)) = opened else { return };
    let limits = IngestLimits { series: config.agent_limits.series, ..IngestLimits::default() };
    let others = bus.map(|bus| Others::new(bus, called(port), own, live.clone(), &accounts));
    if let Some(others) = others.clone() {
        accounts.ask_other_hubs(move |source| others.is_linked_elsewhere(source));
    }
    let asked_others = others.clone().map(|others| others as Arc<dyn OtherHubs>);
    let ingest = Ingest::of_hub(live.clone(), accounts.clone(), asked_others, limits);
    let jobs = Jobs::new(&config, source, Some(&folder));
    let (over, stop) = watch::channel(false);
    let asked = std::mem::replace(&mut serving.stop, stop);
    let cluster = match others {
        Some(others) => {
            // Before the state of their links is read: that refers to machines by their keys.
            know_all(&live, &accounts, true).await;
            Some(Cluster::begin(others, ingest.clone(), jobs.runs.clone(), serving.stop.clone()).await)
        }
        None => None,
    };
    let clustered = cluster.clone().map(|cluster| tokio::spawn(cluster.run()));
    let meter = Arc::new(Meter::new(live.clock.clone()));
    let providing = tokio::spawn(providers.clone().keep(serving.stop.clone()));
    let place = (public, port);
    let mut hub =
        Hub::new(&config, accounts.clone(), ingest.clone(), meter.clone(), place, certificate.clone(), providers);
    hub.cluster.clone_from(&cluster);
    hub.audit_file = config.audit.file.clone().map(|path| Arc::new(AuditFile::new(path)));
    let usage = tokio::spawn(usage::keep(live.clone(), accounts.clone(), meter, serving.stop.clone()));
    let audit = keep_audit(hub.audit_file.clone(), &accounts, &serving.stop);
    let with_nats = config.cluster.nats.is_some();
    let (sending, sent) = with_nats.then(|| sent::sending(&live, &accounts, &serving.stop)).unzip();
    let served = Served {
        live: live.clone(),
        archive: Some(archive),
        hub: Some(hub),
        certificate,
        control,
        shown: None,
        jobs,
        kept_in: Some(folder),
        sending,
        history: None,
    };
    let rules = (config.agent_limits.keep_rules(), cluster.is_some());
    let following = tokio::spawn(follow(ingest.clone(), live.clone(), accounts.clone(), list, rules, changed));
    let looking = tokio::spawn(found::follow_sources(live.clone(), accounts.clone(), serving.stop.clone()));
    let ending = tokio::spawn(end(ingest.clone(), accounts.clone()));
    let mut farewell = tokio::spawn(let_go(asked, ingest, live.clone(), over));
    match source {
        Some(source) => {
            let others = Some(machine::others_of_hub(&config));
            serve(&config, served, serving, machine::sampling(&config, &live, source, &OF_NOTEBOOKS, others)).await
        }
        None => serve(&config, served, serving, idle).await,
    }
    let last = [Some(usage), audit, sent].into_iter().flatten();
    let _ = tokio::time::timeout(LAST_WORDS, write_rest(&mut farewell, cluster, last)).await;
    farewell.abort();
    providing.abort();
    clustered.into_iter().for_each(|task| task.abort());
    following.abort();
    ending.abort();
    looking.abort();
    accounts.close().await;
}

/// The list of removed machines, which is stored in a file and in the database, and the retention of each machine.
/// None, with a log line, if it cannot be read.
async fn known_sources(
    config: &Config,
    accounts: &Accounts,
    folder: &Path,
) -> Option<(Arc<RemovalList>, KnownSources)> {
    let cannot = |what: &str, why: &dyn std::fmt::Display| tracing::error!(error = %why, "{what}");
    let list = RemovalList::open(folder);
    let list = list.inspect_err(|why| cannot("the data folder's list of removed machines cannot be read", why)).ok()?;
    let list = Arc::new(list);
    let removed = accounts.remove_again(&Principal::local(own_uid()), &list).await;
    let removed = removed.inspect_err(|why| cannot("it cannot be read which machines were removed", why)).ok()?;
    remember(&list, &removed).await;
    let called = accounts.called().await;
    let called = called.inspect_err(|why| cannot("it cannot be read how machines are labeled", why)).ok()?;
    let retentions = retentions(&called, &config.agent_limits.keep_rules());
    Some((list, KnownSources { removed, retentions }))
}

/// Also writes the audit log to a file, if one is configured.
fn keep_audit(
    file: Option<Arc<AuditFile>>,
    accounts: &Accounts,
    stop: &watch::Receiver<bool>,
) -> Option<JoinHandle<()>> {
    let (accounts, stop) = (accounts.clone(), stop.clone());
    file.map(|file| tokio::spawn(async move { accounts.keep_audit_file(&file, stop).await }))
}

/// Waits until all clients are closed, and until pending data is written.
async fn write_rest(
    farewell: &mut JoinHandle<()>,
    cluster: Option<Arc<Cluster>>,
    last: impl Iterator<Item = JoinHandle<()>>,
) {
    // On an ordered shutdown they send and write the rest; after a failure they get no signal.
    let _ = farewell.await;
    if let Some(cluster) = cluster {
        cluster.end().await;
    }
    for task in last {
        let _ = task.await;
    }
}

/// Closes the clients gradually once the hub is `asked` to shut down, then signals the end to the rest of it.
async fn let_go(mut asked: watch::Receiver<bool>, ingest: Ingest, live: Arc<Live>, over: watch::Sender<bool>) {
    // Without a sender nobody can request the end any more.
    let _ = asked.wait_for(|asked| *asked).await;
    let linked = || ingest.links() + live.counts.viewers.load(Ordering::Relaxed) as usize;
    let most = ingest.drain().begin(linked());
    let all = async {
        while linked() > 0 {
            // A viewer checks for its turn when it is woken.
            live.wake_all();
            tokio::time::sleep(LET_GO_INTERVAL).await;
        }
    };
    let _ = tokio::time::timeout(most + LET_GO_GRACE, all).await;
    tracing::info!(left = linked(), "connections of agents and pages are closed");
    over.send_replace(true);
    // Each part that serves holds a receiver until it has finished.
    over.closed().await;
}

/// Reports ephemeral machines as ended once they are no longer expected.
async fn end(ingest: Ingest, accounts: Accounts) {
    let mut due = tokio::time::interval(END_INTERVAL);
    loop {
        due.tick().await;
        match accounts.ended().await {
            Ok(ended) => ingest.ended(&ended),
            Err(error) => tracing::warn!(%error, "it cannot be read which machines have ended"),
        }
    }
}

/// Records the removed machines in a file beside their samples.
async fn remember(list: &Arc<RemovalList>, removed: &[String]) {
    let (list, removed) = (list.clone(), removed.to_vec());
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || list.add(&removed)).await {
        tracing::warn!(%error, "the list of removed machines cannot be written; an older database would bring them back");
    }
}

/// Drops the samples of removed machines, and applies names and retentions of the others.
async fn follow(
    ingest: Ingest,
    live: Arc<Live>,
    accounts: Accounts,
    list: Arc<RemovalList>,
    (rules, is_shared): (KeepRules, bool),
    mut changed: watch::Receiver<u64>,
) {
    let mut is_read = true;
    while next_read(&mut changed, is_read).await {
        let was_read = is_read;
        is_read = match accounts.removed().await {
            Ok(removed) => {
                remember(&list, &removed).await;
                live.store().remove_sources(removed);
                true
            }
            Err(error) => unread("which machines were removed", &error, was_read),
        };
        if is_shared {
            is_read &= know_all(&live, &accounts, was_read).await;
        }
        is_read &= match accounts.called().await {
            Ok(called) => {
                live.store().set_retentions(retentions(&called, &rules));
                ingest.called(called);
                true
            }
            Err(error) => unread("how machines are called and labeled", &error, was_read),
        };
    }
}

/// Logs that something cannot be read; a repeated failure is no news. Returns false.
fn unread(what: &str, error: &Denied, is_new: bool) -> bool {
    match is_new {
        true => tracing::warn!(%error, "it cannot be read {what}"),
        false => tracing::debug!(%error, "it cannot be read {what}"),
    }
    false
}

/// Waits until the machines are to be read again: after a change, or soon if they could not be read, because nobody
/// announces that change again. False when there will be no change any more.
async fn next_read(changed: &mut watch::Receiver<u64>, is_read: bool) -> bool {
    match is_read {
        true => changed.changed().await.is_ok(),
        // An end of the wait is a reason to read, too.
        false => !matches!(tokio::time::timeout(READ_AGAIN, changed.changed()).await, Ok(Err(_))),
    }
}

/// Adds all machines of the cluster, whichever replica they are linked to. The link state of new ones is unknown. False
/// if they cannot be read; `is_new`: such a failure is news.
async fn know_all(live: &Live, accounts: &Accounts, is_new: bool) -> bool {
    let all = match accounts.admitted().await {
        Ok(all) => all,
        Err(error) => return unread("which machines there are", &error, is_new),
    };
    let now = live.clock.wall();
    for (id, name, seen) in all {
        if let Some((source, true)) = live.meet(&id, SOURCE_INTERVAL_MS, Some(&name)) {
            live.set_holder(source, Holder::Nobody);
            // Some replica had it recently: it is shown without local data, which is read back on demand.
            if now - seen < live.retention {
                live.set_reported_connection_state(source, (ConnectionState::Unreachable, seen), None, None);
            } else {
                live.set_connection_state(source, ConnectionState::Unreachable);
            }
        }
    }
    true
}

/// Machines with a retention of their own. Labels that an agent sends do not count: the sender is not trusted with the
/// hub's disk.
fn retentions(called: &[(String, String, BTreeMap<String, String>)], rules: &KeepRules) -> Retentions {
    let own = |(id, _, labels): &(String, _, _)| {
        rules.retention_for(labels).map(|length| (id.clone(), length.as_millis() as i64))
    };
    called.iter().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn machines_that_could_not_be_read_are_read_again_without_another_change() {
        let (news, mut changed) = watch::channel(0_u64);
        let begun = tokio::time::Instant::now();
        assert!(next_read(&mut changed, false).await);
        assert_eq!(begun.elapsed(), READ_AGAIN);
        news.send_modify(|n| *n += 1);
        assert!(next_read(&mut changed, false).await && next_read(&mut changed, false).await);
        assert_eq!(begun.elapsed(), READ_AGAIN * 2, "a change is read at once");
        let wait = tokio::time::timeout(READ_AGAIN * 9, next_read(&mut changed, true)).await;
        assert!(wait.is_err(), "what was read is not read again");
        drop(news);
        assert!(!next_read(&mut changed, true).await && !next_read(&mut changed, false).await);
    }
}
