//! E-mail: the format of messages, and the meaning of a server's responses.

use crate::mail::{Smtp, SmtpTls};
use crate::sample_tests::{AT, HOSTILE, hostile, input, long, notice, resolved, settings, test};
use crate::send::{Attempt, Outcome, Road, Sender};
use crate::settings::Settings;
use crate::sinks::{Mail, Request};
use shared::alert::{Notice, NoticeKind};
use shared::secret::Secret;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

fn plain(port: Option<u16>) -> Smtp {
    Smtp::new("127.0.0.1", port, SmtpTls::None, None, None, "alerts@example.org").expect("settings")
}

fn mail(notice: &Notice) -> Mail {
    let settings = settings("email");
    match &crate::sinks::requests(&settings, notice, AT)[..] {
        [Request::Mail(mail)] => mail.clone(),
        other => panic!("{other:?}"),
    }
}

/// The header of a message, unfolded, and its body.
fn message(notice: &Notice) -> (Vec<(String, String)>, String) {
    let message = plain(None).message(&mail(notice)).expect("a message").formatted();
    let text = String::from_utf8(message).expect("ASCII");
    assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 998), "{text}");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let head = head.replace("\r\n ", " ").replace("\r\n\t", " ");
    let fields =
        head.lines().map(|line| line.split_once(": ").expect(line)).map(|(n, v)| (n.to_string(), v.to_string()));
    (fields.collect(), body.to_string())
}

fn field<'a>(head: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    head.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
}

#[test]
fn a_message_says_that_a_program_wrote_it_and_which_ones_belong_together() {
    let (first, _) = message(&notice(NoticeKind::Firing));
    assert_eq!(field(&first, "Message-ID"), ["<01JDCZ8K2Q4M6N8P0R2S4T6V8X@example.org>"]);
    assert_eq!(field(&first, "Auto-Submitted"), ["auto-generated"]);
    assert_eq!(field(&first, "Date"), ["Mon, 23 Nov 2026 14:05:00 +0000"]);
    assert_eq!(field(&first, "To"), ["ops@example.org, night@example.org"]);
    let (last, _) = message(&Notice { id: "01JDOTHER".into(), ..resolved() });
    assert_ne!(field(&first, "Message-ID"), field(&last, "Message-ID"));
    assert_eq!(field(&first, "References"), field(&last, "References"));
    assert_eq!(field(&last, "In-Reply-To"), field(&last, "References"));
    assert!(field(&first, "In-Reply-To").is_empty());
    let (other, _) = message(&Notice { group: "another".into(), ..resolved() });
    assert_ne!(field(&other, "References"), field(&last, "References"));
}

#[test]
fn no_text_becomes_a_header_or_a_recipient() {
    let mut notice = hostile();
    notice.title = format!("a\r\nBcc: evil@example.com\n\nX: y {HOSTILE}");
    notice.id = "id>\r\nX-Id: y".into();
    notice.group = "g\r\nX-Group: y".into();
    notice.host = "h\r\nMAIL FROM:<x@y>".into();
    let (head, body) = message(&notice);
    let names: Vec<&str> = head.iter().map(|(name, _)| name.as_str()).collect();
    for injected in ["Bcc", "X", "X-Id", "X-Group", "X-Injected"] {
        assert!(!names.contains(&injected), "{head:?}");
    }
    assert_eq!(field(&head, "Subject").len(), 1);
    assert_eq!(field(&head, "Message-ID"), ["<idX-Idy@example.org>"]);
    // A line with a single dot would end the message: lettre doubles it when sending.
    assert!(!body.contains('\u{202e}'));
}

#[test]
fn a_subject_is_one_line_of_at_most_150_letters() {
    let mut notice = notice(NoticeKind::Firing);
    notice.title = "ü".repeat(400);
    assert!(mail(&notice).subject.chars().count() <= 150);
    let (head, _) = message(&notice);
    let subject = field(&head, "Subject")[0];
    assert!(subject.contains("=?utf-8?b?") && subject.is_ascii(), "{subject}");
    assert!(mail(&long()).subject.chars().count() <= 150);
}

#[test]
fn settings_of_the_server_are_checked() {
    let new = |host: &str, tls, user: Option<&str>, password: Option<&str>, from: &str| {
        Smtp::new(host, None, tls, user, password.map(Secret::new), from)
    };
    use SmtpTls::{Implicit, None as Plain, StartTls};
    assert!(new("mail.example.org", StartTls, Some("u"), Some("p"), "a@example.org").is_ok());
    assert!(new("localhost", Plain, None, None, "Watchglass <a@example.org>").is_ok());
    assert!(new("[::1]", Plain, None, None, "a@example.org").is_ok());
    for (host, tls, user, password, from, part) in [
        ("mail.example.org", Plain, None, None, "a@example.org", "starttls or implicit"),
        ("127.0.0.1.example.org", Plain, None, None, "a@example.org", "starttls or implicit"),
        ("mail.example.org:25", StartTls, None, None, "a@example.org", "without a port"),
        ("", StartTls, None, None, "a@example.org", "name or address of a host"),
        ("a b", StartTls, None, None, "a@example.org", "name or address of a host"),
        ("a", Implicit, Some("u"), None, "a@example.org", "belong together"),
        ("a", Implicit, None, Some("p"), "a@example.org", "belong together"),
        ("a", Implicit, None, None, "nobody", "[smtp] from"),
        ("a", Implicit, None, None, "a@example.org\r\nBcc: b@c.org", "[smtp] from"),
        ("a", Implicit, None, None, "a@example.org, b@example.org", "[smtp] from"),
    ] {
        let error = new(host, tls, user, password, from).expect_err(part);
        assert!(error.contains(part), "{error}");
    }
    let shown = format!("{:?}", new("a", Implicit, Some("u"), Some("hunter2"), "a@example.org"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// All lines received by a server. It serves one connection after the other, so the final one is ours.
fn received_lines(addr: SocketAddr, told: &Receiver<String>) -> Vec<String> {
    const LAST: &str = "that was all";
    let mut own = TcpStream::connect(addr).expect("it listens");
    own.write_all(format!("{LAST}\r\n").as_bytes()).expect("it reads");
    let next = || told.recv_timeout(Duration::from_secs(20)).expect("it hands over what was said");
    std::iter::repeat_with(next).take_while(|line| line != LAST).collect()
}

/// A server that answers each command by a function, and returns the lines received.
fn server(answer: impl Fn(&str) -> String + Send + 'static) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let (tell, told) = mpsc::sync_channel(1_000);
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let Ok(mut tcp) = tcp else { return };
            let mut lines = BufReader::new(tcp.try_clone().expect("a handle")).lines();
            let _ = tcp.write_all(b"220 fake ESMTP\r\n");
            let mut in_data = false;
            while let Some(Ok(line)) = lines.next() {
                let _ = tell.send(line.clone());
                if in_data && line != "." {
                    continue;
                }
                let said = if in_data { answer(".") } else { answer(&line) };
                in_data = said.starts_with("354");
                let _ = tcp.write_all(format!("{said}\r\n").as_bytes());
                if line.starts_with("QUIT") {
                    break;
                }
            }
        }
    });
    (addr, told)
}

fn usual(command: &str) -> String {
    match command.split([' ', ':']).next().unwrap_or("") {
        "EHLO" => "250-fake\r\n250 8BITMIME".into(),
        "DATA" => "354 go on".into(),
        "QUIT" => "221 bye".into(),
        _ => "250 ok".into(),
    }
}

fn sent(answer: impl Fn(&str) -> String + Send + 'static, notice: &Notice) -> (Outcome, Vec<String>) {
    sent_in(3, answer, notice)
}

fn sent_in(tries: u32, answer: impl Fn(&str) -> String + Send + 'static, notice: &Notice) -> (Outcome, Vec<String>) {
    let (addr, told) = server(answer);
    let road = Road { smtp: Some(plain(Some(addr.port()))), ..Road::default() };
    let mut sender = Sender::new(&road).expect("a sender");
    let settings = Settings::check(&input("email"), &road.allowed, true).expect("settings");
    let outcome = sender.send(&settings, notice, Attempt { now: AT, tries, random: 0.5 });
    drop(sender);
    let lines = received_lines(addr, &told);
    assert!(!outcome.sentence().contains("own words"), "{outcome:?}");
    (outcome, lines)
}

#[test]
fn a_message_goes_to_all_in_one_piece() {
    let (outcome, lines) = sent(usual, &hostile());
    assert!(matches!(&outcome, Outcome::Done { sentence } if sentence.starts_with("accepted in ")), "{outcome:?}");
    let recipients: Vec<&String> = lines.iter().filter(|line| line.starts_with("RCPT")).collect();
    assert_eq!(recipients, ["RCPT TO:<ops@example.org>", "RCPT TO:<night@example.org>"]);
    assert_eq!(lines.iter().filter(|line| line.starts_with("DATA")).count(), 1);
    assert_eq!(lines[0], "EHLO example.org", "the host's name is no whole one");
}

#[test]
fn answers_of_a_mail_server_have_their_consequences() {
    for (command, said, again, part) in [
        ("MAIL", "451 own words", true, "451"),
        ("RCPT", "452 own words", true, "452"),
        (".", "421 own words", true, "421"),
        ("EHLO", "421 own words", true, "421"),
        ("MAIL", "550 own words", false, "550: it rejects the recipient"),
        ("MAIL", "530 own words", false, "530: it requires TLS or a user"),
        (".", "554 own words", false, "554: it rejects the message"),
        ("RCPT", "550 own words", false, "550: it rejects the recipient"),
    ] {
        let fault = move |line: &str| if line.starts_with(command) { said.to_string() } else { usual(line) };
        let (outcome, _) = sent(fault, &test());
        assert_eq!(matches!(outcome, Outcome::Again { .. }), again, "{command} {said}: {outcome:?}");
        assert_eq!(matches!(outcome, Outcome::GivenUp { .. }), !again, "{command} {said}: {outcome:?}");
        assert!(outcome.sentence().starts_with(part), "{command} {said}: {outcome:?}");
    }
}

#[test]
fn one_address_that_is_gone_does_not_cost_the_others_theirs() {
    let fault = |line: &str| if line.contains("<ops@") { "550 own words".to_string() } else { usual(line) };
    let (outcome, lines) = sent(fault, &notice(NoticeKind::Firing));
    assert!(
        matches!(&outcome, Outcome::Done { sentence } if sentence.starts_with("accepted for 1 of 2 addresses, 1 refused")),
        "{outcome:?}"
    );
    assert_eq!(lines.iter().filter(|line| line.starts_with("DATA")).count(), 1, "{lines:?}");
}

#[test]
fn a_full_mailbox_does_not_cost_the_others_theirs() {
    let full = |line: &str| if line.contains("<ops@") { "452 own words".to_string() } else { usual(line) };
    let messages = |lines: &[String]| lines.iter().filter(|line| line.starts_with("DATA")).count();
    let (outcome, lines) = sent_in(9, full, &notice(NoticeKind::Firing));
    assert!(matches!(outcome, Outcome::Again { .. }) && messages(&lines) == 0, "it may be a first contact: {lines:?}");
    let (outcome, lines) = sent_in(10, full, &notice(NoticeKind::Firing));
    assert!(
        matches!(&outcome, Outcome::Done { sentence } if sentence.starts_with("accepted for 1 of 2 addresses, 1 refused")),
        "{outcome:?}"
    );
    assert_eq!(messages(&lines), 1, "nobody gets it twice: {lines:?}");
    let busy = |line: &str| if line.starts_with("RCPT") { "450 own words".to_string() } else { usual(line) };
    let (outcome, _) = sent_in(10, busy, &notice(NoticeKind::Firing));
    assert!(matches!(outcome, Outcome::Again { .. }), "nobody has it: {outcome:?}");
}

#[test]
fn without_tls_that_can_be_trusted_nothing_is_said() {
    let (addr, told) = server(usual);
    let user = (Some("me"), Some(Secret::new("hunter2")));
    let smtp = Smtp::new("localhost", Some(addr.port()), SmtpTls::StartTls, user.0, user.1, "a@example.org");
    let road = Road { smtp: Some(smtp.expect("settings")), ..Road::default() };
    let settings = settings("email");
    let outcome =
        Sender::new(&road).expect("a sender").send(&settings, &test(), Attempt { now: AT, tries: 1, random: 0.5 });
    assert!(matches!(&outcome, Outcome::Again { sentence, .. } if sentence.contains("[smtp]")), "{outcome:?}");
    let lines = received_lines(addr, &told);
    assert!(!lines.iter().any(|line| line.starts_with("AUTH") || line.starts_with("MAIL")), "{lines:?}");
    let outcome = Sender::new(&Road::default()).expect("a sender").send(
        &settings,
        &test(),
        Attempt { now: AT, tries: 1, random: 0.5 },
    );
    assert!(matches!(&outcome, Outcome::GivenUp { sentence } if sentence.contains("[smtp]")), "{outcome:?}");
}
