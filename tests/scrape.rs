//! Tests scraped endpoints with the real binary: new rows reach the API, the exports, and a page that was open before.
//! The output of a real exporter is read unchanged.

use serde_json::Value;
use watchglass_tests::exporter;
use watchglass_tests::programs;
use watchglass_tests::server::Server;
use watchglass_tests::stream::Page;
use watchglass_tests::waiting::until;

fn json(server: &Server, path: &str) -> Value {
    let answer = server.get(path, &[]);
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

#[test]
fn what_an_endpoint_prints_later_reaches_a_page_that_was_there_before() {
    let url = exporter::serve(|n| match n {
        0..10 => format!("# TYPE ledger counter\nledger_total {n}\n"),
        _ => format!(
            "# TYPE ledger counter\nledger_total {n}\n# HELP late Came later.\n# TYPE late gauge\nlate{{b=\"2\",a=\"x y\"}} 7.5\n"
        ),
    });
    let server = Server::start(["--interval", "100ms", "--openmetrics", &format!("books={url}")]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut page = Page::default();
        let mut connection = page.connect(server.addr(), 300_000).await;
        let late = "openmetrics.books.late{a=\"x y\",b=\"2\"}";
        page.until(&mut connection, |page| page.newest(late) == Some(7.5)).await;
        let chart = page.catalog.layout.charts.iter().find(|c| c.id == "openmetrics.books.late").expect("a chart");
        assert_eq!(chart.section, "openmetrics");
        drop(connection);
        connection = page.connect(server.addr(), 300_000).await;
        let before = page.ticks.len();
        page.until(&mut connection, |page| page.ticks.len() > before + 2).await;
        assert!(page.whole() && page.repeated == 0 && page.resyncs == 0);
    });
    let series = json(&server, "/api/v1/series?match=openmetrics.books.*");
    let late = series["series"].as_array().expect("a list").iter().find(|s| s["labels"]["a"] == "x y").expect("late");
    assert_eq!((&late["labels"]["b"], &late["kind"]), (&Value::from("2"), &Value::from("gauge")));
    // Counters are stored raw, so each value is the number of a scrape, and no value is stored twice. A scrape that is
    // too late for its tick is dropped in favor of the next.
    let values = until("values", || {
        let ledger = json(&server, "/api/v1/query?tag=openmetrics.books.ledger_total");
        let points = ledger["series"][0]["points"].as_array()?.clone();
        let values: Vec<f64> = points.iter().filter_map(|p| p[1].as_f64()).collect();
        (values.len() > 10).then_some(values)
    });
    assert!(values.windows(2).all(|pair| pair[1] > pair[0]), "{values:?}");
    until("a tick with its values", || {
        let text = server.get("/metrics", &[]).body;
        let labels = ",endpoint=\"books\",a=\"x y\",b=\"2\"} 7.5";
        (text.contains("\nlate{source=") && text.contains(labels)).then_some(())
    });
}

#[test]
fn each_host_of_a_page_is_a_machine_of_its_own() {
    let url = exporter::serve(|n| {
        let line = |host: &str, gpu: u32, temp: usize| {
            format!("DCGM_FI_DEV_GPU_TEMP{{gpu=\"{gpu}\",UUID=\"GPU-{host}-{gpu}\",hostname=\"{host}\"}} {temp}\n")
        };
        line("node-a", 0, 40) + &line("node-b", 0, 50 + n % 2) + &line("node-b", 1, 60)
    });
    let server = Server::start(["--interval", "100ms", "--openmetrics", &format!("cluster={url}")]);
    let temps = |source: &str| {
        let answer = json(&server, &format!("/api/v1/query?tag=gpu.*.temp&source={source}"));
        let series = answer["series"].as_array().cloned().unwrap_or_default();
        let with_points = series.iter().filter(|one| one["points"].as_array().is_some_and(|all| all.len() > 2));
        with_points.filter_map(|one| one["tag"].as_str().map(str::to_string)).collect::<Vec<_>>()
    };
    until("both machines have ticks", || {
        let sources = json(&server, "/api/v1/sources")["sources"].as_array().cloned().unwrap_or_default();
        let named = |name: &str| sources.iter().any(|source| source["name"] == name);
        let have_ticks = || !temps("node-a").is_empty() && temps("node-b").len() == 2;
        (named("node-a") && named("node-b") && have_ticks()).then_some(())
    });
    assert_eq!(temps("node-a"), ["gpu.0.temp"]);
    assert_eq!(temps("node-b"), ["gpu.0.temp", "gpu.1.temp"]);
    let all = json(&server, "/api/v1/query?tag=gpu.*.temp");
    assert_eq!(all["series"].as_array().map(Vec::len), Some(3), "none stands under this machine: {all}");
}

#[test]
fn an_endpoint_that_is_not_there_is_named_with_its_reason() {
    let url = exporter::serve(|_| "up 1\n".into());
    let server =
        Server::start(["--interval", "100ms", "--openmetrics", &format!("here={url},gone=http://127.0.0.1:1/metrics")]);
    let check = until("the check is partial", || {
        let doctor = json(&server, "/api/v1/doctor");
        let checks = doctor["checks"].as_array().cloned().unwrap_or_default();
        checks.into_iter().find(|c| c["id"] == "openmetrics" && c["state"] == "partial")
    });
    assert!(check["reason"].as_str().is_some_and(|r| r.starts_with("gone: connection refused")), "{check}");
    // The first answer of the other endpoint may come a tick later.
    until("what is there is read", || {
        let up = json(&server, "/api/v1/query?tag=openmetrics.here.up");
        up["series"][0]["points"].as_array().is_some_and(|p| !p.is_empty()).then_some(())
    });
}

#[test]
fn a_hostile_page_costs_itself_and_ours_stay_whole() {
    let odd = exporter::serve(|n| {
        format!(
            "# TYPE x_total counter\nx_total -1\ny{{a=\"1\",a=\"2\"}} 1\ny{{__name__=\"z\"}} 1\nwatchglass_self_ticks 1\n\
             long{{l=\"{}\"}} 1\n{{\"quoted.name\",\"a.b\"=\"c\"}} 1\nnative {{count:1,sum:1,schema:0}}\nfine {n}\n",
            "v".repeat(1 << 20)
        )
    });
    let huge = exporter::serve(|_| "a 1\n".repeat((9 << 20) / 4));
    let server = Server::start(["--interval", "100ms", "--openmetrics", &format!("odd={odd},huge={huge}")]);
    let reason = |part: &str| {
        until(part, || {
            let checks = json(&server, "/api/v1/doctor")["checks"].as_array().cloned().unwrap_or_default();
            let check = checks.into_iter().find(|c| c["id"] == "openmetrics")?;
            check["reason"].as_str().filter(|reason| reason.contains(part)).map(str::to_string)
        })
    };
    reason("huge: the body is larger than 8 MiB");
    let said = reason("odd: 4 of 8 samples were dropped: 1 with a label of more than 1024 bytes (the first in line 6)");
    assert!(said.contains("native histograms") && said.contains("beginning with `__`"), "{said}");
    until("the sample that is fine", || {
        let fine = json(&server, "/api/v1/query?tag=openmetrics.odd.fine");
        fine["series"][0]["points"].as_array().is_some_and(|points| !points.is_empty()).then_some(())
    });
    // A tick for which the endpoint was late has none of its values.
    let page = until("a tick with the page's values", || {
        let page = server.get("/metrics", &["Accept: application/openmetrics-text"]).body;
        assert_eq!(collectors::openmetrics::check(&page), Ok(()), "{page}");
        page.contains("\nquoted_name{").then_some(page)
    });
    // Two series are not exposed: a counter below zero, and one whose name belongs to our own metrics.
    assert!(page.contains("\nwatchglass_self_unexposed_series 2\n") && !page.contains("\nx_total"), "{page}");
    until("the text format has the counter too", || {
        server.get("/metrics", &[]).body.contains("\nx_total{").then_some(())
    });
    let open = server.get("/api/v1/export?format=openmetrics&tag=openmetrics.*&tag=monitor.*&from=-60s", &[]).body;
    assert_eq!(collectors::openmetrics::check(&open), Ok(()), "{open}");
    assert!(open.contains("\nfine{") && !open.contains("\nx_total{"), "{open}");
}

#[test]
#[ignore = "needs Debian's prometheus-node-exporter on PATH"]
fn with_node_exporter_its_page_is_read_as_it_prints() {
    let exporter = programs::node_exporter();
    let server = Server::start(["--openmetrics", &format!("node=http://{}/metrics", exporter.addr)]);
    let query = |tag: &str| json(&server, &format!("/api/v1/query?tag={tag}"));
    let newest = |tag: &str| query(tag)["series"][0]["points"].as_array()?.last()?[1].as_f64();
    let total = until("the exporter is scraped", || newest("openmetrics.node.node_memory_MemTotal_bytes"));
    assert_eq!(total, until("our own sample", || newest("memory.total")), "both read the same kernel");
    let series = json(&server, "/api/v1/series?match=openmetrics.node.*");
    let tags: Vec<&str> =
        series["series"].as_array().expect("a list").iter().filter_map(|s| s["tag"].as_str()).collect();
    let printed = exporter.get("/metrics").body;
    let lines: Vec<&str> = printed.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 100, "{printed}");
    for line in lines.iter().filter(|line| !line.contains("NaN")) {
        // The labels of this exporter are sorted already.
        let key = line.rsplit_once(' ').map_or("", |(key, _)| key);
        let tag = format!("openmetrics.node.{key}");
        assert!(tags.contains(&tag.as_str()), "{tag} is missing");
    }
}
