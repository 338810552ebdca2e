//! Traffic of a Linux host's links, and retransmitted TCP segments.

use super::links::{Role, roles};
use crate::host::total::Total;
use crate::read::Sources;
use crate::read::procfs::{HotFile, fields, lines, number};
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::network;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval of reading the relations between links.
const ROLE_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of links. Removed links are kept so that their totals continue.
const MAX_LINKS: usize = 1000;

/// Opens the collector.
pub(crate) fn open(_: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    // /proc/net belongs to the reader's own network namespace. If a machine's files are mounted into a container, the
    // first process has the machine's namespace.
    let of_the_machine = roots.proc.join("1/net");
    let foreign = roots.proc != Path::new("/proc") && of_the_machine.join("dev").exists();
    let dir = if foreign { of_the_machine } else { roots.proc.join("net") };
    let path = dir.join("dev");
    let links = HotFile::open(&path).map_err(|error| OpenError::from_io(&path, &error))?;
    let tcp = HotFile::new(dir.join("snmp"));
    let class = roots.sys.join("class/net");
    let tried = vec![path.display().to_string(), tcp.path().display().to_string(), class.display().to_string()];
    let retransmits = Total::default();
    Ok(Part::only(
        tried,
        Network { links, tcp, class, known: Vec::new(), looked: None, received: 0, sent: 0, retransmits },
    ))
}

struct Network {
    links: HotFile,
    tcp: HotFile,
    class: PathBuf,
    /// In the order of the file.
    known: Vec<Link>,
    /// Time of the last reading of the relations between links.
    looked: Option<Duration>,
    /// Bytes of all links that count, since the start.
    received: u64,
    sent: u64,
    retransmits: Total,
}

struct Link {
    name: String,
    role: Role,
    seen: bool,
    /// Bytes since the previous reading.
    grown: [u64; 2],
    received: Total,
    sent: Total,
}

impl Collector for Network {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let mut sources = Sources::default();
        self.links(out, &mut sources);
        match self.tcp.read() {
            Ok(text) => {
                if let Some(segments) = parse_retransmits(text) {
                    sources.answered();
                    self.retransmits.add(segments);
                    out.put(&network::RETRANSMITS, (), self.retransmits.sum() as f64);
                }
            }
            Err(error) => sources.failed(|| format!("{}: {error}", self.tcp.path().display())),
        }
        sources.outcome()
    }
}

impl Network {
    fn links(&mut self, out: &mut Out, sources: &mut Sources) {
        let text = match self.links.read() {
            Ok(text) => text,
            Err(error) => return sources.failed(|| format!("{}: {error}", self.links.path().display())),
        };
        sources.answered();
        self.known.iter_mut().for_each(|link| link.seen = false);
        let mut next = 0;
        // The first two lines are headings.
        for line in lines(text).skip(2).filter(|line| !line.is_empty()) {
            let Some(line) = Line::parse(line) else {
                sources.failed(|| "a line of /proc/net/dev cannot be parsed".to_string());
                continue;
            };
            let is = |link: &Link| link.name.as_bytes() == line.name;
            // Links keep their order, so the next one is usually right.
            let at = if self.known.get(next).is_some_and(is) { Some(next) } else { self.known.iter().position(is) };
            let at = at.unwrap_or_else(|| {
                self.known.push(Link::new(line.name));
                self.looked = None;
                self.known.len() - 1
            });
            next = at + 1;
            let link = &mut self.known[at];
            link.seen = true;
            link.grown = [link.received.add(line.received), link.sent.add(line.sent)];
        }
        self.look_at_roles(out.at());
        for link in self.known.iter().filter(|link| link.seen) {
            if link.role.counts {
                self.received = self.received.saturating_add(link.grown[0]);
                self.sent = self.sent.saturating_add(link.grown[1]);
            }
            if link.role.listed {
                out.put(&network::DEVICE_RECEIVED, &*link.name, link.received.sum() as f64);
                out.put(&network::DEVICE_SENT, &*link.name, link.sent.sum() as f64);
            }
        }
        for link in self.known.iter_mut().filter(|link| !link.seen) {
            link.received.forget();
            link.sent.forget();
        }
        if self.known.len() > MAX_LINKS {
            self.known.retain(|link| link.seen);
        }
        out.put(&network::RECEIVED, (), self.received as f64);
        out.put(&network::SENT, (), self.sent as f64);
    }

    fn look_at_roles(&mut self, now: Duration) {
        if self.looked.is_some_and(|then| now.saturating_sub(then) < ROLE_INTERVAL) {
            return;
        }
        self.looked = Some(now);
        let seen = self.known.iter().filter(|link| link.seen).map(|link| link.name.as_str());
        let found = roles(seen, &self.class);
        let seen = self.known.iter_mut().filter(|link| link.seen);
        seen.zip(found).for_each(|(link, role)| link.role = role);
    }
}

impl Link {
    fn new(name: &[u8]) -> Link {
        let name = String::from_utf8_lossy(name).into_owned();
        let (received, sent) = (Total::default(), Total::default());
        Link { name, role: Role::default(), seen: false, grown: [0, 0], received, sent }
    }
}

/// One link of /proc/net/dev.
struct Line<'a> {
    name: &'a [u8],
    received: u64,
    sent: u64,
}

impl Line<'_> {
    /// `  eth0: bytes packets errs drop fifo frame compressed multicast bytes packets ...`
    fn parse(line: &[u8]) -> Option<Line<'_>> {
        // A name may contain a colon, the numbers cannot.
        let colon = line.iter().rposition(|&b| b == b':')?;
        let mut fields = fields(&line[colon + 1..]);
        let (received, sent) = (number(fields.next()?)?, number(fields.nth(7)?)?);
        Some(Line { name: line[..colon].trim_ascii(), received, sent })
    }
}

/// RetransSegs of the Tcp rows of /proc/net/snmp: one row of names, then one of numbers.
fn parse_retransmits(text: &[u8]) -> Option<u64> {
    let mut rows = lines(text).filter_map(|line| line.strip_prefix(b"Tcp:"));
    let at = fields(rows.next()?).position(|name| name == b"RetransSegs")?;
    number(fields(rows.next()?).nth(at)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_read_by_position_whatever_the_name() {
        let line = Line::parse(b"  a:b:12 2 3 4 5 6 7 8 90 10 11 12 13 14 15 16").unwrap();
        assert_eq!((line.name, line.received, line.sent), (&b"a:b"[..], 12, 90));
        assert!(Line::parse(b" eth0: 1 2 3").is_none());
    }

    #[test]
    fn retransmits_are_found_by_name() {
        let text = b"Ip: A\nIp: 1\nTcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 42 0\nUdp: A\nUdp: 7\n";
        assert_eq!(parse_retransmits(text), Some(42));
        assert_eq!(parse_retransmits(b"Tcp: RetransSegs\n"), None);
        assert_eq!(parse_retransmits(b"Tcp: RetransSegs\nTcp: -1\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, words in "[a-z:]{0,6}( *[0-9a-z]{1,22}){0,20}") {
            Line::parse(&text);
            Line::parse(words.as_bytes());
            parse_retransmits(&text);
        }
    }
}
