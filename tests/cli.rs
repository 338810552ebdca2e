//! Tests the command line of the real binary: errors, exit status, help, the printed configuration, the line with the
//! address.

use watchglass_tests::server::{Server, run, watchglass};

#[track_caller]
fn fails_with_2(args: &[&str]) -> String {
    let output = run(args.iter().copied());
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    assert!(output.stdout.is_empty(), "errors go to standard error");
    assert!(text.starts_with("error: "), "{text}");
    text
}

#[track_caller]
fn prints(args: &[&str]) -> String {
    let output = run(args.iter().copied());
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {log}");
    assert!(output.stderr.is_empty(), "{log}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn help_and_version_are_everywhere() {
    for args in [&["--help"][..], &["-h"], &["serve", "--help"], &["doctor", "--help"], &["help"]] {
        assert!(prints(args).contains("Usage: watchglass"), "{args:?}");
    }
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(prints(&["-V"]), format!("watchglass {version}\n"));
    let told = prints(&["--version"]);
    assert!(told.starts_with(&format!("watchglass {version} (")) && told.contains(std::env::consts::ARCH), "{told}");
    assert!(told.ends_with("with the page)\n"), "{told}");
    for word in ["data-dir", "durable", "export", "record", "replay", "import"] {
        assert!(prints(&["--help"]).contains(word), "{word}");
    }
}

#[test]
fn wrong_usage_has_status_2_and_says_what_to_write() {
    assert!(fails_with_2(&["--prot", "1"]).contains("'--port'"));
    assert!(fails_with_2(&["docter"]).contains("'doctor'"));
    assert!(fails_with_2(&["--interval", "90s"]).contains("100ms to 1m"));
    assert!(fails_with_2(&["--allow-user", "no-such-user-here"]).contains("id -u"));
    assert!(fails_with_2(&["--collectors", "cpuu"]).contains("did you mean cpu?"));
    for unfinished in ["--data-dir=", "export", "record", "replay", "import"] {
        fails_with_2(&[unfinished]);
    }
    let wide = fails_with_2(&["--bind", "0.0.0.0"]);
    for way in ["ssh -L 7171:localhost:7171 USER@HOST", "--host NAME --allow-user USER", "--network host"] {
        assert!(wide.contains(way), "{wide}");
    }
}

#[test]
fn a_wrong_file_has_status_2_and_names_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.toml");
    let name = path.to_str().expect("text");
    let with = |text: &str| {
        std::fs::write(&path, text).expect("a file");
        fails_with_2(&["--config", name])
    };
    assert!(
        with("port = 1\nintervl = \"1s\"").contains("w.toml, line 2: unknown key `intervl`; did you mean interval?")
    );
    assert!(with("[collectors.dsk]").contains("line 1: there is no collector \"dsk\"; did you mean disk?"));
    assert!(with("bind = \"0.0.0.0\"").contains("ssh -L"));
    assert!(with("port = [").contains("w.toml, line 1"));
    std::fs::remove_file(&path).expect("it was there");
    assert!(fails_with_2(&["--config", name]).contains("cannot be read"));
}

#[test]
fn the_printed_configuration_reads_back_as_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.toml");
    let name = path.to_str().expect("text");
    let flags = [
        "--port=0",
        "--interval=250ms",
        "--retention=90m",
        "--base-path=tools/x",
        "--host=gpu7.example",
        "--allow-user=root",
        "--origin=https://nb.example",
        "--embed=http://127.0.0.1:8888",
        "--disk-path=/,/tmp/",
        "--pid=1",
        "--collectors=-disk",
        "--log=warn",
        "--memory",
        "--print-config",
    ];
    let printed = prints(&flags);
    for line in
        ["interval = \"250ms\"", "base_path = \"/tools/x/\"", "disk_paths = [\"/\", \"/tmp\"]", "allow_users = [0]"]
    {
        assert!(printed.lines().any(|l| l == line), "{line} in {printed}");
    }
    std::fs::write(&path, &printed).expect("a file");
    assert_eq!(prints(&["--config", name, "--print-config"]), printed);
    let over = prints(&["--config", name, "--print-config", "--port", "9"]);
    assert_eq!(over, printed.replace("port = 0", "port = 9"));
}

#[test]
fn the_log_level_comes_from_the_environment_too() {
    let output = watchglass(["--print-config"]).env("WATCHGLASS_LOG", "debug").output().expect("it starts");
    assert!(String::from_utf8_lossy(&output.stdout).contains("log = \"debug\""));
    let output = watchglass(["--print-config"]).env("WATCHGLASS_LOG", "loud").output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("WATCHGLASS_LOG"));
}

#[test]
fn the_first_line_is_the_address() {
    let server = Server::start(["--base-path", "/tools/watchglass"]);
    assert_eq!(server.url, format!("http://{}/tools/watchglass/", server.addr()));
    assert_eq!(server.get("/tools/watchglass/healthz", &[]).status, 200);
    assert_eq!(server.get("/healthz", &[]).status, 200, "a proxy may strip the path");
}

#[test]
fn a_port_that_is_taken_has_status_3() {
    let server = Server::start([]);
    let port = server.addr().port().to_string();
    let output = run(["--port", &port]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--port 0"));
}
