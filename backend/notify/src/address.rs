//! Allowed targets of notices: a rule that is checked for each address of a name, at each connection.
//!
//! Channels are created by people who may not have access to everything that this machine can reach. So only public
//! addresses are connected to, and those in the machine's own configuration (`[alerts] allow_targets`).

use client::Gate;
use client::http::Uri;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Parsed entries of `[alerts] allow_targets`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    names: Vec<(String, u16)>,
    exact: Vec<SocketAddr>,
    ranges: Vec<Range>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    base: IpAddr,
    bits: u8,
}

impl Range {
    const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Self {
        Range { base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    const fn v6(a: u16, b: u16, c: u16, bits: u8) -> Self {
        Range { base: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), bits }
    }

    fn holds(&self, ip: IpAddr) -> bool {
        let (base, ip, width) = match (self.base, ip) {
            (IpAddr::V4(base), IpAddr::V4(ip)) => (u128::from(base.to_bits()), u128::from(ip.to_bits()), 32),
            (IpAddr::V6(base), IpAddr::V6(ip)) => (base.to_bits(), ip.to_bits(), 128),
            _ => return false,
        };
        (base ^ ip).checked_shr(width - u32::from(self.bits)).unwrap_or(0) == 0
    }

    /// Whether it is a single address.
    fn is_one(&self) -> bool {
        self.bits == if self.base.is_ipv4() { 32 } else { 128 }
    }
}

/// Non-public IPv4: IANA's registry of special-purpose addresses, multicast, and reserved ranges.
const PRIVATE_V4: &[Range] = &[
    Range::v4(0, 0, 0, 0, 8),       // this network
    Range::v4(10, 0, 0, 0, 8),      // private
    Range::v4(100, 64, 0, 0, 10),   // carriers' NAT
    Range::v4(127, 0, 0, 0, 8),     // loopback
    Range::v4(169, 254, 0, 0, 16),  // link-local
    Range::v4(172, 16, 0, 0, 12),   // private
    Range::v4(192, 0, 0, 0, 24),    // protocol assignments
    Range::v4(192, 0, 2, 0, 24),    // documentation
    Range::v4(192, 88, 99, 0, 24),  // relays of 6to4
    Range::v4(192, 168, 0, 0, 16),  // private
    Range::v4(198, 18, 0, 0, 15),   // benchmarks
    Range::v4(198, 51, 100, 0, 24), // documentation
    Range::v4(203, 0, 113, 0, 24),  // documentation
    Range::v4(224, 0, 0, 0, 3),     // multicast, reserved, broadcast
];

/// The only public range of IPv6.
const PUBLIC_V6: Range = Range::v6(0x2000, 0, 0, 3);

/// Non-public parts of that range.
const PRIVATE_V6: &[Range] = &[
    Range::v6(0x2001, 0, 0, 23),     // protocol assignments: Teredo, benchmarks, ORCHID
    Range::v6(0x2001, 0xdb8, 0, 32), // documentation
    Range::v6(0x3fff, 0, 0, 20),     // documentation
    Range::v6(0x3ffe, 0, 0, 16),     // the former 6bone
];

/// Metadata services of clouds, which return a machine's credentials to any request. No range or name admits these.
const METADATA: &[Range] = &[
    Range::v4(169, 254, 0, 0, 16),
    Range::v4(100, 100, 100, 200, 32),
    Range::v4(168, 63, 129, 16, 32),
    Range::v4(192, 0, 0, 192, 32),
    Range::v6(0xfe80, 0, 0, 10),
    Range { base: IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), bits: 128 },
];

fn is_metadata(ip: IpAddr) -> bool {
    METADATA.iter().any(|range| range.holds(ip))
}

/// The IPv4 address embedded in an IPv6 one: mapped, by NAT64's well-known prefix, or by 6to4.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => v4(g, h),
        [0x2002, ..] => v4(b, c),
        _ => None,
    }
}

/// Whether an address belongs to the public internet.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => !PRIVATE_V4.iter().chain(METADATA).any(|range| range.holds(ip)),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => is_public(IpAddr::V4(v4)),
            None => PUBLIC_V6.holds(ip) && !PRIVATE_V6.iter().any(|range| range.holds(ip)),
        },
    }
}

/// The host of an address in the form for comparison: without brackets and a trailing dot, in lower case.
fn host(text: &str) -> String {
    text.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase()
}

impl Allowed {
    /// Parses the entries: `mattermost.lab:443`, `10.1.2.3:9093`, `[fd00::1]:443`, `10.1.2.0/24`, `fd00::/48`.
    ///
    /// # Errors
    /// The invalid entry, and the valid forms.
    pub fn parse<T: AsRef<str>>(entries: &[T]) -> Result<Self, String> {
        let mut allowed = Allowed::default();
        for entry in entries {
            let entry = entry.as_ref().trim();
            let wrong = || {
                format!(
                    "{entry:?} is neither a host with its port, as mattermost.lab:443, nor a range of \
                     addresses, as 10.1.2.0/24"
                )
            };
            if let Some((base, bits)) = entry.split_once('/') {
                let (base, bits) = (base.parse::<IpAddr>(), bits.parse::<u8>());
                let (Ok(base), Ok(bits)) = (base, bits) else { return Err(wrong()) };
                if bits > if base.is_ipv4() { 32 } else { 128 } {
                    return Err(wrong());
                }
                allowed.ranges.push(Range { base, bits });
            } else if let Ok(exact) = entry.parse::<SocketAddr>() {
                allowed.exact.push(exact);
            } else {
                let (name, port) = entry.rsplit_once(':').ok_or_else(wrong)?;
                let port = port.parse::<u16>().map_err(|_| wrong())?;
                let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
                if !named || name.parse::<IpAddr>().is_ok() {
                    return Err(wrong());
                }
                allowed.names.push((host(name), port));
            }
        }
        Ok(allowed)
    }

    /// Whether an address of this name at this port is admitted, public or not.
    fn admits(&self, name: &str, address: SocketAddr) -> bool {
        // An address that embeds another one is checked as that one, too.
        let ip = match address.ip() {
            IpAddr::V6(v6) => embedded(v6).map_or(address.ip(), IpAddr::V4),
            ip => ip,
        };
        let same = |exact: &SocketAddr| [ip, address.ip()].contains(&exact.ip()) && exact.port() == address.port();
        if self.exact.iter().any(same) {
            return true;
        }
        if is_metadata(ip) {
            return self.ranges.iter().any(|range| range.is_one() && range.holds(ip));
        }
        self.names.iter().any(|(known, port)| *known == host(name) && *port == address.port())
            || self.ranges.iter().any(|range| range.holds(ip))
    }

    /// Whether plain http to this host is allowed: its name is an entry, or its address may be in one. The addresses of
    /// its name are checked at the connection.
    pub fn plain(&self, name: &str, port: u16) -> bool {
        let name = host(name);
        match name.parse::<IpAddr>() {
            Ok(ip) => self.admits(&name, SocketAddr::new(ip, port)),
            Err(_) => {
                !self.ranges.is_empty()
                    || self.exact.iter().any(|exact| exact.port() == port)
                    || self.names.iter().any(|(known, at)| *known == name && *at == port)
            }
        }
    }
}

/// Name resolution.
pub trait Names: fmt::Debug + Send + Sync + 'static {
    /// All addresses of a host, within a timeout.
    ///
    /// # Errors
    /// Reason for having none, a sentence without a full stop and without the name.
    fn look_up(&self, host: &str, port: u16, within: Duration) -> Result<Vec<SocketAddr>, String>;
}

/// Name resolution by the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

impl Names for SystemNames {
    fn look_up(&self, host: &str, port: u16, within: Duration) -> Result<Vec<SocketAddr>, String> {
        let (tell, told) = mpsc::sync_channel(1);
        let host = host.to_string();
        // The system's resolver has no timeout, so a lookup that hangs is abandoned with its thread.
        std::thread::spawn(move || tell.send((host.as_str(), port).to_socket_addrs().map(Vec::from_iter)).ok());
        match told.recv_timeout(within) {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Err(UNKNOWN.into()),
            Err(RecvTimeoutError::Timeout) => Err(format!("the DNS lookup timed out after {} s", within.as_secs())),
        }
    }
}

const UNKNOWN: &str = "the name cannot be resolved: check its spelling in the channel, and the DNS of this machine";

/// Error for a name without an allowed address.
pub const NOT_PUBLIC: &str = "the name has no public address; add it to [alerts] allow_targets in the configuration";

/// Error for plain http to a target that is not in the configuration.
pub const NOT_NAMED: &str =
    "plain http is allowed only for [alerts] allow_targets in the configuration: write https:// instead";

/// Whether an address belongs to this machine. Only then the system selects the same address as the source for a
/// connection to it. Nothing is sent.
pub(crate) fn is_own(ip: IpAddr) -> bool {
    let any: SocketAddr = match ip {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let from = UdpSocket::bind(any).and_then(|socket| socket.connect((ip, 9)).and_then(|()| socket.local_addr()));
    from.is_ok_and(|from| from.ip() == ip)
}

/// The rule of a sender: resolves names, and drops addresses that are neither public nor allowed.
#[derive(Debug)]
pub struct Rule {
    pub(crate) allowed: Allowed,
    pub(crate) names: Box<dyn Names>,
}

impl Rule {
    /// A rule with name resolution by the system.
    pub fn new(allowed: Allowed) -> Self {
        Rule { allowed, names: Box::new(SystemNames) }
    }

    /// The allowed ones among these addresses of a host.
    ///
    /// # Errors
    /// Reason for having none, a sentence without a full stop.
    fn admitted(&self, host: &str, found: Vec<SocketAddr>, tls: bool) -> Result<Vec<SocketAddr>, String> {
        let free = |address: &SocketAddr| tls && is_public(address.ip()) && !is_own(address.ip());
        let fits = |address: &SocketAddr| self.allowed.admits(host, *address) || free(address);
        let admitted: Vec<SocketAddr> = found.into_iter().filter(fits).collect();
        match (admitted.is_empty(), tls) {
            (false, _) => Ok(admitted),
            (true, true) => Err(NOT_PUBLIC.into()),
            (true, false) => Err(NOT_NAMED.into()),
        }
    }

    /// Checks a request before it is sent to a proxy. An address known here as not allowed is refused. A name that only
    /// the proxy can resolve is left to the proxy.
    ///
    /// # Errors
    /// Reason of the refusal, a sentence without a full stop.
    pub fn before_proxy(&self, uri: &Uri, within: Duration) -> Result<(), String> {
        let (host, port, tls) = parts(uri)?;
        match host.parse::<IpAddr>() {
            Ok(ip) => self.admitted(&host, vec![SocketAddr::new(ip, port)], tls).map(drop),
            Err(_) => match self.names.look_up(&host, port, within) {
                Ok(found) => self.admitted(&host, found, tls).map(drop),
                Err(_) => Ok(()),
            },
        }
    }
}

impl Gate for Rule {
    fn addresses(&self, uri: &Uri, within: Duration) -> Result<Vec<SocketAddr>, String> {
        let (host, port, tls) = parts(uri)?;
        let found = match host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, port)],
            Err(_) => self.names.look_up(&host, port, within)?,
        };
        // The port is that of the address, whatever a resolver returns.
        let found = found.into_iter().map(|address| SocketAddr::new(address.ip(), port)).collect();
        self.admitted(&host, found, tls)
    }
}

fn parts(uri: &Uri) -> Result<(String, u16, bool), String> {
    let tls = uri.scheme_str() == Some("https");
    let host = host(uri.host().unwrap_or(""));
    if host.is_empty() || !(tls || uri.scheme_str() == Some("http")) {
        return Err("it has no usable address".into());
    }
    Ok((host, uri.port_u16().unwrap_or(if tls { 443 } else { 80 }), tls))
}
