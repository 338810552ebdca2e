//! The command lines of README.md, deploy/README.md and the hand-written pages of docs/, each run against a hub:
//! without TLS, with its own certificate, and behind a proxy. The lines are read from the documents, so that a new one
//! cannot be left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use watchglass_tests::certificate::Authority;
use watchglass_tests::hub::{Hub, PASSWORD, machines, people};
use watchglass_tests::server::{Server, watchglass};

/// Commands for a hub: the line in a document, without `watchglass`, and the commands that are run in its place, in
/// order. `{NAME}` is an existing object, or one that an earlier command has created.
const OF_A_HUB: &[(&str, &[&str])] = &[
    ("user list", &["user list", "user list --json"]),
    (
        "user add NAME [--admin] [--role R]",
        &[
            "user add nora --role member --team main --password-file {password}",
            "user add omar --admin --team main --password-file {password}",
        ],
    ),
    ("user role NAME R", &["user role nora admin --team main", "user role omar viewer --team main"]),
    ("user disable", &["user disable nora"]),
    ("user enable", &["user enable nora"]),
    ("user reset", &["user reset nora --password-file {password}"]),
    ("user invite [--team T] [--role R]", &["user invite --team main --role viewer"]),
    ("user invite --role member", &["user invite --role member --team main"]),
    ("user invite --role viewer", &["user invite --role viewer --team main"]),
    ("user logins NAME LOGIN... [--team T]", &["user logins nora nschmidt --team main"]),
    ("user logins", &["user logins nora --team main"]),
    ("user leave NAME", &["user leave nora --team main"]),
    ("user remove", &["user remove nora"]),
    ("team list", &["team list"]),
    ("team show T", &["team show main"]),
    ("team add", &["team add lab"]),
    ("team rename", &["team rename lab hall"]),
    ("team grant MACHINE --team T", &["team grant node-0 --team hall"]),
    ("team revoke", &["team revoke node-0 --team hall"]),
    ("team set members_invite=true", &["team set members_invite=true --team main"]),
    ("team set share_links=false", &["team set share_links=true --team main"]),
    ("team set user_names=false", &["team set user_names=true --team main"]),
    ("team set gpu_hours=1000 --team main", &["team set gpu_hours=1000 --team main"]),
    ("team set gpu_hours=N", &["team set gpu_hours=1000 --team main"]),
    ("team remove", &["team remove hall"]),
    ("view list", &["view list"]),
    ("view save NAME QUERY", &["view save cores tag=cpu --team main"]),
    ("share list", &["share list --team main"]),
    ("share add VIEW [--expires 7d]", &["share add {view} --expires 7d --team main"]),
    ("share remove ID", &["share remove {share}"]),
    ("view remove ID", &["view remove {view}"]),
    ("backup FILE", &["backup {folder}/copy.db", "backup {folder}/second.db --with-key"]),
    ("restore FILE --data-dir DIR", &["restore {folder}/copy.db --data-dir {folder}/restored"]),
    ("erase --user NAME", &["erase --user omar"]),
    ("erase --source MACHINE", &["erase --source node-0"]),
    ("audit [--from -1d] [--who NAME] [--action key.]", &["audit --from -1d", "audit --who root --action key. --json"]),
    (
        "usage [--by day|month|project|user|run] [--from -30d] [--csv]",
        &["usage --by day --from -30d", "usage --by project --csv", "usage --by run --json"],
    ),
    ("usage --by project --csv", &["usage --by project --csv"]),
    ("usage", &["usage"]),
    (
        "usage --data [--by day|source|key] [--from -30d] [--csv]",
        &["usage --data --by day --from -30d", "usage --data --by source --csv", "usage --data --by key --json"],
    ),
    ("key list", &["key list"]),
    (
        "key add NAME --scope data:read,... [--expires 90d]",
        &["key add laptop --scope data:read --user vera", "key add ci --scope data:read,metrics:read --expires 90d"],
    ),
    ("key remove ID", &["key remove {key}"]),
    ("service list", &["service list"]),
    ("service add NAME [--role R]", &["service add nightly --role member"]),
    ("service role NAME R", &["service role nightly viewer"]),
    ("service disable", &["service disable nightly"]),
    ("service enable", &["service enable nightly"]),
    ("service remove", &["service remove nightly"]),
    ("agents list", &["agents list"]),
    ("agents join", &["agents join", "agents join --by-name --expires never"]),
    ("agents join --uses 500 --expires 30d", &["agents join --uses 500 --expires 30d"]),
    ("agents join --ephemeral --by-name --expires 7d", &["agents join --ephemeral --by-name --expires 7d"]),
    ("agents rename", &["agents rename gpu-7 node-7"]),
    ("agents label", &["agents label node-7 rack=r2"]),
    ("agents revoke", &["agents revoke node-7"]),
    ("agents remove", &["agents remove node-7"]),
    ("runs", &["runs"]),
    ("runs --state crashed --json", &["runs --state crashed --json"]),
    ("runs --failure nccl_timeout", &["runs --failure nccl_timeout"]),
    ("runs --failure out_of_gpu_memory --from -7d", &["runs --failure out_of_gpu_memory --from -7d"]),
    ("alerts check rules.toml --from -12h", &["alerts check {rules} --from -12h"]),
    ("alerts apply rules.toml", &["alerts apply {rules} --team main"]),
    (
        "alerts silence --source node-3 --for 2h --comment \"new power supply\"",
        &[
            "alerts silence --source node-1 --for 2h --comment power --team main",
            "alerts silence --list",
            "alerts list",
        ],
    ),
    ("alerts import prometheus.yml", &["alerts import {prometheus}"]),
];

/// Commands whose object does not exist. The hub answers "there is none", so the request was understood.
const OF_NOTHING: &[(&str, &str)] = &[
    ("runs report ID > run.html", "runs report none"),
    ("logs ID --rank 3 --last 50", "logs none --rank 3 --last 50"),
    ("agents approve", "agents approve node-1"),
    (
        "runs edit a1b2c3d4 --name lr-3e-4 --group sweep --tag lr=3e-4 --notes \"the best so far\"",
        "runs edit none --name lr-3e-4 --group sweep --tag lr=3e-4 --notes best",
    ),
    ("erase --run a1b2c3d4", "erase --run none"),
    ("erase --run ID", "erase --run none"),
];

/// Commands that also work remotely with a key.
const FROM_ELSEWHERE: &[&str] = &[
    "user list",
    "user invite --team main",
    "team list",
    "view list",
    "key list",
    "service list",
    "agents list",
    "agents join",
    "audit --from -1d",
    "usage --by day",
    "runs",
    "alerts list",
];

/// Commands that use no hub of this machine: they start one or an agent, read files, or report about a job. Other tests
/// run them.
const OF_NO_HUB: &[&str] = &[
    "demo --gpus 8 --fail straggler",
    "demo --gpus 8",
    "demo --hosts 200 --hub https://watch.example.org --key-file JOIN-KEY",
    "doctor",
    "doctor --json",
    "doctor --hub URL",
    "doctor --config FILE",
    "mcp",
    "top",
    "top --url http://localhost:7171",
    "top --hub https://watch.example.org --key-file key --source node-7",
    "top run.watchglass",
    "top --demo 8",
    "top --once --json",
    "serve",
    "serve --hub URL",
    "run",
    "run -- python train.py",
    "run --name lr-3e-4 --project llm --tag seed=1 -- torchrun --nproc-per-node 8 train.py",
    "run --logs -- torchrun --nproc-per-node 8 train.py",
    "run --logs --stacks",
    "run --name \"$SLURM_JOB_NAME\" -- srun watchglass run -- python train.py",
    "mark \"epoch 3\" --step 1200",
    "mark --kind preempting",
    "log",
    "log loss=0.41 tokens_per_s=12400 --step 1200",
    "alert \"loss is NaN\" --severity critical --wait 30m",
    "logs",
    "findings",
    "findings night.watchglass --json",
    "findings --from -1h --check warning",
    "export",
    "export --dashboards grafana/",
    "export --tag 'gpu.*' --from -1h --format csv --output gpu.csv",
    "record run.watchglass --from -1h",
    "replay",
    "replay run.watchglass",
    "import",
    "import --settings wandb/settings",
    "completions bash",
    "man",
    "man DIR",
    "--version",
    "hub --bind 0.0.0.0 --public-url https://watch.example.org:7171/ --tls-cert cert.pem --tls-key key.pem",
    "hub --config hub.toml",
    "agent --hub https://watch.example.org --key wg_j_...",
    "agent --hub https://watch.example.org/ --key wg_j_...",
    "agent --status",
    // Restores into a PostgreSQL, which is not available everywhere.
    "restore DATA/hub.db",
];

/// The code spans of a line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The command lines of a document, without `watchglass`. They are lines of its shell blocks, and code spans that begin
/// with it. In a table row that begins with such a span, spans that continue its first word count too.
fn lines_of(document: &str) -> BTreeSet<String> {
    let (mut lines, mut block) = (BTreeSet::new(), None);
    for line in document.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(kind) };
            continue;
        }
        if let Some(kind) = block {
            let command = line.strip_prefix("watchglass ").filter(|_| kind == "sh");
            lines.extend(command.map(|command| command.split(" #").next().unwrap_or_default().trim().to_string()));
            continue;
        }
        let row = line.replace("\\|", "\u{0}");
        let is_row = row.starts_with("| `watchglass ");
        let shown = if is_row { row.split('|').nth(1).unwrap_or_default() } else { &row };
        let mut word = String::new();
        for span in spans(shown).map(|span| span.replace('\u{0}', "|")) {
            if let Some(command) = span.strip_prefix("watchglass ") {
                word = command.split(' ').next().unwrap_or_default().into();
                lines.insert(command.to_string());
            } else if is_row {
                lines.insert(format!("{word} {span}"));
            }
        }
    }
    lines
}

fn documents() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md"), root.join("deploy/README.md"), root.join("docs/cost.md")];
    for folder in ["start", "use", "team", "integrate", "promise"] {
        let entries = std::fs::read_dir(root.join("docs").join(folder)).expect("a folder of the book");
        pages.extend(entries.map(|entry| entry.expect("a page of the book").path()));
    }
    let text = |page: &PathBuf| std::fs::read_to_string(page).expect("a page is text");
    pages.iter().flat_map(|page| lines_of(&text(page))).collect()
}

#[test]
fn each_command_line_of_the_documents_is_run_or_is_about_no_hub() {
    let of_a_hub = OF_A_HUB.iter().map(|(line, _)| *line).chain(OF_NOTHING.iter().map(|(line, _)| *line));
    let known: BTreeSet<String> = of_a_hub.chain(OF_NO_HUB.iter().copied()).map(String::from).collect();
    let there = documents();
    assert!(there.len() > 80, "{there:?}");
    let new: Vec<_> = there.difference(&known).collect();
    assert!(new.is_empty(), "in no table of this file, so nobody has run them against a hub: {new:#?}");
    let gone: Vec<_> = known.difference(&there).collect();
    assert!(gone.is_empty(), "in no document any more: {gone:#?}");
}

#[test]
fn each_demo_of_the_documents_is_within_its_limits() {
    let demos = OF_NO_HUB.iter().filter(|line| line.starts_with("demo "));
    for line in demos {
        let output = watchglass(line.split(' ').chain(["--print-config"])).output().expect("the binary starts");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_block_of_commands_names_its_language() {
    // The test above reads blocks of sh alone, so that a line in another one would be run by nobody.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for folder in ["start", "use", "team", "integrate", "promise"] {
        for page in std::fs::read_dir(root.join(folder)).expect("a folder of the book") {
            let page = page.expect("a page of the book").path();
            let text = std::fs::read_to_string(&page).expect("a page is text");
            assert!(!text.contains("```\nwatchglass "), "{}: write ```sh", page.display());
        }
    }
}

#[test]
fn lines_of_a_document_are_found_in_blocks_sentences_and_tables() {
    let found = lines_of(
        "Type `watchglass a b`, or `c d`.\n```sh\nwatchglass e --f  # g\nls\n```\n```text\nwatchglass not\n```\n\
         | `watchglass h i`, `j [--k 1\\|2]`; `watchglass l m`, `n` | does `o` |\n| p | `q` |\n",
    );
    let all: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(all, ["a b", "e --f", "h i", "h j [--k 1|2]", "l m", "l n"]);
}

/// A hub of this machine, and the ways to run its commands.
struct Ran {
    server: Server,
    folder: tempfile::TempDir,
    /// Its remote address, and the certificate to trust there.
    url: String,
    authority: Option<PathBuf>,
    /// Values of placeholders.
    known: BTreeMap<&'static str, String>,
    faults: Vec<String>,
}

impl Ran {
    /// A hub with these arguments. Files that they name are created in its folder first.
    fn start(args: impl FnOnce(&Path) -> (Vec<String>, Option<PathBuf>)) -> Ran {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        std::fs::create_dir(&data).expect("made");
        let keys = people(&data);
        machines(&data, &keys["join"], 2);
        let files = [
            ("password", format!("{PASSWORD}\n")),
            ("rules", "[[rules]]\nname = \"Busy\"\nwhen = \"cpu > 90 % for 5m\"\n".into()),
            ("prometheus", "groups:\n- name: a\n  rules:\n  - alert: Busy\n    expr: node_load1 > 100\n".into()),
        ];
        let mut known = BTreeMap::from([("folder", folder.path().display().to_string())]);
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            known.insert(name, path.display().to_string());
        }
        let (args, authority) = args(folder.path());
        let server = Hub::server(&data, ["--no-local"].into_iter().chain(args.iter().map(String::as_str)));
        let url = match &authority {
            Some(_) => format!("https://localhost:{}", server.addr().port()),
            None => format!("http://{}", server.addr()),
        };
        Ran { server, folder, url, authority, known, faults: Vec::new() }
    }

    fn filled(&self, command: &str) -> Vec<String> {
        let fill = |word: &str| {
            self.known.iter().fold(word.to_string(), |word, (name, value)| word.replace(&format!("{{{name}}}"), value))
        };
        command.split(' ').map(fill).collect()
    }

    /// Runs a command, which must end with this status.
    fn run(&mut self, command: &str, status: i32, more: &[&str]) -> String {
        let words = self.filled(command);
        let mut started = watchglass(words.iter().map(String::as_str));
        started.args(more).current_dir(self.folder.path());
        if let Some(authority) = &self.authority {
            started.env("SSL_CERT_FILE", authority);
        }
        let output = started.output().expect("the binary starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(status) {
            self.faults.push(format!("watchglass {command} {}: {}: {said}", more.join(" "), output.status));
        }
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command on the hub's own machine.
    fn here(&mut self, command: &str, status: i32) -> String {
        let data = self.folder.path().join("data").display().to_string();
        let more = if command.contains("--data-dir") { vec![] } else { vec!["--data-dir", &data] };
        self.run(command, status, &more)
    }

    /// The id of the last entry of a list.
    fn last_id(&mut self, list: &str, of: &str) -> String {
        let answer = self.here(&format!("{list} --json"), 0);
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
        let rows = answer[of].as_array().cloned().unwrap_or_default();
        rows.last().and_then(|row| row["id"].as_str()).unwrap_or("none").into()
    }

    /// Runs all commands, each on the hub's machine, and remotely where a key allows it.
    #[track_caller]
    fn all(mut self) {
        let scopes = "data:read,audit:read,team:admin,hub:admin";
        let key = self.here(&format!("key add elsewhere --scope {scopes} --expires 1h"), 0);
        let file = self.folder.path().join("key");
        std::fs::write(&file, key).expect("written");
        let (url, file) = (self.url.clone(), file.display().to_string());
        for command in FROM_ELSEWHERE {
            self.run(command, 0, &["--hub", &url, "--key-file", &file]);
        }
        for command in OF_A_HUB.iter().flat_map(|(_, commands)| *commands) {
            if command.contains("{view}") {
                let id = self.last_id("view list", "views");
                self.known.insert("view", id);
            }
            if command.contains("{share}") {
                let id = self.last_id("share list --team main", "shares");
                self.known.insert("share", id);
            }
            let output = self.here(command, 0);
            if let Some(id) = output.strip_prefix("wg_").and_then(|key| key.split('_').nth(1)) {
                self.known.insert("key", id.into());
            }
        }
        for (_, command) in OF_NOTHING {
            self.here(command, 1);
        }
        assert!(self.faults.is_empty(), "{}", self.faults.join("\n"));
        assert!(self.server.end().success());
    }
}

#[test]
fn command_lines_work_on_a_hub_without_tls() {
    Ran::start(|_| (Vec::new(), None)).all();
}

#[test]
fn command_lines_work_on_a_hub_with_its_own_certificate() {
    Ran::start(|folder| {
        let authority = Authority::new();
        let (chain, key) = authority.sign("localhost", folder);
        let [chain, key] = [chain, key].map(|path| path.display().to_string());
        let args = ["--bind", "127.0.0.1", "--tls-cert", &chain, "--tls-key", &key].map(String::from);
        (args.into(), Some(authority.write(folder)))
    })
    .all();
}

#[test]
fn command_lines_work_on_a_hub_behind_a_proxy() {
    Ran::start(|folder| {
        let file = folder.join("config.toml");
        let text = "public_url = \"https://watch.example.org/\"\n[proxy]\ntrusted = [\"127.0.0.1\"]\n";
        std::fs::write(&file, text).expect("written");
        (vec!["--config".into(), file.display().to_string()], None)
    })
    .all();
}
