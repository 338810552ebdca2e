//! `watchglass agent --unit`: a systemd unit.

use crate::settings::{HubEntry, KeyFrom};
use std::path::Path;

/// The unit that runs this program as an agent of a hub; `plain_http` allows http:// to it.
pub fn unit(hub: Option<&HubEntry>, plain_http: bool, program: &Path) -> String {
    let mut command = format!("{} agent --data-dir %S/watchglass", quoted(&program.to_string_lossy()));
    match hub {
        Some(hub) => {
            let urls: Vec<String> = hub.urls.iter().map(|url| url.to_string()).collect();
            command += &format!(" --hub {}", quoted(&urls.join(",")));
            let name = hub.name.iter().map(|name| format!(" --name {}", quoted(name)));
            let labels =
                hub.labels.iter().map(|(key, value)| format!(" --label {}", quoted(&format!("{key}={value}"))));
            command.extend(name.chain(labels));
            command.extend(hub.ca.iter().map(|path| format!(" --ca {}", quoted(&path.to_string_lossy()))));
            command.extend(hub.pin.iter().map(|pin| format!(" --pin {pin}")));
        }
        None => command += " --hub https://watch.example.org",
    }
    if plain_http {
        command += " --plain-http";
    }
    let key = match hub.and_then(|hub| hub.key.as_ref()) {
        Some(KeyFrom::File(path)) => path.to_string_lossy().into_owned(),
        _ => "/etc/watchglass/key".into(),
    };
    format!(
        "\
# The key of the join line stands in {key}, readable by root alone.
[Unit]
Description=Watchglass agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={command}
LoadCredential=key:{key}
Environment=WATCHGLASS_KEY_FILE=%d/key
DynamicUser=yes
StateDirectory=watchglass
StateDirectoryMode=0700
ProtectSystem=strict
ProtectHome=read-only
NoNewPrivileges=yes
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
"
    )
}

/// An argument, quoted for a command of a unit.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    if escaped.chars().all(|c| c.is_ascii_graphic() && c != '\'' && c != ';') {
        escaped
    } else {
        format!("\"{escaped}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_the_hub_and_never_the_key() {
        let text = unit(None, false, Path::new("/usr/bin/watchglass"));
        assert!(text.contains("ExecStart=/usr/bin/watchglass agent --data-dir %S/watchglass --hub https://"), "{text}");
        assert_eq!(quoted("a b%$\"\\"), "\"a b%%$$\\\"\\\\\"");
    }
}
