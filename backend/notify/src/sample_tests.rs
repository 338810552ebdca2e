//! Notices and channels shared by tests.

use crate::address::Allowed;
use crate::settings::Settings;
use shared::alert::{Alert, AlertSeverity, AlertState, ChannelInput, Notice, NoticeKind};
use shared::secret::Secret;

/// 2026-11-23 14:05:00 UTC, in seconds.
pub const AT: i64 = 1_795_442_700;

/// Text that must have no effect, wherever it is shown.
pub const HOSTILE: &str = "@everyone <!channel> <@U1> <script>alert(1)</script> *b* _i_ [x](https://evil.example) `c` {run} \
                           & a\u{202e}b\u{2066}c\r\nX-Injected: yes";

pub fn alert(number: u8, sentence: &str) -> Alert {
    Alert {
        id: format!("ALERT{number:021}"),
        rule: "gpu-hot".into(),
        name: "GPU is hot".into(),
        subject: format!("node-12/gpu.{number}.temp"),
        severity: AlertSeverity::Critical,
        state: AlertState::Firing,
        began: (AT - 180) * 1_000,
        fired: Some((AT - 60) * 1_000),
        ended: None,
        value: Some(89.1),
        worst: Some(91.0),
        sentence: sentence.into(),
        text: String::new(),
        labels: [("source", "node-12"), ("gpu", "5"), ("run", "r-1"), ("tag", "gpu.5.temp"), ("0 odd-name", "x")]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into(),
        count: 1,
        acked: None,
        held: String::new(),
        unknown_since: None,
    }
}

pub fn notice(kind: NoticeKind) -> Notice {
    Notice {
        id: "01JDCZ8K2Q4M6N8P0R2S4T6V8X".into(),
        kind,
        group: "gpu-hot/r-1".into(),
        seq: 1,
        severity: AlertSeverity::Critical,
        rule: "GPU is hot".into(),
        title: "node-12 GPU 5 at 89.1 °C, above 85 °C for 2 min".into(),
        note: "See the fans first.\nThen call the desk.".into(),
        alerts: vec![alert(5, "node-12 GPU 5 at 89.1 °C, above 85 °C for 2 min"), alert(6, "node-12 GPU 6 at 86.0 °C")],
        more: 54,
        counts: Vec::new(),
        link: Some("https://watchglass.example.org/?page=alerts&alert=A1&w=1h".into()),
        charts: None,
        help: Some("https://wiki.example.org/hot_(gpu)".into()),
        team: "lab".into(),
        host: "hub-1".into(),
        at: AT,
    }
}

/// A notice with foreign text in each place that may have some.
pub fn hostile() -> Notice {
    let mut notice = notice(NoticeKind::Firing);
    notice.title = HOSTILE.into();
    notice.note = format!("# {HOSTILE}\n- 1. list\n1. one");
    notice.alerts = vec![alert(1, HOSTILE)];
    notice.alerts[0].text = HOSTILE.into();
    notice.alerts[0].labels.insert("user".into(), HOSTILE.into());
    notice.more = 0;
    notice.team = "<lab> & *co*".into();
    notice.charts = Some("https://watchglass.example.org/?page=run&run=r1".into());
    notice
}

/// A notice with texts of the maximum length, and above.
pub fn long() -> Notice {
    let mut notice = notice(NoticeKind::Firing);
    notice.title = "<".repeat(400);
    notice.note = format!("{}\n", "_&".repeat(40)).repeat(200);
    notice.alerts = (0..30).map(|n| alert(n, &format!("{n} {}", "*🔥".repeat(900)))).collect();
    notice.alerts.iter_mut().for_each(|alert| alert.text = "~@<".repeat(3_000));
    notice.more = 970;
    notice
}

pub fn resolved() -> Notice {
    let mut notice = notice(NoticeKind::Resolved);
    notice.seq = 2;
    notice.more = 0;
    for alert in &mut notice.alerts {
        alert.state = AlertState::Resolved;
        alert.ended = Some((AT - 30) * 1_000);
    }
    notice
}

/// A notice of an alert that has ended before it.
pub fn short() -> Notice {
    let mut notice = Notice { kind: NoticeKind::Firing, ..resolved() };
    notice.alerts.truncate(1);
    notice.title = format!("{} (was firing 14:13–14:13 UTC)", notice.alerts[0].sentence);
    notice
}

pub fn digest() -> Notice {
    let mut notice = notice(NoticeKind::Digest);
    notice.title = "26 alerts of 2 rules in 10 min".into();
    notice.rule = String::new();
    notice.note = String::new();
    notice.counts = vec![("GPU is hot".into(), 20), ("disk *full*".into(), 6)];
    notice.more = 24;
    notice.link = None;
    notice.help = None;
    notice
}

pub fn test() -> Notice {
    let mut notice = notice(NoticeKind::Test);
    notice.title = "This is a test of lab-channel".into();
    notice.severity = AlertSeverity::Info;
    notice.note = String::new();
    notice.alerts.clear();
    notice.more = 0;
    notice
}

fn secret(text: &str) -> Option<Secret> {
    Some(Secret::new(text))
}

/// A channel of each kind, as it is created.
pub fn input(kind: &str) -> ChannelInput {
    let mut input = ChannelInput { name: "lab-channel".into(), kind: kind.into(), ..ChannelInput::default() };
    match kind {
        "slack" => input.address = secret("https://hooks.slack.com/services/T00/B00/XXXXXXXXXXXXh4Fz"),
        "mattermost" => input.address = secret("https://chat.example.org/hooks/3uow1yf95bgs9mtg3fwcwk5hqo"),
        "discord" => input.address = secret("https://discord.com/api/webhooks/123/abcDEF"),
        "teams" => input.address = secret("https://prod-1.logic.azure.com:443/workflows/1?api-version=1&sig=secret"),
        "webhook" => {
            input.address = secret("https://receiver.example.org/hook?key=1");
            input.secret = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
            input.old_secret = secret("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB");
        }
        "email" => input.to = vec!["ops@example.org".into(), "night@example.org".into()],
        "ntfy" => {
            input.address = secret("https://ntfy.example.org");
            input.topic = Some("lab-gpus-7f3a9c1e2b".into());
            input.secret = secret("tk_abcdefghijklmnop");
        }
        "telegram" => {
            input.secret = secret("123456789:AAE-abcdefghijklmnopqrstuvwxyz_0");
            input.topic = Some("-1001234567890".into());
        }
        "pagerduty" => input.secret = secret("0123456789abcdef0123456789abcdef"),
        "alertmanager" => {
            let addresses = ["https://am-1.example.org", "https://am-2.example.org/prefix/"];
            input.addresses = addresses.map(Secret::new).into();
        }
        other => panic!("no such kind {other}"),
    }
    input
}

pub fn settings(kind: &str) -> Settings {
    Settings::check(&input(kind), &Allowed::default(), true).expect(kind)
}
