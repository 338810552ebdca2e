//! The table of operations in its published forms: the reference page, the OpenAPI document, and a server's real
//! answers.

use api::parameter::{ParameterKind, TEAM};
use api::{Answer as Answered, Method, Operation};
use boon::{Compiler, Draft, SchemaIndex, Schemas};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use watchglass_tests::hub::{Hub, send};
use watchglass_tests::server::{Server, ServerAnswer};
use watchglass_tests::waiting::until;

#[test]
fn the_reference_page_is_what_the_table_gives() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/api.md");
    let reference = api::reference();
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, &reference).expect("the document is written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        written, reference,
        "docs/reference/api.md is stale: UPDATE=1 cargo test -p watchglass-tests operations"
    );
}

/// Address of the document for the validator.
const DOCUMENT: &str = "https://watchglass.test/openapi.json";

/// The document, and its types for a validator.
struct Document {
    value: Value,
    compiler: Compiler,
    schemas: Schemas,
}

impl Document {
    fn new(value: Value) -> Document {
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.add_resource(DOCUMENT, value.clone()).expect("a document");
        Document { value, compiler, schemas: Schemas::new() }
    }

    /// The schema at a place in the document.
    fn schema(&mut self, pointer: &str) -> SchemaIndex {
        let place = format!("{DOCUMENT}#{pointer}");
        self.compiler.compile(&place, &mut self.schemas).unwrap_or_else(|error| panic!("{pointer}: {error:#}"))
    }

    /// The fault in an answer; None when it is valid.
    fn faults(&mut self, pointer: &str, answer: &Value) -> Option<String> {
        let schema = self.schema(pointer);
        self.schemas.validate(answer, schema).err().map(|error| format!("{pointer}: {error:#}"))
    }
}

/// A segment of a JSON pointer, escaped.
fn token(text: &str) -> String {
    text.replace('~', "~0").replace('/', "~1").replace('{', "%7B").replace('}', "%7D")
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(String::from));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

fn demo() -> Server {
    Server::start(["demo", "--gpus", "2", "--retention", "10m"])
}

fn read(answer: &ServerAnswer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

fn served(server: &Server) -> Document {
    let answer = server.get("/api/v1/openapi.json", &[]);
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"), "{answer:?}");
    Document::new(read(&answer))
}

#[test]
fn the_document_is_valid_and_has_every_operation() {
    let mut document = served(&demo());
    let url = "https://spec.openapis.org/oas/3.1/schema/2022-10-07";
    let official = serde_json::from_str(include_str!("fixtures/openapi/schema-3.1.json")).expect("JSON");
    document.compiler.add_resource(url, official).expect("a schema");
    let whole = document.compiler.compile(url, &mut document.schemas).expect("the official schema");
    let valid = document.schemas.validate(&document.value, whole);
    assert!(valid.is_ok(), "{:#}", valid.expect_err("a fault"));
    let listed: Vec<Operation> = Operation::ALL.iter().copied().filter(|one| one.is_listed()).collect();
    assert!(listed.len() > 118, "{}", listed.len());
    for operation in &listed {
        let method = operation.method().text().to_ascii_lowercase();
        let described = &document.value["paths"][operation.path()][&method];
        assert_eq!(described["summary"], operation.row().meaning, "{}", operation.name());
    }
    let mut all = BTreeSet::new();
    references(&document.value, &mut all);
    assert!(all.len() > 100, "{}", all.len());
    for reference in &all {
        let place = reference.strip_prefix('#').expect("a place in this document");
        assert!(document.value.pointer(place).is_some(), "{reference}");
    }
    let types: Vec<String> =
        document.value["components"]["schemas"].as_object().expect("types").keys().cloned().collect();
    for name in types {
        document.schema(&format!("/components/schemas/{name}"));
    }
    // The planted fault is found.
    document.value["paths"]["/healthz"]["get"]["responses"]["default"] = Value::Null;
    assert!(document.schemas.validate(&document.value, whole).is_err());
}

/// The pointer to the schema of an operation's answer; None when it is not JSON.
fn place(operation: Operation) -> Option<String> {
    let status = match operation.row().answer {
        Answered::Json(_) | Answered::Text(_, Some(_)) => "200",
        _ => return None,
    };
    let path = token(operation.path());
    Some(format!("/paths/{path}/get/responses/{status}/content/application~1json/schema"))
}

/// Requests all operations that read, and validates each answer by the document. `fill` is the path of a request.
/// Returns the operations with valid answers.
fn judged(
    document: &mut Document,
    fill: impl Fn(Operation) -> Option<String>,
    ask: impl Fn(&str) -> ServerAnswer,
) -> BTreeSet<&'static str> {
    let (mut faults, mut good) = (Vec::new(), BTreeSet::new());
    for operation in Operation::ALL.iter().copied().filter(|one| one.is_listed() && one.method() == Method::Get) {
        let (Some(place), Some(path)) = (place(operation), fill(operation)) else { continue };
        let answer = ask(&path);
        match answer.status {
            200 => {
                good.insert(operation.name());
                faults.extend(document.faults(&place, &read(&answer)).map(|why| format!("{path}: {why}")));
            }
            400..500 | 503 => {
                let problem = "/components/responses/Problem/content/application~1json/schema";
                faults.extend(document.faults(problem, &read(&answer)).map(|why| format!("{path}: {why}")));
            }
            status => faults.push(format!("{path}: {status} {}", answer.body)),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    good
}

/// Query that a request needs in addition to its path.
fn query(operation: Operation) -> &'static str {
    match operation {
        Operation::QuerySamples => "?tag=cpu&from=-30s&step=5s",
        Operation::GetFleet => "?row=gpu&from=-1m&step=10s",
        Operation::ListSeries => "?match=gpu.*",
        Operation::ListChanges => "?from=-20s",
        Operation::GetRunReport | Operation::ListRunLogs => "?format=json",
        _ => "",
    }
}

#[test]
fn a_server_answers_what_the_document_says() {
    let server = demo();
    let mut document = served(&server);
    let ask = |path: &str| server.get(path, &[]);
    until("values", || ask("/api/v1/query?tag=cpu&from=-30s").body.contains("points").then_some(()));
    until("a table of processes", || (ask("/api/v1/processes").status == 200).then_some(()));
    let fill = |operation: Operation| {
        (!operation.path().contains('{')).then(|| operation.path().to_string() + query(operation))
    };
    let good = judged(&mut document, fill, ask);
    for name in [
        "ListMetrics",
        "ListSources",
        "GetFleet",
        "ListSeries",
        "QuerySamples",
        "GetNow",
        "ListChanges",
        "ListProcesses",
        "ListChecks",
        "ListUplinks",
        "ListRuns",
        "ListKernels",
        "ListCells",
        "ListMarkers",
        "ListFindings",
        "ListAlerts",
        "ListRules",
        "ListSilences",
        "ListChannels",
    ] {
        assert!(good.contains(name), "{name} is answered: {good:?}");
    }
}

/// Answers that a server wrote, in `tests/fixtures/answers`, and the operation of each.
const RECORDED: [(&str, Operation); 14] = [
    ("runs", Operation::ListRuns),
    ("runs_sums", Operation::ListRuns),
    ("run_failed", Operation::GetRun),
    ("run_open", Operation::GetRun),
    ("run_of_gpus", Operation::GetRun),
    ("report", Operation::GetRunReport),
    ("logs", Operation::ListRunLogs),
    ("markers", Operation::ListMarkers),
    ("kernels", Operation::ListKernels),
    ("cells", Operation::ListCells),
    ("findings", Operation::ListFindings),
    ("sources", Operation::ListSources),
    ("query_step", Operation::QuerySamples),
    ("processes", Operation::ListProcesses),
];

#[test]
fn recorded_answers_are_what_the_document_says() {
    let mut document = Document::new(api::openapi::document("0"));
    for (name, operation) in RECORDED {
        let path = format!("{}/fixtures/answers/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("an answer");
        let mut answer: Value = serde_json::from_str(&text).expect("JSON");
        let place = place(operation).expect("it answers JSON");
        assert_eq!(document.faults(&place, &answer), None, "{name}");
        let fields = answer.as_object_mut().expect("an object");
        let field =
            fields.iter().find(|(_, value)| value.is_array() || value.is_object()).map(|(name, _)| name.clone());
        fields.insert(field.expect("a list"), "a text".into());
        assert!(document.faults(&place, &answer).is_some(), "{name}: another type is no such answer");
    }
}

#[test]
fn a_hub_answers_what_the_document_says() {
    let hub = Hub::start(["--no-local"]);
    let (root, origin) = (hub.cookie("root"), hub.origin());
    let mut document = served_by(&hub, &root);
    let ask = |path: &str| hub.send("GET", path, &[&root, &origin], "");
    let fill = |operation: Operation| {
        let path = operation.path().replace("{team}", "main").replace("{person}", "root");
        // An admin of the hub without a team must name one.
        let asked = if operation.takes(TEAM.name) { "?team=main" } else { query(operation) };
        (!path.contains('{')).then(|| path + asked)
    };
    let good = judged(&mut document, fill, ask);
    for name in [
        "GetSession",
        "GetMe",
        "ListMySessions",
        "ListMyIdentities",
        "ExportMe",
        "ListMyKeys",
        "ListTeams",
        "GetTeam",
        "ListInvites",
        "ListServices",
        "ListTeamKeys",
        "ListJoinKeys",
        "ListAgents",
        "GetHub",
        "ListAccounts",
        "ListAccountKeys",
        "ListAudit",
        "GetUsage",
        "GetGpuTime",
        "ListViews",
        "ListShares",
        "ListRules",
        "ListChannels",
    ] {
        assert!(good.contains(name), "{name} is answered: {good:?}");
    }
}

fn served_by(hub: &Hub, who: &str) -> Document {
    Document::new(read(&hub.send("GET", "/api/v1/openapi.json", &[who], "")))
}

/// An invalid value for a parameter of this kind.
fn nonsense(kind: ParameterKind) -> Option<&'static str> {
    match kind {
        ParameterKind::Text => None,
        ParameterKind::Number(_) => Some("many"),
        ParameterKind::Instant | ParameterKind::Length => Some("soon"),
        ParameterKind::Choice(_) => Some("no-such-word"),
    }
}

#[test]
fn a_value_that_a_parameter_may_not_have_is_refused_with_its_name() {
    let (server, hub) = (demo(), Hub::start(["--no-local"]));
    let root = hub.cookie("root");
    let (mut faults, mut asked) = (Vec::new(), 0);
    let reads = |one: &Operation| one.is_listed() && one.method() == Method::Get;
    for operation in Operation::ALL.iter().copied().filter(reads) {
        for parameter in operation.row().parameters {
            let Some(value) = nonsense(parameter.kind) else { continue };
            // Parameters are validated before the object is looked up.
            let path = operation.path().replace("{id}", "none") + query(operation);
            let path = format!("{path}{}{}={value}", if path.contains('?') { '&' } else { '?' }, parameter.name);
            let answer = match operation {
                Operation::GetUsage | Operation::ListAudit => hub.send("GET", &path, &[&root], ""),
                _ => server.get(&path, &[]),
            };
            asked += 1;
            if answer.status != 400 || !answer.body.contains(parameter.name) {
                faults.push(format!("{path}: {} {}", answer.status, answer.body.chars().take(200).collect::<String>()));
            }
        }
    }
    assert!(faults.is_empty() && asked > 50, "{asked} asked:\n{}", faults.join("\n"));
}

/// Whether a path in code, up to its first placeholder, is the prefix of an operation's path.
fn is_known(path: &str) -> bool {
    let written: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let fits = |(written, known): (&&str, &str)| written.contains('{') || known.starts_with('{') || **written == *known;
    let begins = |operation: &Operation| {
        let known: Vec<&str> = operation.path().trim_start_matches('/').split('/').collect();
        written.len() <= known.len() && written.iter().zip(known).all(fits)
    };
    Operation::ALL.iter().filter(|one| one.is_listed()).any(begins)
}

#[test]
fn the_page_and_our_packages_ask_for_what_the_table_has() {
    let folders = ["frontend/src/", "notebook/python/watchglass/", "notebook/lab/src/"];
    let ours = |path: &str| folders.iter().any(|folder| path.starts_with(folder));
    let (mut asked, mut faults) = (0, Vec::new());
    for source in crate::house::source::tree().iter().filter(|source| ours(&source.path)) {
        for (at, _) in source.text.match_indices("api/v1/") {
            let path = source.text[at..].split(['"', '?', '`', ' ', '\'', '\n']).next().unwrap_or_default();
            let path = path.trim_end_matches('.');
            asked += 1;
            if !is_known(path) {
                faults.push(format!("{}: {path}", source.path));
            }
        }
    }
    assert!(faults.is_empty() && asked > 60, "{asked} asked:\n{}", faults.join("\n"));
    assert!(is_known("api/v1/teams/{}/agents") && !is_known("api/v1/team") && !is_known("api/v1/catalog/x"));
}

/// Runs schemathesis against a server. It makes requests from the document, valid and invalid ones, and compares each
/// answer with it. Two of its checks are left out: one takes every text for valid, though most have rules of their own;
/// the other demands a key, which a server without accounts does not need.
fn tried_by_schemathesis(server: &Server, reader: &str, caller: &str) {
    const CHECKS: [&str; 7] = [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "unsupported_method",
        "use_after_free",
    ];
    let program = std::env::var("WATCHGLASS_SCHEMATHESIS").expect("WATCHGLASS_SCHEMATHESIS is a path");
    let folder = tempfile::tempdir().expect("a folder");
    let document = send(server, "GET", "/api/v1/openapi.json", &[reader], "").body;
    std::fs::write(folder.path().join("openapi.json"), document).expect("a file");
    #[allow(clippy::disallowed_methods, reason = "it is another program")]
    let mut command = Command::new(program);
    command.current_dir(folder.path()).args(["run", "openapi.json", "--url", &format!("http://{}", server.addr())]);
    command.args(["--phases", "coverage,fuzzing", "--max-examples", "3", "--generation-deterministic"]);
    command.args(["--checks", &CHECKS.join(","), "--no-color", "--warnings", "off", "-H", caller]);
    // It cannot read a socket.
    command.args(["--exclude-path", Operation::FollowLive.path(), "--exclude-path", Operation::LinkAgent.path()]);
    let done = command.output().expect("schemathesis starts");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    let tested = said.split("Tested: ").nth(1).and_then(|rest| rest.lines().next()?.trim().parse::<usize>().ok());
    assert!(tested.is_some_and(|tested| tested > 115), "{said}");
}

#[test]
#[ignore = "needs WATCHGLASS_SCHEMATHESIS, the path of that program"]
fn with_schemathesis_answers_without_accounts_are_as_the_document_says() {
    tried_by_schemathesis(&demo(), "Accept: */*", "Accept: */*");
}

#[test]
#[ignore = "needs WATCHGLASS_SCHEMATHESIS, the path of that program"]
fn with_schemathesis_answers_of_a_hub_are_as_the_document_says() {
    let hub = Hub::start(["--no-local"]);
    tried_by_schemathesis(&hub.server, &hub.key("data"), &hub.key("hub"));
}
