//! Datagram sockets on which the kernel identifies the sender, and a launcher's connection to a server. Only that
//! server can answer on the connection.
//!
//! A launcher is answered at an abstract name, which needs no file. Such names belong to a network namespace. A launcher
//! in a container with another one, which shares the folder of the server's socket, is answered at a file there.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Number of attempts to send to a socket whose queue is full, and the delay between them: 0.2 s in all.
const MAX_ATTEMPTS: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Maximum length of an answer, bytes.
const MAX_ANSWER_BYTES: usize = 8 << 10;

/// Beginning of the names of files at which launchers are answered.
const ANSWER_PREFIX: &str = "answer-";

/// Maximum number of files of a folder that are looked at when those of killed launchers are removed.
const MAX_SWEPT_FILES: usize = 4096;

/// Maximum size of the list of sockets that is read, bytes.
const MAX_SOCKETS_BYTES: u64 = 4 << 20;

/// Sender of a message.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// Its process in our PID namespace, if the kernel reports it.
    pub pid: Option<u32>,
    /// Its user ID, if the kernel reports it.
    pub uid: Option<u32>,
    /// The name of its socket.
    pub name: libc::sockaddr_un,
    /// Length of the name, bytes. A sender without a name cannot be answered.
    pub length: libc::socklen_t,
}

impl Sender {
    /// A user, by ID, that cannot be answered.
    pub fn from_uid(uid: Option<u32>) -> Sender {
        // SAFETY: all fields are numbers, for which zero is valid.
        let name = unsafe { std::mem::zeroed() };
        Sender { pid: None, uid, name, length: 0 }
    }

    /// The same sender, if it is answered at a file: the file of that name in this folder, because the folder has
    /// another path in its container.
    pub fn in_folder(&self, folder: &Path) -> Option<Sender> {
        let at = offset_of!(libc::sockaddr_un, sun_path);
        let given = self.name.sun_path.get(..usize::try_from(self.length).ok()?.checked_sub(at)?)?;
        let given: Vec<u8> = given.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
        let file = Path::new(OsStr::from_bytes(&given)).file_name().filter(|name| is_answer(name))?;
        let path = folder.join(file);
        let (bytes, mut name) = (path.as_os_str().as_bytes(), self.name);
        if bytes.len() >= name.sun_path.len() {
            return None;
        }
        name.sun_path.fill(0);
        name.sun_path.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte as libc::c_char);
        Some(Sender { name, length: libc::socklen_t::try_from(at + bytes.len() + 1).ok()?, ..*self })
    }

    /// Whether its socket has a name, so that it can be answered.
    pub fn has_name(&self) -> bool {
        usize::try_from(self.length).is_ok_and(|length| length > size_of::<libc::sa_family_t>())
    }
}

fn is_answer(name: &OsStr) -> bool {
    name.as_bytes().starts_with(ANSWER_PREFIX.as_bytes())
}

/// Removes files in the folder of a server's socket at which killed launchers waited for answers.
pub fn sweep(folder: &Path) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_SWEPT_FILES);
    for file in files.filter(|file| is_answer(&file.file_name())) {
        let is_socket = file.file_type().is_ok_and(|kind| kind.is_socket());
        let connected = UnixDatagram::unbound().and_then(|socket| socket.connect(file.path()));
        // A launcher that waits there refuses us in another way.
        if is_socket && connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Makes the kernel attach the sender's credentials to each message.
///
/// # Errors
/// The system does not support it.
pub fn ask_for_senders(fd: RawFd) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let yes: libc::c_int = 1;
        let (value, length) = ((&raw const yes).cast(), size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: `value` points to a live value of `length` bytes.
        if unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_PASSCRED, value, length) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = fd;
    Ok(())
}

/// Receives a message. Returns its length and its sender.
///
/// # Errors
/// There is no message, or the socket cannot be read.
pub fn receive(fd: RawFd, bytes: &mut [u8]) -> io::Result<(usize, Sender)> {
    /// Room for the kernel's control data, aligned as the kernel writes it. It is too small for file descriptors sent
    /// along, so the kernel closes those.
    #[repr(C, align(8))]
    struct Control([u8; 32]);
    let mut control = Control([0; 32]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut name = MaybeUninit::<libc::sockaddr_un>::zeroed();
    // SAFETY: all fields are numbers and pointers, for which zero is valid.
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
        // SAFETY: the macro returns the first part of the control buffer, or none, by the length that the kernel wrote.
        let part = unsafe { libc::CMSG_FIRSTHDR(header).as_ref()? };
        let is_one = part.cmsg_level == libc::SOL_SOCKET
            && part.cmsg_type == libc::SCM_CREDENTIALS
            && part.cmsg_len as usize >= size_of::<libc::ucred>();
        // SAFETY: a part of this type holds one `ucred`, which may be unaligned.
        let one = is_one.then(|| unsafe { libc::CMSG_DATA(part).cast::<libc::ucred>().read_unaligned() })?;
        Some((u32::try_from(one.pid).unwrap_or(0), one.uid))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = header;
        None
    }
}

/// A connection to the server that listens on a socket. The kernel delivers no datagram of any other socket on it.
#[derive(Debug)]
pub struct Server {
    socket: UnixDatagram,
    /// Path of the server's socket.
    pub path: PathBuf,
    /// The file at which we are answered, if it is one.
    _answers: Option<AnswerFile>,
}

/// A file at which we are answered. It is removed with this value.
#[derive(Debug)]
struct AnswerFile(PathBuf);

impl Drop for AnswerFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Server {
    /// Connects to the first of these sockets that has a listener. None if none has.
    pub fn first(sockets: &[PathBuf]) -> Option<Server> {
        sockets.iter().find_map(|path| Server::at(path).ok())
    }

    /// # Errors
    /// No server listens there, or the system grants no socket.
    pub fn at(path: &Path) -> io::Result<Server> {
        Server::connect(path, is_in_our_network)
    }

    fn connect(path: &Path, is_near: impl Fn(&Path) -> bool) -> io::Result<Server> {
        let socket = UnixDatagram::unbound()?;
        // The socket has no name until it is connected, so nobody else can have sent to it before.
        socket.connect(path)?;
        let answers = if is_near(path) { None } else { bind_beside(&socket, path) };
        if answers.is_none() {
            name(&socket)?;
        }
        ask_for_senders(socket.as_raw_fd())?;
        Ok(Server { socket, path: path.into(), _answers: answers })
    }

    /// Sends a message. Retries for 0.2 s if the server's queue is full.
    ///
    /// # Errors
    /// The server does not accept it.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        // The queue of a socket holds about ten messages, and the ranks of a large job start at the same time.
        for _ in 0..MAX_ATTEMPTS {
            match self.socket.send(message) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(BETWEEN_TRIES),
                other => return other.map(drop),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Waits for the next answer. Returns it with the server's user ID, if the kernel reports that.
    ///
    /// # Errors
    /// No answer has come at `until`.
    pub fn answer(&self, until: Instant) -> io::Result<(String, Option<u32>)> {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(Some(left))?;
        let mut bytes = [0; MAX_ANSWER_BYTES];
        let (read, sender) = receive(self.socket.as_raw_fd(), &mut bytes)?;
        Ok((String::from_utf8_lossy(&bytes[..read]).into_owned(), sender.uid))
    }
}

/// Whether the socket at a path is one of our network namespace, which alone finds abstract names of ours: its name is
/// compared, as its folder may have another path here. True if the system does not show sockets.
fn is_in_our_network(path: &Path) -> bool {
    let mut text = Vec::new();
    let read =
        std::fs::File::open("/proc/net/unix").and_then(|list| list.take(MAX_SOCKETS_BYTES).read_to_end(&mut text));
    read.is_err() || path.file_name().is_none_or(|name| is_listed(&text, name.as_bytes()))
}

/// Whether a socket in a folder has this name, in the text of `/proc/net/unix`. Each line ends with a path.
fn is_listed(sockets: &[u8], name: &[u8]) -> bool {
    let is = |line: &[u8]| line.strip_suffix(name).is_some_and(|before| before.ends_with(b"/"));
    sockets.split(|byte| *byte == b'\n').any(is)
}

/// Binds a socket to a file of its own beside that of the server. Only in a folder of our own user: no other user
/// decides then what else is there, and the server, which is of that user or root, may write to the file.
fn bind_beside(socket: &UnixDatagram, path: &Path) -> Option<AnswerFile> {
    let folder = path.parent()?;
    // SAFETY: the call cannot fail.
    if folder.metadata().ok()?.uid() != unsafe { libc::geteuid() } {
        return None;
    }
    // A launcher that was killed, or that still waited for a request at its end, leaves its file.
    sweep(folder);
    let mut random = [0; 8];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random).ok()?;
    let own = folder.join(format!("{ANSWER_PREFIX}{:016x}", u64::from_ne_bytes(random)));
    let bytes = own.as_os_str().as_bytes();
    // SAFETY: all fields are numbers, for which zero is valid.
    let mut name: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    if bytes.len() >= name.sun_path.len() {
        return None;
    }
    name.sun_family = libc::AF_UNIX as libc::sa_family_t;
    name.sun_path.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte as libc::c_char);
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the name is valid for the call, with its length, and ends with a zero byte.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const name).cast(), length) };
    if bound != 0 {
        return None;
    }
    Some(AnswerFile(own))
}

/// Binds a socket to a unique abstract name (in no folder), so that it can be answered.
fn name(socket: &UnixDatagram) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let family = libc::AF_UNIX as libc::sa_family_t;
        let length = size_of::<libc::sa_family_t>() as libc::socklen_t;
        // SAFETY: by the length only the family is read; the kernel chooses the name.
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
        // The name is listed in `/proc/net/unix`, readable by everybody.
        let stranger = UnixDatagram::unbound().expect("a socket");
        let refused = stranger.send_to_addr(b"a folder of mine", &from).expect_err("it is not taken");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        server.send_to_addr(b"answer", &from).expect("it waits");
        let until = Instant::now() + Duration::from_secs(10);
        // SAFETY: the call cannot fail.
        let own = unsafe { libc::geteuid() };
        assert_eq!(asking.answer(until).expect("an answer"), ("answer".into(), Some(own)));
    }

    #[test]
    fn a_launcher_in_another_network_is_answered_at_a_file_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.sock");
        let server = UnixDatagram::bind(&path).expect("a socket");
        let files = || std::fs::read_dir(folder.path()).expect("a folder").count();
        assert!(is_in_our_network(&path));
        drop(Server::at(&path).expect("it listens"));
        assert_eq!(files(), 1, "no file is needed here");
        let asking = Server::connect(&path, |_| false).expect("it listens");
        asking.send(b"question").expect("sent");
        let mut bytes = [0; 64];
        let (_, from) = server.recv_from(&mut bytes).expect("the question");
        let at = from.as_pathname().expect("a file").to_path_buf();
        assert_eq!(at.parent(), Some(folder.path()));
        let stranger = UnixDatagram::unbound().expect("a socket");
        let refused = stranger.send_to(b"a folder of mine", &at).expect_err("it is not taken");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        server.send_to(b"answer", &at).expect("it waits");
        let until = Instant::now() + Duration::from_secs(10);
        assert_eq!(asking.answer(until).expect("an answer").0, "answer");
        // The file of a killed launcher is removed, and that of a waiting one is not.
        let left = folder.path().join("answer-left");
        drop(UnixDatagram::bind(&left).expect("a socket"));
        sweep(folder.path());
        assert!(!left.exists() && at.exists());
        drop(UnixDatagram::bind(&left).expect("a socket"));
        drop(Server::connect(&path, |_| false).expect("it listens"));
        assert!(!left.exists() && at.exists(), "the next launcher does it, too");
        drop(asking);
        assert_eq!(files(), 1);
    }

    #[test]
    fn sockets_of_other_networks_are_not_listed_here() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 26219 /var/lib/watchglass/run.sock\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 26220 @abstract\n";
        assert!(is_listed(list, b"run.sock"));
        for other in ["un.sock", "page.sock", "abstract"] {
            assert!(!is_listed(list, other.as_bytes()), "{other}");
        }
    }
}
