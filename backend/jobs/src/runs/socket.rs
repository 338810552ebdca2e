//! Datagram socket for reports of launchers, and markers of scripts. It is in a folder of ours, for its owner alone;
//! the settings may open it to others. On Linux the kernel adds the process and the user of the sender to each message.

use super::{RunsSettings, SocketMode};
use launch::peer::{Sender, ask_for_senders, receive, sweep};
use parking_lot::Mutex;
use shared::alert::{AlertSeverity, CodeAlert};
use shared::new_marker::NewMarker;
use shared::new_values::{MAX_VALUES_BYTES, NewValues};
use shared::run::{
    About, Begun, LogsOf, MAX_ID_BYTES, MAX_MARKER_BYTES, MAX_MESSAGE_BYTES, MAX_TAGS, MAX_TEXT_BYTES, NewId, Over,
    StacksOf, Told, check_id,
};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd;
#[cfg(all(test, target_os = "linux"))]
use std::os::fd::RawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use system::socket_file;
use system::user::{gid_of, login_of, own_uid};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

/// The socket; its file is removed with it.
#[derive(Debug)]
pub struct RunSocket {
    socket: UnixDatagram,
    path: PathBuf,
    unread: AtomicU64,
    refused: AtomicU64,
    /// User IDs and names of the trusted users: the user of this program, and root.
    users: [(u32, String); 2],
    /// Set if others may send, too: the known names of those users.
    others: Option<Mutex<HashMap<u32, String>>>,
}

/// Maximum number of remembered user names.
const MAX_USERS: usize = 4096;

/// A valid message.
#[derive(Debug)]
pub(super) enum Message {
    /// A launcher's report about a run.
    Told(Box<Told>),
    /// A marker of a script.
    Marker(Box<NewMarker>),
    /// An alert of a script.
    Alert(Box<CodeAlert>),
    /// Values that a script logs.
    Values(Box<NewValues>),
    /// Request of a launcher for the location of the output of a run, by its ID.
    Logs(String),
    /// Request of a launcher for the ID of a new run.
    NewId(String),
    /// Offer of a launcher to take the stacks of a run, by its ID.
    Stacks(String),
}

/// Sender of a message.
#[derive(Debug)]
pub(super) struct SentBy {
    /// Its process and user, from the kernel, and its address for the answer.
    pub from: Sender,
    /// Name of the user.
    pub user: String,
    /// Whether it is neither the user of this program nor root.
    pub is_other: bool,
}

#[cfg(test)]
impl SentBy {
    /// A sender that cannot be answered.
    pub fn new(other: Option<&str>, uid: u32) -> SentBy {
        SentBy { from: Sender::from_uid(Some(uid)), user: other.unwrap_or("root").into(), is_other: other.is_some() }
    }
}

impl RunSocket {
    /// Binds the socket of the settings. If they have none, or it cannot be used, it is bound at a path of this
    /// program's own, for its user.
    ///
    /// # Errors
    /// A sentence: the problem, and the remedy.
    pub fn bind(own: &Path, settings: &RunsSettings) -> Result<RunSocket, String> {
        if settings.socket.is_some() {
            match RunSocket::open(own, settings) {
                Ok(socket) => return Ok(socket),
                Err(why) => tracing::warn!("{why}; only jobs of this program's own user are told of"),
            }
        }
        RunSocket::open(own, &RunsSettings::default())
    }

    fn open(own: &Path, settings: &RunsSettings) -> Result<RunSocket, String> {
        let path = settings.socket.as_deref().unwrap_or(own);
        let failed = |error: io::Error| match settings.socket {
            Some(_) => {
                format!("runs.socket {}: {error}; name a short path in a folder of this program", path.display())
            }
            None => format!("{}: {error}", path.display()),
        };
        if let Some(folder) = path.parent() {
            // Others must be able to enter a folder that was configured.
            let mode = if settings.socket.is_some() { 0o755 } else { 0o700 };
            socket_file::make_folder(folder, mode).map_err(failed)?;
        }
        if settings.socket.is_some() {
            is_free(path)?;
        }
        if !cfg!(target_os = "linux") && settings.socket_mode != SocketMode::Owner {
            return Err("runs.socket_mode: this system does not identify senders; leave it out".into());
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let users = [own_uid(), 0].map(|uid| (uid, login_of(uid)));
        let (mode, is_shared) = match settings.socket_mode {
            SocketMode::Owner => (0o600, false),
            SocketMode::Group => (0o660, true),
            SocketMode::All => (0o666, true),
        };
        path.parent().into_iter().for_each(sweep);
        let socket = UnixDatagram::bind(path).map_err(failed)?;
        let (unread, refused) = Default::default();
        let others = is_shared.then(Mutex::default);
        let socket = RunSocket { socket, path: path.into(), unread, refused, users, others };
        let group = settings.socket_group.as_deref().map(gid_of).transpose();
        let group = group.map_err(|why| format!("runs.socket_group: {why}"))?;
        ask_for_senders(socket.socket.as_raw_fd()).map_err(failed)?;
        // Other users must not write before the kernel adds the sender to messages.
        socket_file::open_to(path, mode, group).map_err(|error| match &settings.socket_group {
            Some(group) if error.kind() == io::ErrorKind::PermissionDenied => {
                format!(
                    "runs.socket_group: {error}; check that the user of this program is a member of the group {group}"
                )
            }
            _ => failed(error),
        })?;
        Ok(socket)
    }

    /// Binds it again if its file is gone and can be made anew: the session manager removes a runtime folder with the last
    /// login of its user, and makes a new one with the next. `settings` are those of its [`bind`](Self::bind).
    pub(super) fn renew(&mut self, settings: &RunsSettings) {
        let above = self.path.parent().and_then(Path::parent);
        if self.path.symlink_metadata().is_ok() || !above.is_some_and(Path::is_dir) {
            return;
        }
        let is_configured = settings.socket.as_deref() == Some(self.path.as_path());
        let settings = if is_configured { settings.clone() } else { RunsSettings::default() };
        match RunSocket::open(&self.path, &settings) {
            Ok(mut new) => {
                std::mem::swap(self, &mut new);
                // The file is the new socket's, which the old one must not remove.
                new.path.clear();
                tracing::info!("{} was removed: listening there again", self.path.display());
            }
            Err(why) => tracing::debug!("{why}"),
        }
    }

    /// Names of the trusted users: the user of this program, and root.
    pub(super) fn trusted(&self) -> [String; 2] {
        self.users.each_ref().map(|(_, user)| user.clone())
    }

    /// Name of a trusted user. On systems that report no sender, an unknown sender counts as ours.
    fn trusted_user(&self, uid: Option<u32>) -> Option<&String> {
        let is = |own: u32| uid.map_or(!cfg!(target_os = "linux"), |uid| uid == own);
        self.users.iter().find(|(own, _)| is(*own)).map(|(_, user)| user)
    }

    /// Name of a user, and whether it is neither ours nor root. None: the user may not send.
    fn user(&self, uid: Option<u32>) -> Option<(String, bool)> {
        if let Some(user) = self.trusted_user(uid) {
            return Some((user.clone(), false));
        }
        let (uid, mut others) = (uid?, self.others.as_ref()?.lock());
        if others.len() >= MAX_USERS {
            others.clear();
        }
        Some((others.entry(uid).or_insert_with(|| login_of(uid)).clone(), true))
    }

    /// The next readable message, and its sender. Unreadable messages, and those of other users that may not send, are
    /// dropped and counted.
    pub(super) async fn next(&self) -> (Message, SentBy) {
        let mut bytes = vec![0; MAX_MESSAGE_BYTES + 1];
        loop {
            let received = self.socket.async_io(Interest::READABLE, || receive(self.socket.as_raw_fd(), &mut bytes));
            match received.await {
                Ok((read, from)) => match message(&bytes[..read]).zip(self.user(from.uid)) {
                    Some((mut message, (user, is_other))) => {
                        if let Message::Told(told) = &mut message {
                            told.set_user(&user);
                        }
                        return (message, SentBy { from, user, is_other });
                    }
                    None => {
                        self.answer(&from, "this is no marker; a text, or JSON with text, step and kind, with alert, text, severity and wait, or with values and step");
                        let unread = self.unread.fetch_add(1, Ordering::Relaxed) + 1;
                        if unread.is_power_of_two() {
                            tracing::warn!(unread, "messages on the socket of runs cannot be read");
                        }
                    }
                },
                // The socket is not read any more: later reports are found in the spool folder at the next start.
                Err(error) => {
                    tracing::warn!(%error, "the socket of runs cannot be read");
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Sends the reason why a message is refused.
    pub(super) fn refuse(&self, sender: &SentBy, why: &str) {
        let refused = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        if refused.is_power_of_two() {
            let user = &sender.user;
            tracing::warn!(refused, user, "a message of another user on the socket of runs is not taken: {why}");
        }
        self.answer(&sender.from, why);
    }

    /// Answers a sender if that is possible, without waiting. Another user gets no answer by path, because a socket
    /// that trusts us alone may be there.
    pub(super) fn answer(&self, to: &Sender, text: &str) {
        let here = self.path.parent().and_then(|folder| to.in_folder(folder));
        let to = here.as_ref().unwrap_or(to);
        let is_path = to.name.sun_path[0] != 0;
        if to.has_name() && (!is_path || self.trusted_user(to.uid).is_some()) {
            let (fd, name) = (self.socket.as_raw_fd(), (&raw const to.name).cast());
            // SAFETY: text and name are valid for the call, with their lengths; a sender that has gone is an error,
            // which is ignored.
            unsafe { libc::sendto(fd, text.as_ptr().cast(), text.len(), libc::MSG_DONTWAIT, name, to.length) };
        }
    }
}

/// Whether a configured path is free for a socket, or has one without a listener.
fn is_free(path: &Path) -> Result<(), String> {
    let at = path.display();
    match path.symlink_metadata() {
        Ok(found) if !found.file_type().is_socket() => {
            Err(format!("runs.socket {at}: the file there is not a socket; name another path"))
        }
        Ok(_) => match std::os::unix::net::UnixDatagram::unbound().and_then(|socket| socket.connect(path)) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(format!("runs.socket {at}: {error}; remove the file, or name another path")),
            Ok(()) => Err(format!("runs.socket {at}: another program listens there; stop it, or name another path")),
        },
        Err(_) => Ok(()),
    }
}

impl Drop for RunSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// An alert as a script sends it. The kernel adds the sender, which determines the run.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NewAlert {
    alert: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    severity: AlertSeverity,
    #[serde(default)]
    wait: Option<NewWait>,
    /// Used if the kernel names no run, as outside of one; never in place of one.
    #[serde(default)]
    run: Option<String>,
    #[serde(default)]
    id: Option<String>,
}

/// A time in a script's format.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum NewWait {
    Text(String),
    Seconds(f64),
}

fn alert(text: &str) -> Option<CodeAlert> {
    let NewAlert { alert: title, text, severity, wait, run, id } = serde_json::from_str(text).ok()?;
    let wait = wait.map(|wait| match wait {
        NewWait::Text(text) => text,
        NewWait::Seconds(seconds) => format!("{}s", seconds.ceil()),
    });
    Some(CodeAlert { title, text: text.unwrap_or_default(), severity, wait, run, id, source: None, t: None })
}

/// Parses a message and checks its limits: JSON of a launcher, of values, of an alert or of a marker, or the text of a
/// marker.
fn message(bytes: &[u8]) -> Option<Message> {
    if let Some(told) = parse(bytes) {
        return Some(Message::Told(Box::new(told)));
    }
    if bytes.len() <= MAX_MARKER_BYTES
        && let Ok(LogsOf { logs }) = serde_json::from_slice(bytes)
        && check_id(&logs).is_ok()
    {
        return Some(Message::Logs(logs));
    }
    if bytes.len() <= MAX_MARKER_BYTES
        && let Ok(NewId { new }) = serde_json::from_slice(bytes)
        && check_id(&new).is_ok()
    {
        return Some(Message::NewId(new));
    }
    if bytes.len() <= MAX_MARKER_BYTES
        && let Ok(StacksOf { stacks }) = serde_json::from_slice(bytes)
        && check_id(&stacks).is_ok()
    {
        return Some(Message::Stacks(stacks));
    }
    if bytes.len() <= MAX_VALUES_BYTES
        && let Ok(values) = serde_json::from_slice(bytes)
    {
        return Some(Message::Values(Box::new(values)));
    }
    let text = str::from_utf8(bytes).ok().filter(|text| (1..=MAX_MARKER_BYTES).contains(&text.len()))?;
    let is_id = |run: &Option<String>| run.as_ref().is_none_or(|id| check_id(id).is_ok());
    if let Some(alert) = Some(text).filter(|text| text.starts_with('{')).and_then(alert) {
        if !is_id(&alert.run) {
            return None;
        }
        return Some(Message::Alert(Box::new(alert)));
    }
    let marker = match text.starts_with('{') {
        true => serde_json::from_str(text).ok()?,
        false => NewMarker { text: Some(text.trim_end().into()), ..NewMarker::default() },
    };
    // A notebook's markers use the other socket.
    let is_script = is_id(&marker.run) && marker.kernel.is_none() && marker.pid.is_none() && marker.phase.is_none();
    is_script.then(|| Message::Marker(Box::new(marker)))
}

/// Parses a launcher's report and checks its limits.
fn parse(bytes: &[u8]) -> Option<Told> {
    if bytes.len() > MAX_MESSAGE_BYTES {
        return None;
    }
    bounded(serde_json::from_slice(bytes).ok()?)
}

/// Checks the limits of a parsed report.
pub(super) fn bounded(mut told: Told) -> Option<Told> {
    let (begun, how) = match &mut told {
        Told::Begin(begun) => (begun, None),
        Told::End(Over { begun, how, .. }) => (begun, Some(&*how)),
    };
    on_one_line(&mut begun.about);
    // Only the server knows who sent a request.
    begun.about.sent_by = None;
    let is_signal =
        |name: &String| name.len() <= MAX_ID_BYTES && name.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    let is_how = how.is_none_or(|how| [&how.signal, &how.asked].into_iter().flatten().all(is_signal));
    (is_how && keeps_bounds(begun)).then_some(told)
}

/// Removes line breaks, because names stand in tables and logs.
fn on_one_line(about: &mut About) {
    let names = [&mut about.name, &mut about.project, &mut about.group, &mut about.job_type, &mut about.label];
    for text in names.into_iter().flatten().chain([&mut about.program]) {
        if text.contains(char::is_control) {
            *text = text.replace(char::is_control, " ");
        }
    }
}

fn keeps_bounds(begun: &Begun) -> bool {
    let about = &begun.about;
    let texts = [&about.name, &about.project, &about.group, &about.job_type, &about.notes, &about.label];
    let short = |text: &String| text.len() <= MAX_TEXT_BYTES;
    check_id(&begun.run).is_ok()
        && begun.slurm.as_ref().is_none_or(|id| check_id(id).is_ok() && !id.starts_with('-'))
        && texts.into_iter().flatten().all(short)
        && short(&about.program)
        && about.tags.len() <= MAX_TAGS
        && about.tags.iter().all(|(name, value)| short(name) && short(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::How;

    #[test]
    fn what_keeps_no_bound_is_no_message() {
        let begun = |run: &str, name: &str| {
            let about = About { name: Some(name.into()), ..About::default() };
            let begun = Begun { run: run.into(), t: 1, pid: 7, about, ..Begun::default() };
            serde_json::to_vec(&Told::Begin(begun)).expect("JSON")
        };
        assert!(parse(&begun("abc", "first")).is_some());
        let wrong: [&[u8]; 6] = [
            b"",
            b"epoch 3",
            b"{\"event\":\"begin\"}",
            &begun("../a", "first"),
            &begun("abc", &"x".repeat(MAX_TEXT_BYTES + 1)),
            &begun("abc", &"x".repeat(MAX_MESSAGE_BYTES)),
        ];
        for bytes in wrong {
            assert!(parse(bytes).is_none(), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn what_is_told_acts_on_no_table_no_log_and_no_tool() {
        let told = |begun: &Begun, how: &How| {
            let over = Over { begun: begun.clone(), t: 1, how: how.clone() };
            parse(&serde_json::to_vec(&Told::End(over)).expect("JSON"))
        };
        let about = About { name: Some("a\nb\u{1b}".into()), program: "x\ty".into(), ..About::default() };
        let begun = Begun { run: "abc".into(), slurm: Some("7_1".into()), about, ..Begun::default() };
        let killed = How { signal: Some("signal 35".into()), asked: Some("SIGTERM".into()), ..How::default() };
        let Some(Told::End(over)) = told(&begun, &killed) else { panic!("it keeps to the bounds") };
        assert_eq!((over.begun.about.name.as_deref(), over.begun.about.program.as_str()), (Some("a b "), "x y"));
        assert!(told(&Begun { slurm: Some("-a".into()), ..begun.clone() }, &killed).is_none(), "a flag of scontrol");
        for signal in ["SIG\nKILL".to_string(), "x".repeat(MAX_ID_BYTES + 1)] {
            assert!(told(&begun, &How { signal: Some(signal.clone()), ..How::default() }).is_none(), "{signal:?}");
        }
        for wrong in [r#"{"alert": "x", "run": "a\nb"}"#, r#"{"text": "x", "run": "a\nb"}"#] {
            assert!(message(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_marker_is_a_text_or_json() {
        let marker = |bytes: &[u8]| match message(bytes) {
            Some(Message::Marker(marker)) => Some((marker.text, marker.step)),
            _ => None,
        };
        assert_eq!(marker(b"epoch 3\n"), Some((Some("epoch 3".into()), None)));
        assert_eq!(marker(br#"{"text": "loss", "step": 7}"#), Some((Some("loss".into()), Some(7))));
        let long = "x".repeat(MAX_MARKER_BYTES + 1);
        for wrong in
            [&b""[..], b"{", b"\xff", br#"{"rank": 3}"#, br#"{"phase": "start"}"#, br#"{"pid": 1}"#, long.as_bytes()]
        {
            assert_eq!(marker(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn an_alert_is_json_that_says_so() {
        let alert = |bytes: &[u8]| match message(bytes) {
            Some(Message::Alert(alert)) => Some((alert.title, alert.severity, alert.wait)),
            _ => None,
        };
        let said =
            br#"{"alert": "loss is NaN", "text": "step 3", "severity": "critical", "wait": "30m", "run": "other"}"#;
        assert_eq!(alert(said), Some(("loss is NaN".into(), AlertSeverity::Critical, Some("30m".into()))));
        let seconds = br#"{"alert": "a", "text": null, "wait": 90}"#;
        assert_eq!(alert(seconds), Some(("a".into(), AlertSeverity::Warning, Some("90s".into()))));
        for wrong in [
            &b"alert"[..],
            br#"{"alert": 3}"#,
            br#"{"alert": "a", "severity": "loud"}"#,
            br#"{"alert": "a", "to": "x"}"#,
        ] {
            assert_eq!(alert(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn who_asks_for_the_folder_of_output_names_its_run() {
        let asks = |bytes: &[u8]| matches!(message(bytes), Some(Message::Logs(run)) if run == "abc");
        assert!(asks(br#"{"logs":"abc"}"#));
        for wrong in [&br#"{"logs":"../abc"}"#[..], br#"{"logs":3}"#, br#"{"logs":"abc","text":"x"}"#, b"logs"] {
            assert!(!asks(wrong), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn who_asks_for_the_id_of_a_new_run_names_it() {
        let asks = |bytes: &[u8]| matches!(message(bytes), Some(Message::NewId(run)) if run == "abc");
        assert!(asks(br#"{"new":"abc"}"#));
        for wrong in [&br#"{"new":"../abc"}"#[..], br#"{"new":"abc","text":"x"}"#, br#"{"new":["abc"]}"#] {
            assert!(!asks(wrong), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn files_that_are_sent_along_are_not_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.sock");
        let socket = RunSocket::bind(&path, &RunsSettings::default()).expect("a socket");
        let sent = folder.path().join("sent along");
        let files = [0; 8].map(|_| std::fs::OpenOptions::new().create(true).append(true).open(&sent).expect("a file"));
        let from = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
        from.connect(&path).expect("it listens");
        send_with_files(&from, b"epoch 3", &files.each_ref().map(AsRawFd::as_raw_fd));
        drop(files);
        let (message, sender) = socket.next().await;
        assert!(matches!(message, Message::Marker(_)), "{message:?}");
        assert_eq!(sender.from.uid, Some(own_uid()));
        let open = std::fs::read_dir("/proc/self/fd").expect("files").flatten();
        let open = open.filter(|file| std::fs::read_link(file.path()).is_ok_and(|to| to == sent)).count();
        assert_eq!(open, 0);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_socket_that_went_with_the_last_login_comes_back_with_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = folder.path().join("1000");
        let path = runtime.join("watchglass/run.sock");
        let settings = RunsSettings::default();
        std::fs::create_dir(&runtime).expect("made");
        let mut socket = RunSocket::bind(&path, &settings).expect("a socket");
        std::fs::remove_dir_all(&runtime).expect("removed");
        socket.renew(&settings);
        assert!(!runtime.exists(), "nobody is logged in");
        std::fs::create_dir(&runtime).expect("made");
        socket.renew(&settings);
        let from = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
        from.send_to(b"epoch 3", &path).expect("it listens");
        assert!(matches!(socket.next().await.0, Message::Marker(_)));
        socket.renew(&settings);
        assert!(path.exists(), "it is there, and stays");
        drop(socket);
        assert!(!path.exists());
    }

    /// Sends a text with eight open files.
    #[cfg(target_os = "linux")]
    fn send_with_files(from: &std::os::unix::net::UnixDatagram, text: &[u8], files: &[RawFd; 8]) {
        #[repr(C, align(8))]
        struct Control(libc::cmsghdr, [RawFd; 8]);
        let length = size_of::<libc::cmsghdr>() + size_of_val(files);
        // SAFETY: plain numbers and pointers, of which all zeros are a value.
        let (mut header, head): (libc::msghdr, libc::cmsghdr) = unsafe { std::mem::zeroed() };
        let mut control = Control(head, *files);
        control.0.cmsg_len = length as _;
        control.0.cmsg_level = libc::SOL_SOCKET;
        control.0.cmsg_type = libc::SCM_RIGHTS;
        let mut part = libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = length as _;
        // SAFETY: the header names buffers that live for the call, with their lengths.
        assert_eq!(unsafe { libc::sendmsg(from.as_raw_fd(), &header, 0) }, text.len() as isize);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_kernel_says_who_sent_a_message() {
        use std::os::linux::net::SocketAddrExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.sock");
        let socket = RunSocket::bind(&path, &RunsSettings::default()).expect("a socket");
        let name = std::os::unix::net::SocketAddr::from_abstract_name(format!("test-{}", std::process::id()));
        let named = std::os::unix::net::UnixDatagram::bind_addr(&name.expect("a name")).expect("a socket");
        named.send_to(b"\xff", &path).expect("sent");
        named.send_to(b"epoch 3", &path).expect("sent");
        let (message, sender) = socket.next().await;
        assert!(matches!(message, Message::Marker(_)), "{message:?}");
        assert_eq!((sender.from.pid, sender.from.uid), (Some(std::process::id()), Some(own_uid())));
        socket.answer(&sender.from, "ok");
        let mut bytes = [0; 128];
        let mut answer = || named.recv(&mut bytes).map(|read| bytes[..read].to_vec()).expect("an answer");
        assert!(answer().starts_with(b"this is no marker"));
        assert_eq!(answer(), b"ok");
        // The folder has another path where the sender is.
        let elsewhere = folder.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).expect("made");
        let named = std::os::unix::net::UnixDatagram::bind(elsewhere.join("answer-1")).expect("a socket");
        std::fs::rename(elsewhere.join("answer-1"), folder.path().join("answer-1")).expect("moved");
        named.send_to(b"epoch 3", &path).expect("sent");
        let (_, sender) = socket.next().await;
        socket.answer(&sender.from, "here");
        named.set_nonblocking(true).expect("a socket");
        assert_eq!(named.recv(&mut bytes).map(|read| bytes[..read].to_vec()).expect("an answer"), b"here");
        // A sender without a name gets no answer.
        std::os::unix::net::UnixDatagram::unbound().and_then(|one| one.send_to(b"x", &path)).expect("sent");
        let (_, sender) = socket.next().await;
        socket.answer(&sender.from, "ok");
    }
}
