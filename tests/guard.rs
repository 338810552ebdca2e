//! Access checks of the real binary: foreign host names, foreign origins, other users.

use std::net::SocketAddr;
use std::process::Stdio;
#[cfg(target_os = "linux")]
use watchglass_tests::server::as_user;
use watchglass_tests::server::{Server, ServerAnswer, ask, watchglass};

const DATA: [&str; 4] = ["/api/v1/catalog", "/api/v1/sources", "/metrics", "/api/v1/query?tag=cpu"];
const UPGRADE: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

fn upgrade(server: &Server, more: &[&str]) -> ServerAnswer {
    server.get("/api/v1/live", &[&UPGRADE[..], more].concat())
}

#[test]
fn foreign_names_read_nothing() {
    let server = Server::start([]);
    for path in DATA.iter().chain(&["/", "/healthz", "/nothing"]) {
        for host in ["evil.test", "127.0.0.1.evil.test", "LOCALHOST.", "0.0.0.0:7171"] {
            let answer = server.get(path, &[&format!("Host: {host}")]);
            assert_eq!(answer.status, 421, "{path} {host}");
            assert!(answer.error().contains("--host"), "{answer:?}");
        }
        assert_eq!(server.get(path, &["Host: localhost", "Host: localhost"]).status, 400, "{path}");
        assert_eq!(server.get(path, &["Host: evil.test", "X-Forwarded-Host: localhost"]).status, 421, "{path}");
        assert_eq!(ask(server.addr(), &format!("GET {path} HTTP/1.1\r\n")).status, 400, "{path} without Host");
        assert_eq!(ask(server.addr(), &format!("GET {path} HTTP/1.0\r\n")).status, 400, "{path} without Host");
    }
    assert_eq!(upgrade(&server, &["Host: evil.test", "Origin: http://evil.test"]).status, 421);
    let absolute = format!("GET http://evil.test/healthz HTTP/1.1\r\nHost: {}\r\n", server.addr());
    assert_eq!(ask(server.addr(), &absolute).status, 400);
}

#[test]
fn a_browser_that_opens_a_foreign_name_gets_a_page_that_says_what_to_do() {
    let server = Server::start([]);
    let html = "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";
    let answer = server.get("/", &["Host: gpu7.example", html]);
    assert_eq!(answer.status, 421, "{answer:?}");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{answer:?}");
    assert!(answer.body.contains("<p>This server rejects that host name; allow it with --host gpu7.example.</p>"));
    assert_eq!(answer.header("cache-control"), "no-store", "{answer:?}");
    let foreign = server.get("/", &["Origin: http://evil.test", html]);
    assert!(foreign.status == 403 && foreign.body.contains("start the server with --origin URL"), "{foreign:?}");
    // Programs read JSON, and data are never a page.
    assert!(server.get("/", &["Host: gpu7.example", "Accept: */*"]).error().contains("--host"));
    assert!(server.get("/api/v1/catalog", &["Host: gpu7.example", html]).error().contains("--host"));
}

#[test]
fn our_own_names_are_served_on_both_addresses() {
    let server = Server::start(["--host", "gpu7.example"]);
    let port = server.addr().port();
    for host in ["localhost", "LocalHost:9000", "[::1]:7171", "127.0.0.1", "GPU7.example"] {
        for path in DATA {
            assert_eq!(server.get(path, &[&format!("Host: {host}")]).status, 200, "{path} {host}");
        }
    }
    let v6: SocketAddr = format!("[::1]:{port}").parse().expect("an address");
    match std::net::TcpStream::connect(v6) {
        Ok(_) => assert_eq!(ask(v6, &format!("GET /healthz HTTP/1.1\r\nHost: {v6}\r\n")).status, 200),
        Err(error) => eprintln!("IPv6 was not tested: {error}"),
    }
}

#[test]
fn foreign_origins_read_nothing() {
    let server = Server::start(["--origin", "https://nb.example:8888"]);
    let own = format!("Origin: http://{}", server.addr());
    let foreign = [
        "Origin: http://evil.test",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        &own.replace("http:", "https:"),
        &format!("{own}.evil.test"),
    ];
    for origin in foreign {
        for path in DATA {
            let answer = server.get(path, &[origin]);
            assert_eq!(answer.status, 403, "{path} {origin}");
            assert!(answer.error().contains("--origin"), "{answer:?}");
        }
        assert_eq!(upgrade(&server, &[origin]).status, 403, "{origin}");
    }
    for origin in [own.as_str(), "Origin: https://nb.example:8888"] {
        assert_eq!(server.get("/api/v1/catalog", &[origin]).status, 200, "{origin}");
        assert_eq!(upgrade(&server, &[origin]).status, 101, "{origin}");
    }
    let tunnel = ["Host: localhost:9000", "Origin: http://localhost:9000"];
    assert_eq!(server.get("/api/v1/catalog", &tunnel).status, 200);
    assert_eq!(upgrade(&server, &tunnel).status, 101);
    assert_eq!(upgrade(&server, &[]).status, 101, "a script sends no Origin");
}

#[test]
fn other_sites_may_load_the_page_but_no_data() {
    let server = Server::start([]);
    for site in ["cross-site", "same-site"] {
        let header = format!("Sec-Fetch-Site: {site}");
        for path in DATA {
            assert_eq!(server.get(path, &[&header]).status, 403, "{path} {site}");
        }
        assert_ne!(server.get("/", &[&header]).status, 403);
    }
    assert_eq!(server.get("/api/v1/catalog", &["Sec-Fetch-Site: same-origin"]).status, 200);
}

#[test]
fn a_path_with_two_slashes_is_the_same_path_behind_the_same_door() {
    let server = Server::start([]);
    for path in DATA {
        let doubled = format!("/{path}");
        assert_eq!(server.get(&doubled, &[]).status, 200, "{doubled}");
        for header in ["Sec-Fetch-Site: cross-site", "Origin: http://evil.test"] {
            assert_eq!(server.get(&doubled, &[header]).status, 403, "{doubled} {header}");
        }
    }
}

#[test]
fn every_answer_carries_the_headers() {
    let server = Server::start(["--embed", "https://nb.example"]);
    let answers = [
        server.get("/", &[]),
        server.get("/api/v1/catalog", &["Origin: http://localhost:1"]),
        server.get("/api/v1/catalog", &[]),
        server.get("/api/v1/nothing", &[]),
        server.get("/", &["Host: evil.test"]),
    ];
    for answer in answers {
        let policy = answer.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.ends_with("frame-ancestors 'self' https://nb.example"));
        assert!(!policy.contains("unsafe-inline"), "{policy}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
}

#[test]
fn headers_are_never_logged() {
    let server = Server::start(["--log", "trace"]);
    let secret = ["Cookie: s=oyster-7", "Authorization: Bearer oyster-7", "Origin: http://oyster-7.test"];
    assert_eq!(server.get("/api/v1/catalog", &secret).status, 403);
    assert_eq!(server.get("/api/v1/catalog", &secret[..2]).status, 200);
    assert!(!server.log().contains("oyster-7"), "{}", server.log());
}

/// Not a test of its own: it sends a request to the address in its environment.
#[test]
#[ignore = "is run by the tests below, as another user"]
fn asks_when_told_to() {
    let addr = std::env::var("WATCHGLASS_TEST_ASK").expect("an address");
    let answer = ask(addr.parse().expect("an address"), &format!("GET /api/v1/catalog HTTP/1.1\r\nHost: {addr}\r\n"));
    println!("answer {} {}", answer.status, answer.body.get(..200).unwrap_or(&answer.body));
}

/// The status and the beginning of the body that another user of this machine receives. Needs root.
#[cfg(target_os = "linux")]
fn ask_as(uid: u32, server: &Server) -> (u16, String) {
    let output = as_user(uid, std::path::Path::new("/proc/self/exe"), |mut caller| {
        caller.args(["--exact", "guard::asks_when_told_to", "--ignored", "--nocapture"]).stderr(Stdio::null());
        caller.env("WATCHGLASS_TEST_ASK", server.addr().to_string()).output()
    });
    let text = String::from_utf8(output.expect("the caller starts").stdout).expect("text");
    let (_, answer) = text.split_once("answer ").expect("an answer");
    let (status, body) = answer.split_once(' ').expect("status and body");
    (status.parse().expect("a status"), body.to_string())
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs root, to be another user"]
fn with_root_another_user_reads_nothing_unless_named() {
    const OTHER: u32 = 54321;
    let server = Server::start([]);
    let (status, body) = ask_as(OTHER, &server);
    assert_eq!(status, 403, "{body}");
    assert!(body.contains("--allow-user"), "{body}");
    assert_eq!(server.get("/api/v1/catalog", &[]).status, 200, "the owner still reads");

    let allowed = Server::start(["--allow-user", "54321"]);
    assert_eq!(ask_as(OTHER, &allowed).0, 200);
    assert_eq!(ask_as(OTHER + 1, &allowed).0, 403);

    let mut by_sudo = watchglass(["--port", "0"]);
    by_sudo.env("SUDO_UID", OTHER.to_string());
    let by_sudo = Server::start_command(by_sudo);
    assert_eq!(ask_as(OTHER, &by_sudo).0, 200);

    let off = Server::start(["--local-auth", "off"]);
    assert_eq!(ask_as(OTHER, &off).0, 200);
    // It warns at each start.
    off.says("--local-auth off");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs root, to be another user"]
fn with_root_a_server_of_another_user_admits_itself_and_root_only() {
    let server = as_user(54321, watchglass_tests::server::binary(), |mut command| {
        command.args(["--port", "0"]).env_remove("SUDO_UID");
        Server::start_command(command)
    });
    assert_eq!(server.get("/api/v1/catalog", &[]).status, 200, "root reads");
    assert_eq!(ask_as(54321, &server).0, 200, "the owner reads");
    assert_eq!(ask_as(54322, &server).0, 403, "nobody else");
}
