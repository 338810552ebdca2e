//! Tests the view of a notebook's kernel. A shell with a kernel's argument stands in for the kernel.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::io::Write;
use std::process::{Child, Stdio};
use watchglass_tests::cgroup::MemoryGroup;
use watchglass_tests::server::{Server, ServerAnswer, ask_with, command, watchglass, watchglass_by};
use watchglass_tests::waiting::{until, until_so};

/// An id that no other process of this machine has, because its real kernels are visible here too.
fn id() -> String {
    format!("{:08x}-4e5f-6071-8293-a4b5c6d7e8f9", std::process::id())
}

/// A process with the arguments of a kernel. It is killed when this is dropped.
struct Kernel(Child);

impl Kernel {
    fn start() -> Self {
        Self::that("read line")
    }

    /// A kernel that runs this script.
    fn that(script: &str) -> Self {
        let file = format!("/run/kernel-{}.json", id());
        let mut shell = watchglass_by(script, ["-f", &file]);
        shell.env("JPY_SESSION_NAME", "/home/a/<b>train<b>.ipynb").stdin(Stdio::piped());
        let shell = Kernel(shell.spawn().expect("a shell"));
        // The system reports the start before the arguments are set.
        let arguments = format!("/proc/{}/cmdline", shell.pid());
        until_so("its arguments", || std::fs::read_to_string(&arguments).is_ok_and(|text| text.contains(&file)));
        shell
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(server: &Server, headers: &str, body: &str) -> ServerAnswer {
    let addr = server.addr();
    let lines = format!("POST /api/v1/markers HTTP/1.1\r\nHost: {addr}\r\nContent-Length: {}\r\n{headers}", body.len());
    ask_with(addr, &lines, body)
}

const JSON: &str = "Content-Type: application/json\r\n";

fn post(server: &Server, body: &Value) -> Value {
    let answer = send(server, JSON, &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("JSON")
}

fn get(server: &Server, path: &str) -> Value {
    let answer = server.get(path, &[]);
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("JSON")
}

/// The server's entry of our kernel; null while there is none.
fn kernel_entry(server: &Server) -> Value {
    let all = get(server, "/api/v1/kernels");
    let all = all["kernels"].as_array().expect("a list");
    all.iter().find(|one| one["id"] == id()).cloned().unwrap_or_default()
}

fn cell(pid: u32, seq: u64, phase: &str) -> Value {
    json!({ "kind": "cell", "pid": pid, "seq": seq, "phase": phase, "cell": "a1", "n": 7, "ok": phase == "end" })
}

#[test]
fn a_kernel_and_its_cells_are_seen_kept_and_told_of_when_it_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("plain letters").to_string();
    let args = ["--interval", "100ms", "--data-dir", &path, "--collectors", "kernels,cpu"];
    let server = Server::start(args);
    let kernel = Kernel::start();
    // While the collector starts, senders get 503 and retry.
    let begin = cell(kernel.pid(), 1, "start").to_string();
    let taken = until("the collector", || Some(send(&server, JSON, &begin)).filter(|answer| answer.status != 503));
    assert_eq!((taken.status, taken.body.contains("\"taken\":1")), (200, true), "{taken:?}");
    let one = until("the kernel", || {
        let one = kernel_entry(&server);
        (one["memory"].is_u64() && one["busy"].is_object()).then_some(one)
    });
    assert_eq!((&one["id"], &one["pid"], &one["state"]), (&json!(id()), &json!(kernel.pid()), &json!("running")));
    assert_eq!((&one["path"], &one["busy"]["n"]), (&json!("/home/a/<b>train<b>.ipynb"), &json!(7)));
    let memory = until("its series", || {
        let all = get(&server, &format!("/api/v1/query?tag=kernel.{}.memory", &id()[..8]));
        all["series"][0]["points"].as_array().filter(|points| points.len() >= 3).cloned()
    });
    assert!(memory.iter().all(|point| point[1].as_u64().is_some_and(|bytes| bytes > 0)), "{memory:?}");
    assert!(server.get("/metrics", &[]).body.contains("watchglass_jupyter_kernel_memory_bytes{"));
    // Markers whose delivery the client cannot confirm are sent again.
    let end = cell(kernel.pid(), 2, "end");
    assert_eq!(post(&server, &json!({ "markers": [end] })), json!({ "taken": 1, "dropped": 0 }));
    let markers = get(&server, &format!("/api/v1/markers?kernel={}", id()));
    assert_eq!(markers["markers"].as_array().map(Vec::len), Some(2), "{markers}");
    let cells = get(&server, &format!("/api/v1/cells?kernel={}", id()))["cells"].clone();
    let cell = &cells[0];
    assert_eq!((&cell["n"], &cell["ok"], &cell["cell"]), (&json!(7), &json!(true), &json!("a1")), "{cells}");
    assert!(cell["memory"]["before"].is_u64() && cell["memory"]["after"].is_u64(), "{cell}");
    assert!(cell["cpu_seconds"].is_number() && cell["line"].as_str().is_some_and(|line| line.starts_with("[7] ")));
    post(&server, &self::cell(kernel.pid(), 3, "start"));
    drop(kernel);
    let ended = until("its end", || {
        let one = kernel_entry(&server);
        let how = one["how"].as_str().unwrap_or_default();
        (one["state"] == "ended" && how.starts_with("The kernel of <b>train<b>.ipynb ended, while cell [7] ran"))
            .then_some(one)
    });
    server.end_by("TERM");
    let server = Server::start(args);
    assert_eq!(until("what was kept", || Some(kernel_entry(&server)).filter(|one| !one.is_null())), ended);
    let again = get(&server, &format!("/api/v1/cells?kernel={}", id()))["cells"].clone();
    assert_eq!((&again[1]["line"], again.as_array().map(Vec::len)), (&cell["line"], Some(2)), "after a restart");
    assert_eq!(again[0]["error"], "kernel ended", "its last cell ended with it");
}

/// A plain script is no kernel. Its marks are the machine's, with the process that sent them.
#[test]
fn a_script_marks_its_machine_and_knows_what_became_of_its_marks() {
    let server = Server::start(["--memory", "--interval", "100ms", "--collectors", "kernels,cpu"]);
    let script = "import os, watchglass\n\
                  from watchglass import client\n\
                  watchglass.mark('epoch 3', kind='epoch', step=7)\n\
                  with watchglass.span('warm-up'): pass\n\
                  assert client.sender().flush(60), watchglass.status()\n\
                  print(os.getpid(), watchglass.status())\n";
    let mut python = command("python3");
    python.args(["-c", script]).env("WATCHGLASS_URL", &server.url).env_remove("WATCHGLASS_SOCKET");
    python.env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/../notebook/python"));
    let output = python.output().expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let pid: u32 = said.split(' ').next().and_then(|pid| pid.parse().ok()).expect("a pid");
    assert!(said.contains("'sent': 2, 'queued': 0, 'dropped': 0"), "{said}");
    let markers = get(&server, "/api/v1/markers")["markers"].clone();
    assert_eq!(markers.as_array().map(Vec::len), Some(2), "{markers}");
    let epoch = markers.as_array().into_iter().flatten().find(|one| one["kind"] == "epoch").expect("the epoch");
    assert_eq!((&epoch["text"], &epoch["step"], &epoch["pid"]), (&json!("epoch 3"), &json!(7), &json!(pid)));
    let program = epoch["program"].as_str().expect("the system names it");
    assert!(program.starts_with("python3"), "{epoch}");
    assert_eq!(epoch["user"].as_str(), system::user::own_name().as_deref());
    assert_eq!(epoch["kernel"], Value::Null);
}

#[test]
#[ignore = "needs root and a controller of memory, for a cgroup that is too small"]
fn with_cgroups_a_kernel_that_is_killed_for_memory_is_explained_in_one_sentence() {
    let server = Server::start(["--memory", "--interval", "100ms", "--collectors", "kernels,cpu"]);
    let group = MemoryGroup::new("kernel", 64 << 20);
    // It allocates memory after a line of input, in its own process: the kernel itself is killed.
    let script = "read line; x=$(head -c 50000000 /dev/zero | tr '\\0' x); x=$x$x$x$x; read line";
    let mut kernel = Kernel::that(script);
    group.take(kernel.pid());
    until_so("its limit", || kernel_entry(&server)["limit"] == json!(64 << 20));
    kernel.0.stdin.take().expect("a pipe").write_all(b"go\n").expect("it listens");
    let one = until("its end", || Some(kernel_entry(&server)).filter(|one| one["state"] == "ended"));
    let how = one["how"].as_str().expect("a sentence");
    assert!(how.starts_with("The kernel of <b>train<b>.ipynb was killed for memory: "), "{how}");
    assert!(how.contains("of 64 MiB of this container") && !how.contains(". "), "{how}");
}

#[test]
fn markers_are_taken_from_our_own_programs_only() {
    let server = Server::start(["--memory", "--collectors", "cpu"]);
    let note = json!({ "text": "epoch 3" }).to_string();
    for (headers, status) in [
        (JSON, 200),
        ("Content-Type: text/plain\r\n", 415),
        ("", 415),
        ("Content-Type: application/json\r\nOrigin: https://evil.example\r\n", 403),
        ("Content-Type: application/json\r\nSec-Fetch-Site: cross-site\r\n", 403),
        ("Content-Type: application/json\r\nSec-Fetch-Site: same-origin\r\n", 200),
    ] {
        let answer = send(&server, headers, &note);
        assert_eq!(answer.status, status, "{headers}: {answer:?}");
    }
    for (body, status, word) in [
        ("{", 400, "parsed"),
        ("[]", 400, "object"),
        ("{\"markers\": 1}", 400, "list"),
        ("{\"text\": \"x\", \"color\": \"red\"}", 400, "color"),
        (&format!("{{\"markers\": [{}{{}}]}}", "{},".repeat(256)), 400, "256"),
        (&format!("{{\"text\": \"{}\"}}", "x".repeat(70_000)), 413, "65536"),
    ] {
        let answer = send(&server, JSON, body);
        assert_eq!(answer.status, status, "{body:.60}: {answer:?}");
        assert!(answer.error().contains(word), "{body:.60}: {}", answer.error());
    }
    // Without the collector nobody can check a PID, so it is not stored.
    assert_eq!(send(&server, JSON, "{\"text\": \"x\", \"pid\": 1}").status, 200);
    let notes = get(&server, "/api/v1/markers?kind=note")["markers"].clone();
    assert_eq!(notes.as_array().map(Vec::len), Some(3), "{notes}");
    assert!(notes.as_array().is_some_and(|notes| notes.iter().all(|note| note["pid"].is_null())), "{notes}");
    assert_eq!(server.get("/api/v1/cells?kernel=a%20b", &[]).status, 400);
    let replayed = Server::start_command({
        let mut demo = watchglass(["demo", "--gpus", "1", "--hosts", "1", "--port", "0", "--retention", "1m"]);
        demo.stderr(Stdio::null());
        demo
    });
    assert_eq!(get(&replayed, "/api/v1/kernels"), json!({ "kernels": [], "left_out": 0 }));
}
