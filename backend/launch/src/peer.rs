//! Sockets for datagrams on which the kernel says who sent what, and a launcher's connection to a server: that server alone can
//! answer on it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a message is sent to a socket whose queue is full, and how long is waited between: 0.2 s in all.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The longest answer that is read, bytes.
const MAX_ANSWER_BYTES: usize = 8 << 10;

/// Who sent a message.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// Its process, by our numbers, where the kernel says it.
    pub pid: Option<u32>,
    /// Its user, likewise.
    pub uid: Option<u32>,
    /// The name of its socket.
    pub name: libc::sockaddr_un,
    /// Bytes of the name; one that has none cannot be answered.
    pub length: libc::socklen_t,
}

impl Sender {
    /// A user, by number, who cannot be answered.
    pub fn of(uid: Option<u32>) -> Sender {
        // SAFETY: plain numbers, of which all zeros are a value.
        let name = unsafe { std::mem::zeroed() };
        Sender { pid: None, uid, name, length: 0 }
    }

    /// Whether it waits on a socket to which can be answered.
    pub fn has_name(&self) -> bool {
        usize::try_from(self.length).is_ok_and(|length| length > size_of::<libc::sa_family_t>())
    }
}

/// Has the kernel say with each message who sent it.
///
/// # Errors
/// It does not.
pub fn ask_for_senders(fd: RawFd) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let yes: libc::c_int = 1;
        let (value, length) = ((&raw const yes).cast(), size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the value is whole for the call, with its length.
        if unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_PASSCRED, value, length) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = fd;
    Ok(())
}

/// Takes a message from a socket; how long it is, and who sent it.
///
/// # Errors
/// There is none, or the socket cannot be read.
pub fn receive(fd: RawFd, bytes: &mut [u8]) -> io::Result<(usize, Sender)> {
    /// Room for what the kernel says of the sender, aligned as it writes it: so much that no file which is sent along fits in,
    /// which the kernel closes then.
    #[repr(C, align(8))]
    struct Control([u8; 32]);
    let mut control = Control([0; 32]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut name = MaybeUninit::<libc::sockaddr_un>::zeroed();
    // SAFETY: plain numbers and pointers, of which all zeros are a value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control.0).cast();
    header.msg_controllen = control.0.len() as _;
    // SAFETY: the header names buffers that live for the call, with their lengths.
    let read = unsafe { libc::recvmsg(fd, &raw mut header, 0) };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: it was zeroed, and the kernel wrote at most its length.
    let name = unsafe { name.assume_init() };
    let (pid, uid) = credentials(&header).unzip();
    Ok((read, Sender { pid: pid.filter(|pid| *pid > 0), uid, name, length: header.msg_namelen }))
}

/// Process and user that the kernel names in a message's header.
fn credentials(header: &libc::msghdr) -> Option<(u32, u32)> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the macro gives the first part of the control buffer, or none, by the length that the kernel wrote.
        let part = unsafe { libc::CMSG_FIRSTHDR(header).as_ref()? };
        let is_one = part.cmsg_level == libc::SOL_SOCKET
            && part.cmsg_type == libc::SCM_CREDENTIALS
            && part.cmsg_len as usize >= size_of::<libc::ucred>();
        // SAFETY: a part of this type holds one `ucred`, wherever it lies.
        let one = is_one.then(|| unsafe { libc::CMSG_DATA(part).cast::<libc::ucred>().read_unaligned() })?;
        Some((u32::try_from(one.pid).unwrap_or(0), one.uid))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = header;
        None
    }
}

/// A connection to the server that listens on a socket. The kernel takes no datagram for it from any other socket.
#[derive(Debug)]
pub struct Server {
    socket: UnixDatagram,
    /// Where it listens.
    pub path: PathBuf,
}

impl Server {
    /// Connects to the first of these sockets on which somebody listens. None where nobody does.
    pub fn first(sockets: &[PathBuf]) -> Option<Server> {
        sockets.iter().find_map(|path| Server::at(path).ok())
    }

    /// # Errors
    /// Nobody listens there, or the system grants no socket.
    pub fn at(path: &Path) -> io::Result<Server> {
        let socket = UnixDatagram::unbound()?;
        // It has no name until it is connected: nobody else can have sent before.
        socket.connect(path)?;
        name(&socket)?;
        ask_for_senders(socket.as_raw_fd())?;
        Ok(Server { socket, path: path.into() })
    }

    /// Sends a message. A server whose queue is full is waited for 0.2 s.
    ///
    /// # Errors
    /// It does not take it.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        // The queue of a socket holds some ten messages, and a job of many ranks begins them at once.
        for _ in 0..TRIES {
            match self.socket.send(message) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(BETWEEN_TRIES),
                other => return other.map(drop),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Its next answer, and its user where the kernel says that.
    ///
    /// # Errors
    /// There is none until then.
    pub fn answer(&self, until: Instant) -> io::Result<(String, Option<u32>)> {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(Some(left))?;
        let mut bytes = [0; MAX_ANSWER_BYTES];
        let (read, sender) = receive(self.socket.as_raw_fd(), &mut bytes)?;
        Ok((String::from_utf8_lossy(&bytes[..read]).into_owned(), sender.uid))
    }
}

/// Gives a socket a name to which can be answered. It stands in no folder, and no other socket has it.
fn name(socket: &UnixDatagram) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let family = libc::AF_UNIX as libc::sa_family_t;
        let length = size_of::<libc::sa_family_t>() as libc::socklen_t;
        // SAFETY: the family alone is read, by the length; the kernel chooses the name then.
        if unsafe { libc::bind(socket.as_raw_fd(), (&raw const family).cast(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn nobody_answers_but_the_server_that_is_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.sock");
        let server = UnixDatagram::bind(&path).expect("a socket");
        let asking = Server::at(&path).expect("it listens");
        asking.send(b"question").expect("sent");
        let mut bytes = [0; 64];
        let (_, from) = server.recv_from(&mut bytes).expect("the question");
        // Its name stands in /proc/net/unix, for everybody.
        let stranger = UnixDatagram::unbound().expect("a socket");
        let refused = stranger.send_to_addr(b"a folder of mine", &from).expect_err("it is not taken");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        server.send_to_addr(b"answer", &from).expect("it waits");
        let until = Instant::now() + Duration::from_secs(10);
        // SAFETY: the call cannot fail.
        let own = unsafe { libc::geteuid() };
        assert_eq!(asking.answer(until).expect("an answer"), ("answer".into(), Some(own)));
    }
}
