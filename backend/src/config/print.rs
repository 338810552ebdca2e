//! A configuration as TOML. What is secret, headers of endpoints, is `***` here.

use super::{Config, LocalAuth, endpoints, remote, show_duration, value};
use toml::{Table, Value};

/// All keys of the file, and a table for each collector.
pub fn to_toml(config: &Config) -> String {
    let mut file = Table::new();
    let mut put = |key: &str, value: Value| file.insert(key.into(), value);
    put("bind", list(config.bind.iter().map(|ip| ip.to_string())));
    put("port", i64::from(config.port).into());
    put("interval", show_duration(config.interval).into());
    put("retention", show_duration(config.retention).into());
    put("base_path", config.base_path.as_str().into());
    put("hosts", list(config.hosts.iter().map(String::as_str)));
    put("origins", list(config.origins.iter().map(String::as_str)));
    put("allow_users", list(config.allow_users.iter().map(|uid| i64::from(*uid))));
    put("local_auth", if config.local_auth == LocalAuth::Uid { "uid" } else { "off" }.into());
    put("embed", list(config.embed.iter().map(String::as_str)));
    put("disk_paths", list(config.disk_paths.iter().map(|path| path.to_string_lossy().into_owned())));
    put("pid", list(config.pids.iter().map(|pid| i64::from(*pid))));
    put("gpu", list(config.gpus.iter().map(|gpu| i64::from(*gpu))));
    if let Some(root) = &config.root {
        put("root", root.to_string_lossy().into_owned().into());
    }
    put("log", config.log.as_str().into());
    put("memory", config.memory.into());
    put("durable", config.durable.into());
    if let Some(folder) = &config.data_dir {
        put("data_dir", folder.to_string_lossy().into_owned().into());
    }
    if let Some(bytes) = config.retention_bytes {
        put("retention_bytes", value::show_bytes(bytes).into());
    }
    if !config.endpoints.is_empty() {
        put("openmetrics", endpoints::print(&config.endpoints));
    }
    if let Some(server) = &config.remote_write {
        put("remote_write", remote::print(server));
    }
    put("collectors", Value::Table(collectors(config)));
    file.to_string()
}

fn collectors(config: &Config) -> Table {
    let mut all = Table::new();
    for collector in &config.collectors {
        let mut own = Table::new();
        own.insert("enabled".into(), collector.enabled.into());
        let durations = [("every", collector.every), ("deadline", collector.deadline)];
        for (key, value) in durations.iter().filter_map(|(key, value)| Some((key, (*value)?))) {
            own.insert((*key).into(), show_duration(value).into());
        }
        if collector.name == "nvidia"
            && let Some(library) = &config.nvml_library
        {
            own.insert("library".into(), library.to_string_lossy().into_owned().into());
        }
        if collector.name == "tpu" {
            own.insert("endpoints".into(), list(config.tpu_endpoints.iter().map(ToString::to_string)));
        }
        for (key, path) in &collector.paths {
            own.insert((*key).into(), path.to_string_lossy().into_owned().into());
        }
        all.insert(collector.name.clone(), Value::Table(own));
    }
    all
}

fn list<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Value {
    Value::Array(values.into_iter().map(Into::into).collect())
}
