//! Saved views of a server without accounts: built in, and those of its owner, with a folder or in memory.

use serde_json::{Value, json};
use watchglass_tests::server::{Server, ServerAnswer, ask_with};
use watchglass_tests::waiting::until;

const PATH: &str = "/api/v1/views";

/// Sends a request as a program of the owner, with these further header lines.
fn send(server: &Server, method: &str, path: &str, lines: &str, body: &Value) -> ServerAnswer {
    let (addr, body) = (server.addr(), body.to_string());
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\n{lines}Content-Length: {}\r\n",
        body.len()
    );
    ask_with(addr, &head, &body)
}

fn read(answer: &ServerAnswer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// Names of the views, in their order.
fn names(server: &Server) -> Vec<String> {
    let all = read(&server.get(PATH, &[]));
    let views = all["views"].as_array().expect("a list").iter();
    views.map(|view| view["name"].as_str().expect("a name").to_string()).collect()
}

#[test]
fn a_server_alone_keeps_views_of_its_owner_with_a_folder_or_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("plain letters");
    for args in [vec!["--collectors", "cpu", "--memory"], vec!["--collectors", "cpu", "--data-dir", data]] {
        let server = Server::start(args.iter().copied());
        assert_eq!(names(&server), ["Default", "Debug", "All nodes"], "the built-in ones");
        let made = send(&server, "POST", PATH, "", &json!({ "name": "mine", "query": "w=5m&nonsense=1" }));
        assert_eq!(made.status, 201, "{made:?}");
        let view = read(&made);
        assert_eq!((&view["query"], &view["own"], &view["team"]), (&"w=5m".into(), &true.into(), &Value::Null));
        assert_eq!(names(&server), ["Default", "Debug", "All nodes", "mine"]);
        let one = format!("{PATH}/{}", view["id"].as_str().expect("an id"));
        let changed = send(&server, "PUT", &one, "", &json!({ "name": "ours", "version": 1 }));
        assert_eq!((changed.status, &read(&changed)["query"]), (200, &"w=5m".into()), "{changed:?}");
        let late = send(&server, "PUT", &one, "", &json!({ "name": "late", "version": 1 }));
        assert_eq!((late.status, &read(&late)["theirs"]["name"]), (409, &"ours".into()), "{late:?}");
        for (wrong, status) in [
            (json!({ "name": "", "query": "w=5m" }), 400),
            (json!({ "name": "n".repeat(65), "query": "w=5m" }), 400),
            (json!({ "name": "long", "query": format!("w={}", "5".repeat(9_000)) }), 400),
            (json!({ "name": "x", "other": 1 }), 400),
        ] {
            assert_eq!(send(&server, "POST", PATH, "", &wrong).status, status, "{wrong}");
        }
        // A page of another site, and built-in views.
        let foreign = send(&server, "POST", PATH, "Origin: https://evil.example\r\n", &json!({ "name": "x" }));
        assert_eq!(foreign.status, 403, "{foreign:?}");
        assert_eq!(send(&server, "DELETE", &format!("{PATH}/debug"), "", &json!({})).status, 403);
        assert_eq!(send(&server, "DELETE", &format!("{PATH}/never"), "", &json!({})).status, 404);
        let spare = read(&send(&server, "POST", PATH, "", &json!({ "name": "spare", "query": "" })));
        let spare = format!("{PATH}/{}", spare["id"].as_str().expect("an id"));
        assert_eq!(send(&server, "DELETE", &spare, "", &json!({})).status, 200);
        assert_eq!(names(&server), ["Default", "Debug", "All nodes", "ours"]);
        server.end_by("TERM");
    }
    let server = Server::start(["--collectors", "cpu", "--data-dir", data]);
    until("the view of before", || (names(&server).last().map(String::as_str) == Some("ours")).then_some(()));
}
