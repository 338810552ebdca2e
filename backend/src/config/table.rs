//! The one table of options. A row has a field of [`Config`] and its default, the syntax of its value, and the texts
//! for the command line, the configuration file, `--print-config` and the documents.

use super::alerts::{AlertSettings, BuiltInRules, SmtpSettings, rule_tables, switches};
use super::audit::AuditSettings;
use super::collector::{CollectorConfig, collector_tables, defaults};
use super::database::DatabaseSettings;
use super::endpoints::endpoint_tables;
use super::hub::{HUB, hub_tables};
use super::insight::InsightSettings;
use super::option::ConfigOption;
use super::remote_write::RemoteWrite;
use super::sessions::SessionSettings;
use super::sharing::SharingSettings;
use super::sign_in::SignInWays;
use super::team::{self, AgentLimits, Proxies, PublicUrl};
use super::{LocalAuth, value};
use cluster::settings::ClusterSettings;
use collectors::openmetrics::Endpoint;
use jobs::runs::{CostSettings, RunsSettings};
use settings::field;
use settings::kinds::{table, text};
use shared::alert::Rule;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;
use uplink::settings::{HubEntry, ProxyEnvironment};

const PAGE: &str = "Page";
const READERS: &str = "Access";
/// Options of a hub alone.
const TEAM: &str = "A team's hub";
/// Measurement of this machine. A demo measures nothing, so it accepts only those of these flags that its rows name.
pub const MEASURED: &str = "Measurement";
const ALERTS: &str = "Alerts";
const STORAGE: &str = "Storage";
/// The last section, with the flags that are no configuration.
pub const GENERAL: &str = "General";

/// The commands that measure this machine.
const MEASURING: &[&str] = &["serve", "agent", "hub", "doctor", "top"];
/// The commands that store samples.
const KEEPING: &[&str] = &["serve", "agent", "hub", "doctor"];
/// The commands that show a page.
const SERVING: &[&str] = &["serve", "hub", "doctor", "replay", "import", "demo"];
/// The commands that connect to a server, or are one.
const ADDRESSING: &[&str] = &["serve", "hub", "doctor", "record", "replay", "import", "demo"];

/// `field: type = default, kind { columns of the row }` for each option, and `like` with a value for documents if the
/// default is none or uninformative.
macro_rules! options {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $default:expr, $kind:ident ($($arg:expr),*)
        { $($column:ident: $value:expr),* $(,)? } $(, like $example:literal)?)*) => {
        /// The configuration of a server.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Config {
            $($(#[$doc])* pub $field: $type,)*
            /// Uid of the user who called sudo, from SUDO_UID; no option.
            pub sudo_uid: Option<u32>,
            /// Proxies of the environment; no option.
            pub proxies: ProxyEnvironment,
            /// Join as a new machine instead of the one in the data folder; no option.
            pub new_identity: bool,
            /// Listen on the Unix socket and on no port; no option, since `--unix` without `--port` implies it.
            pub no_port: bool,
        }

        impl Default for Config {
            fn default() -> Self {
                Config {
                    $($field: $default,)*
                    sudo_uid: None,
                    proxies: ProxyEnvironment::default(),
                    new_identity: false,
                    no_port: false,
                }
            }
        }

        /// All options, in the order of the help.
        pub static OPTIONS: &[ConfigOption<Config>] = &[$(ConfigOption {
            $($column: $value,)*
            example: concat!($($example)?),
            kind: &$kind($($arg,)* field!(Config, $field)),
        }),*];
    };
}

options! {
    /// TCP port; 0 is any free one.
    port: u16 = 7171, text(value::port) {
        flag: "port", key: "port", value: "N", section: PAGE, commands: &["serve", "hub", "doctor", "record", "replay", "import", "demo", "top", "mcp"],
        help: "Port to listen on, or port of the running server (0: any free one)",
    }
    /// Addresses to listen on, all on one port; loopback only, never empty.
    bind: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()], text(value::bind) {
        flag: "bind", key: "bind", value: "ADDR", section: PAGE, commands: ADDRESSING,
        help: "Addresses to listen on, only those of this machine",
    }
    /// A Unix socket, for this user alone; of a server to show, where `top` is asked.
    unix: Option<PathBuf> = None, text(value::file) {
        flag: "unix", key: "unix", value: "PATH", section: PAGE, commands: &["serve", "replay", "import", "demo", "top"],
        help: "Unix socket to listen on instead of a port, or of a running server",
    }, like "\"/run/user/1000/watchglass.sock\""
    /// Whether connections of the Unix socket go on to the process that has the data folder, where there is one.
    join: bool = false, text(value::switch) {
        flag: "join", key: "join", value: "BOOL", section: PAGE, commands: &["serve"],
        help: "With --unix: show the page of a running Watchglass until it ends",
    }
    /// Whether the end of the program that started this one ends it.
    exit_with_parent: bool = false, text(value::switch) {
        flag: "exit-with-parent", key: "exit_with_parent", value: "BOOL", section: PAGE, commands: &["serve", "replay", "import", "demo"],
        help: "Exit with status 143 when the parent process ends",
    }
    /// Path below which everything is served; begins and ends with a slash.
    base_path: String = "/".into(), text(value::base_path) {
        flag: "base-path", key: "base_path", value: "PATH", section: PAGE, commands: ADDRESSING,
        help: "Path below which a proxy serves the page without stripping it",
    }
    /// Other names the page is reached by; lower case, without port.
    hosts: Vec<String> = Vec::new(), text(value::host) {
        flag: "host", key: "hosts", value: "NAME", section: READERS, commands: SERVING,
        help: "Additional host name of the page, for example through a proxy",
    }, like "[\"gpu7.example.org\"]"
    /// Other origins that may call: `scheme://host[:port]`, lower case, no default port.
    origins: Vec<String> = Vec::new(), text(value::origin) {
        flag: "origin", key: "origins", value: "URL", section: READERS, commands: SERVING,
        help: "Web origin allowed to call the API, like https://tools.example.org",
    }, like "[\"https://tools.example.org\"]"
    /// Origins that may show the page in a frame, written as in `origins`.
    embed: Vec<String> = Vec::new(), text(value::embedder) {
        flag: "embed", key: "embed", value: "ORIGIN", section: READERS, commands: SERVING,
        help: "Web origin allowed to show the page in a frame",
    }, like "[\"https://*.vscode-cdn.net\"]"
    /// Uids of other local users who may read.
    allow_users: Vec<u32> = Vec::new(), text(value::user) {
        flag: "allow-user", key: "allow_users", value: "USER", section: READERS, commands: SERVING,
        help: "Local user allowed to read, by name or uid",
    }, like "[\"root\"]"
    /// Whether local callers are told apart.
    local_auth: LocalAuth = LocalAuth::Uid, text(value::local_auth) {
        flag: "local-auth", key: "local_auth", value: "uid|off", section: READERS, commands: SERVING,
        help: "Authentication of local users: uid, or off to let all users read",
    }
    /// The address that people and agents type; none: that of the listener.
    public_url: Option<PublicUrl> = None, text(team::public_url) {
        flag: "public-url", key: "public_url", value: "URL", section: TEAM, commands: &["hub"],
        help: "Public address for users and agents, like https://watch.example.org/",
    }, like "\"https://watch.example.org/\""
    /// Certificates of our name, our own first, PEM.
    tls_cert: Option<PathBuf> = None, text(value::file) {
        flag: "tls-cert", key: "tls_cert", value: "FILE", section: TEAM, commands: &["hub"],
        help: "PEM file of the certificate and its chain; reloaded when it changes",
    }, like "\"/etc/watchglass/cert.pem\""
    /// The private key of the certificate, PEM.
    tls_key: Option<PathBuf> = None, text(value::file) {
        flag: "tls-key", key: "tls_key", value: "FILE", section: TEAM, commands: &["hub"],
        help: "PEM file of the private key of the certificate",
    }, like "\"/etc/watchglass/key.pem\""
    /// A hub does not measure its own machine.
    no_local: bool = false, text(value::switch) {
        flag: "no-local", key: "no_local", value: "BOOL", section: TEAM, commands: &["hub"],
        help: "Do not measure the machine that the hub runs on",
    }
    /// Proxies whose headers about callers are trusted.
    trusted_proxies: Proxies = Proxies::default(), table(&Proxies::TABLE) {
        flag: "", key: "proxy", value: "TABLE", section: TEAM, commands: &[],
        help: "Trusted proxies in front of the hub",
    }
    /// Ways to sign in beside passwords.
    sign_in: SignInWays = SignInWays::default(), table(&SignInWays::TABLE) {
        flag: "", key: "sign_in", value: "TABLE", section: TEAM, commands: &[],
        help: "Sign-in methods of the hub, beside passwords",
    }
    /// Limits of what agents may send.
    agent_limits: AgentLimits = AgentLimits::default(), table(&AgentLimits::TABLE) {
        flag: "", key: "agents", value: "TABLE", section: TEAM, commands: &[],
        help: "Limits and keys for the machines of a hub",
    }
    /// Database of a hub's records.
    database: DatabaseSettings = DatabaseSettings::default(), table(&DatabaseSettings::TABLE) {
        flag: "", key: "database", value: "TABLE", section: TEAM, commands: &[],
        help: "Database of the hub for accounts, keys and views",
    }
    /// The other hubs that share our database.
    cluster: ClusterSettings = ClusterSettings::default(), table(&ClusterSettings::TABLE) {
        flag: "", key: "cluster", value: "TABLE", section: TEAM, commands: &[],
        help: "Other hubs that share the database and the sample store",
    }
    /// The audit log of a hub.
    audit: AuditSettings = AuditSettings::default(), table(&AuditSettings::TABLE) {
        flag: "", key: "audit", value: "TABLE", section: TEAM, commands: &[],
        help: "Audit log of the hub: retention, and a file to copy it to",
    }
    /// Settings of training jobs.
    runs: RunsSettings = RunsSettings::default(), table(&RunsSettings::TABLE) {
        flag: "", key: "runs", value: "TABLE", section: MEASURED, commands: &[],
        help: "Detection of training jobs",
    }
    /// Prices of GPU time and energy.
    cost: CostSettings = CostSettings::default(), table(&CostSettings::TABLE) {
        flag: "", key: "cost", value: "TABLE", section: MEASURED, commands: &[],
        help: "Prices of GPU time and energy",
    }
    /// Settings of findings.
    insight: InsightSettings = InsightSettings::default(), table(&InsightSettings::TABLE) {
        flag: "", key: "insight", value: "TABLE", section: MEASURED, commands: &[],
        help: "Detection of problems in the samples",
    }
    /// Session lifetimes of a hub.
    sessions: SessionSettings = SessionSettings::default(), table(&SessionSettings::TABLE) {
        flag: "", key: "sessions", value: "TABLE", section: TEAM, commands: &[],
        help: "Session lifetimes",
    }
    /// Share links of a hub.
    sharing: SharingSettings = SharingSettings::default(), table(&SharingSettings::TABLE) {
        flag: "", key: "sharing", value: "TABLE", section: TEAM, commands: &[],
        help: "Share links",
    }
    /// Time between ticks, 100 ms to 60 s.
    interval: Duration = Duration::from_secs(1), text(value::interval) {
        flag: "interval", key: "interval", value: "DUR", section: MEASURED, commands: &["serve", "agent", "hub", "doctor", "demo", "top"],
        help: "Time between samples, 100ms to 60s",
    }
    /// Processes to watch, with descendants; empty: none.
    pids: Vec<u32> = Vec::new(), text(value::pid) {
        flag: "pid", key: "pid", value: "PID", section: MEASURED, commands: MEASURING,
        help: "Process to watch, with its descendants",
    }, like "[4711]"
    /// Whether arguments of processes are read and shown, without what looks like a secret.
    show_args: bool = false, text(value::switch) {
        flag: "show-args", key: "show_args", value: "BOOL", section: MEASURED, commands: MEASURING,
        help: "Show process arguments (secrets are redacted)",
    }
    /// GPUs to keep, by their vendor's own number; empty: all.
    gpus: Vec<u32> = Vec::new(), text(value::gpu) {
        flag: "gpu", key: "gpu", value: "INDEX", section: MEASURED, commands: MEASURING,
        help: "GPU to watch, by its index in nvidia-smi or N of cardN [default: all]",
    }, like "[0, 1]"
    /// Paths whose file systems are watched; absolute.
    disk_paths: Vec<PathBuf> = vec![collectors::default_disk_path(cfg!(windows), None)], text(value::absolute) {
        flag: "disk-path", key: "disk_paths", value: "PATH", section: MEASURED, commands: MEASURING,
        help: "Path whose file system is watched",
    }
    /// Endpoints to scrape, each name once.
    endpoints: Vec<Endpoint> = Vec::new(), endpoint_tables() {
        flag: "openmetrics", key: "openmetrics", value: "NAME=URL", section: MEASURED, commands: MEASURING,
        help: "Prometheus endpoint to scrape, with a name of your choice",
    }
    /// Settings of every collector, in the order of the registration table.
    collectors: Vec<CollectorConfig> = defaults(), collector_tables() {
        flag: "collectors", key: "collectors", value: "LIST", section: MEASURED, commands: MEASURING,
        help: "Collectors to use (cpu,memory), to leave out (-disk) or to add (+disk)",
    }
    /// Folder below which /proc and /sys are read; none: this machine's own.
    root: Option<PathBuf> = None, text(value::folder) {
        flag: "root", key: "root", value: "DIR", section: MEASURED, commands: MEASURING,
        help: "Folder with the proc and sys to read, such as those of a host",
    }, like "\"/host\""
    /// Alert rules beside the built-in ones.
    rules: Vec<Rule> = Vec::new(), rule_tables() {
        flag: "", key: "rules", value: "TABLES", section: ALERTS, commands: &[],
        help: "Alert rules, one table each",
    }
    /// Built-in alert rules that are switched on.
    rules_builtin: BuiltInRules = BuiltInRules::default(), switches() {
        flag: "", key: "rules_builtin", value: "TABLE", section: ALERTS, commands: &[],
        help: "Built-in alert rules to enable or disable",
    }
    /// Addresses and limits of notices.
    alerts: AlertSettings = AlertSettings::default(), table(&AlertSettings::TABLE) {
        flag: "", key: "alerts", value: "TABLE", section: ALERTS, commands: &[],
        help: "Limits of notifications and their destinations",
    }
    /// The server of e-mail.
    smtp: SmtpSettings = SmtpSettings::default(), table(&SmtpSettings::TABLE) {
        flag: "", key: "smtp", value: "TABLE", section: ALERTS, commands: &[],
        help: "SMTP server for e-mail notifications",
    }
    /// Retention of ticks, at least 1 minute.
    retention: Duration = Duration::from_secs(12 * 3600), text(value::retention) {
        flag: "retention", key: "retention", value: "DUR", section: STORAGE, commands: &["serve", "hub", "doctor", "demo"],
        help: "Retention of samples",
    }
    /// Keep nothing on disk.
    memory: bool = false, text(value::switch) {
        flag: "memory", key: "memory", value: "BOOL", section: STORAGE, commands: KEEPING,
        help: "Keep history in memory alone, at most 256 MiB",
    }
    /// Folder of the history; none where the environment names no place for it.
    data_dir: Option<PathBuf> = None, text(value::data_dir) {
        flag: "data-dir", key: "data_dir", value: "DIR", section: STORAGE,
        commands: &["serve", "agent", "hub", "doctor", "export", "findings", "record", "user", "key", "service", "agents", "team", "view", "share", "erase", "audit", "usage", "backup", "restore", "run", "mark", "log", "alert", "runs", "logs", "alerts", "top", "mcp"],
        help: "Folder of the history [default: watchglass in ~/.local/state]",
    }, like "\"/var/lib/watchglass\""
    /// Sync the log every second, not every five.
    durable: bool = false, text(value::switch) {
        flag: "durable", key: "durable", value: "BOOL", section: STORAGE, commands: KEEPING,
        help: "Sync every second: a power cut loses 1 s of samples instead of 5 s",
    }
    /// The most bytes of sealed history on disk; none: as many as the retention takes.
    retention_bytes: Option<u64> = None, text(value::bytes) {
        flag: "", key: "retention_bytes", value: "SIZE", section: STORAGE, commands: &[],
        help: "Maximum size of the history on disk, such as 2GiB",
    }, like "\"2GiB\""
    /// A server that samples are also sent to.
    remote_write: Option<RemoteWrite> = None, table(&RemoteWrite::TABLE) {
        flag: "", key: "remote_write", value: "TABLE", section: STORAGE, commands: &[],
        help: "Server that also receives the samples (remote write)",
    }
    /// Hubs that this machine sends what it measures to.
    hubs: Vec<HubEntry> = Vec::new(), hub_tables() {
        flag: "hub", key: "hub", value: "URL", section: HUB,
        commands: &["serve", "agent", "demo", "doctor", "user", "key", "service", "agents", "team", "view", "share", "erase", "audit", "usage", "backup", "restore", "runs", "alerts", "top", "mcp"],
        help: "Hub that receives the samples, or hub to administer",
    }
    /// Whether keys and samples may travel unencrypted.
    plain_http: bool = false, text(value::switch) {
        flag: "plain-http", key: "plain_http", value: "BOOL", section: HUB,
        commands: &["serve", "agent", "hub", "demo", "doctor", "top"],
        help: "Allow http:// to other machines; keys and samples are unencrypted",
    }
    /// Log level, or directives of `tracing`.
    log: String = "info".into(), text(value::log) {
        flag: "log", key: "log", value: "LEVEL", section: GENERAL,
        commands: &["serve", "agent", "hub", "doctor", "record", "replay", "import", "demo"],
        help: "Log level: error, warn, info, debug or trace; also WATCHGLASS_LOG",
    }
}
