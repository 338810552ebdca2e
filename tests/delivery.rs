//! Notices to real servers: an Alertmanager and a mail server.

use notify::address::Allowed;
use notify::{Attempt, Outcome, Road, Sender, Settings, Smtp, SmtpTls};
use serde_json::Value;
use shared::alert::{Alert, AlertSeverity, AlertState, ChannelInput, Notice, NoticeKind};
use shared::secret::Secret;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use watchglass_tests::certificate::Authority;
use watchglass_tests::programs::{Program, run};
use watchglass_tests::provider::now;
use watchglass_tests::waiting::until_so;

/// A text that must arrive unchanged and have no effect on its way.
const HOSTILE: &str = "@everyone <script>alert(1)</script> {run} \"quoted\" 89.1 °C 🔥";

fn alert(number: u8) -> Alert {
    Alert {
        id: format!("A{number}"),
        rule: "gpu-hot".into(),
        name: "GPU is hot".into(),
        subject: format!("node-1/gpu.{number}.temp"),
        severity: AlertSeverity::Critical,
        state: AlertState::Firing,
        began: (now() - 180) * 1_000,
        fired: Some((now() - 60) * 1_000),
        ended: None,
        value: Some(89.1),
        worst: Some(89.1),
        sentence: format!("node-1 GPU {number}: {HOSTILE}"),
        text: String::new(),
        labels: [("source", "node-1"), ("gpu", "5"), ("odd name", HOSTILE)]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into(),
        count: 1,
        acked: None,
        held: String::new(),
        unknown_since: None,
    }
}

fn notice(kind: NoticeKind, id: &str) -> Notice {
    Notice {
        id: id.into(),
        kind,
        group: "gpu-hot/node-1".into(),
        seq: 1,
        severity: AlertSeverity::Critical,
        rule: "GPU is hot".into(),
        title: HOSTILE.into(),
        note: "A dot alone ends no message:\n.\n..\nFrom here it goes on.".into(),
        alerts: vec![alert(1), alert(2)],
        more: 0,
        counts: Vec::new(),
        link: None,
        charts: None,
        help: None,
        team: "lab".into(),
        host: "hub-1".into(),
        at: now(),
    }
}

/// The notice with its alerts resolved two seconds ago.
fn resolved(mut notice: Notice) -> Notice {
    notice.kind = NoticeKind::Resolved;
    for alert in &mut notice.alerts {
        alert.state = AlertState::Resolved;
        alert.ended = Some((now() - 2) * 1_000);
    }
    notice
}

fn send(sender: &mut Sender, settings: &Settings, notice: &Notice) -> Outcome {
    sender.send(settings, notice, Attempt { now: now(), tries: 1, random: 0.5 })
}

#[track_caller]
fn accepted(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
}

/// Folder in which Debian's Alertmanager looks for its templates.
const TEMPLATES: &str = "/usr/share/prometheus/alertmanager";

/// An Alertmanager that runs: an installed one, or a copy of an unpacked one. Debian's has a fixed path for its
/// templates. In the copy it is replaced by another path, padded with slashes to the same length.
fn alertmanager(folder: &Path) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join("prometheus-alertmanager")).find(|path| path.is_file());
    let found = found.expect("prometheus-alertmanager is on PATH; `cargo xtask test` fetches Debian's");
    let root = found.ancestors().nth(3).expect("a folder usr above it");
    let own = root.join(TEMPLATES.trim_start_matches('/'));
    if Path::new(TEMPLATES).is_dir() || !own.is_dir() {
        return found;
    }
    let link = folder.join("t");
    std::os::unix::fs::symlink(own, &link).expect("a link");
    let place = format!("{:/<width$}", link.display(), width = TEMPLATES.len());
    assert_eq!(place.len(), TEMPLATES.len(), "{place}");
    let mut program = std::fs::read(&found).expect("it is read");
    let mut at = 0;
    while let Some(next) = program[at..].windows(place.len()).position(|part| part == TEMPLATES.as_bytes()) {
        at += next;
        program[at..at + place.len()].copy_from_slice(place.as_bytes());
    }
    let copy = folder.join("am");
    std::fs::write(&copy, program).expect("written");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).expect("it may run");
    copy
}

fn active(server: &Program) -> Vec<Value> {
    let all: Value = serde_json::from_str(&server.get("/api/v2/alerts").body).expect("JSON");
    all.as_array().expect("a list").clone()
}

#[test]
#[ignore = "needs Debian's prometheus-alertmanager on PATH"]
fn with_alertmanager_alerts_begin_and_end_and_it_takes_every_label() {
    // Its path is short, regardless of TMPDIR.
    let folder = tempfile::tempdir_in("/tmp").expect("a folder");
    let program = alertmanager(folder.path());
    let config = folder.path().join("alertmanager.yml");
    std::fs::write(&config, "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n").expect("written");
    let server = Program::start(&program.display().to_string(), |addr| {
        vec![
            format!("--web.listen-address={addr}"),
            format!("--config.file={}", config.display()),
            format!("--storage.path={}", folder.path().join("data").display()),
            "--cluster.listen-address=".into(),
            "--log.level=error".into(),
        ]
    });
    let allowed = Allowed::parse(&["127.0.0.1/32"]).expect("an entry");
    let gone = Program::free();
    let addresses = [format!("http://{}", server.addr), format!("http://{gone}/")];
    let input = ChannelInput {
        name: "am".into(),
        kind: "alertmanager".into(),
        addresses: addresses.map(Secret::new).into(),
        ..ChannelInput::default()
    };
    let settings = Settings::check(&input, &allowed, false).expect("settings");
    let mut sender = Sender::new(&Road { allowed, ..Road::default() }).expect("a sender");
    // Its port is open a moment before it accepts requests.
    until_so("it is ready", || server.get("/-/ready").status == 200);

    let firing = notice(NoticeKind::Firing, "N1");
    let outcome = send(&mut sender, &settings, &firing);
    accepted(&outcome);
    assert!(outcome.sentence().contains("by 1 of 2; another one: connection refused"), "{outcome:?}");
    let all = active(&server);
    assert_eq!(all.len(), 2, "{all:?}");
    let first = all.iter().find(|one| one["labels"]["subject"] == "node-1/gpu.1.temp").expect("the first");
    for (label, value) in [
        ("alertname", "GPU is hot"),
        ("severity", "critical"),
        ("team", "lab"),
        ("source", "node-1"),
        ("odd_name", HOSTILE),
    ] {
        assert_eq!(first["labels"][label], value, "{first}");
    }
    assert_eq!(first["annotations"]["summary"], format!("node-1 GPU 1: {HOSTILE}"));
    assert_eq!(first["status"]["state"], "active");
    // A repeated notice updates the same alerts.
    accepted(&send(&mut sender, &settings, &firing));
    assert_eq!(active(&server).len(), 2);

    accepted(&send(&mut sender, &settings, &resolved(firing)));
    until_so("they are over", || active(&server).is_empty());
    let mut test = notice(NoticeKind::Test, "N2");
    test.alerts.clear();
    accepted(&send(&mut sender, &settings, &test));
    assert_eq!(active(&server)[0]["labels"]["alertname"], "WatchglassTest");

    // For a wrong path the error gives the remedy, without an address.
    let input = ChannelInput { addresses: vec![Secret::new(format!("http://{}/nowhere", server.addr))], ..input };
    let elsewhere = Settings::check(&input, &Allowed::parse(&["127.0.0.1/32"]).expect("an entry"), false);
    let outcome = send(&mut sender, &elsewhere.expect("settings"), &test);
    assert!(matches!(outcome, Outcome::GivenUp { .. }), "{outcome:?}");
    let sentence = outcome.sentence();
    assert!(sentence.starts_with("404 in ") && sentence.contains("the address does not exist"), "{sentence}");
    assert!(!sentence.contains("nowhere") && !sentence.contains("127.0.0.1"), "{sentence}");
}

/// A mail server that stores messages in a folder.
fn mail_server(folder: &Path, tls: &[String]) -> Program {
    Program::start("aiosmtpd", |addr| {
        let mut args: Vec<String> =
            ["-n", "-l", &addr.to_string(), "-c", "aiosmtpd.handlers.Mailbox"].map(str::to_owned).into();
        args.splice(1..1, tls.iter().cloned());
        args.push(folder.join("mail").display().to_string());
        args
    })
}

/// This many messages, parsed by an independent program: headers decoded, in the order of their ids.
fn messages(folder: &Path, count: usize) -> Vec<Value> {
    const READ: &str = "
import email, email.policy, json, os, sys
out = []
for name in os.listdir(sys.argv[1]):
    with open(os.path.join(sys.argv[1], name), 'rb') as file:
        message = email.message_from_binary_file(file, policy=email.policy.default)
    out.append({'names': message.keys(), 'body': message.get_content(), 'faults': [str(f) for f in message.defects],
                'type': message.get_content_type(), **{name: str(value) for name, value in message.items()}})
print(json.dumps(sorted(out, key=lambda one: one['Message-ID'])))
";
    let new = folder.join("mail").join("new");
    until_so("the messages come", || std::fs::read_dir(&new).map_or(0, Iterator::count) >= count);
    let read = run("python3", &["-c", READ, &new.display().to_string()], "");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let all: Vec<Value> = serde_json::from_slice(&read.stdout).expect("JSON");
    assert_eq!(all.len(), count);
    all
}

fn mail_channel() -> Settings {
    let input = ChannelInput {
        name: "ops".into(),
        kind: "email".into(),
        to: vec!["ops@example.org".into(), "night@example.org".into()],
        ..ChannelInput::default()
    };
    Settings::check(&input, &Allowed::default(), true).expect("settings")
}

fn smtp(port: u16, tls: SmtpTls) -> Smtp {
    Smtp::new("localhost", Some(port), tls, None, None, "Watchglass <alerts@example.org>").expect("settings")
}

fn sender(smtp: Smtp) -> Sender {
    Sender::new(&Road { smtp: Some(smtp), ..Road::default() }).expect("a sender")
}

#[test]
#[ignore = "needs Debian's python3-aiosmtpd on PATH"]
fn with_aiosmtpd_messages_arrive_by_tls_as_they_were_meant_and_hang_together() {
    let authority = Authority::new();
    for (tls, flags) in
        [(SmtpTls::StartTls, ["--tlscert", "--tlskey"]), (SmtpTls::Implicit, ["--smtpscert", "--smtpskey"])]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = authority.sign("localhost", folder.path());
        let files = [certificate, key].map(|file| file.display().to_string());
        let flags: Vec<String> = flags.iter().zip(files).flat_map(|(flag, file)| [(*flag).to_string(), file]).collect();
        let server = mail_server(folder.path(), &flags);
        let authority = std::fs::read_to_string(authority.write(folder.path())).expect("a certificate");
        let own = smtp(server.addr.port(), tls).trusting(&authority);
        let mut sender = sender(own);
        let channel = mail_channel();
        let firing = notice(NoticeKind::Firing, "N1");
        accepted(&send(&mut sender, &channel, &firing));
        accepted(&send(&mut sender, &channel, &Notice { id: "N2".into(), seq: 2, ..resolved(firing) }));
        let all = messages(folder.path(), 2);
        let (first, last) = (&all[0], &all[1]);
        assert_eq!(first["Subject"], format!("[critical] {HOSTILE}"));
        assert_eq!(last["Subject"], format!("[resolved] {HOSTILE}"));
        for message in &all {
            assert_eq!(message["faults"], Value::Array(Vec::new()), "{message}");
            assert_eq!(message["To"], "ops@example.org, night@example.org");
            assert_eq!(message["X-RcptTo"], "ops@example.org, night@example.org", "{message}");
            assert_eq!(message["From"], "Watchglass <alerts@example.org>");
            assert_eq!(
                (&message["type"], &message["Auto-Submitted"]),
                (&"text/plain".into(), &"auto-generated".into())
            );
            let body = message["body"].as_str().expect("a text").replace("\r\n", "\n");
            assert!(body.contains("A dot alone ends no message:\n.\n..\nFrom here it goes on."), "{body}");
            assert!(body.contains(&format!("node-1 GPU 2: {HOSTILE}")), "{body}");
        }
        assert_eq!(first["Message-ID"], "<N1@example.org>");
        assert_eq!(first["References"], last["References"]);
        assert_eq!(last["In-Reply-To"], last["References"]);
        assert_eq!(first.get("In-Reply-To"), None);
    }
}

#[test]
#[ignore = "needs Debian's python3-aiosmtpd on PATH"]
fn with_aiosmtpd_nothing_goes_to_a_server_that_is_not_trusted_or_without_the_tls_that_it_wants() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let (certificate, key) = authority.sign("localhost", folder.path());
    let flags = ["--tlscert".into(), certificate.display().to_string(), "--tlskey".into(), key.display().to_string()];
    let server = mail_server(folder.path(), &flags);
    let firing = notice(NoticeKind::Firing, "N1");
    let port = server.addr.port();
    let outcome = send(&mut sender(smtp(port, SmtpTls::StartTls)), &mail_channel(), &firing);
    let Outcome::Again { sentence, .. } = outcome else { panic!("{outcome:?}") };
    assert!(sentence.contains("TLS failed"), "{sentence}");
    let outcome = send(&mut sender(smtp(port, SmtpTls::None)), &mail_channel(), &firing);
    let Outcome::GivenUp { sentence } = outcome else { panic!("{outcome:?}") };
    assert!(sentence.starts_with("530: it requires TLS or a user"), "{sentence}");
    // The server still accepts a correct message, and that is the only one.
    let pem = std::fs::read_to_string(authority.write(folder.path())).expect("a certificate");
    accepted(&send(&mut sender(smtp(port, SmtpTls::StartTls).trusting(&pem)), &mail_channel(), &firing));
    assert_eq!(messages(folder.path(), 1).len(), 1);
}
