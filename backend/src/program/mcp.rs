//! `watchglass mcp`: answers an assistant over standard input and output, by requests to a running server.

use crate::build_info::BUILD;
use crate::config::{Config, entry_here};
use crate::control;
use crate::remote::{self, Remote};
use crate::terminal::complain;
use mcp::Server;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use uplink::settings::HubEntry;

/// Maximum size of an answer of a server of this machine, bytes.
const MAX_ANSWER: usize = 32 << 20;

/// The server that is asked.
enum Asked {
    /// A named one.
    Named(Remote),
    /// That of the data folder by its control socket, else that of this port.
    Here(Option<PathBuf>, Remote),
}

impl Server for Asked {
    fn get(&self, path: &str) -> Result<(u16, Vec<u8>), String> {
        match self {
            Asked::Named(remote) => remote.send("GET", path, None),
            Asked::Here(folder, remote) => {
                if let Some(folder) = folder
                    && let Some(answer) = by_socket(folder, path)?
                {
                    return Ok(answer);
                }
                remote.send("GET", path, None).map_err(|why| {
                    format!(
                        "{why}. Start watchglass serve, or start watchglass mcp with --port N, --data-dir DIR, or --hub \
                        URL and --key-file FILE"
                    )
                })
            }
        }
    }
}

/// The answer of the process that holds the data folder; none without one.
fn by_socket(folder: &std::path::Path, path: &str) -> Result<Option<(u16, Vec<u8>)>, String> {
    let (mut body, mut is_whole) = (Vec::new(), true);
    let mut row = |_: u16, line: &str| {
        is_whole = is_whole && body.len() + line.len() < MAX_ANSWER;
        if is_whole {
            body.extend_from_slice(line.as_bytes());
            body.push(b'\n');
        }
    };
    let status = control::ask_rows(folder, path, &mut row);
    let status = status.map_err(|error| format!("the control socket does not respond: {error}"))?;
    match is_whole {
        true => Ok(status.map(|status| (status, body))),
        false => Err("the answer is too large; ask for less".into()),
    }
}

/// Answers until standard input ends.
pub fn run(config: &Config, entry: Option<&HubEntry>) -> ExitCode {
    let failed = |status: u8, sentence: &str| {
        complain(&format!("watchglass: {sentence}"));
        ExitCode::from(status)
    };
    let server = match find(config, entry) {
        Ok(server) => server,
        Err(sentence) => return failed(2, &sentence),
    };
    if io::stdin().is_terminal() {
        complain("watchglass: this command is for assistants, which start it; docs/integrate/assistants.md says how");
    }
    let served = mcp::serve(&mut io::stdin().lock(), &mut io::stdout().lock(), BUILD.version, &server);
    match served {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => failed(1, &format!("the assistant is away: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

fn find(config: &Config, entry: Option<&HubEntry>) -> Result<Asked, String> {
    let Some(entry) = entry else {
        let folder = config.data_dir.clone().filter(|folder| !config.memory && folder.is_dir());
        return Ok(Asked::Here(folder, Remote::new(&entry_here(config), None)?));
    };
    let key = entry.key.as_ref().map(|from| remote::key(from, Some("the assistant"))).transpose()?;
    Ok(Asked::Named(Remote::new(entry, key.as_ref())?))
}
