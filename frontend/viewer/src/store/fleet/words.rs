//! Texts of the fleet, in one sentence, and of each machine, in a few words.

use super::hosts::{Host, Totals};
use shared::connection_state::ConnectionState;
use shared::unit::rough_duration;

/// The leading sentence of the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sentence {
    /// True when nothing needs attention.
    pub calm: bool,
    /// Its subject and predicate, in bold.
    pub head: String,
    /// The rest.
    pub rest: String,
    /// A second line, fainter.
    pub below: String,
    /// The machine that it is about, if any.
    pub about: Option<String>,
    /// True when it is about alerts.
    pub fires: bool,
}

/// Knowledge of findings and alerts. All is reported as well only if both are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checked {
    /// They were requested and not yet received.
    #[default]
    Asked,
    /// They are not available here, as through a share link.
    Untold,
    /// They are known; the number is that of firing alerts.
    Told(u64),
}

/// The state of a machine in a few words, `now` in ms since the epoch; empty while it is live.
pub fn state(host: &Host, now: i64) -> String {
    let ago = rough_duration(now - host.entry.since);
    match &host.entry.state {
        ConnectionState::Live => String::new(),
        ConnectionState::Late => format!("{ago} late"),
        ConnectionState::Filling { missing, .. } => format!("filling, {} missing", rough_duration(*missing)),
        ConnectionState::Unreachable => format!("lost {ago}"),
        ConnectionState::Stopped(_) => format!("stopped {ago}"),
        ConnectionState::Refused(_) => "refused".into(),
        ConnectionState::Ended => "ended".into(),
    }
}

/// The same with its reason, as one sentence.
pub fn explained(host: &Host, now: i64) -> String {
    let ago = rough_duration(now - host.entry.since);
    match &host.entry.state {
        ConnectionState::Live => "live".into(),
        ConnectionState::Late => format!("connected, but no sample for {ago}"),
        ConnectionState::Filling { missing, rate } if *rate > 0.0 => {
            format!("live; {} of history missing, receiving {rate:.0} s per second", rough_duration(*missing))
        }
        ConnectionState::Filling { missing, .. } => format!("live; {} of history missing", rough_duration(*missing)),
        ConnectionState::Unreachable => format!("disconnected {ago} ago"),
        ConnectionState::Stopped(why) => format!("stopped {ago} ago: {why}"),
        ConnectionState::Refused(why) => format!("rejected: {why}"),
        ConnectionState::Ended => "ended; it will not return".into(),
    }
}

/// A number and its noun.
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// A number with commas.
pub fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// Word for machines in a state, by its code; empty for states that need no mention.
const NAMES: [&str; 7] = ["", "late", "filling in", "lost", "stopped", "refused", ""];

/// Number of machines by state: `3 lost`.
pub fn states(totals: &Totals) -> String {
    listed(|code| totals.states[code])
}

fn listed(number: impl Fn(usize) -> usize) -> String {
    let named = NAMES.iter().enumerate().filter(|(code, name)| !name.is_empty() && number(*code) > 0);
    named.map(|(code, name)| format!("{} {name}", number(code))).collect::<Vec<_>>().join(", ")
}

/// The sentence about a fleet without a leading finding. `now` is ms since the epoch.
pub fn sentence(hosts: &[Host], totals: &Totals, checked: Checked, now: i64) -> Sentence {
    let needs = |host: &&Host| {
        matches!(host.entry.state, ConnectionState::Late | ConnectionState::Unreachable | ConnectionState::Refused(_))
    };
    let troubled: Vec<&Host> = hosts.iter().filter(needs).collect();
    let first = troubled.iter().min_by_key(|host| (host.entry.state == ConnectionState::Late, host.entry.since));
    let others = thousands(totals.answer);
    match (first, troubled.len()) {
        (None, _) => calm(totals, checked),
        (Some(host), 1) => {
            let ago = rough_duration(now - host.entry.since);
            let (head, rest) = match &host.entry.state {
                ConnectionState::Refused(why) => (format!("{} was rejected:", host.entry.name), format!("{why}.")),
                ConnectionState::Late => (
                    format!("{} has sent no samples for {ago};", host.entry.name),
                    "it is connected, but its sampler hangs.".to_string(),
                ),
                _ => (
                    format!("{} has been lost for {ago};", host.entry.name),
                    "it disconnected unexpectedly.".to_string(),
                ),
            };
            let below = match host.entry.state {
                ConnectionState::Refused(_) => String::new(),
                _ => format!("It stores its samples and sends them after it reconnects. {others} others are online."),
            };
            Sentence { calm: false, head, rest, below, about: Some(host.entry.name.clone()), fires: false }
        }
        (Some(first), _) => Sentence {
            calm: false,
            head: format!("{} machines do not respond:", thousands(troubled.len())),
            rest: format!(
                "{}, first {}.",
                listed(|code| troubled.iter().filter(|host| usize::from(host.entry.state.code()) == code).count()),
                first.entry.name
            ),
            below: format!(
                "{} first, {} ago. {others} others are online.",
                explained_short(first),
                rough_duration(now - first.entry.since)
            ),
            about: None,
            fires: false,
        },
    }
}

fn explained_short(host: &Host) -> String {
    match host.entry.state {
        ConnectionState::Late => format!("{} stopped sending", host.entry.name),
        ConnectionState::Refused(_) => format!("{} was rejected", host.entry.name),
        _ => format!("{} was lost", host.entry.name),
    }
}

fn calm(totals: &Totals, checked: Checked) -> Sentence {
    let stopped = totals.states[usize::from(ConnectionState::Stopped(String::new()).code())];
    let answer = match (stopped, totals.answer) {
        (0, 1) => "the machine is online".into(),
        (0, 2) => "both machines are online".into(),
        (0, n) => format!("all {} machines are online", thousands(n)),
        (_, 1) => "the other machine is online".into(),
        (_, n) => format!("the other {} machines are online", thousands(n)),
    };
    let rest = match totals.busy {
        (0, _) => format!("{answer}."),
        (1, busy) => {
            let whose = if totals.answer == 1 { "its" } else { "the only" };
            format!("{answer}, and {whose} GPU is {}.", if busy == 1 { "busy" } else { "idle" })
        }
        (known, busy) => {
            let are = if busy == 1 { "is" } else { "are" };
            format!("{answer}, and {} of {} GPUs {are} busy.", thousands(busy), thousands(known))
        }
    };
    let mut below = Vec::new();
    if stopped > 0 {
        below.push(format!("{} stopped by a user", count(stopped, "machine was", "machines were")));
    }
    let filling = totals.states[2];
    if filling > 0 {
        below.push(format!("{} in samples from before a reconnect", count(filling, "machine fills", "machines fill")));
    }
    if let Some((temp, name)) = &totals.hottest {
        below.push(format!("the hottest GPU has {temp:.0} °C, on {name}"));
    }
    let below = upper(below.join("; "));
    let below = if below.is_empty() { below } else { below + "." };
    let head = match checked {
        Checked::Told(0) => "All is well:".to_string(),
        Checked::Told(n) => format!("{}:", count(n as usize, "alert fires", "alerts fire")),
        // An unknown state is not reported as well.
        Checked::Asked | Checked::Untold => String::new(),
    };
    let rest = if head.is_empty() { upper(rest) } else { rest };
    let below = if checked == Checked::Asked { "Findings and alerts are being read.".into() } else { below };
    let fires = matches!(checked, Checked::Told(1..));
    Sentence { calm: !fires, head, rest, below, about: None, fires }
}

/// A text that begins with a capital letter.
fn upper(mut text: String) -> String {
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::hosts::tests::host;
    use super::*;

    fn sentence_of(hosts: &[Host]) -> Sentence {
        sentence(hosts, &Totals::from_hosts(hosts), Checked::Told(0), 1_044_000)
    }

    #[test]
    fn one_sentence_leads_and_a_lost_machine_is_never_called_crashed() {
        let live = || host(0, "a", ConnectionState::Live, &[], &[90.0]);
        let calm = sentence_of(&[live()]);
        assert!(calm.calm && calm.rest == "the machine is online, and its GPU is busy.", "{calm:?}");
        let lost = sentence_of(&[live(), host(1, "b", ConnectionState::Unreachable, &[], &[])]);
        assert_eq!((lost.calm, lost.head.as_str()), (false, "b has been lost for 44 s;"));
        assert!(!format!("{lost:?}").contains("crash"));
        let lost_one = || host(1, "b", ConnectionState::Unreachable, &[], &[]);
        let two = sentence_of(&[host(2, "c", ConnectionState::Late, &[], &[]), lost_one()]);
        assert_eq!(two.head, "2 machines do not respond:");
        assert_eq!(two.rest, "1 late, 1 lost, first b.");
        let stopped = || host(3, "d", ConnectionState::Stopped("it was told to".into()), &[], &[]);
        let three = sentence_of(&[host(2, "c", ConnectionState::Late, &[], &[]), lost_one(), stopped()]);
        assert_eq!(three.rest, "1 late, 1 lost, first b.", "who was stopped by somebody needs nobody");
        let stopped = sentence_of(&[live(), host(1, "b", ConnectionState::Stopped("it was told to".into()), &[], &[])]);
        assert!(stopped.calm && stopped.below.contains("stopped by a user"), "{stopped:?}");
        assert_eq!(stopped.rest, "the other machine is online, and its GPU is busy.");
        let idle = host(1, "b", ConnectionState::Live, &[], &[0.0, 0.0]);
        assert_eq!(sentence_of(&[live(), idle]).rest, "both machines are online, and 1 of 3 GPUs is busy.");
    }

    #[test]
    fn all_is_well_only_where_findings_and_alerts_are_known_and_nothing_fires() {
        let hosts = [host(0, "a", ConnectionState::Live, &[], &[90.0])];
        let said = |checked| sentence(&hosts, &Totals::from_hosts(&hosts), checked, 1_044_000);
        assert_eq!(said(Checked::Told(0)).head, "All is well:");
        let asked = said(Checked::Asked);
        assert_eq!((asked.calm, asked.head.as_str()), (true, ""));
        assert_eq!(asked.rest, "The machine is online, and its GPU is busy.");
        assert_eq!(asked.below, "Findings and alerts are being read.");
        let untold = said(Checked::Untold);
        assert!(untold.head.is_empty() && !untold.below.contains("read"), "{untold:?}");
        let fires = said(Checked::Told(2));
        assert_eq!((fires.calm, fires.head.as_str()), (false, "2 alerts fire:"));
        // A lost machine is reported independently of everything else.
        let lost = [host(1, "b", ConnectionState::Unreachable, &[], &[])];
        assert_eq!(
            sentence(&lost, &Totals::from_hosts(&lost), Checked::Asked, 1_044_000).head,
            "b has been lost for 44 s;"
        );
    }

    #[test]
    fn each_state_has_its_words() {
        let words = |connection_state: ConnectionState| state(&host(0, "a", connection_state, &[], &[]), 1_044_000);
        assert_eq!(words(ConnectionState::Live), "");
        assert_eq!(words(ConnectionState::Late), "44 s late");
        assert_eq!(words(ConnectionState::Unreachable), "lost 44 s");
        assert_eq!(words(ConnectionState::Stopped("x".into())), "stopped 44 s");
        assert_eq!(words(ConnectionState::Filling { missing: 600_000, rate: 0.0 }), "filling, 10 min missing");
        assert_eq!(words(ConnectionState::Refused("x".into())), "refused");
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([7, 512, 8_000, 1_234_567].map(thousands), ["7", "512", "8,000", "1,234,567"]);
    }
}
