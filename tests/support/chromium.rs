//! A headless Chromium, controlled over two pipes by the Chrome DevTools Protocol. There is no port and no driver. It
//! ends when its pipe is closed, so with the process that started it, even when that is killed.

use crate::server::command;
use crate::waiting::MAX_WAIT;
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Flags of Chromium. It can reach only loopback, also by the name hub.example, and makes no requests of its own.
const FLAGS: [&str; 22] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-startup-window",
    // Root cannot use the sandbox, as in most containers. All opened pages are ours.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-hang-monitor",
    "--disable-popup-blocking",
    "--password-store=basic",
    // The address bar has two pages of its own for each of ours. They cost three quarters of an empty page.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
    // Each page counts as visible, regardless of how many there are.
    "--disable-backgrounding-occluded-windows",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    // A bench measures memory exactly, after a garbage collection.
    "--js-flags=--expose-gc",
    "--enable-precise-memory-info",
    "--host-resolver-rules=MAP hub.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

/// Starts Chromium with our pipes as its descriptors 3 and 4, in a profile that is removed when it ends.
const START: &str = r#"
for chromium in chromium chromium-browser google-chrome; do command -v "$chromium" > /dev/null && break; done
profile=$(mktemp -d) || exit
"$chromium" "$@" --user-data-dir="$profile" 3<&0 4>&1 < /dev/null > /dev/null
code=$?
rm -rf "$profile"
exit $code
"#;

/// Maximum number of queued commands. Each caller waits for the answer to its own.
const MAX_COMMANDS: usize = 256;
/// Wait for its last output after it has closed its pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Maximum number of lines of its standard error in the message of a test that fails.
const MAX_LINES: usize = 12;

/// A running Chromium.
pub struct Chromium {
    shell: Mutex<Child>,
    commands: SyncSender<Vec<u8>>,
    heard: Arc<Heard>,
    last_id: AtomicU64,
}

/// State that Chromium has reported.
#[derive(Default)]
struct Heard {
    said: Mutex<ChromiumState>,
    news: Condvar,
}

#[derive(Default)]
struct ChromiumState {
    /// Answers to commands by command id; None until the answer arrives.
    answers: BTreeMap<u64, Option<Value>>,
    pages: BTreeMap<String, Page>,
    /// Events of a trace, and the number of traces that are complete.
    traced: Vec<Value>,
    traces: usize,
    lines: VecDeque<String>,
    ended: bool,
}

/// State of a page, by the session that drives it.
#[derive(Default)]
pub struct Page {
    /// Its outermost frame.
    frame: String,
    /// The documents that were loaded in it.
    pub documents: Vec<String>,
    /// Whether a document is loading.
    pub is_loading: bool,
    has_crashed: bool,
    /// Errors in its log that were not read yet.
    errors: Vec<String>,
}

impl Chromium {
    /// Starts a Chromium without a page.
    ///
    /// # Panics
    /// Panics when it does not start: `cargo xtask setup --browser` installs it.
    pub fn start() -> Self {
        let mut shell = command("/bin/sh");
        shell.args(["-c", START, "sh"]).args(FLAGS);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C in a terminal must not reach the shell, which then still removes the profile.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let mut shell = shell.spawn().expect("a shell");
        let (commands, to_write) = sync_channel::<Vec<u8>>(MAX_COMMANDS);
        let mut to = shell.stdin.take().expect("a pipe");
        // A full pipe blocks only this thread.
        std::thread::spawn(move || to_write.iter().try_for_each(|bytes| to.write_all(&bytes)));
        let heard = Arc::<Heard>::default();
        let (said, lines) = (shell.stdout.take().expect("a pipe"), shell.stderr.take().expect("a pipe"));
        let (theirs, also) = (heard.clone(), heard.clone());
        let (over, complete) = sync_channel(1);
        std::thread::spawn(move || {
            theirs.keep_lines(lines);
            over.send(())
        });
        let reply = commands.clone();
        std::thread::spawn(move || {
            also.read_messages(said, &reply);
            // Its last output gives the reason.
            let _ = complete.recv_timeout(LAST_WORDS);
            also.lock_state().ended = true;
            also.news.notify_all();
        });
        let chromium = Chromium { shell: Mutex::new(shell), commands, heard, last_id: AtomicU64::new(0) };
        if let Err(why) = chromium.call("", "Browser.getVersion", json!({})) {
            panic!("Chromium does not start: {why}\nIt is installed by: cargo xtask setup --browser");
        }
        chromium
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        !self.heard.lock_state().ended
    }

    /// Sends a command to a page, or to Chromium itself where `session` is empty, and returns the answer.
    pub fn call(&self, session: &str, name: &str, params: Value) -> Result<Value, String> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        self.heard.lock_state().answers.insert(id, None);
        let sent = send(&self.commands, id, session, name, params);
        let answer = sent.and_then(|()| {
            self.heard.wait(session, name, |said| said.answers.get_mut(&id).and_then(|answer| answer.take()))
        });
        self.heard.lock_state().answers.remove(&id);
        let answer = answer?;
        match answer.get("error") {
            Some(error) => Err(format!("{name}: {}", error["message"].as_str().unwrap_or_default())),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Opens an empty page and returns the session that drives it. `context` is the browser context; None for the
    /// default one.
    pub fn open(&self, context: Option<&str>) -> Result<String, String> {
        let mut about = json!({ "url": "about:blank" });
        if let Some(context) = context {
            about["browserContextId"] = context.into();
        }
        let target = self.call("", "Target.createTarget", about)?["targetId"].clone();
        let about = json!({ "targetId": target, "flatten": true });
        let session = self.call("", "Target.attachToTarget", about)?["sessionId"].clone();
        let session = session.as_str().unwrap_or_default().to_string();
        // The frame id of a page is its target id.
        let frame = target.as_str().unwrap_or_default().to_string();
        self.heard.lock_state().pages.insert(session.clone(), Page { frame, ..Page::default() });
        Ok(session)
    }

    /// Forgets a page that is closed.
    pub fn forget(&self, session: &str) {
        self.heard.lock_state().pages.remove(session);
    }

    /// Waits until the condition `so` holds for a page. `what` describes it.
    pub fn wait(&self, session: &str, what: &str, so: impl Fn(&Page) -> bool) -> Result<(), String> {
        self.heard.wait(session, what, |said| said.pages.get(session).is_some_and(&so).then_some(()))
    }

    /// Number of documents that were loaded in a page so far.
    pub fn documents(&self, session: &str) -> usize {
        self.heard.lock_state().pages.get(session).map_or(0, |page| page.documents.len())
    }

    /// The errors in the log of a page since the last call.
    pub fn errors(&self, session: &str) -> Vec<String> {
        let mut said = self.heard.lock_state();
        said.pages.get_mut(session).map(|page| std::mem::take(&mut page.errors)).unwrap_or_default()
    }

    /// Begins to trace the tasks of all threads.
    pub fn trace(&self) -> Result<(), String> {
        let about = json!({ "includedCategories": ["toplevel"], "excludedCategories": ["*"] });
        self.call("", "Tracing.start", json!({ "traceConfig": about })).map(drop)
    }

    /// The events since the trace began. A new trace begins.
    pub fn traced(&self) -> Result<Vec<Value>, String> {
        let before = self.heard.lock_state().traces;
        self.call("", "Tracing.end", json!({}))?;
        let events =
            self.heard.wait("", "a trace", |said| (said.traces > before).then(|| std::mem::take(&mut said.traced)))?;
        self.trace()?;
        Ok(events)
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = send(&self.commands, 0, "", "Browser.close", json!({}));
        let shell = self.shell.get_mut();
        // It has ended when the shell has, too. This must not panic: a test may be unwinding.
        let over = self.heard.news.wait_while_for(&mut self.heard.lock_state(), |said| !said.ended, MAX_WAIT);
        if over.timed_out() {
            let _ = command("kill").args(["-s", "KILL", "--", &format!("-{}", shell.id())]).status();
        }
        let _ = shell.wait();
    }
}

/// Sends a command to the writer thread.
fn send(to: &SyncSender<Vec<u8>>, id: u64, session: &str, name: &str, params: Value) -> Result<(), String> {
    let mut message = json!({ "id": id, "method": name, "params": params });
    if !session.is_empty() {
        message["sessionId"] = session.into();
    }
    let mut bytes = message.to_string().into_bytes();
    bytes.push(0);
    to.try_send(bytes).map_err(|_| format!("{name}: Chromium takes no commands"))
}

impl Heard {
    fn lock_state(&self) -> MutexGuard<'_, ChromiumState> {
        self.said.lock()
    }

    /// Waits until `ask` returns a value. Fails when Chromium or the page ends first, or it takes too long.
    fn wait<T>(
        &self,
        session: &str,
        what: &str,
        mut ask: impl FnMut(&mut ChromiumState) -> Option<T>,
    ) -> Result<T, String> {
        // The first start on a cold machine reads hundreds of megabytes.
        let most = 4 * MAX_WAIT;
        let begin = Instant::now();
        let mut said = self.lock_state();
        loop {
            if let Some(found) = ask(&mut said) {
                return Ok(found);
            }
            if said.ended {
                let lines = said.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
                return Err(format!("{what}: Chromium has ended:\n{lines}"));
            }
            if said.pages.get(session).is_some_and(|page| page.has_crashed) {
                return Err(format!("{what}: the page has crashed"));
            }
            let left = most.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Err(format!("{what}: Chromium has not answered in {most:?}"));
            }
            let _ = self.news.wait_for(&mut said, left);
        }
    }

    /// Reads Chromium's messages until it ends. Dialogs, which would block a page, are closed by `reply`.
    fn read_messages(&self, from: ChildStdout, reply: &SyncSender<Vec<u8>>) {
        let mut from = BufReader::new(from);
        let mut bytes = Vec::new();
        while from.read_until(0, &mut bytes).is_ok_and(|n| n > 0) {
            let message: Value = serde_json::from_slice(bytes.strip_suffix(&[0]).unwrap_or(&bytes)).unwrap_or_default();
            bytes.clear();
            let dialog = message["method"] == "Page.javascriptDialogOpening";
            if dialog && let Some(session) = message["sessionId"].as_str() {
                // Only dialogs that confirm the leaving of a page are accepted.
                let accept = message["params"]["type"] == "beforeunload";
                let _ = send(reply, 0, session, "Page.handleJavaScriptDialog", json!({ "accept": accept }));
            }
            self.lock_state().take(message);
            self.news.notify_all();
        }
    }

    fn keep_lines(&self, from: ChildStderr) {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let mut said = self.lock_state();
            said.lines.push_back(String::from_utf8_lossy(&line).into_owned());
            if said.lines.len() > MAX_LINES {
                said.lines.pop_front();
            }
        }
    }
}

impl ChromiumState {
    fn take(&mut self, mut message: Value) {
        if let Some(id) = message["id"].as_u64() {
            // The caller of a late answer has given up.
            if let Some(answer) = self.answers.get_mut(&id) {
                *answer = Some(message);
            }
            return;
        }
        let params = message["params"].take();
        let name = message["method"].as_str().unwrap_or_default();
        match (message["sessionId"].as_str().and_then(|session| self.pages.get_mut(session)), name) {
            (Some(page), _) => page.take(name, &params),
            (None, "Tracing.dataCollected") => {
                self.traced.extend(params["value"].as_array().cloned().unwrap_or_default())
            }
            (None, "Tracing.tracingComplete") => self.traces += 1,
            (None, _) => {}
        }
    }
}

impl Page {
    fn take(&mut self, event: &str, about: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let mut error = |words: String| self.errors.push(words);
        let is_mine = about["frameId"] == *self.frame;
        match event {
            // A script has requested another document,
            "Page.frameRequestedNavigation" if is_mine && about["disposition"] == "currentTab" => {
                self.is_loading = true
            }
            // or one is loading, for any reason.
            "Page.frameStartedLoading" if is_mine => self.is_loading = true,
            "Page.frameStoppedLoading" if is_mine => self.is_loading = false,
            "Page.frameNavigated" if about["frame"]["id"] == *self.frame => {
                self.documents.push(text(&about["frame"]["loaderId"]));
            }
            "Inspector.targetCrashed" => self.has_crashed = true,
            // A failed request or a violation of the policy, which no script receives.
            // The page asks for its first figures before it knows whether somebody is signed in and the machine exists.
            "Log.entryAdded" if text(&about["entry"]["url"]).contains("/api/v1/now?") => {}
            "Log.entryAdded" if about["entry"]["level"] == "error" => {
                error(format!("{} {}", text(&about["entry"]["url"]), text(&about["entry"]["text"])));
            }
            "Runtime.exceptionThrown" => {
                let thrown = &about["exceptionDetails"];
                error(format!("{} {}", text(&thrown["text"]), text(&thrown["exception"]["description"])));
            }
            "Runtime.consoleAPICalled" if about["type"] == "error" || about["type"] == "assert" => {
                let words = about["args"].as_array().into_iter().flatten();
                let words = words.map(|word| word.get("value").unwrap_or(&word["description"]).to_string());
                error(words.collect::<Vec<_>>().join(" "));
            }
            "Page.javascriptDialogOpening" => error(format!("dialog: {}", text(&about["message"]))),
            _ => {}
        }
    }
}
