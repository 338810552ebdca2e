//! The syntax of values, the same on the command line and in the file. Each error is the rest of a sentence that gives
//! the remedy.

use super::LocalAuth;
pub use collectors::options::{absolute, gpu};
use settings::Written;
use settings::length::within;
pub use settings::length::{retention, show_duration};
pub use settings::value::{base_path, file, host, is_host_name, port, switch};
use shared::unit::size;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use system::user;
use toml::Value;

/// The scheme of pages that an editor shows beside its text.
const WEBVIEW: &str = "vscode-webview:";
const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The time between ticks.
pub fn interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(60))
}

/// The interval of a collector.
pub fn every(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(3600))
}

/// A collector's time limit.
pub fn deadline(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(10), Duration::from_secs(600))
}

/// An address to listen on. A later check requires loopback, with a better error.
pub fn bind(text: &str) -> Result<IpAddr, String> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    let ip: IpAddr = bare
        .parse()
        .map_err(|_| format!("\"{text}\" is not an IP address; write 127.0.0.1 or ::1, and the port with --port"))?;
    Ok(ip.to_canonical())
}

/// An origin as a browser sends it: lower case, without default port, without path.
pub fn origin(text: &str) -> Result<String, String> {
    let wrong =
        || format!("\"{text}\" is not an origin; write scheme, name and port only, like https://nb.example.org:8888");
    let lower = text.to_ascii_lowercase();
    let (scheme, rest) = lower.split_once("://").ok_or_else(wrong)?;
    let default_port = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return Err(wrong()),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let (name, port) = split_authority(authority).ok_or_else(wrong)?;
    if !is_host_name(name) && name.parse::<IpAddr>().is_err() {
        return Err(wrong());
    }
    let name = if name.contains(':') { format!("[{name}]") } else { name.to_string() };
    Ok(match port {
        Some(port) if port != default_port => format!("{scheme}://{name}:{port}"),
        _ => format!("{scheme}://{name}"),
    })
}

/// Sites that may embed the page: an origin, all hosts below a name (`https://*.vscode-cdn.net`), or the editor's own
/// scheme.
pub fn embedder(text: &str) -> Result<String, String> {
    let lower = text.to_ascii_lowercase();
    if lower == WEBVIEW {
        return Ok(lower);
    }
    let below = lower.strip_prefix("https://*.").map(|name| name.strip_suffix('/').unwrap_or(name));
    match below {
        // A name of one part, such as `com`, would admit everybody.
        Some(name) if is_host_name(name) && name.contains('.') && !name.contains(['*', ':']) => {
            Ok(format!("https://*.{name}"))
        }
        Some(_) => Err(format!("\"{text}\" names too many hosts, or none; write like https://*.vscode-cdn.net")),
        None => origin(text).map_err(|why| format!("{why}, https://*.NAME for all below a name, or {WEBVIEW}")),
    }
}

/// Parts `name[:port]` and `[v6][:port]`; the name comes without brackets. `None` when it is neither.
pub fn split_authority(text: &str) -> Option<(&str, Option<u16>)> {
    let (name, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let (name, rest) = inner.split_once(']')?;
            name.parse::<std::net::Ipv6Addr>().ok()?;
            (name, rest)
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        None => return None,
        // A colon without a port is allowed by the grammar of URLs and means the default.
        Some("") => None,
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => Some(port.parse().ok()?),
        Some(_) => return None,
    };
    (!name.is_empty()).then_some((name, port))
}

/// A local user by number or by name.
pub fn user(text: &str) -> Result<u32, String> {
    // The highest uid is the system's "no user".
    if let Some(uid) = text.parse::<u32>().ok().filter(|uid| *uid != u32::MAX) {
        return Ok(uid);
    }
    match user::uid_of(text) {
        Ok(Some(uid)) => Ok(uid),
        Ok(None) => {
            Err(format!("there is no user \"{text}\" on this machine; write a user name or a uid (see: id -u NAME)"))
        }
        Err(error) => Err(format!("the user \"{text}\" cannot be looked up: {error}; write the uid")),
    }
}

/// Identification of local callers.
pub fn local_auth(text: &str) -> Result<LocalAuth, String> {
    match text {
        "uid" => Ok(LocalAuth::Uid),
        "off" => Ok(LocalAuth::Off),
        _ => Err(format!("\"{text}\" is unknown; write uid or off")),
    }
}

/// A folder, absolute or relative to the working directory of the start.
pub fn folder(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        Err("the folder name is empty; leave it out to read this machine".into())
    } else {
        Ok(text.into())
    }
}

/// Folder of the history, absolute or relative to the working directory of the start.
pub fn data_dir(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        Err("the folder name is empty; write a path, like /var/lib/watchglass".into())
    } else {
        Ok(text.into())
    }
}

/// A number of bytes with its unit. The minimum is an hour of a few machines.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is not a size; write a whole number with its unit, like 500MiB or 2GiB");
    match size::read(text).ok_or_else(wrong)? {
        bytes if bytes < 16 << 20 => Err(format!("{text} is too small for an hour of history; write 16MiB or more")),
        bytes => Ok(bytes),
    }
}

/// A process id.
pub fn pid(text: &str) -> Result<u32, String> {
    let pid = text.parse::<i32>().ok().filter(|pid| *pid > 0);
    pid.map(|pid| pid as u32).ok_or_else(|| format!("\"{text}\" is not a process id; write a whole number above 0"))
}

/// A level, or directives of `tracing` such as `warn,watchglass=debug`.
pub fn log(text: &str) -> Result<String, String> {
    let directives = text.contains(['=', ',']);
    let fits = match directives {
        // A lone word that is no level would be read as the name of a module, and nothing would be logged.
        false => LOG_LEVELS.contains(&text.to_ascii_lowercase().as_str()),
        true => tracing_subscriber::EnvFilter::try_new(text).is_ok(),
    };
    if fits {
        Ok(text.to_string())
    } else {
        Err(format!("\"{text}\" is not a log level; write one of {}", LOG_LEVELS.join(", ")))
    }
}

impl Written for LocalAuth {
    fn show(&self) -> Value {
        if *self == LocalAuth::Uid { "uid" } else { "off" }.into()
    }
}
