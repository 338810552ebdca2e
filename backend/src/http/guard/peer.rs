//! Identity of the peer of a loopback connection: the uid that owns the caller's socket. Linux only.
//!
//! The kernel is queried by netlink (sock_diag) for the one socket with exactly this pair of addresses. If netlink is
//! unavailable, the tables `/proc/net/tcp` and `tcp6` are read. A socket whose process has closed it has inode 0 and
//! no owner.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
pub use system::user::own_uid;

/// The caller cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerError {
    reason: String,
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for PeerError {}

/// True if callers can be identified.
pub const SUPPORTED: bool = cfg!(target_os = "linux");

/// Queries the kernel for the caller.
#[derive(Debug, Default)]
pub struct Peers {
    /// Netlink has found a socket before, so a socket that it does not find does not exist.
    netlink_answers: AtomicBool,
}

impl Peers {
    /// The uid of the process at the other end of a connection between two addresses of this machine: `local` is our
    /// end. `None` when the socket has no owner any more, or was never in this network namespace.
    ///
    /// # Errors
    /// [`PeerError`] when neither netlink nor /proc/net is available.
    #[cfg(target_os = "linux")]
    pub fn caller_uid(&self, local: SocketAddr, remote: SocketAddr) -> Result<Option<u32>, PeerError> {
        linux::caller_uid(&self.netlink_answers, local, remote)
    }

    /// The uid of the process at the other end.
    ///
    /// # Errors
    /// Always: this system does not report it. See [`SUPPORTED`].
    #[cfg(not(target_os = "linux"))]
    pub fn caller_uid(&self, _local: SocketAddr, _remote: SocketAddr) -> Result<Option<u32>, PeerError> {
        let _ = &self.netlink_answers;
        Err(PeerError { reason: "this system cannot identify the user of a connection".into() })
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::PeerError;
    use std::io::{Error, Result as Io};
    use std::net::{IpAddr, SocketAddr};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::sync::atomic::{AtomicBool, Ordering};

    // From linux/sock_diag.h, linux/inet_diag.h and net/tcp_states.h; libc lacks the first two.
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NO_COOKIE: [u8; 8] = [0xff; 8];
    const STATE_LISTEN: u8 = 10;
    const HEADER: usize = 16;
    const REQUEST: usize = HEADER + 56;
    const ANSWER: usize = 72;

    /// A socket as the kernel describes it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Owner {
        pub uid: u32,
        pub inode: u32,
    }

    /// As [`Peers::caller_uid`](super::Peers::caller_uid).
    pub(super) fn caller_uid(
        netlink_answers: &AtomicBool,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Option<u32>, PeerError> {
        let (local, remote) = (canonical(local), canonical(remote));
        let owner = find(netlink_answers, || by_netlink(local, remote), || by_table("/proc", local, remote))?;
        Ok(owner.filter(|owner| owner.inode != 0).map(|owner| owner.uid))
    }

    /// Queries netlink, then the table. `answers`: netlink has found a socket before.
    pub(super) fn find(
        answers: &AtomicBool,
        netlink: impl Fn() -> Io<Option<Owner>>,
        table: impl FnOnce() -> Io<Option<Owner>>,
    ) -> Result<Option<Owner>, PeerError> {
        // The kernel searches without a lock and may miss a socket while others come and go, so it is queried twice.
        let found = netlink().and_then(|found| if found.is_some() { Ok(found) } else { netlink() });
        match found {
            Ok(Some(owner)) => {
                answers.store(true, Ordering::Relaxed);
                Ok(Some(owner))
            }
            // The table takes milliseconds with thousands of connections; it is not read for callers that have
            // disconnected.
            Ok(None) if answers.load(Ordering::Relaxed) => Ok(None),
            // A kernel without the tcp_diag module reports every socket as missing.
            Ok(None) => Ok(table().ok().flatten()),
            Err(netlink) => table()
                .map_err(|table| PeerError { reason: format!("netlink sock_diag: {netlink}; /proc/net/tcp: {table}") }),
        }
    }

    fn canonical(addr: SocketAddr) -> SocketAddr {
        SocketAddr::new(addr.ip().to_canonical(), addr.port())
    }

    /// Queries the one socket whose own end is `remote` and whose peer is `local`.
    pub(super) fn by_netlink(local: SocketAddr, remote: SocketAddr) -> Io<Option<Owner>> {
        let socket = open()?;
        let request = request(local, remote);
        // SAFETY: the pointer and the length are those of `request`.
        let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent != request.len() as isize {
            return Err(Error::last_os_error());
        }
        let mut answer = [0u8; 512];
        // SAFETY: the pointer and the length are those of `answer`.
        let got = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        let got = usize::try_from(got).map_err(|_| Error::last_os_error())?;
        match read_answer(&answer[..got.min(answer.len())])? {
            // Without such a connection the kernel offers a listening socket on the same port instead.
            Some((owner, ends)) if ends == (remote, local) => Ok(Some(owner)),
            _ => Ok(None),
        }
    }

    fn open() -> Io<OwnedFd> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; a negative result is checked before use.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the descriptor was opened just now and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // The kernel answers within the send; the limit is for emulated kernels that never do.
        let limit = libc::timeval { tv_sec: 1, tv_usec: 0 };
        // SAFETY: the pointer and the length are those of `limit`.
        let set = unsafe {
            let size = size_of::<libc::timeval>() as libc::socklen_t;
            libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const limit).cast(), size)
        };
        if set < 0 { Err(Error::last_os_error()) } else { Ok(socket) }
    }

    /// `nlmsghdr` and `inet_diag_req_v2`, byte by byte: the addresses are in network order, the rest in the machine's.
    fn request(local: SocketAddr, remote: SocketAddr) -> [u8; REQUEST] {
        let mut out = Vec::with_capacity(REQUEST);
        out.extend((REQUEST as u32).to_ne_bytes());
        out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        out.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
        out.extend([0; 8]); // sequence and port
        let family = if remote.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        out.extend([family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
        out.extend(u32::MAX.to_ne_bytes()); // any state
        out.extend(remote.port().to_be_bytes());
        out.extend(local.port().to_be_bytes());
        out.extend(padded(remote.ip()));
        out.extend(padded(local.ip()));
        out.extend([0; 4]); // any interface
        out.extend(NO_COOKIE);
        out.try_into().expect("the parts add up to the message's length")
    }

    fn padded(ip: IpAddr) -> [u8; 16] {
        let mut out = [0; 16];
        match ip {
            IpAddr::V4(ip) => out[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out = ip.octets(),
        }
        out
    }

    /// The socket of a response with its own and its peer's address; `None` when the kernel knows none.
    pub(super) fn read_answer(bytes: &[u8]) -> Io<Option<(Owner, (SocketAddr, SocketAddr))>> {
        let short = || Error::other("the response of the kernel is too short");
        let u32_at = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
        let kind = u32_at(4).ok_or_else(short)? as u16;
        if kind == libc::NLMSG_ERROR as u16 {
            let code = -(u32_at(HEADER).ok_or_else(short)? as i32);
            return if code == libc::ENOENT { Ok(None) } else { Err(Error::from_raw_os_error(code)) };
        }
        if kind != SOCK_DIAG_BY_FAMILY {
            return Err(Error::other("the response of the kernel is not about a socket"));
        }
        let body = bytes.get(HEADER..HEADER + ANSWER).ok_or_else(short)?;
        if body[1] == STATE_LISTEN {
            return Ok(None);
        }
        // family, state, timer, retransmits; ports at 4 and 6, addresses at 8 and 24; uid and inode come last.
        let end = |port: usize, ip: usize| {
            let octets: [u8; 16] = body[ip..ip + 16].try_into().expect("sixteen bytes");
            let ip = match i32::from(body[0]) {
                libc::AF_INET => IpAddr::from([octets[0], octets[1], octets[2], octets[3]]),
                _ => IpAddr::from(octets).to_canonical(),
            };
            SocketAddr::new(ip, u16::from_be_bytes([body[port], body[port + 1]]))
        };
        let number = |at: usize| u32_at(HEADER + at).ok_or_else(short);
        Ok(Some((Owner { uid: number(64)?, inode: number(68)? }, (end(4, 8), end(6, 24)))))
    }

    /// Reads the tables below `proc`. An IPv4 connection may belong to an IPv6 socket, so both are searched.
    pub(super) fn by_table(proc: &str, local: SocketAddr, remote: SocketAddr) -> Io<Option<Owner>> {
        let mut last = None;
        let mut read = false;
        for name in ["tcp", "tcp6"] {
            match std::fs::read_to_string(format!("{proc}/net/{name}")) {
                Ok(text) => {
                    read = true;
                    if let Some(owner) = text.lines().skip(1).find_map(|line| row(line, local, remote)) {
                        return Ok(Some(owner));
                    }
                }
                Err(error) => last = Some(error),
            }
        }
        match last {
            // A kernel without IPv6 has no tcp6.
            Some(error) if !read => Err(error),
            _ => Ok(None),
        }
    }

    fn row(line: &str, local: SocketAddr, remote: SocketAddr) -> Option<Owner> {
        let mut fields = line.split_ascii_whitespace();
        let own = table_addr(fields.nth(1)?)?;
        let peer = table_addr(fields.next()?)?;
        if (own, peer) != (remote, local) {
            return None;
        }
        // state, queues, timer, retransmits, uid, timeout, inode
        let uid = fields.nth(4)?.parse().ok()?;
        Some(Owner { uid, inode: fields.nth(1)?.parse().ok()? })
    }

    /// `0100007F:1C03`: words of the address as the machine's integers, the port plain.
    fn table_addr(text: &str) -> Option<SocketAddr> {
        let (ip, port) = text.split_once(':')?;
        let words: Option<Vec<[u8; 4]>> = (0..ip.len())
            .step_by(8)
            .map(|at| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes()))
            .collect();
        let octets = words?.concat();
        let ip = match octets.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(octets).ok()?),
            _ => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?).to_canonical(),
        };
        Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
#[path = "peer_tests.rs"]
mod tests;
