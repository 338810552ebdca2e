//! Tests of the HTTP API of the real binary.

use serde_json::Value;
use watchglass_tests::server::{Server, ServerAnswer, ask_unread};
use watchglass_tests::waiting::{until, until_so};

fn json(answer: &ServerAnswer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    serde_json::from_str(&answer.body).expect("JSON")
}

/// Starts a server and waits until it has at least `ticks` ticks.
fn server(ticks: usize) -> Server {
    let server = Server::start(["--interval", "100ms"]);
    until_so("ticks", || {
        let answer = json(&server.get("/api/v1/query?tag=system.load1", &[]));
        answer["series"][0]["points"].as_array().is_some_and(|p| p.len() >= ticks)
    });
    server
}

#[test]
fn the_table_the_machine_and_its_series_are_listed() {
    let server = server(2);
    let catalog = json(&server.get("/api/v1/catalog", &[]));
    let metrics = catalog["metrics"].as_array().expect("a list");
    assert!(metrics.len() > 100);
    let temp = metrics.iter().find(|m| m["tag"] == "gpu.{i}.temp").expect("GPU rows are in the table");
    assert_eq!((&temp["unit"], &temp["kind"]), (&Value::from("celsius"), &Value::from("gauge")));
    assert!(temp["help"].as_str().is_some_and(|h| h.len() > 20) && temp["section"].is_string());

    let sources = json(&server.get("/api/v1/sources", &[]));
    assert!(sources["sources"][0]["facts"].is_object() && sources["sources"][0]["last"].is_number());

    let cores = json(&server.get("/api/v1/series?match=cpu.*.cpu_percent", &[]));
    let kernel = std::fs::read_to_string("/proc/stat").expect("this machine");
    let count = kernel
        .lines()
        .filter(|l| l.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
    assert_eq!(cores["series"].as_array().map(Vec::len), Some(count.count()));

    let doctor = json(&server.get("/api/v1/doctor", &[]));
    assert!(doctor["checks"].as_array().is_some_and(|c| c.iter().any(|c| c["id"] == "memory" && c["state"] == "ok")));
}

#[test]
fn the_figures_on_top_of_a_page_are_texts_of_one_machine() {
    let server = Server::start(["demo", "--gpus", "2", "--hosts", "2", "--interval", "100ms"]);
    let of = |query: &str| server.get(&format!("/api/v1/now{query}"), &[]);
    until_so("figures", || json(&of("?source=demo-02"))["tiles"].as_array().is_some_and(|tiles| tiles.len() == 4));
    let newest = || json(&server.get("/api/v1/sources", &[]))["sources"][1]["last"].as_f64().expect("a time");
    let before = newest();
    let told = json(&of("?source=demo-02"));
    assert_eq!(told["source"], "demo-02");
    let after = newest();
    assert!(told["t"].as_f64().is_some_and(|t| (before - 5.0..=after).contains(&t)), "{told} at {before} to {after}");
    for tile in told["tiles"].as_array().expect("a list") {
        assert!(tile["number"].as_str().is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit())), "{tile}");
        assert!(["title", "symbol"].iter().all(|text| tile[*text].as_str().is_some_and(|s| !s.is_empty())), "{tile}");
    }
    let several = json(&of(""));
    assert_eq!((&several["source"], several["tiles"].as_array().map(Vec::len)), (&Value::from(""), Some(0)));
    assert_eq!(of("?source=other").status, 404);
}

#[test]
fn samples_come_raw_rolled_up_and_by_any_spelling() {
    let server = server(12);
    // A collector that is late for a tick has no value in it.
    until_so("samples of the memory", || {
        let answer = json(&server.get("/api/v1/query?tag=memory_percent", &[]));
        answer["series"][0]["points"].as_array().is_some_and(|points| points.len() >= 10)
    });
    let now = json(&server.get("/api/v1/sources", &[]))["sources"][0]["last"].as_f64().expect("a time");
    // From before the start: a step may begin before the span.
    let span = format!("from={}&to={now}", now - 600.0);
    let raw = json(&server.get(&format!("/api/v1/query?tag=memory&{span}"), &[]));
    assert_eq!(raw["series"][0]["tag"], "memory_percent", "answers are canonical");
    let points = raw["series"][0]["points"].as_array().expect("points");
    assert!(points.len() >= 10);
    assert!(points.windows(2).all(|w| w[0][0].as_f64() < w[1][0].as_f64()));
    assert!(points.iter().all(|p| p[1].as_f64().is_some_and(|v| (0.0..=100.0).contains(&v))));

    let rolled = json(&server.get(&format!("/api/v1/query?tag=memory_percent&step=1h&{span}"), &[]));
    let buckets = rolled["series"][0]["buckets"].as_array().expect("buckets");
    let counted: u64 = buckets.iter().filter_map(|b| b["count"].as_u64()).sum();
    assert_eq!(counted, points.len() as u64);
    let largest = points.iter().filter_map(|p| p[1].as_f64()).fold(f64::MIN, f64::max);
    assert_eq!(buckets.iter().filter_map(|b| b["max"].as_f64()).fold(f64::MIN, f64::max), largest);

    let none = json(&server.get("/api/v1/query?tag=gpu.99.temp", &[]));
    assert_eq!(none["series"], Value::Array(Vec::new()), "known to the table, without data");
}

#[test]
fn a_fleet_is_told_apart_and_a_long_answer_comes_whole() {
    let mut command = watchglass_tests::server::watchglass(["demo", "--gpus", "4", "--hosts", "2", "--port", "0"]);
    command.args(["--retention", "10m"]);
    let server = Server::start_command(command);
    let names: Vec<Value> = json(&server.get("/api/v1/sources", &[]))["sources"]
        .as_array()
        .expect("sources")
        .iter()
        .map(|s| s["name"].clone())
        .collect();
    assert_eq!(names.len(), 2);
    let doctor = json(&server.get("/api/v1/doctor", &[]));
    let mut ids: Vec<String> =
        doctor["checks"].as_array().expect("checks").iter().map(|c| format!("{} {}", c["source"], c["id"])).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "no family twice for a machine");
    assert!(names.iter().all(|name| ids.iter().any(|id| id.starts_with(&name.to_string()))));

    let answer = server.get("/api/v1/query?tag=*&from=-8m", &[]);
    assert_eq!(answer.header("transfer-encoding"), "chunked");
    let whole = json(&answer);
    let series = whole["series"].as_array().expect("series");
    let values: usize = series.iter().filter_map(|s| s["points"].as_array()).map(Vec::len).sum();
    assert!(values > 30_000, "{values}");
    let one = format!("/api/v1/query?tag=gpu.*.temp&from=-1m&source={}", names[1].as_str().expect("a name"));
    let one = json(&server.get(&one, &[]));
    let from: Vec<_> = one["series"].as_array().expect("series").iter().map(|s| &s["source"]).collect();
    assert_eq!(from, [&names[1]; 4]);
}

#[test]
fn bad_questions_get_a_sentence_that_says_what_to_do() {
    let server = server(1);
    for (path, status, word) in [
        ("/api/v1/query", 400, "tag"),
        ("/api/v1/query?tag=memory_prcent", 404, "memory_percent"),
        ("/api/v1/query?tag=memory&from=soon", 400, "Unix seconds"),
        ("/api/v1/query?tag=memory&from=2&to=1", 400, "later"),
        ("/api/v1/query?tag=memory&step=0", 400, "duration"),
        ("/api/v1/query?tag=memory&step=10y", 400, "duration"),
        ("/api/v1/query?tag=memory&fn=avg", 400, "rate"),
        ("/api/v1/query?tag=memory&fn=rate", 400, "memory_percent is not a counter"),
        ("/api/v1/query?tag=memory&source=nobody", 404, "there is no source"),
        ("/api/v1/export?tag=memory&format=openmetrics&step=1m", 400, "csv or json"),
        ("/api/v1/live", 400, "WebSocket"),
        ("/api/v1/live?form=json", 400, "format"),
        ("/api/v1/query?tags=memory", 400, "tags"),
        ("/api/v1/export?tag=memory&format=xml", 400, "openmetrics"),
        ("/api/v1/nothing", 404, "catalog"),
        ("/nothing", 404, "/api/v1/"),
    ] {
        let answer = server.get(path, &[]);
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.error().contains(word), "{path}: {}", answer.error());
    }
}

#[test]
fn only_questions_are_answered() {
    let server = server(1);
    for path in ["/api/v1/query", "/metrics", "/"] {
        let lines = format!("POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n", server.addr());
        let answer = watchglass_tests::server::ask(server.addr(), &lines);
        assert_eq!(answer.status, 405, "{path}");
        assert!(answer.error().contains("GET"), "{path}");
    }
}

#[test]
fn an_export_holds_every_sample_in_every_form() {
    let server = server(8);
    let raw = json(&server.get("/api/v1/query?tag=system.load1", &[]));
    let to = raw["series"][0]["points"].as_array().and_then(|p| p.last()).expect("points")[0].as_f64().expect("a time");
    let span = format!("tag=system.load1&tag=disk.*.usageGB&to={to}");
    let raw = json(&server.get(&format!("/api/v1/query?{span}"), &[]));
    let points: usize =
        raw["series"].as_array().expect("series").iter().filter_map(|s| s["points"].as_array()).map(Vec::len).sum();

    let csv = server.get(&format!("/api/v1/export?format=csv&{span}"), &[]);
    assert_eq!(csv.header("content-disposition"), "attachment", "whoever asks names the file");
    assert_eq!(csv.body.matches(",system.load1,").count() + csv.body.matches(",disk./.usageGB,").count(), points);
    let lines = server.get(&format!("/api/v1/export?format=json&{span}"), &[]);
    assert_eq!(lines.body.lines().filter(|l| l.starts_with('{')).count(), points);
    let open = server.get(&format!("/api/v1/export?format=openmetrics&{span}"), &[]);
    assert!(open.header("content-type").starts_with("application/openmetrics-text"));
    assert!(open.body.contains("# UNIT watchglass_filesystem_used_bytes bytes") && open.body.contains("# EOF"));
}

#[test]
fn prometheus_reads_our_values_and_our_own_health() {
    let server = server(2);
    let text = server.get("/metrics", &[]);
    assert!(text.header("content-type").starts_with("text/plain"));
    assert!(text.body.contains("# TYPE watchglass_network_receive_bytes_total counter"));
    assert!(text.body.contains("watchglass_self_ticks_total"));
    let open = server.get("/metrics", &["Accept: application/openmetrics-text; version=1.0.0"]);
    assert!(open.body.contains("# TYPE watchglass_network_receive_bytes counter"));
    assert!(open.body.trim_end().trim_end_matches("\r\n0").trim_end().ends_with("# EOF"), "the end is marked");
}

#[test]
fn a_base_path_is_served_with_and_without_itself() {
    let server = Server::start(["--base-path", "/lab/metrics/"]);
    assert!(server.url.ends_with("/lab/metrics/"), "{}", server.url);
    for path in ["/lab/metrics/healthz", "/healthz", "/lab/metrics/api/v1/catalog", "/lab/metrics/"] {
        assert_eq!(server.get(path, &[]).status, 200, "{path}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_runs_here_is_listed_and_remembered() {
    let server = server(2);
    let table = until("a table", || {
        let answer = server.get("/api/v1/processes", &[]);
        if answer.status == 200 {
            return Some(json(&answer));
        }
        assert!(answer.error().contains("process table"), "{answer:?}");
        None
    });
    let rows = table["processes"].as_array().expect("rows");
    let own = rows.iter().find(|row| row["pid"] == server.id()).expect("the server itself");
    assert_eq!(own["name"], "watchglass");
    assert!(own["rss"].as_u64().is_some_and(|bytes| bytes > 1 << 20) && own["user"].is_string(), "{own}");
    assert_eq!(table["whole"], true);
    let t = table["t"].as_f64().expect("a time");
    let then = json(&server.get(&format!("/api/v1/processes?at={t}"), &[]));
    assert_eq!((&then["t"], &then["whole"]), (&table["t"], &Value::from(false)));
    assert!(then["processes"].as_array().is_some_and(|rows| !rows.is_empty() && rows.len() <= 16));
    assert_eq!(server.get("/api/v1/processes?at=soon", &[]).status, 400);
}

#[test]
fn each_series_comes_once_and_too_many_parameters_are_refused() {
    let mut command = watchglass_tests::server::watchglass(["demo", "--gpus", "64", "--port", "0"]);
    command.args(["--retention", "2m"]);
    let server = Server::start_command(command);
    let names = |path: &str| -> Vec<String> {
        let all = json(&server.get(path, &[]));
        all["series"].as_array().expect("series").iter().map(|s| s["tag"].to_string()).collect()
    };
    let all = names("/api/v1/series");
    assert!(all.len() > 1_000, "{}", all.len());
    let repeated = format!("/api/v1/series?{}", ["match=*"; 64].join("&"));
    assert_eq!(names(&repeated), all);
    assert_eq!(names("/api/v1/series?match=gpu.*.temp&match=gpu.0.temp&match=gpu.0.*.temp").len(), 64);

    for path in ["series?match=*", "query?tag=*", "export?tag=*", "record?from=0", "processes?at=0", "live?format=json"]
    {
        let (path, parameter) = path.split_once('?').expect("with a parameter");
        let many = server.get(&format!("/api/v1/{path}?{}", [parameter; 65].join("&")), &[]);
        assert_eq!(many.status, 400, "{path}: {many:?}");
        assert!(many.error().contains("65") && many.error().contains("64"), "{path}: {}", many.error());
    }
}

#[test]
fn work_ends_with_its_caller() {
    // The answer is larger than the socket buffers, so that it does not end while it is not read.
    for path in ["/api/v1/export?tag=*&from=-20m", "/api/v1/query?tag=*&from=-20m"] {
        let mut command = watchglass_tests::server::watchglass(["demo", "--gpus", "8", "--port", "0"]);
        command.args(["--retention", "20m"]);
        let server = Server::start_command(command);
        let readers = std::cell::RefCell::new(Vec::new());
        let small = "/api/v1/query?tag=gpu.0.temp&from=-10s";
        until_so("all places are taken", || {
            let taken = server.get(small, &[]).status == 429;
            if !taken {
                readers.borrow_mut().push(ask_unread(server.addr(), path));
            }
            taken
        });
        assert!(readers.borrow().len() >= 16);
        assert!(server.get(small, &[]).error().contains("try again"));
        assert_eq!(server.get("/api/v1/sources", &[]).status, 200, "lists have places of their own");
        drop(readers);
        until_so("the places are given back", || server.get(small, &[]).status == 200);
        // Whether the server is idle: several checks in a row at which none of its threads runs. Ongoing work shows at
        // each.
        #[cfg(target_os = "linux")]
        {
            let mut looks = 0;
            until_so("idle", || {
                looks = if server.rests() { looks + 1 } else { 0 };
                looks > 15
            });
        }
    }
}

#[test]
#[cfg(unix)]
fn the_facts_of_a_machine_have_its_gpus_and_their_driver() {
    let gpu = |n: u32, name: &str| serde_json::json!({"uuid": format!("GPU-{n}"), "name": name, "utilization": {"gpu": 5, "memory": 0}});
    let gpus = [gpu(0, "NVIDIA H200"), gpu(1, "NVIDIA H200")];
    let scenario = serde_json::json!({"driver_version": "590.48.01", "gpm_min_ms": 0, "gpus": gpus});
    let fake = fake_nvml::Fake::new(&scenario.to_string());
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("watchglass.toml");
    let library = fake.library().display().to_string();
    std::fs::write(&config, format!("[collectors.nvidia]\nlibrary = {library:?}\n")).expect("a file");
    let server = Server::start(["--interval", "100ms", "--config", config.to_str().expect("plain")]);
    let facts = until("the GPUs are found", || {
        let facts = json(&server.get("/api/v1/sources", &[]))["sources"][0]["facts"].clone();
        facts["driver"].is_string().then_some(facts)
    });
    assert_eq!((&facts["gpus"], &facts["driver"]), (&"2 × NVIDIA H200".into(), &"590.48.01".into()));
    assert!(facts["kernel"].is_string(), "what was known before stays: {facts}");

    let server = Server::start(["--collectors", "cpu"]);
    let facts = &json(&server.get("/api/v1/sources", &[]))["sources"][0]["facts"];
    assert!(facts.get("gpus").is_none() && facts.get("driver").is_none(), "{facts}");
}
