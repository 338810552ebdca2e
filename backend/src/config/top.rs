//! Arguments of `watchglass top`: origin and format of the dashboard.

use super::{Config, ConfigError, fleet, value};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use uplink::settings::{HubEntry, HubUrl, ProxyChoice};

/// Below the flags in `--help`.
pub const AFTER_HELP: &str = "\
Without an address, top connects to the server of your data folder, if one runs. Otherwise it runs standalone: it opens no
port, history starts now and nothing is saved. If standard output is a pipe or a file, top prints one plain snapshot.

Keys: ? lists them, q quits. The page has the same keys.";

/// Flags of `watchglass top` alone.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct TopFlags {
    /// Recording or exported file to show
    #[arg(value_name = "FILE", conflicts_with_all = ["url", "gpus"])]
    file: Option<PathBuf>,
    /// Machine name [default: the first]
    #[arg(long = "source", value_name = "NAME")]
    pub source: Option<String>,
    /// Server address such as http://localhost:7171; for a hub use --hub
    #[arg(long, value_name = "URL", value_parser = server_url, conflicts_with = "gpus")]
    url: Option<HubUrl>,
    /// Show a simulated machine with this number of GPUs [default: 8]
    #[arg(long = "demo", id = "gpus", value_name = "GPUS", value_parser = fleet::gpus, num_args = 0..=1, default_missing_value = "8")]
    gpus: Option<u32>,
    /// Print one snapshot and exit
    #[arg(long)]
    pub once: bool,
    /// Print JSON
    #[arg(long, requires = "once")]
    pub json: bool,
    /// Print plain lines repeatedly, for screen readers or logs [default: every 10s]
    #[arg(long, value_name = "DUR", value_parser = value::interval, num_args = 0..=1, require_equals = true,
        default_missing_value = "10s", conflicts_with_all = ["once", "json"])]
    pub plain: Option<Duration>,
    /// Write only ASCII characters
    #[arg(long)]
    pub ascii: bool,
    /// Use colors for a light background [default: asks the terminal]
    #[arg(long, conflicts_with = "dark")]
    pub light: bool,
    /// Use colors for a dark background
    #[arg(long)]
    pub dark: bool,
    /// Enable the mouse: click selects, wheel scrolls; also the key M
    #[arg(long)]
    pub mouse: bool,
}

/// Origin of the dashboard's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The server of the data folder, or this process.
    Here,
    /// A server, or a hub with its key.
    Server(Box<HubEntry>),
    /// A server's Unix socket.
    Unix(PathBuf),
    /// A simulated machine with this number of GPUs.
    Demo(u32),
    /// A file.
    File(PathBuf),
}

/// Settings of the terminal dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// Origin of the data.
    pub origin: Origin,
    /// The other flags.
    pub flags: TopFlags,
}

impl TopFlags {
    /// The complete settings; the command line itself may name a hub, a port, or a Unix socket.
    ///
    /// # Errors
    /// [`ConfigError`] when two origins are named.
    pub fn asked(self, config: &Config, [hub, port, unix]: [bool; 3]) -> Result<Top, ConfigError> {
        let others = self.file.is_some() || self.url.is_some() || self.gpus.is_some();
        if [others, hub, port, unix].into_iter().filter(|named| *named).count() > 1 {
            return Err(ConfigError::new(
                "--hub, --port, --unix, --url, --demo and a file exclude each other; choose one",
            ));
        }
        let of_url = |url: HubUrl| {
            // This machine is reached without a proxy.
            let proxy = if url.is_local() { ProxyChoice::Direct } else { ProxyChoice::Environment };
            Origin::Server(Box::new(HubEntry { proxy, urls: vec![url], ..HubEntry::default() }))
        };
        let origin = match &self {
            TopFlags { file: Some(file), .. } => Origin::File(file.clone()),
            TopFlags { url: Some(url), .. } => of_url(url.clone()),
            TopFlags { gpus: Some(gpus), .. } => Origin::Demo(*gpus),
            _ if let Some(path) = config.unix.clone().filter(|_| unix) => Origin::Unix(path),
            _ if hub => match &config.hubs[..] {
                [hub] => Origin::Server(Box::new(hub.clone())),
                _ => return Err(ConfigError::new("name one hub with --hub URL")),
            },
            _ if port => of_url(here(config)),
            _ => Origin::Here,
        };
        Ok(Top { origin, flags: self })
    }
}

/// The address of a server. An address of this machine may lack its scheme, as `localhost:7171`.
fn server_url(text: &str) -> Result<HubUrl, String> {
    let wrong = || format!("\"{text}\" is not the address of a server; write it like http://localhost:7171");
    match text.contains("://") {
        true => HubUrl::parse(text),
        false => HubUrl::parse(&format!("http://{text}")).ok().filter(HubUrl::is_local).ok_or_else(wrong),
    }
}

/// The server that the command line names with `--hub` or `--port`; none: the one of this machine.
///
/// # Errors
/// [`ConfigError`] when several are named.
pub fn asked_server(config: &Config, [hub, port, _]: [bool; 3]) -> Result<Option<Box<HubEntry>>, ConfigError> {
    match (hub, port, &config.hubs[..]) {
        (false, false, _) => Ok(None),
        (false, true, _) => Ok(Some(Box::new(entry_here(config)))),
        (true, false, [hub]) => Ok(Some(Box::new(hub.clone()))),
        _ => Err(ConfigError::new("name one hub with --hub URL, or a server of this machine with --port N")),
    }
}

/// The address of a server on this machine.
pub fn here(config: &Config) -> HubUrl {
    let port = if config.port == 0 { 7171 } else { config.port };
    let base = format!("{}/", config.base_path.trim_end_matches('/'));
    HubUrl { tls: false, host: "127.0.0.1".into(), port, base }
}

/// The connection to the server of this configuration's port on this machine.
pub fn entry_here(config: &Config) -> HubEntry {
    HubEntry { proxy: ProxyChoice::Direct, urls: vec![here(config)], ..HubEntry::default() }
}
