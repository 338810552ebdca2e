//! Tests hubs with real sample stores: VictoriaMetrics, alone and twice behind vmagent and vmauth, Prometheus, and the
//! addresses of VictoriaMetrics' cluster and of Mimir.

use crate::remote_write::{KnownMachine, SERIES, escaped, exported, host, hours_ago, value};
use backend::config::RemoteWrite;
use backend::remote_write::{ReadBack, RemoteSeries, RemoteWriter, Window};
use serde_json::Value;
use shared::catalog::prometheus::Family;
use shared::wire::CheckState;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use stream::clock::{Clock, System};
use stream::live::Holder;
#[cfg(target_os = "linux")]
use watchglass_tests::cluster::Cluster;
use watchglass_tests::programs::Program;
use watchglass_tests::server::{Server, watchglass};
use watchglass_tests::waiting::{MAX_WAIT, until_or, until_so, within};

/// Flag with which a repeated sample is stored once.
pub(crate) const DEDUP: &str = "-dedup.minScrapeInterval=1ms";

pub(crate) fn victoria_metrics(addr: SocketAddr, folder: &Path, more: &[&str]) -> Program {
    let data = folder.display();
    Program::start_at(addr, "victoria-metrics", |addr| {
        let own = [format!("-httpListenAddr={addr}"), format!("-storageDataPath={data}"), "-loggerLevel=ERROR".into()];
        own.into_iter().chain(more.iter().map(|arg| (*arg).to_string())).collect()
    })
}

fn prometheus(folder: &Path, settings: &str) -> Program {
    let config = folder.join("prometheus.yml");
    std::fs::write(&config, settings).expect("a file");
    let server = Program::start("prometheus", |addr| {
        vec![
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            format!("--web.listen-address={addr}"),
            "--web.enable-remote-write-receiver".into(),
        ]
    });
    until_so("it is ready", || server.get("/-/ready").status == 200);
    server
}

/// Selector of a series of the known machine on the other server.
fn selector(known: &KnownMachine, series: usize) -> String {
    let catalog = known.live.store().catalog().clone();
    let name = Family::from_metric(catalog.metric(&known.defs[series]).expect("a row")).name;
    format!("{name}{{core=\"{series}\",source=\"{}\"}}", host())
}

/// The samples of a series from `/api/v1/query`.
fn queried(server: &Program, selector: &str) -> Vec<(i64, f64)> {
    let query = escaped(&format!("{selector}[13h]"));
    let path = format!("/api/v1/query?query={query}&time={}", System.wall() / 1000);
    let json: Value = serde_json::from_str(&server.get(&path).body).expect("JSON");
    let point = |p: &Value| Some(((p[0].as_f64()? * 1e3).round() as i64, p[1].as_str()?.parse().ok()?));
    let values = json["data"]["result"][0]["values"].as_array().cloned().unwrap_or_default();
    values.iter().filter_map(point).collect()
}

fn count(known: &KnownMachine, from: usize, to: usize) -> u64 {
    known.samples_from(from, to).values().map(|own| own.len() as u64).sum()
}

/// The expected samples on a server for a series of the known machine, in the base unit.
fn wanted(known: &KnownMachine, series: usize, ticks: usize) -> Vec<(i64, f64)> {
    let tick = |tick: usize| (known.from + tick as i64 * 1_000, value(series, tick) / 100.0);
    (0..ticks).map(tick).filter(|(_, value)| value.is_finite()).collect()
}

#[track_caller]
fn same(ours: &[(i64, f64)], theirs: &[(i64, f64)]) {
    // VictoriaMetrics keeps some 15 decimal digits, not the exact bits.
    let equal = |(own, theirs): (&(i64, f64), &(i64, f64))| own.0 == theirs.0 && (own.1 - theirs.1).abs() < 1e-9;
    let differ = ours.iter().zip(theirs).find(|pair| !equal(*pair));
    assert!(ours.len() == theirs.len() && differ.is_none(), "{} and {}: {differ:?}", ours.len(), theirs.len());
}

fn all_taken(remote: &RemoteWriter, known: &KnownMachine, ticks: usize) {
    until_so("all is taken", || remote.counts.sent.load(Relaxed) == count(known, 0, ticks));
}

#[test]
#[ignore = "needs Debian's prometheus on PATH"]
fn with_prometheus_what_comes_late_is_refused_with_the_cure_and_taken_with_it() {
    for cured in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let cure = "storage:\n  tsdb:\n    out_of_order_time_window: 12h\n";
        let server = prometheus(folder.path(), if cured { cure } else { "global: {}\n" });
        let known = KnownMachine::new(hours_ago(1), 50);
        let url = format!("http://{}/api/v1/write", server.addr);
        let remote = known.send(url.clone(), None);
        all_taken(&remote, &known, 50);
        known.extend_behind_a_gap(50, 30, 120);
        let live = count(&known, 0, 50) + count(&known, 80, 120);
        until_so("what follows is taken", || remote.counts.sent.load(Relaxed) == live);
        known.fill(50, 80);
        let (sent, dropped) = match cured {
            true => (count(&known, 0, 120), 0),
            false => (live, count(&known, 50, 80)),
        };
        until_so("what is late is taken or refused", || {
            (remote.counts.sent.load(Relaxed), remote.counts.dropped.load(Relaxed)) == (sent, dropped)
        });
        // All later samples are accepted. The rejected ones are still reported, with the remedy.
        known.extend(120, 135);
        until_so("what follows is taken", || remote.counts.sent.load(Relaxed) == sent + count(&known, 120, 135));
        let mut samples = wanted(&known, 0, 135);
        if !cured {
            samples.retain(|(t, _)| !(known.from + 50_000..known.from + 80_000).contains(t));
        }
        same(&samples, &queried(&server, &selector(&known, 0)));
        until_so("it is said", || match cured {
            true => remote.check().state == CheckState::Ok,
            false => remote.check().remedy.contains("storage.tsdb.out_of_order_time_window: 12h"),
        });
        // A killed hub sends some of it again, and it is stored once.
        let fresh = KnownMachine::new(known.from, 135);
        let again = fresh.send(url, None);
        until_so("it is answered", || {
            again.counts.sent.load(Relaxed) + again.counts.dropped.load(Relaxed) == count(&known, 0, 135)
        });
        assert!(!cured || again.counts.dropped.load(Relaxed) == 0, "{:?}", again.check());
        same(&samples, &queried(&server, &selector(&known, 0)));
    }
}

/// A hub without samples of the known machine, which no hub holds now.
fn stranger(addr: SocketAddr, known: &KnownMachine) -> (KnownMachine, Arc<RemoteWriter>) {
    let other = KnownMachine::new(known.from, 0);
    other.live.set_holder(0, Holder::Nobody);
    let (url, read_url) = (format!("http://{addr}/api/v1/write"), Some(format!("http://{addr}")));
    let remote = RemoteWriter::start(
        &other.live,
        RemoteWrite { url, read_url, headers: Vec::new(), ..RemoteWrite::default() },
        None,
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(remote.recall().expect("there is a server to read from").read(0));
    (other, remote)
}

#[test]
#[ignore = "needs Debian's victoria-metrics on PATH"]
fn with_victoria_metrics_a_machine_that_nobody_has_is_read_back_and_gives_way_when_it_returns() {
    for (flags, twice) in [(&[DEDUP][..], false), (&[], true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let server = victoria_metrics(Program::free(), folder.path(), flags);
        let ticks = 1_000;
        let known = KnownMachine::new(hours_ago(1), ticks);
        let url = format!("http://{}/api/v1/write", server.addr);
        let remote = known.send(url.clone(), None);
        all_taken(&remote, &known, ticks);
        // A hub without any state sends all again, as a killed one does with some.
        let again = known.send(url, None);
        all_taken(&again, &known, ticks);
        until_so("it shows what it took", || {
            exported(&server, &selector(&known, 0)).len() == if twice { 2 * ticks } else { ticks }
        });
        let (other, reader) = stranger(server.addr, &known);
        let read = |other: &KnownMachine, series: usize| {
            let store = other.live.store();
            let id = store.id(0, &known.defs[series]).expect("it was read back");
            store.snapshot(0, i64::MIN, i64::MAX).expect("a source").samples(&[id]).remove(0)
        };
        for series in [0, 7, SERIES - 1] {
            let own: Vec<(i64, f64)> =
                (0..ticks).map(|tick| (known.from + tick as i64 * 1_000, value(series, tick))).collect();
            let own: Vec<(i64, f64)> = own.into_iter().filter(|(_, value)| value.is_finite()).collect();
            assert!(own == read(&other, series), "series {series}, to the last bit");
        }
        let recalled = reader.recall().expect("it reads").counts.samples.load(Relaxed);
        assert_eq!(recalled, count(&known, 0, ticks));
        assert_eq!(other.live.store().ticks_after(0, 0), 0, "it is no history of ours: it is neither sent nor offered");
        assert_eq!(reader.counts.requests.load(Relaxed), 0);
        assert_eq!(reader.figures().iter().find(|row| row.0 == "remote_write_doubled").expect("a row").3 > 0, twice);
        // The machine returns: its samples replace those that were read back, and are not counted twice.
        other.fill(0, ticks);
        let store = other.live.store();
        let id = store.id(0, &known.defs[0]).expect("a series");
        let buckets = store.snapshot(0, i64::MIN, i64::MAX).expect("a source").buckets(&[id], 60_000, true).remove(0);
        assert_eq!(buckets.iter().map(|bucket| u64::from(bucket.count)).sum::<u64>(), ticks as u64);
        drop(store);
        until_so("what is kept twice is said", || {
            let check = reader.check();
            !twice || check.remedy.contains("-dedup.minScrapeInterval=1ms") || check.state == CheckState::Starting
        });
    }
}

#[test]
#[ignore = "needs Debian's victoria-metrics on PATH"]
fn with_victoria_metrics_away_for_ten_minutes_nothing_is_lost_or_doubled() {
    let (folder, addr) = (tempfile::tempdir().expect("a folder"), Program::free());
    let start = || victoria_metrics(addr, folder.path(), &[DEDUP]);
    let server = start();
    let known = KnownMachine::new(hours_ago(1), 120);
    let remote = known.send(format!("http://{addr}/api/v1/write"), None);
    all_taken(&remote, &known, 120);
    // Stopped in order, it keeps all accepted samples. The last minute of them is sent again. Another test kills it.
    server.end();
    known.extend_behind_a_gap(120, 30, 720);
    until_so("it is said that it is away", || remote.check().state == CheckState::Failed);
    assert!(remote.check().reason.contains("unsent samples of up to 12 h are retried"), "{:?}", remote.check());
    known.fill(120, 150);
    let server = start();
    all_taken(&remote, &known, 720);
    until_so("it is well", || remote.check().state == CheckState::Ok);
    for series in [0, 7, SERIES - 1] {
        let theirs = || exported(&server, &selector(&known, series));
        until_so("it shows what it took", || theirs().len() >= wanted(&known, series, 720).len());
        same(&wanted(&known, series, 720), &theirs());
    }
}

#[test]
#[ignore = "needs Debian's victoria-metrics on PATH"]
fn with_victoria_metrics_killed_while_a_hub_catches_up_nothing_is_lost_or_doubled() {
    let (folder, addr) = (tempfile::tempdir().expect("a folder"), Program::free());
    let start = || victoria_metrics(addr, folder.path(), &[DEDUP]);
    let mut server = start();
    // Two hours of unsent samples: one request has many minutes of them.
    let ticks = 7_200;
    let known = KnownMachine::new(hours_ago(3), ticks);
    let all = count(&known, 0, ticks);
    let remote = known.send(format!("http://{addr}/api/v1/write"), None);
    let sent = || remote.counts.sent.load(Relaxed);
    for kill in 1..=3 {
        // So early that much is left, also when this thread looks late.
        until_so("it takes some more", || sent() >= all * kill / 8);
        // SIGKILL: samples that were accepted but not yet written are lost.
        drop(server);
        assert!(sent() < all, "it is killed while it takes");
        server = start();
    }
    until_so("all is taken", || sent() == all);
    // Samples that were sent shortly before a kill are sent again after it, and no others.
    let resent = remote.counts.resent.load(Relaxed);
    assert!(resent > 0 && remote.counts.dropped.load(Relaxed) == 0, "{resent}");
    for series in [0, 7, 150, SERIES - 1] {
        let wanted = wanted(&known, series, ticks);
        until_so("it shows what it took", || exported(&server, &selector(&known, series)).len() >= wanted.len());
        same(&wanted, &exported(&server, &selector(&known, series)));
    }
}

#[test]
#[ignore = "needs Debian's victoria-metrics on PATH"]
fn with_victoria_metrics_killed_and_the_binary_too_each_sample_is_there_once() {
    let (folder, addr) = (tempfile::tempdir().expect("a folder"), Program::free());
    let start = || victoria_metrics(addr, &folder.path().join("store"), &[DEDUP]);
    let file = folder.path().join("w.toml");
    std::fs::write(&file, format!("[remote_write]\nurl = \"http://{addr}/api/v1/write\"\n")).expect("a file");
    let serve = || {
        let mut command = watchglass(["--port", "0", "--interval", "100ms", "--collectors", "memory", "--config"]);
        command.arg(&file).arg("--data-dir").arg(folder.path().join("data"));
        Server::start_command(command)
    };
    let selector = format!("watchglass_memory_used_ratio{{source=\"{}\"}}", host());
    let own = |server: &Server| -> Vec<(i64, f64)> {
        let body = server.get("/api/v1/query?tag=memory_percent&from=-10m", &[]).body;
        let json: Value = serde_json::from_str(&body).expect("JSON");
        let points = json["series"][0]["points"].as_array().cloned().unwrap_or_default();
        points.iter().filter_map(|p| Some(((p[0].as_f64()? * 1e3).round() as i64, p[1].as_f64()?))).collect()
    };
    let (mut store, mut server) = (start(), serve());
    until_so("the first are there", || !exported(&store, &selector).is_empty());
    for round in 0..2 {
        drop(store);
        let before = own(&server).len();
        until_so("it measures on", || own(&server).len() > before + 20);
        if round == 0 {
            drop(server);
            server = serve();
        }
        store = start();
        let newest = own(&server).last().expect("a sample").0;
        // A request is sent every 15 s, and after failures the pauses grow.
        let last = || exported(&store, &selector).pop().filter(|(t, _)| *t >= newest);
        until_or(5 * MAX_WAIT, last, || "what came meanwhile arrives".into());
    }
    // Repeated samples are visible some moments after later ones.
    let up_to = |end: i64| own(&server).into_iter().filter(|(t, _)| *t <= end).collect::<Vec<_>>();
    let all = within(MAX_WAIT, || {
        let theirs = exported(&store, &selector);
        let ours = up_to(theirs.last()?.0);
        (ours.len() == theirs.len()).then_some((ours, theirs))
    });
    let (ours, theirs) = all.unwrap_or_else(|| {
        let theirs = exported(&store, &selector);
        (up_to(theirs.last().expect("a sample").0), theirs)
    });
    assert!(ours.len() > 80, "{}", ours.len());
    // Each sample is compared with its value: percent here, a ratio there.
    let ratios: Vec<(i64, f64)> = ours.iter().map(|(t, v)| (*t, v / 100.0)).collect();
    same(&ratios, &theirs);
}

#[test]
#[ignore = "needs Debian's victoria-metrics on PATH"]
fn with_victoria_metrics_twice_behind_vmagent_and_vmauth_both_have_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let places = [Program::free(), Program::free()];
    let start = |n: usize| victoria_metrics(places[n], &folder.path().join(n.to_string()), &[DEDUP]);
    let (one, two) = (start(0), start(1));
    let agent = Program::start("vmagent", |addr| {
        let to = places.map(|place| format!("-remoteWrite.url=http://{place}/api/v1/write"));
        let buffer = format!("-remoteWrite.tmpDataPath={}", folder.path().join("buffer").display());
        [format!("-httpListenAddr={addr}"), buffer, "-loggerLevel=ERROR".into()].into_iter().chain(to).collect()
    });
    let config = folder.path().join("auth.yml");
    let settings = format!(
        "users:\n- username: hub\n  password: s3cret\n  url_map:\n  - src_paths: [\"/api/v1/write\"]\n    \
         url_prefix: \"http://{}/\"\n  - src_paths: [\"/api/v1/query\", \"/api/v1/query_range\"]\n    \
         url_prefix: [\"http://{}/\", \"http://{}/\"]\n",
        agent.addr, places[0], places[1]
    );
    std::fs::write(&config, settings).expect("a file");
    let auth = Program::start("vmauth", |addr| {
        vec![
            format!("-httpListenAddr={addr}"),
            format!("-auth.config={}", config.display()),
            "-loggerLevel=ERROR".into(),
        ]
    });
    let known = KnownMachine::new(hours_ago(1), 120);
    let (url, read_url) = (format!("http://{}/api/v1/write", auth.addr), Some(format!("http://{}", auth.addr)));
    // hub:s3cret
    let headers = vec![("Authorization".to_string(), "Basic aHViOnMzY3JldA==".to_string())];
    let remote =
        RemoteWriter::start(&known.live, RemoteWrite { url, read_url, headers, ..RemoteWrite::default() }, None);
    all_taken(&remote, &known, 120);
    // One of the two is away, and the other goes on. vmagent queues the missing samples for it.
    for server in [&one, &two] {
        until_so("it shows what it took", || exported(server, &selector(&known, 0)).len() == 120);
    }
    // In order: a killed one loses the last seconds, which vmagent does not send again.
    one.end();
    known.extend(120, 300);
    all_taken(&remote, &known, 300);
    let one = start(0);
    for server in [&two, &one] {
        for series in [0, SERIES - 1] {
            let theirs = || exported(server, &selector(&known, series));
            let all = || (theirs().len() >= 300).then_some(());
            until_or(5 * MAX_WAIT, all, || format!("300 samples, not {}", theirs().len()));
            same(&wanted(&known, series, 300), &theirs());
        }
    }
    read_back(&known, &remote, 300);
}

/// Reads minutes of a series back through the servers in between.
fn read_back(known: &KnownMachine, remote: &RemoteWriter, ticks: usize) {
    let (host, catalog) = (host(), known.live.store().catalog().clone());
    let series = [RemoteSeries {
        source: &host,
        metric: catalog.metric(&known.defs[0]).expect("a row"),
        instance: &known.defs[0].instance,
    }];
    let window = Window { from: known.from, to: known.from + ticks as i64 * 1_000, step: 60_000 };
    until_so("minutes come back", || {
        let mut back = ReadBack::new(&series, window).expect("few questions");
        while remote.ask(&mut back).expect("an answer") {}
        let minutes = back.end().remove(0);
        let first = minutes.first().map(|minute| minute.max);
        minutes.len() + 2 >= ticks / 60 && first.is_some()
    });
}

#[test]
#[ignore = "needs Debian's nginx and victoria-metrics on PATH"]
fn with_nginx_the_addresses_of_victoria_metrics_cluster_and_of_mimir_are_written_and_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = victoria_metrics(Program::free(), &folder.path().join("store"), &[DEDUP]);
    let (to, here) = (server.addr, folder.path().display());
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = kinds.iter().map(|kind| format!("  {kind}_temp_path {here}/{kind};\n")).collect();
    let tenant = "if ($http_x_scope_orgid != \"lab\") { return 401; }";
    let file = folder.path().join("settings");
    let addr = Program::free();
    let settings = format!(
        "daemon off;\nmaster_process off;\npid {here}/pid;\nerror_log {here}/errors;\nevents {{}}\nhttp {{\n  access_log off;\n\
         {temporary}  client_max_body_size 64m;\n  server {{\n    listen {addr};\n    \
         location /insert/7/prometheus/ {{ proxy_pass http://{to}/; }}\n    \
         location /select/7/prometheus/ {{ proxy_pass http://{to}/; }}\n    \
         location = /api/v1/push {{ {tenant} proxy_pass http://{to}/api/v1/write; }}\n    \
         location /prometheus/ {{ {tenant} proxy_pass http://{to}/; }}\n  }}\n}}\n",
    );
    std::fs::write(&file, settings).expect("written");
    let (file, errors) = (file.display().to_string(), format!("{here}/errors"));
    let _proxy = Program::start_in(folder.path(), addr, "nginx", &["-c", &file, "-e", &errors]);
    let known = KnownMachine::new(hours_ago(1), 180);
    let scope = |tenant: &str| vec![("X-Scope-OrgID".to_string(), tenant.to_string())];
    for (write, read, headers) in [
        ("/insert/7/prometheus/api/v1/write", "/select/7/prometheus", Vec::new()),
        ("/api/v1/push", "/prometheus", scope("lab")),
    ] {
        let (url, read_url) = (format!("http://{addr}{write}"), Some(format!("http://{addr}{read}")));
        let remote =
            RemoteWriter::start(&known.live, RemoteWrite { url, read_url, headers, ..RemoteWrite::default() }, None);
        all_taken(&remote, &known, 180);
        read_back(&known, &remote, 180);
        until_so("it shows what it took", || exported(&server, &selector(&known, 0)).len() == 180);
    }
    // Another tenant is rejected, and its samples are kept until the header is fixed.
    let url = format!("http://{addr}/api/v1/push");
    let remote = RemoteWriter::start(
        &known.live,
        RemoteWrite { url, read_url: None, headers: scope("other"), ..RemoteWrite::default() },
        None,
    );
    until_so("it is told", || remote.check().reason.contains("it returned 401"));
    assert_eq!(remote.counts.dropped.load(Relaxed), 0);
}

/// The ledger that a cluster's agent scrapes, from VictoriaMetrics: values by time (ms) and name.
#[cfg(target_os = "linux")]
pub(crate) fn ledger_in(store: &Program) -> BTreeMap<(i64, String), f64> {
    store.get("/internal/force_flush");
    // The clock of the hubs may be ahead of its own.
    let end = System.wall() / 1_000 + 7_200;
    let text = store.get(&format!("/api/v1/export?match[]={}&end={end}", escaped("{endpoint=\"books\"}"))).body;
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let json: Value = serde_json::from_str(line).expect("JSON");
        let name = json["metric"]["__name__"].as_str().expect("a name").to_string();
        let times = json["timestamps"].as_array().expect("times").iter().filter_map(|t| t.as_i64());
        for (t, value) in times.zip(json["values"].as_array().expect("values").iter().filter_map(|v| v.as_f64())) {
            let before = all.insert((t, name.clone()), value);
            assert_eq!(before, None, "{name} at {t} is there twice");
        }
    }
    all
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs Debian's nats-server, PostgreSQL 15 and victoria-metrics"]
fn with_nats_each_sample_is_in_victoria_metrics_once_though_a_hub_is_killed_and_what_died_is_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = victoria_metrics(Program::free(), folder.path(), &[DEDUP]);
    let mut cluster = Cluster::start_over(2, store.addr);
    cluster.start_agent(&[0, 1]);
    cluster.until("the first hub sends", || ledger_in(&store).len() > 60);
    let first = cluster.holder();
    cluster.kill_hub(0);
    cluster.until("another hub holds it", || ![String::new(), first.clone()].contains(&cluster.holder()));
    cluster.is_live(1);
    let measured = |cluster: &Cluster| -> BTreeMap<(i64, String), f64> {
        let name = |tag: &str| {
            let tag = tag.trim_start_matches('"').strip_prefix("openmetrics.books.").unwrap_or_else(|| panic!("{tag}"));
            tag.split('{').next().unwrap_or_default().to_string()
        };
        let all = cluster.measured().into_iter();
        all.map(|((t, tag), value)| ((t, name(&tag)), value.parse().expect("a number"))).collect()
    };
    let newest = |all: &BTreeMap<(i64, String), f64>| all.keys().map(|(t, _)| *t).max().unwrap_or_default();
    let now = newest(&measured(&cluster));
    cluster.until("what came meanwhile is sent by the other", || newest(&ledger_in(&store)) > now);
    // The ledger is compared sample by sample, with no others.
    let (ours, theirs) = (measured(&cluster), ledger_in(&store));
    let up_to =
        |all: BTreeMap<(i64, String), f64>| -> Vec<_> { all.into_iter().filter(|((t, _), _)| *t <= now).collect() };
    let (ours, theirs) = (up_to(ours), up_to(theirs));
    assert!(ours.len() > 100, "{}", ours.len());
    let differ = ours.iter().zip(&theirs).find(|(own, other)| own.0 != other.0 || (own.1 - other.1).abs() > 1e-9);
    assert!(differ.is_none() && ours.len() == theirs.len(), "{} and {}: {differ:?}", ours.len(), theirs.len());
    // Now all holders of the samples are gone, and a hub without any starts.
    cluster.end_agent();
    cluster.kill_hub(1);
    std::fs::remove_dir_all(cluster.folder(0)).expect("removed");
    cluster.start_hub(0);
    let cpu = "watchglass_cpu_utilization_ratio";
    // It shows the last accepted samples only after a moment.
    let theirs = || exported(&store, cpu);
    let name = cluster.postgresql.sql("hub", "SELECT name FROM sources WHERE id IN (SELECT source FROM links)");
    let path = format!("/api/v1/query?tag=system.cpu_percent&from=-1h&source={}", escaped(&name));
    let read = || -> Vec<(i64, f64)> {
        let json: Value = serde_json::from_str(&cluster.get(0, &path).body).expect("JSON");
        let points = json["series"][0]["points"].as_array().cloned().unwrap_or_default();
        points.iter().filter_map(|p| Some(((p[0].as_f64()? * 1e3).round() as i64, p[1].as_f64()? / 100.0))).collect()
    };
    let is_listed = || cluster.get(0, "/api/v1/sources").body.contains(&format!("\"name\":\"{name}\""));
    cluster.until("a hub that has nothing of it lists it", is_listed);
    cluster.until("what nobody has any more is read back", || !read().is_empty());
    cluster.until("all of it", || read().len() >= theirs().len());
    assert!(theirs().len() > 100, "{}", theirs().len());
    same(&theirs(), &read());
}
