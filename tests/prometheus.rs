//! Tests with Prometheus: its own checker, a real server that scrapes us, and its own reader of our exports.

use serde_json::Value;
use watchglass_tests::programs::{self, Program};
use watchglass_tests::server::{Server, watchglass};
use watchglass_tests::waiting::until;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The points of a query's only series, as time in Unix seconds and value.
fn points(server: &Server, query: &str) -> Vec<(f64, f64)> {
    let answer = server.get(&format!("/api/v1/query?{query}"), &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let points = json(&answer.body)["series"][0]["points"].as_array().cloned().unwrap_or_default();
    points.iter().filter_map(|p| Some((p[0].as_f64()?, p[1].as_f64()?))).collect()
}

fn demo() -> Server {
    let mut command = watchglass(["demo", "--gpus", "2", "--hosts", "2", "--retention", "10m", "--port", "0"]);
    command.args(["--interval", "1s"]);
    Server::start_command(command)
}

/// File with the built-in rules in Prometheus' format.
const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../static/prometheus-rules.yml");

#[test]
fn prometheus_rules_are_fresh_and_name_what_the_page_has() {
    let catalog = collectors::catalog();
    let made = rules::prometheus::export(&catalog);
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(RULES, &made).expect("static/ can be written");
    }
    let stored = std::fs::read_to_string(RULES).unwrap_or_default();
    assert!(
        stored == made,
        "static/prometheus-rules.yml is stale: UPDATE=1 cargo test -p watchglass-tests prometheus_rules"
    );
    let known: std::collections::HashSet<String> =
        catalog.metrics.iter().map(|metric| shared::catalog::prometheus::Family::from_metric(metric).name).collect();
    let expressions = made.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let names = expressions.flat_map(|line| line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')));
    let names: Vec<&str> = names.filter(|word| word.starts_with("watchglass_")).collect();
    let own = ["watchglass_finding", "watchglass_run_info"];
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(known.contains(name) || own.contains(&name), "/metrics has no {name}");
    }
}

#[test]
fn rules_of_prometheus_are_printed_as_ours_and_the_rest_is_named_by_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let (theirs, ours) = (folder.path().join("theirs.yml"), folder.path().join("ours.toml"));
    let hot = "  - alert: Hot\n    expr: DCGM_FI_DEV_GPU_TEMP > 85\n    for: 2m\n    keep_firing_for: 1m\n";
    let odd = "  - alert: Odd\n    expr: topk(3, node_load1) > 1\n";
    let import = |text: &str| {
        std::fs::write(&theirs, format!("groups:\n- name: a\n  rules:\n{text}")).expect("written");
        let said = watchglass(["alerts", "import", &theirs.display().to_string()]).output().expect("it ran");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (said.status.code(), text(&said.stdout), text(&said.stderr))
    };
    let (status, made, said) = import(hot);
    assert_eq!((status, said.as_str()), (Some(0), ""), "{made}");
    assert!(made.contains("when = \"gpu.*.temp > 85 °C for 2m, until <= 85 °C for 1m\""), "{made}");
    // The configuration accepts it.
    std::fs::write(&ours, &made).expect("written");
    let printed = watchglass(["--print-config", "--config", &ours.display().to_string()]).output().expect("it ran");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let (status, made, said) = import(&format!("{odd}{hot}"));
    assert_eq!(status, Some(1), "{made}");
    assert!(said.contains(":4: Odd: `topk`") && made.contains("name = \"Hot\""), "{said}");
}

#[test]
#[ignore = "needs Debian's prometheus on PATH"]
fn with_prometheus_its_checker_has_nothing_to_say_about_our_rules() {
    let checked = programs::run("promtool", &["check", "rules", RULES], "");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned() + &String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && said.contains("SUCCESS: "), "{said}");
    assert!(!said.to_lowercase().contains("warning"), "{said}");
}

#[test]
#[ignore = "needs Debian's prometheus on PATH"]
fn with_prometheus_its_checker_has_nothing_to_say_about_our_page() {
    // All GPU rows of the demo, and the series of this machine and its data folder.
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("plain");
    for server in [demo(), Server::start(["--interval", "100ms", "--data-dir", data])] {
        let page = until("there are values", || {
            let page = server.get("/metrics", &[]).body;
            page.contains("watchglass_memory_total_bytes").then_some(page)
        });
        let checked = programs::run("promtool", &["check", "metrics"], &page);
        let said = String::from_utf8_lossy(&checked.stderr).into_owned() + &String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success() && said.trim().is_empty(), "{said}\n{page}");
    }
}

#[test]
#[ignore = "needs Debian's prometheus on PATH"]
fn with_prometheus_it_scrapes_us_and_answers_with_our_values() {
    let server = Server::start(["--interval", "200ms"]);
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 3s, scrape_timeout: 3s}}\nscrape_configs:\n- job_name: watchglass\n  static_configs:\n  - targets: ['{}']\n",
        server.addr()
    );
    std::fs::write(&config, text).expect("written");
    let prometheus = Program::start("prometheus", |addr| {
        vec![
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            format!("--web.listen-address={addr}"),
        ]
    });
    // It listens before it is ready to answer.
    let get = |path: &str| {
        let answer = prometheus.get(path);
        if answer.status == 200 { json(&answer.body) } else { Value::Null }
    };
    let ask = |query: &str| {
        let answer = get(&format!("/api/v1/query?query={query}"));
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    };
    let value = |result: &Value| result["value"][1].as_str().and_then(|v| v.parse::<f64>().ok());
    let total = until("Prometheus has scraped us", || ask("watchglass_memory_total_bytes").first().cloned());
    let own = points(&server, "tag=memory.total").pop().expect("a sample").1;
    assert_eq!(value(&total), Some(own), "{total}");
    let name = json(&server.get("/api/v1/sources", &[]).body)["sources"][0]["name"].clone();
    assert_eq!((&total["metric"]["source"], &total["metric"]["job"]), (&name, &"watchglass".into()));
    // After a scrape that took too long, its values are gone until the next one.
    until("it is up", || (ask("up").first().and_then(value) == Some(1.0)).then_some(()));
    // Cores are labels, and shares are ratios.
    let known =
        json(&server.get("/api/v1/series?match=cpu.*.cpu_percent", &[]).body)["series"].as_array().map(Vec::len);
    let cores = until("all cores", || {
        Some(ask("watchglass_cpu_core_utilization_ratio")).filter(|cores| Some(cores.len()) == known)
    });
    assert!(cores.iter().all(|core| value(core).is_some_and(|v| (0.0..=1.0).contains(&v))), "{cores:?}");
    // Prometheus knows our counters as counters, with their help.
    let about = until("it knows what we say of them", || {
        let all = get("/api/v1/targets/metadata")["data"].as_array().cloned().unwrap_or_default();
        let ours = |row: &Value| {
            row["metric"].as_str().is_some_and(|name| name.starts_with("watchglass_network_receive_bytes"))
        };
        all.into_iter().find(ours)
    });
    assert_eq!(about["type"], "counter", "{about}");
    assert!(about["help"].as_str().is_some_and(|help| help.ends_with('.')), "{about}");
}

/// The expressions of a dashboard's panels, those in closed rows too, with the titles of their panels.
fn expressions(panel: &Value) -> Vec<(String, String)> {
    let list = |key: &str| panel[key].as_array().cloned().unwrap_or_default();
    let title = panel["title"].as_str().unwrap_or_default();
    let own = list("targets").into_iter().filter_map(|target| Some((title.into(), target["expr"].as_str()?.into())));
    list("panels").iter().flat_map(expressions).chain(own).collect()
}

#[test]
#[ignore = "needs Debian's prometheus on PATH"]
fn with_prometheus_every_query_of_the_dashboards_is_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("grafana");
    let said = watchglass(["export", "--dashboards", &made.display().to_string()]).output().expect("it ran");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let server = demo();
    let config = folder.path().join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 3s, scrape_timeout: 3s}}\nscrape_configs:\n- job_name: watchglass\n  static_configs:\n  - targets: ['{}']\n",
        server.addr()
    );
    std::fs::write(&config, text).expect("written");
    let prometheus = Program::start("prometheus", |addr| {
        vec![
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            format!("--web.listen-address={addr}"),
        ]
    });
    let ask = |query: &str| {
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let answer = prometheus.get(&format!("/api/v1/query?query={query}"));
        assert!(answer.status != 400, "{query}: {}", answer.body);
        if answer.status == 200 { json(&answer.body)["data"]["result"].as_array().cloned() } else { None }
    };
    let run = until("a run of the demo", || {
        let runs = ask("watchglass_gpu_run")?;
        Some(runs.first()?["metric"]["run"].as_str()?.to_string())
    });
    until("rates", || ask("rate(watchglass_network_receive_bytes_total[1m])").filter(|all| !all.is_empty()));
    let page = server.get("/metrics", &[]).body;
    for name in ["machine", "fleet", "runs"] {
        let text = std::fs::read_to_string(made.join(format!("watchglass-{name}.json"))).expect("written");
        let mut answered = 0;
        for (title, expression) in expressions(&json(&text)) {
            let own = if name == "fleet" { ".*" } else { "demo-01" };
            let query = expression.replace("$source", own).replace("$run", &run).replace("$__rate_interval", "1m");
            // The dashboard shows each family that is on the page of the server.
            let family = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let family = family.into_iter().find(|word| word.starts_with("watchglass_")).expect("a name");
            let has = page.contains(&format!("\n{family}{{source=\"demo-01\"")) && name == "machine";
            // No finding is open in this demo.
            let is_wanted = has || (name != "machine" && title != "Findings");
            // After a scrape that took too long, its values are gone until the next one.
            let found = until(&format!("an answer for {title}: {query}"), || {
                ask(&query).filter(|found| !found.is_empty() || !is_wanted)
            });
            answered += usize::from(!found.is_empty());
        }
        assert!(answered > if name == "machine" { 40 } else { 8 }, "{name}: {answered}");
    }
}

#[test]
#[ignore = "needs Debian's prometheus on PATH"]
fn with_prometheus_its_reader_of_exports_has_every_sample() {
    let server = demo();
    server.wait_for_past();
    let to = until("a tick", || json(&server.get("/api/v1/sources", &[]).body)["sources"][0]["last"].as_f64());
    let span = format!("tag=gpu.*.temp&tag=network.recv&from={}&to={to}", to - 300.0);
    let lines = server.get(&format!("/api/v1/export?format=json&{span}"), &[]).body;
    let mut ours: Vec<(String, i64, f64)> = lines
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(json)
        .map(|line| {
            let (tag, source) = (line["tag"].as_str().expect("a tag"), line["source"].as_str().expect("a source"));
            let name = match tag.split('.').nth(1) {
                Some("recv") => format!("watchglass_network_receive_bytes_total {source}"),
                gpu => format!("watchglass_gpu_temperature_celsius {source} {}", gpu.expect("its number")),
            };
            let t = (line["t"].as_f64().expect("a time") * 1000.0).round() as i64;
            (name, t, line["value"].as_f64().expect("a value"))
        })
        .collect();
    let open = server.get(&format!("/api/v1/export?format=openmetrics&{span}"), &[]).body;
    let folder = tempfile::tempdir().expect("a folder");
    let (page, data) = (folder.path().join("page.txt"), folder.path().join("data"));
    std::fs::write(&page, open).expect("written");
    let paths = [page.display().to_string(), data.display().to_string()];
    let made = ["tsdb", "create-blocks-from", "openmetrics", &paths[0], &paths[1]];
    let made = programs::run("promtool", &made, "");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // promtool's reader expects a log beside the blocks.
    std::fs::create_dir(data.join("wal")).expect("a folder");
    let dump = programs::run("promtool", &["tsdb", "dump", &paths[1]], "");
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let dump = String::from_utf8_lossy(&dump.stdout);
    let label = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!("{name}=\""))?;
        Some(rest.split('"').next().unwrap_or_default().to_string())
    };
    let mut theirs: Vec<(String, i64, f64)> = dump
        .lines()
        .map(|line| {
            let mut ends = line.rsplit(' ');
            let t = ends.next().and_then(|t| t.parse().ok()).expect("a time");
            let v = ends.next().and_then(|v| v.parse().ok()).expect("a value");
            let gpu = label(line, " gpu").map_or(String::new(), |gpu| format!(" {gpu}"));
            let key = format!(
                "{} {}{gpu}",
                label(line, "__name__").unwrap_or_default(),
                label(line, "source").unwrap_or_default()
            );
            (key, t, v)
        })
        .collect();
    for all in [&mut ours, &mut theirs] {
        all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    }
    assert!(ours.len() > 1_000, "{} samples", ours.len());
    assert_eq!(ours.len(), theirs.len());
    assert_eq!(ours, theirs);
}
