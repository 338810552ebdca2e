//! Data outside a scope does not exist for the caller, on every route and by every name.

use super::*;
use crate::config::Config;
use crate::http::Services;
use crate::http::admit::Asker;
use crate::http::guard::Guard;
use crate::http::page::Site;
use ::api::Carries;
use ::stream::clock::Manual;
use ::stream::live::Live;
use ::stream::store::{Limits, Store};
use ::watch::alerts::{AlertRegistry, AlertRegistryParts, row_of};
use ::watch::findings::testing::finding;
use ::watch::written::{NoteSubject, WrittenRegistry};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use axum::middleware::{Next, from_fn_with_state};
use jobs::runs::{RunLogs, RunRegistry, RunRegistryParts};
use shared::alert::{Alert, AlertSeverity, AlertState};
use shared::catalog::{Catalog, cpu};
use shared::embedded::EmbeddedPage;
use shared::note::NewNote;
use shared::processes::{Process, ProcessTable};
use shared::run::{About, BEGIN_KIND, Begun};
use shared::scope::Scope;
use shared::series::SeriesDef;
use shared::wire::{Check, CheckState};
use std::time::Duration;
use team::accounts::{Network, Principal};
use tokio::sync::watch;
use tower::ServiceExt;

const NOW: i64 = 1_700_000_000_000;
/// The granted machine and the hidden one: by id and by name.
const GRANTED: (&str, &str) = ("aaaaaaaaaaaaaaaaaaaaaaaaaa", "alpha");
const HIDDEN: (&str, &str) = ("bbbbbbbbbbbbbbbbbbbbbbbbbb", "beta");
/// The value of the hidden machine, which differs from every other number.
const SECRET: f64 = 48.2391;

fn live() -> Arc<Live> {
    let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
    let mut store = Store::new(catalog, Limits { retention: 60_000, bytes: usize::MAX });
    for ((key, name), value) in [(HIDDEN, SECRET), (GRANTED, 12.0)] {
        let source = store.add_source(key.into(), 1_000, vec![("name".into(), name.into())]);
        store.intern(source, SeriesDef { metric: 0, instance: String::new() }).expect("a row");
        for ago in (0..=20).rev() {
            let value = if ago > 10 { value / 2.0 } else { value };
            store.append(source, NOW - ago * 1_000, false, &[value]).expect("a source");
        }
    }
    let check = Check {
        id: "cpu".into(),
        state: CheckState::Ok,
        tried: Vec::new(),
        found: "all of it".into(),
        reason: String::new(),
        remedy: String::new(),
    };
    store.set_check(&check);
    let live = Live::new(store, Arc::new(Manual::at(NOW, Duration::ZERO)), 1, 60_000);
    let row = |name: &str| Process { pid: 1, name: name.into(), args: "--private".into(), ..Process::default() };
    for (source, name) in [(0, HIDDEN.1), (1, GRANTED.1)] {
        let table = ProcessTable { t: NOW, total: 1, whole: true, rows: vec![row(name)] };
        live.source(source).processes.put(table);
        let about = About { program: name.into(), ..About::default() };
        let begun = Begun { run: "run".into(), t: NOW, pid: 1, joined: source == 1, about, ..Begun::default() };
        let body = serde_json::to_vec(&begun).expect("JSON");
        live.append_record(source, NOW, BEGIN_KIND, body).expect("taken");
        let id = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
        let kernel = inventory::Kernel { id: id.into(), ..inventory::Kernel::default() };
        live.source(source).kernels.put(vec![kernel], Vec::new(), 0);
        let body = format!("{{\"kind\":\"cell\",\"kernel\":\"{id}\",\"phase\":\"start\"}}");
        live.append_record(source, NOW - 1_500, "marker", body.into_bytes()).expect("a record");
    }
    live
}

async fn as_asker(State(asker): State<Asker>, mut request: Request, next: Next) -> Response<Body> {
    request.extensions_mut().insert(asker);
    next.run(request).await
}

/// Whether an operation reads samples through a reader. Other operations of members are checked by the accounts.
fn reads(operation: Operation) -> bool {
    let of_team = [Operation::ListViews, Operation::ListRules, Operation::ListSilences];
    let row = operation.row();
    row.need.is_for_samples()
        && row.body.carries == Carries::Nothing
        && row.method == Method::Get
        && !of_team.contains(&operation)
}

/// A folder with the output of a job on the hidden machine.
fn printed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join(shared::output::FOLDER).join("run");
    std::fs::create_dir_all(&run).expect("a folder");
    let row = format!("{{\"t\":{NOW},\"n\":1,\"s\":\"out\",\"x\":\"{}\"}}\n", HIDDEN.1);
    std::fs::write(run.join(format!("{NOW}-1.0000.jsonl")), row).expect("written");
    folder
}

/// An alert of each machine, whose id is the machine's.
async fn alerts_of_both(registry: &AlertRegistry) {
    let records = registry.made().await.expect("a database in memory");
    let mut change = records.change().await.expect("a change");
    for (key, name) in [GRANTED, HIDDEN] {
        let alert = Alert {
            id: key.into(),
            rule: "machine-lost".into(),
            name: "machine lost".into(),
            subject: name.into(),
            severity: AlertSeverity::Warning,
            state: AlertState::Firing,
            began: NOW,
            fired: Some(NOW),
            ended: None,
            value: None,
            worst: None,
            sentence: format!("{name} is lost"),
            text: String::new(),
            labels: [("source".to_string(), name.to_string())].into(),
            count: 1,
            acked: None,
            held: String::new(),
            unknown_since: None,
        };
        records::alerts::put(&mut change, &row_of(&alert, None, Some(key), NOW)).await.expect("written");
    }
    change.commit().await.expect("written");
}

#[tokio::test]
async fn an_alert_of_a_hidden_machine_is_answered_like_one_that_was_never_there() {
    let folder = printed();
    let routes = readers(Scope::only(["t".to_string()], [GRANTED.0.to_string()]), &folder).await;
    let of = async |path: String| ask(&routes, &path).await;
    assert_eq!(of(format!("/api/v1/alerts/{}", GRANTED.0)).await.0, 200);
    let hidden = of(format!("/api/v1/alerts/{}", HIDDEN.0)).await;
    assert_eq!(hidden, of("/api/v1/alerts/never".into()).await);
    assert_eq!(hidden.0, 404);
    for source in [HIDDEN.0, HIDDEN.1, "never"] {
        let (status, text) = of(format!("/api/v1/alerts?source={source}")).await;
        assert!(status == 200 && text.contains("\"alerts\":[]") && text.contains("\"firing\":1"), "{text}");
    }
}

/// All routes that read, for the owner of the server with this scope.
async fn readers(scope: Scope, folder: &tempfile::TempDir) -> Router {
    readers_as(scope, true, folder).await
}

/// As above, for the owner of the server or another admitted caller.
async fn readers_as(scope: Scope, is_owner: bool, folder: &tempfile::TempDir) -> Router {
    let (app, asker) = served(scope, is_owner, folder).await;
    let reads = Operation::ALL.iter().filter(|operation| reads(**operation));
    let routes = reads.fold(Router::new(), |router, operation| {
        router.route(operation.path(), answers(&app, *operation).layer(from_fn_with_state(asker.clone(), as_asker)))
    });
    routes.with_state(app)
}

/// A server, and its caller.
async fn served(scope: Scope, is_owner: bool, folder: &tempfile::TempDir) -> (Arc<App>, Asker) {
    let (_, stop) = watch::channel(false);
    let alerts = AlertRegistry::in_memory(Arc::new(Manual::at(NOW, Duration::ZERO)), AlertRegistryParts::default());
    let runs =
        RunRegistry::new(RunRegistryParts { logs: RunLogs::open(folder.path(), 0), ..RunRegistryParts::default() });
    let services = Services { alerts: Some(alerts.clone()), runs: Arc::new(runs), ..Services::new(live()) };
    let guard = Arc::new(Guard::new(&Config::default()));
    let app = App::new(services, guard, Site::new("/".into(), EmbeddedPage::NONE), stop);
    alerts_of_both(&alerts).await;
    for (key, name) in [GRANTED, HIDDEN] {
        let subject = NoteSubject { source: key.into(), run: None };
        let note = NewNote { text: format!("a note about {name}"), ..NewNote::default() };
        let written = WrittenRegistry::beside(&alerts);
        written.add_note(&Principal::local(0), subject, &note, name.into()).await.expect("written");
    }
    for (key, name) in [GRANTED, HIDDEN] {
        app.findings.take(finding("idle", name, NOW / 1000 - 5, None), |_| Some(key.into()));
    }
    let bounds = shared::scope::Bounds::All;
    let asker = Asker {
        who: None,
        scope,
        bounds,
        network: Network::local(),
        token: None,
        bearer: None,
        vouched: None,
        agent: String::new(),
        is_owner,
    };
    (app, asker)
}

async fn ask(routes: &Router, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).expect("a request");
    let answer = routes.clone().oneshot(request).await.expect("routes do not fail");
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), 1 << 22).await.expect("a body");
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

/// Requests of every route that reads, for all machines.
const ALL: &[(&str, &str)] = &[
    ("/api/v1/catalog", ""),
    ("/api/v1/openapi.json", ""),
    ("/api/v1/sources", ""),
    ("/api/v1/fleet", "?row=cpu"),
    ("/api/v1/series", ""),
    ("/api/v1/query", "?tag=*&from=1699999990"),
    ("/api/v1/figure", "?tag=*&from=1699999990"),
    ("/api/v1/export", "?tag=*&from=1699999990&format=openmetrics"),
    ("/api/v1/record", ""),
    ("/api/v1/processes", ""),
    ("/api/v1/kernels", ""),
    ("/api/v1/markers", ""),
    ("/api/v1/cells", ""),
    ("/api/v1/notes", ""),
    ("/api/v1/doctor", ""),
    ("/api/v1/findings", ""),
    ("/api/v1/now", ""),
    ("/api/v1/changed", "?from=1699999990&to=1700000000"),
    ("/api/v1/runs", ""),
    ("/api/v1/runs/{id}", ""),
    ("/api/v1/runs/{id}/report", ""),
    ("/api/v1/runs/{id}/logs", ""),
    ("/api/v1/uplink", ""),
    ("/api/v1/alerts", ""),
    ("/metrics", ""),
];

#[tokio::test]
async fn no_answer_about_all_machines_speaks_of_a_hidden_one() {
    let scope = Scope::only(["t".to_string()], [GRANTED.0.to_string()]);
    let folder = printed();
    let (some, all, none) =
        (readers(scope, &folder).await, readers(Scope::All, &folder).await, readers(Scope::nothing(), &folder).await);
    let asked: Vec<&str> = ALL.iter().map(|(path, _)| *path).collect();
    // One alert is requested below.
    for operation in Operation::ALL.iter().filter(|one| reads(**one) && **one != Operation::GetAlert) {
        assert!(asked.contains(&operation.path()), "{} is not asked here", operation.path());
    }
    let secrets = |text: &str| text.contains(HIDDEN.0) || text.contains(HIDDEN.1) || text.contains("48.239");
    for (path, query) in ALL {
        let question = format!("{path}{query}").replace("{id}", "run");
        let (status, text) = ask(&some, &question).await;
        // Output is there for callers who see its machine.
        let expected = if path.ends_with("/logs") { 404 } else { 200 };
        assert_eq!(status, expected, "{question}: {text}");
        assert!(!secrets(&text), "{question}: {text}");
        // The figures of now are of one machine: who sees several has none.
        let one = ["/api/v1/catalog", "/api/v1/openapi.json", "/api/v1/record", "/api/v1/uplink", "/api/v1/now"];
        let knows = one.contains(path) || secrets(&ask(&all, &question).await.1);
        assert!(knows, "{question} tells who sees all of both");
        let (_, text) = ask(&none, &question).await;
        assert!(!secrets(&text) && !text.contains(GRANTED.0) && !text.contains(GRANTED.1), "{question}: {text}");
    }
}

#[tokio::test]
async fn every_operation_refuses_a_parameter_that_it_does_not_take() {
    let folder = printed();
    let (app, asker) = served(Scope::All, true, &folder).await;
    for operation in Operation::ALL.iter().filter(|operation| !operation.takes_any()) {
        let layer = from_fn_with_state(asker.clone(), as_asker);
        let router =
            Router::new().route(operation.path(), answers(&app, *operation).layer(layer)).with_state(app.clone());
        let path = operation.path().replace(['{', '}'], "");
        let request = Request::builder().method(operation.method().text()).uri(format!("{path}?form=1"));
        let answer = router.oneshot(request.body(Body::empty()).expect("a request")).await.expect("it does not fail");
        let status = answer.status().as_u16();
        let bytes = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        let text = String::from_utf8_lossy(&bytes);
        assert!(status == 400 && text.contains("there is no parameter"), "{}: {status} {text}", operation.name());
    }
}

#[tokio::test]
async fn who_is_only_let_in_reads_neither_what_jobs_print_nor_arguments() {
    let folder = printed();
    let of = async |is_owner: bool, path: &str| ask(&readers_as(Scope::All, is_owner, &folder).await, path).await;
    let (status, text) = of(true, "/api/v1/runs/run/logs").await;
    assert!(status == 200 && text.contains(HIDDEN.1), "{text}");
    let (status, text) = of(false, "/api/v1/runs/run/logs").await;
    assert!(status == 403 && text.contains("the user who runs this Watchglass"), "{status} {text}");
    for path in ["/api/v1/runs/run/report", "/api/v1/runs/run", "/api/v1/processes?source=alpha"] {
        let (status, text) = of(false, path).await;
        assert!(status == 200 && !text.contains("--private") && !text.contains("\"x\":"), "{path}: {text}");
    }
    assert!(of(true, "/api/v1/processes?source=alpha").await.1.contains("--private"));
}

#[tokio::test]
async fn a_hidden_machine_is_answered_like_one_that_was_never_there() {
    let folder = printed();
    let routes = readers(Scope::only(["t".to_string()], [GRANTED.0.to_string()]), &folder).await;
    for called in [HIDDEN.0, HIDDEN.1, "bet*", "*eta", "b*"] {
        for (path, query) in [
            ("/api/v1/query", "?tag=*&source="),
            ("/api/v1/export", "?tag=*&source="),
            ("/api/v1/processes", "?source="),
            ("/api/v1/fleet", "?row=cpu&source="),
            ("/api/v1/query", "?tag=cpu/l:"),
            ("/api/v1/series", "?match=cpu/l:"),
        ] {
            let never = called.replace(['b', 'B'], "q").replace("eta", "xyz");
            let (theirs, nobodys) = (
                ask(&routes, &format!("{path}{query}{called}")).await,
                ask(&routes, &format!("{path}{query}{never}")).await,
            );
            let told = |(status, text): (u16, String), name: &str| (status, text.replace(name, "NAME"));
            assert_eq!(told(theirs, called), told(nobodys, &never), "{path}{query}{called}");
        }
    }
    let (status, text) = ask(&routes, &format!("/api/v1/query?tag=*&source={}&from=1699999990", GRANTED.0)).await;
    assert!(status == 200 && text.contains(GRANTED.1), "by its id: {text}");
}
