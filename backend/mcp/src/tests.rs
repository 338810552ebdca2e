//! The protocol and the tools, with a server that answers as it is told.

use super::*;
use serde_json::{Value, json};
use std::cell::RefCell;

/// A server that answers one body, and notes the paths.
struct Fixed {
    status: u16,
    body: String,
    paths: RefCell<Vec<String>>,
}

impl Fixed {
    fn new(status: u16, body: &Value) -> Fixed {
        Fixed { status, body: body.to_string(), paths: RefCell::default() }
    }
}

impl Server for Fixed {
    fn get(&self, path: &str) -> Result<(u16, Vec<u8>), String> {
        self.paths.borrow_mut().push(path.to_string());
        match self.status {
            0 => Err("connection refused".into()),
            status => Ok((status, self.body.clone().into_bytes())),
        }
    }
}

fn answers(input: &[u8], server: &dyn Server) -> Vec<Value> {
    let mut output = Vec::new();
    serve(&mut &input[..], &mut output, "1.2.3", server).expect("bytes can be read and written");
    let text = String::from_utf8(output).expect("JSON");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn ask(method: &str, params: &Value, server: &dyn Server) -> Value {
    let line = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
    let mut all = answers(line.as_bytes(), server);
    assert_eq!((all.len(), &all[0]["id"]), (1, &json!(7)));
    all.remove(0)
}

fn call(name: &str, arguments: &Value, server: &dyn Server) -> (String, bool) {
    let answer = ask("tools/call", &json!({ "name": name, "arguments": arguments }), server);
    let result = &answer["result"];
    (result["content"][0]["text"].as_str().expect("text").to_string(), result["isError"] == true)
}

#[test]
fn a_handshake_agrees_on_a_revision_that_has_one() {
    let none = Fixed::new(0, &json!({}));
    for (wanted, agreed) in
        [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25"), ("1", "2025-11-25")]
    {
        let result =
            ask("initialize", &json!({ "protocolVersion": wanted, "capabilities": {} }), &none)["result"].take();
        assert_eq!(result["protocolVersion"], agreed, "{wanted}");
        assert_eq!(
            (&result["serverInfo"]["version"], &result["capabilities"]),
            (&json!("1.2.3"), &json!({"tools": {}}))
        );
        assert!(result.get("resultType").is_none());
    }
    assert_eq!(ask("ping", &json!({}), &none)["result"], json!({}));
}

#[test]
fn a_client_without_handshake_names_its_revision_in_each_request() {
    let none = Fixed::new(0, &json!({}));
    let meta = |version: &str| json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": version } });
    let found = ask("server/discover", &meta("2026-07-28"), &none)["result"].take();
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!((&found["resultType"], &found["ttlMs"]), (&json!("complete"), &json!(3_600_000)));
    assert_eq!(ask("tools/list", &meta("2026-07-28"), &none)["result"]["resultType"], "complete");
    let refused = ask("tools/list", &meta("2031-01-01"), &none);
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["requested"]),
        (&json!(-32022), &json!("2031-01-01"))
    );
}

#[test]
fn lines_that_are_no_request_get_an_error_or_nothing_and_the_next_is_answered() {
    let none = Fixed::new(0, &json!({}));
    let huge = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(MAX_LINE_BYTES));
    let ping = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
    let lines = [
        "",
        "{broken",
        &huge,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":4,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":5}"#,
        r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#,
        "3",
        "[]",
        r#"{"jsonrpc":"2.0","id":6,"method":"resources/list"}"#,
        &format!("[{ping},{{\"jsonrpc\":\"2.0\",\"method\":\"x\"}},{ping}]"),
        "\u{0}\u{1}",
        ping,
    ];
    let all = answers(lines.join("\n").as_bytes(), &none);
    let codes: Vec<i64> = all.iter().map(|answer| answer["error"]["code"].as_i64().unwrap_or(0)).collect();
    assert_eq!(codes, [-32700, -32600, -32600, -32600, -32600, -32600, -32601, 0, -32700, 0], "{all:?}");
    assert_eq!(all[7].as_array().map(Vec::len), Some(2), "a batch is answered with a batch");
    assert_eq!(all[9], json!({ "jsonrpc": "2.0", "id": "a", "result": {} }));
    let not_utf8 = answers(b"{\"id\":1,\"method\":\"\xff\"}\n", &none);
    assert_eq!(not_utf8[0]["error"]["code"], -32700);
}

#[test]
fn a_line_at_the_limit_is_read() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (length, ok) in [(MAX_LINE_BYTES - 1, true), (MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false)] {
        let line = format!("{ping}{}", " ".repeat(length - ping.len()));
        let all = answers(line.as_bytes(), &Fixed::new(0, &json!({})));
        assert_eq!(all[0].get("result").is_some(), ok, "{length}");
    }
}

#[test]
fn every_tool_only_reads_and_takes_what_its_request_takes() {
    let listed = ask("tools/list", &json!({}), &Fixed::new(0, &json!({})))["result"]["tools"].take();
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 8);
    for (tool, row) in listed.iter().zip(&tools::TOOLS) {
        assert_eq!((&tool["name"], &tool["annotations"]["readOnlyHint"]), (&json!(row.name), &json!(true)));
        assert_eq!(tool["inputSchema"]["type"], "object");
        for operation in row.operations() {
            assert_eq!(operation.method(), api::Method::Get, "{}", row.name);
        }
    }
}

#[test]
fn arguments_become_parameters_and_wrong_ones_are_named() {
    let server = Fixed::new(200, &json!({ "series": [] }));
    let answer = call("query_samples", &json!({ "tag": ["gpu.*.temp", "cpu"], "step": "5m", "fn": null }), &server);
    assert_eq!(answer, (r#"{"series":[]}"#.into(), false));
    assert_eq!(server.paths.take(), ["api/v1/query?from=-15m&step=5m&tag=gpu.%2A.temp&tag=cpu"]);
    call("list_runs", &json!({ "limit": 3 }), &server);
    call("list_runs", &json!({ "run": "a/b" }), &server);
    call("list_run_output", &json!({ "run": "r1", "rank": 2 }), &server);
    let paths = server.paths.take();
    assert_eq!(
        paths,
        ["api/v1/runs?sums=true&limit=3", "api/v1/runs/a%2Fb", "api/v1/runs/r1/logs?format=json&limit=100&rank=2"]
    );
    for (name, arguments, words) in [
        ("query_samples", json!({}), "needs the argument tag"),
        ("list_run_output", json!({ "rank": 1 }), "needs the argument run"),
        ("list_machines", json!({ "source": "x" }), "takes no arguments"),
        ("list_findings", json!({ "sorce": "x" }), "it takes source, kind"),
        ("list_findings", json!({ "source": {} }), "must be a text"),
        ("list_findings", json!({ "source": vec!["x"; 17] }), "more than 16"),
        ("list_runs", json!({ "run": "x", "limit": 2 }), "cannot be combined"),
    ] {
        let (text, is_error) = call(name, &arguments, &server);
        assert!(is_error && text.contains(words), "{name} {arguments}: {text}");
    }
    assert!(server.paths.take().is_empty(), "nothing was requested");
    let unknown = ask("tools/call", &json!({ "name": "delete_all" }), &server);
    assert_eq!(unknown["error"]["code"], -32602);
}

#[test]
fn refusals_of_the_server_reach_the_assistant_with_what_to_do() {
    for (status, words) in [
        (403, "no role; output cannot be read with a key: start watchglass mcp without --hub"),
        (401, "--key-file FILE"),
        (0, "does not respond: connection refused"),
    ] {
        let server = Fixed::new(status, &json!({ "error": "no role" }));
        let (text, is_error) = call("list_run_output", &json!({ "run": "r" }), &server);
        assert!(is_error && text.contains(words), "{status}: {text}");
    }
    let (text, is_error) = call("list_machines", &json!({}), &Fixed::new(200, &json!(null)));
    assert_eq!((text.as_str(), is_error), ("null", false));
}

#[test]
fn a_long_answer_is_cut_by_rows_and_says_so() {
    let rows: Vec<Value> = (0..5_000).map(|n| json!({ "t": n, "spark": [1, 2], "text": "x".repeat(n % 90) })).collect();
    let (text, _) = call("list_findings", &json!({}), &Fixed::new(200, &json!({ "at": 1, "findings": rows })));
    let cut: Value = serde_json::from_str(&text).expect("it is still JSON");
    let kept = cut["findings"].as_array().expect("rows").len();
    assert!(text.len() <= fit::MAX_BYTES && text.len() > fit::MAX_BYTES / 2, "{} bytes", text.len());
    assert!(
        cut["cut"].as_str().is_some_and(|note| note.contains(&format!("{kept} of 5000 findings"))),
        "{}",
        cut["cut"]
    );
    assert!(!text.contains("spark") && text.contains("Name a source"));
    assert_eq!(cut["findings"][0]["t"], 0, "the first rows stay");

    // One series with many points: its points are cut.
    let points: Vec<Value> = (0..9_000).map(|t| json!([t, 0.5])).collect();
    let body = json!({ "series": [{ "tag": "cpu", "points": points }] });
    let (text, _) = call("query_samples", &json!({ "tag": "cpu" }), &Fixed::new(200, &body));
    let cut: Value = serde_json::from_str(&text).expect("it is still JSON");
    assert!(cut["cut"].as_str().is_some_and(|note| note.contains("of 9000 points")), "{}", cut["cut"]);

    // The end of a job's output stays, where its error is.
    let lines: Vec<Value> = (0..100).map(|n| json!({ "n": n, "text": "x".repeat(900) })).collect();
    let (text, _) = call("list_run_output", &json!({ "run": "r" }), &Fixed::new(200, &json!({ "lines": lines })));
    let cut: Value = serde_json::from_str(&text).expect("it is still JSON");
    let kept = cut["lines"].as_array().expect("rows");
    assert_eq!(kept[kept.len() - 1]["n"], 99);
    let said = format!("the last {} of 100 lines", kept.len());
    assert!(cut["cut"].as_str().is_some_and(|note| note.contains(&said)), "{}", cut["cut"]);

    // A text without rows is cut anywhere, and no character is halved.
    let (text, _) = call("list_machines", &json!({}), &Fixed::new(200, &json!({ "note": "ä".repeat(40_000) })));
    assert!(text.len() <= fit::MAX_BYTES && text.contains("cut here"), "{} bytes", text.len());
}

#[test]
fn an_error_that_quotes_a_long_text_is_short_and_still_says_what_to_do() {
    let server = Fixed::new(200, &json!({ "metrics": [], "series": [] }));
    let long = "ä".repeat(100_000);
    let (text, is_error) = call("explain_metric", &json!({ "metric": long }), &server);
    assert!(is_error && text.len() <= 2_048 && text.ends_with("as gpu, clock or memory"), "{} bytes", text.len());
    let (text, is_error) = call("list_findings", &json!({ long.as_str(): 1 }), &server);
    assert!(is_error && text.len() <= 2_048 && text.contains("it takes source, kind"), "{} bytes", text.len());
    let no_tool = json!({ "name": long });
    let no_revision = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": long } });
    for (method, params, words) in [
        (long.as_str(), &json!({}), "tools/call"),
        ("tools/call", &no_tool, "run_doctor"),
        ("tools/list", &no_revision, "use 2026-07-28"),
    ] {
        let error = ask(method, params, &server)["error"].take();
        assert!(error.to_string().len() < 6_000, "{words}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(words)), "{error}");
    }
}

#[test]
fn a_metric_is_explained_by_its_tag_or_a_word() {
    let body = json!({
        "metrics": [
            { "tag": "gpu.{i}.smActive", "title": "SM activity", "help": "Share of time" },
            { "tag": "gpu.{i}.smClock", "title": "SM clock", "help": "Frequency" },
        ],
        "series": [{ "metric": "gpu.{i}.smActive", "source": "node-1" }, { "metric": "gpu.{i}.smActive", "source": "node-1" }],
    });
    let (text, _) = call("explain_metric", &json!({ "metric": "gpu.0.smActive" }), &Fixed::new(200, &body));
    assert!(text.contains("Share of time") && !text.contains("Frequency") && text.contains(r#""machines":["node-1"]"#));
    let mut absent = body;
    absent["series"] = json!([]);
    let absent = Fixed::new(200, &absent);
    // No machine has it, but the vocabulary knows it.
    let (text, _) = call("explain_metric", &json!({ "metric": "gpu.3.smClock" }), &absent);
    assert!(text.contains("Frequency") && !text.contains("Share of time"), "{text}");
    let (text, _) = call("explain_metric", &json!({ "metric": "ACTIVITY" }), &absent);
    assert!(text.contains("Share of time") && !text.contains("Frequency"), "{text}");
    let (text, is_error) = call("explain_metric", &json!({ "metric": "no such" }), &absent);
    assert!(is_error && text.contains("try a shorter word"), "{text}");
}
