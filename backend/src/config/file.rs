//! The configuration file, TOML. Unknown keys are errors that name the nearest known one, with file and line.

use super::{Config, ConfigError, LocalAuth, RemoteWrite, endpoints, value};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

// A configuration is a page of text; the limit keeps a wrong path (a device, a log) from filling the memory.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a configuration file from the disk, at most 1 MiB.
///
/// # Errors
/// What the system says, text that is not UTF-8, or a longer file.
pub fn read_file(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = crate::file::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match read as u64 > MAX_BYTES {
        true => Err(std::io::Error::other("it is longer than 1 MiB, which no configuration is")),
        false => Ok(text),
    }
}

/// The file as written; what is not there stays as it is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    #[serde(deserialize_with = "bind")]
    bind: Option<Vec<IpAddr>>,
    port: Option<u16>,
    #[serde(deserialize_with = "interval")]
    interval: Option<Duration>,
    #[serde(deserialize_with = "retention")]
    retention: Option<Duration>,
    #[serde(deserialize_with = "base_path")]
    base_path: Option<String>,
    #[serde(deserialize_with = "hosts")]
    hosts: Option<Vec<String>>,
    #[serde(deserialize_with = "origins")]
    origins: Option<Vec<String>>,
    #[serde(deserialize_with = "users")]
    allow_users: Option<Vec<u32>>,
    #[serde(deserialize_with = "local_auth")]
    local_auth: Option<LocalAuth>,
    #[serde(deserialize_with = "origins")]
    embed: Option<Vec<String>>,
    #[serde(deserialize_with = "paths")]
    disk_paths: Option<Vec<PathBuf>>,
    #[serde(deserialize_with = "pids")]
    pid: Option<Vec<u32>>,
    #[serde(deserialize_with = "gpus")]
    gpu: Option<Vec<u32>>,
    #[serde(deserialize_with = "folder")]
    root: Option<PathBuf>,
    #[serde(deserialize_with = "log")]
    log: Option<String>,
    memory: Option<bool>,
    #[serde(deserialize_with = "data_dir")]
    data_dir: Option<PathBuf>,
    durable: Option<bool>,
    #[serde(deserialize_with = "bytes")]
    retention_bytes: Option<u64>,
    openmetrics: Option<Vec<endpoints::Written>>,
    remote_write: Option<RemoteWrite>,
    collectors: BTreeMap<String, toml::Spanned<Collector>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Collector {
    enabled: Option<bool>,
    #[serde(deserialize_with = "every")]
    every: Option<Duration>,
    #[serde(deserialize_with = "deadline")]
    deadline: Option<Duration>,
    /// Where `gpu` stood when it chose among NVIDIA's alone.
    #[serde(deserialize_with = "gpus")]
    gpus: Option<Vec<u32>>,
    #[serde(deserialize_with = "path")]
    library: Option<PathBuf>,
    #[serde(deserialize_with = "path")]
    command: Option<PathBuf>,
    #[serde(deserialize_with = "path")]
    config: Option<PathBuf>,
    #[serde(deserialize_with = "path")]
    rocm_smi: Option<PathBuf>,
    #[serde(deserialize_with = "path")]
    amd_smi: Option<PathBuf>,
    #[serde(deserialize_with = "endpoints")]
    endpoints: Option<Vec<SocketAddr>>,
}

impl Collector {
    /// Keys that not every collector has: whether they were written, and the collectors that have them.
    fn own_keys(&self) -> [(&'static str, bool, &'static [&'static str]); 7] {
        [
            ("gpus", self.gpus.is_some(), &["nvidia"]),
            ("library", self.library.is_some(), &["nvidia"]),
            ("command", self.command.is_some(), &["graphcore", "intel", "nvidia", "trainium"]),
            ("config", self.config.is_some(), &["trainium"]),
            ("rocm_smi", self.rocm_smi.is_some(), &["amd"]),
            ("amd_smi", self.amd_smi.is_some(), &["amd"]),
            ("endpoints", self.endpoints.is_some(), &["tpu"]),
        ]
    }

    /// Tools and files that were named.
    fn paths(self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        let all = [
            ("command", self.command),
            ("config", self.config),
            ("rocm_smi", self.rocm_smi),
            ("amd_smi", self.amd_smi),
        ];
        all.into_iter().filter_map(|(key, path)| Some((key, path?)))
    }
}

/// Reads the text of the file `name`.
pub fn read(name: &str, text: &str, known: &[&str]) -> Result<File, ConfigError> {
    let at = |offset: usize| format!("{name}, line {}", 1 + text[..offset.min(text.len())].matches('\n').count());
    let file: File = toml::from_str(text).map_err(|error| {
        let place = error.span().map_or_else(|| name.to_string(), |span| at(span.start));
        ConfigError::new(format!("{place}: {}", reworded(error.message())))
    })?;
    for (collector, settings) in &file.collectors {
        let place = || at(settings.span().start);
        if !known.contains(&collector.as_str()) {
            let near = nearest(collector, known);
            return Err(ConfigError::new(format!("{}: there is no collector {collector:?}{near}", place())));
        }
        let settings = settings.get_ref();
        let misplaced = |(_, given, owners): &(_, bool, &[&str])| *given && !owners.contains(&collector.as_str());
        if let Some((key, _, owners)) = settings.own_keys().into_iter().find(misplaced) {
            let owners: Vec<String> = owners.iter().map(|owner| format!("[collectors.{owner}]")).collect();
            let sentence = format!("`{key}` belongs below {}", owners.join(" or "));
            return Err(ConfigError::new(format!("{}: {sentence}", place())));
        }
    }
    Ok(file)
}

impl File {
    /// Puts what was written over what stands.
    pub fn apply(self, config: &mut Config) {
        fn put<T>(at: &mut T, given: Option<T>) {
            if let Some(given) = given {
                *at = given;
            }
        }
        put(&mut config.bind, self.bind);
        put(&mut config.port, self.port);
        put(&mut config.interval, self.interval);
        put(&mut config.retention, self.retention);
        put(&mut config.base_path, self.base_path);
        put(&mut config.hosts, self.hosts);
        put(&mut config.origins, self.origins);
        put(&mut config.allow_users, self.allow_users);
        put(&mut config.local_auth, self.local_auth);
        put(&mut config.embed, self.embed);
        put(&mut config.disk_paths, self.disk_paths);
        put(&mut config.pids, self.pid);
        let gpus = self.gpu.or_else(|| self.collectors.values().find_map(|settings| settings.get_ref().gpus.clone()));
        put(&mut config.gpus, gpus);
        put(&mut config.endpoints, self.openmetrics.map(|list| list.into_iter().map(|e| e.0).collect()));
        put(&mut config.log, self.log);
        put(&mut config.memory, self.memory);
        config.data_dir = self.data_dir.or(config.data_dir.take());
        put(&mut config.durable, self.durable);
        config.retention_bytes = self.retention_bytes;
        config.root = self.root;
        config.remote_write = self.remote_write;
        for (name, settings) in self.collectors {
            let settings = settings.into_inner();
            config.nvml_library = settings.library.clone().or(config.nvml_library.take());
            if let Some(endpoints) = &settings.endpoints {
                config.tpu_endpoints.clone_from(endpoints);
            }
            if let Some(collector) = config.collectors.iter_mut().find(|c| c.name == name) {
                put(&mut collector.enabled, settings.enabled);
                collector.every = settings.every;
                collector.deadline = settings.deadline;
                collector.paths = settings.paths().collect();
            }
        }
    }
}

/// Serde's "unknown field `a`, expected one of `b`, `c`" in a user's words, and its "invalid type: string \"...\", expected a
/// map" without the value, which may be a secret; other messages as they are.
fn reworded(message: &str) -> String {
    for (kind, trouble) in [("invalid type: ", "cannot stand here"), ("invalid value: ", "does not fit here")] {
        if let Some((found, expected)) = message.strip_prefix(kind).and_then(|rest| rest.rsplit_once(", expected ")) {
            let what = found.split(['"', '`']).next().unwrap_or_default().trim();
            let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
            return format!("{article} {what} {trouble}; write {expected}");
        }
    }
    if !message.starts_with("unknown field ") {
        return message.to_string();
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    format!("there is no key `{unknown}` here{}", nearest(unknown, &quoted.collect::<Vec<_>>()))
}

/// `; did you mean ...?`, or all that is known when nothing is near.
pub fn nearest(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|k| (distance(word, k), k)).min().filter(|(d, k)| *d <= 1 + k.len() / 3);
    match near {
        Some((_, near)) => format!("; did you mean {near}?"),
        None => format!("; known are {}", known.join(", ")),
    }
}

/// Edit distance: letters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The list without repetitions, in its order.
pub fn unique<T: PartialEq>(list: Vec<T>) -> Vec<T> {
    let mut out = Vec::with_capacity(list.len());
    for value in list {
        if !out.contains(&value) {
            out.push(value);
        }
    }
    out
}

/// One value or a list of them; numbers and text alike.
fn texts(value: toml::Value) -> Result<Vec<String>, String> {
    match value {
        toml::Value::String(text) => Ok(vec![text]),
        toml::Value::Integer(number) => Ok(vec![number.to_string()]),
        toml::Value::Array(list) => Ok(list.into_iter().map(texts).collect::<Result<Vec<_>, _>>()?.concat()),
        other => {
            Err(format!("a {} cannot stand here; write text in quotation marks, or a list of it", other.type_str()))
        }
    }
}

macro_rules! readers {
    ($($name:ident: $kind:ident $type:ty = $parse:path;)*) => {$(
        fn $name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<readers!(@$kind $type)>, D::Error> {
            let texts = texts(toml::Value::deserialize(from)?).map_err(serde::de::Error::custom)?;
            let values = texts.iter().map(|text| $parse(text)).collect::<Result<Vec<$type>, String>>();
            readers!(@finish $kind values.map_err(serde::de::Error::custom)?)
        }
    )*};
    (@one $type:ty) => { $type };
    (@many $type:ty) => { Vec<$type> };
    (@finish one $values:expr) => {
        match <[_; 1]>::try_from($values) {
            Ok([value]) => Ok(Some(value)),
            Err(_) => Err(serde::de::Error::custom("one value stands here, not a list")),
        }
    };
    (@finish many $values:expr) => { Ok(Some(unique($values))) };
}

readers! {
    interval: one Duration = value::interval;
    retention: one Duration = value::retention;
    every: one Duration = value::every;
    deadline: one Duration = value::deadline;
    base_path: one String = value::base_path;
    local_auth: one LocalAuth = value::local_auth;
    log: one String = value::log;
    path: one PathBuf = value::absolute;
    folder: one PathBuf = value::folder;
    data_dir: one PathBuf = value::data_dir;
    bytes: one u64 = value::bytes;
    bind: many IpAddr = value::bind;
    hosts: many String = value::host;
    origins: many String = value::origin;
    users: many u32 = value::user;
    paths: many PathBuf = value::absolute;
    pids: many u32 = value::pid;
    gpus: many u32 = value::gpu;
    endpoints: many SocketAddr = value::endpoint;
}
