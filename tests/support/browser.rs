//! Controls a real browser: chromedriver on a free port and headless Chromium with an empty profile. Both end when
//! dropped.

use crate::server::command;
use crate::waiting::MAX_WAIT;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Flags of Chromium. It can reach only loopback, by the name hub.example as well, and makes no requests of its own.
const FLAGS: [&str; 12] = [
    "--headless",
    // There is no sandbox for root, as in most containers. All pages that are opened are ours.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // A bench counts memory without garbage, and exactly.
    "--js-flags=--expose-gc",
    "--enable-precise-memory-info",
    "--host-resolver-rules=MAP hub.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

/// A script that runs before the page's own scripts. It keeps faults, sent messages, moved elements, and the time when
/// the page is first live.
const WITNESS: &str = r#"
window.__faults = [];
const fault = text => window.__faults.push(String(text));
addEventListener("error", e => fault("error: " + (e.message || (e.target && e.target.outerHTML))), true);
addEventListener("unhandledrejection", e => fault("rejection: " + e.reason));
addEventListener("securitypolicyviolation", e => fault("csp: " + e.violatedDirective + " " + e.blockedURI + " " + e.sample));
const error = console.error;
console.error = (...words) => { fault("console: " + words.join(" ")); error.apply(console, words); };
// What the page asks the server for: the kind of each message, as it is numbered on the wire.
window.__sent = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  if (data[0] === 0) window.__sent.push(data[1]);
  return send.call(this, data);
};
// How far things jumped without anybody having touched the page.
window.__shift = 0;
window.__shifted = [];
new PerformanceObserver(list => {
  for (const e of list.getEntries()) if (!e.hadRecentInput) {
    const place = r => [r.x, r.y, r.width, r.height].map(Math.round).join(" ");
    // Less than a pixel, as when a font has come, is seen by nobody.
    if (e.sources.length && e.sources.every(s => place(s.previousRect) === place(s.currentRect))) continue;
    window.__shift += e.value;
    for (const s of e.sources) window.__shifted.push([s.node && (s.node.className || s.node.nodeName),
      place(s.previousRect), place(s.currentRect)].join(": "));
  }
}).observe({ type: "layout-shift", buffered: true });
window.__live = null;
const look = () => {
  const panels = document.querySelectorAll('article[data-panel][data-state="live"]');
  const drawn = [...panels].filter(p => Number(p.dataset.samples) > 0).length;
  if (document.documentElement.dataset.link === "live" && drawn >= 20) window.__live = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"#;

/// An expression for the state of the page, for the message of a failed test.
const DESCRIBE: &str = r#"{ url: location.href, link: document.documentElement.dataset.link, faults: window.__faults,
  panels: [...document.querySelectorAll("article[data-panel]")].map(
    p => [p.dataset.panel, p.dataset.state, p.dataset.samples, p.dataset.window].join(" ")),
  text: document.body && document.body.innerText.slice(0, 300) }"#;

/// How often a browser is started before a test fails.
const MAX_STARTS: usize = 3;

/// The control key as a modifier of the mouse.
pub const CTRL: u8 = 2;
/// The shift key as a modifier of the mouse and of keys.
pub const SHIFT: u8 = 8;

/// A browser with one page. The browser and its driver end when this is dropped.
pub struct Browser {
    driver: Child,
    addr: SocketAddr,
    /// Path of the session; empty before there is one.
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser with a page of 1440 x 900 CSS pixels.
    ///
    /// # Panics
    /// Panics when chromedriver or Chromium is missing: `cargo xtask setup --browser` installs them.
    pub fn start() -> Self {
        Self::start_with(json!({}))
    }

    /// Starts a browser whose [tasks](Self::tasks) are traced, with the same page.
    ///
    /// # Panics
    /// As [`start`](Self::start) does.
    pub fn traced() -> Self {
        let categories = json!({ "traceCategories": "toplevel", "enableNetwork": false, "enablePage": false });
        Self::start_with(categories)
    }

    /// `trace` says what is traced; nothing is when it is empty.
    fn start_with(trace: Value) -> Self {
        // On a machine with much load a browser may lose its driver while it starts; nothing of the page is there yet.
        let again = (1..MAX_STARTS).find_map(|_| Self::try_start(&trace).ok());
        again.unwrap_or_else(|| {
            Self::try_start(&trace).expect("Chromium starts; it is installed by: cargo xtask setup --browser")
        })
    }

    fn try_start(trace: &Value) -> Result<Self, String> {
        let mut driver = command("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts; it is installed by: cargo xtask setup --browser");
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let port = line.trim_end_matches('.').rsplit_once("successfully on port ")?.1;
            port.parse::<u16>().ok()
        });
        std::thread::spawn(move || lines.for_each(drop)); // a full pipe would stop the driver
        let Some(port) = port else {
            let ended = driver.wait().expect("a driver that says no more has ended");
            return Err(format!("chromedriver ended before it said its port: {ended}"));
        };
        let addr = SocketAddr::from(([127, 0, 0, 1], port));

        let profile = tempfile::tempdir().expect("a folder for the profile");
        let mut flags = FLAGS.map(str::to_string).to_vec();
        flags.push(format!("--user-data-dir={}", profile.path().display()));
        let mut browser = Browser { driver, addr, session: String::new(), _profile: profile };
        let mut options = json!({ "args": flags });
        let mut logs = json!({ "browser": "ALL" });
        if trace.get("traceCategories").is_some() {
            options["perfLoggingPrefs"] = trace.clone();
            logs["performance"] = "ALL".into();
        }
        let wanted = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": logs });
        let session = browser.post("/session", json!({ "capabilities": { "alwaysMatch": wanted } }))?;
        browser.session = format!("/session/{}", session["sessionId"].as_str().expect("a session has an id"));
        browser.try_cdp("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WITNESS }))?;
        browser.size(1440, 900);
        Ok(browser)
    }

    /// Goes to an address and waits until the document is loaded.
    pub fn open(&self, url: &str) {
        self.in_session("/url", json!({ "url": url })).expect("the page loads");
    }

    /// Runs a script in each page that is opened from now on, before the page's own.
    pub fn before_each_page(&self, script: &str) {
        self.cdp("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script }));
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.in_session("/refresh", json!({})).expect("the page loads");
    }

    /// The value of a JavaScript expression in the page.
    ///
    /// # Panics
    /// Panics when the expression throws.
    #[track_caller]
    pub fn eval(&self, expression: &str) -> Value {
        self.try_eval(expression).expect("the expression has a value")
    }

    fn try_eval(&self, expression: &str) -> Result<Value, String> {
        self.in_session("/execute/sync", json!({ "script": format!("return ({expression});"), "args": [] }))
    }

    /// Waits until a JavaScript expression is truthy, and returns its value.
    ///
    /// # Panics
    /// Panics when this takes too long, and then describes the page.
    #[track_caller]
    pub fn until(&self, expression: &str) -> Value {
        let started = Instant::now();
        loop {
            // There is no answer while a page is being replaced.
            let value = self.try_eval(expression);
            if value.as_ref().is_ok_and(|v| !matches!(v, Value::Null | Value::Bool(false)) && *v != 0 && *v != "") {
                return value.unwrap_or_default();
            }
            assert!(
                started.elapsed() < MAX_WAIT,
                "not in {MAX_WAIT:?}: {expression}\nit was {value:?}\n{:#}",
                self.try_eval(DESCRIBE).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a script in the page, and waits for the promise that it returns.
    ///
    /// # Panics
    /// Panics when the script throws.
    #[track_caller]
    pub fn script(&self, source: &str) -> Value {
        self.in_session("/execute/sync", json!({ "script": source, "args": [] })).expect("the script runs")
    }

    /// Clicks in the middle of the first element that a CSS selector finds. Like a mouse, it hits what covers the
    /// element.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let found = self.in_session("/element", json!({ "using": "css selector", "value": selector })).expect(selector);
        let element = found.as_object().and_then(|ids| ids.values().next()?.as_str()).expect("an element has an id");
        self.in_session(&format!("/element/{element}/click"), json!({})).expect(selector);
    }

    /// Presses and releases a key, given by its name in JavaScript.
    pub fn press(&self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.cdp("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// Presses and releases a key as a person does, so that the browser itself reacts too. The key is one character, or
    /// `Tab`, `Enter`, `Escape` or `Space`; `held` is 0 or [`SHIFT`].
    pub fn strike(&self, key: &str, held: u8) {
        let codes = [("Tab", '\u{e004}'), ("Enter", '\u{e007}'), ("Escape", '\u{e00c}'), ("Space", ' ')];
        let named = codes.iter().find(|(name, _)| *name == key).map(|(_, code)| code.to_string());
        let value = named.unwrap_or_else(|| key.to_string());
        let mut steps = vec![json!({ "type": "keyDown", "value": value }), json!({ "type": "keyUp", "value": value })];
        if held == SHIFT {
            steps.insert(0, json!({ "type": "keyDown", "value": "\u{e008}" }));
            steps.push(json!({ "type": "keyUp", "value": "\u{e008}" }));
        }
        let keys = json!({ "type": "key", "id": "keys", "actions": steps });
        self.in_session("/actions", json!({ "actions": [keys] })).expect("keys are pressed");
    }

    /// Types a text into the field that has the focus.
    pub fn insert(&self, text: &str) {
        self.cdp("Input.insertText", json!({ "text": text }));
    }

    /// Types a text into the element that has the focus, and ends it with Enter.
    pub fn type_line(&self, text: &str) {
        self.insert(text);
        for kind in ["keyDown", "keyUp"] {
            let enter =
                json!({ "type": kind, "key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13 });
            self.cdp("Input.dispatchKeyEvent", enter);
        }
    }

    /// Left, top, width and height in CSS pixels of the first element that a CSS selector finds.
    #[track_caller]
    pub fn rect(&self, selector: &str) -> [f64; 4] {
        let rect = self.eval(&format!(
            "(r => [r.left, r.top, r.width, r.height])(document.querySelector({selector:?}).getBoundingClientRect())"
        ));
        [0, 1, 2, 3].map(|i| rect[i].as_f64().expect("a length"))
    }

    /// Moves the mouse to a place in CSS pixels.
    pub fn move_to(&self, (x, y): (f64, f64)) {
        self.mouse("mouseMoved", (x, y), 0, json!({}));
    }

    /// Clicks at a place, with the keys in `held` ([`CTRL`], [`SHIFT`]).
    pub fn click_at(&self, place: (f64, f64), held: u8) {
        self.clicks_at(place, held, 1);
    }

    /// Clicks twice at a place.
    pub fn double_click_at(&self, place: (f64, f64)) {
        self.clicks_at(place, 0, 1);
        self.clicks_at(place, 0, 2);
    }

    fn clicks_at(&self, place: (f64, f64), held: u8, count: u8) {
        self.mouse("mouseMoved", place, held, json!({}));
        for kind in ["mousePressed", "mouseReleased"] {
            self.mouse(kind, place, held, json!({ "button": "left", "clickCount": count }));
        }
    }

    /// Drags the mouse from one place to another, with the keys in `held`.
    pub fn drag(&self, from: (f64, f64), to: (f64, f64), held: u8) {
        self.mouse("mouseMoved", from, held, json!({}));
        self.mouse("mousePressed", from, held, json!({ "button": "left", "clickCount": 1 }));
        for step in 1..=4 {
            let share = f64::from(step) / 4.0;
            let place = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            self.mouse("mouseMoved", place, held, json!({ "button": "left", "buttons": 1 }));
        }
        self.mouse("mouseReleased", to, held, json!({ "button": "left", "clickCount": 1 }));
    }

    /// Turns the wheel by `by` pixels.
    pub fn wheel(&self, place: (f64, f64), by: f64, held: u8) {
        self.mouse("mouseWheel", place, held, json!({ "deltaX": 0, "deltaY": by }));
    }

    fn mouse(&self, kind: &str, (x, y): (f64, f64), held: u8, more: Value) {
        let mut event = json!({ "type": kind, "x": x, "y": y, "modifiers": held });
        let (event_fields, more) = (event.as_object_mut().expect("an object"), more);
        event_fields.extend(more.as_object().cloned().unwrap_or_default());
        self.cdp("Input.dispatchMouseEvent", event);
    }

    /// Sends an event of fingers: `touchStart`, `touchMove` or `touchEnd` (which has no places).
    pub fn touch(&self, kind: &str, places: &[(f64, f64)]) {
        let points = places.iter().enumerate().map(|(id, (x, y))| json!({ "x": x, "y": y, "id": id }));
        self.cdp("Input.dispatchTouchEvent", json!({ "type": kind, "touchPoints": points.collect::<Vec<_>>() }));
    }

    /// Sets the size of the page in CSS pixels. A narrow page is a phone, with two device pixels in a CSS pixel.
    pub fn size(&self, width: u32, height: u32) {
        self.size_at(width, height, if width < 600 { 2 } else { 1 });
    }

    /// Likewise with `scale` device pixels in a CSS pixel.
    pub fn size_at(&self, width: u32, height: u32, scale: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600 });
        self.cdp("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Sets the theme that the system prefers, `dark` or `light`.
    pub fn prefer(&self, theme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": theme });
        self.cdp("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    /// The faults since the page was loaded: errors, refusals of the content security policy, failed requests.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> =
            serde_json::from_value(self.eval("window.__faults")).expect("a list of sentences");
        // A refusal in the first document comes too early for a script, and a missing file is no script error. Both are
        // in the log.
        let log = self.in_session("/se/log", json!({ "type": "browser" })).expect("a log");
        let severe = log.as_array().into_iter().flatten().filter(|entry| entry["level"] == "SEVERE");
        faults.extend(severe.map(|entry| format!("log: {}", entry["message"].as_str().unwrap_or_default())));
        faults
    }

    /// CPU time in ms of each task of the page's main thread since the last call, by a browser that is
    /// [traced](Self::traced). It is the thread's own time: what else runs on the machine does not count. The browser
    /// may deliver the last seconds with the next call. An error means that it did not answer in time.
    pub fn tasks(&self) -> Result<Vec<f64>, String> {
        let log = self.in_session("/se/log", json!({ "type": "performance" }))?;
        let mut by_process = BTreeMap::<u64, Vec<f64>>::new();
        for entry in log.as_array().into_iter().flatten() {
            let text = entry["message"].as_str().unwrap_or_default();
            let Ok(message) = serde_json::from_str::<Value>(text) else { continue };
            let event = &message["message"]["params"];
            // The main thread of a process has the number of the process.
            let (process, thread) = (event["pid"].as_u64(), event["tid"].as_u64());
            let Some(process) = process.filter(|_| process == thread) else { continue };
            if let (Some(micros), "ThreadControllerImpl::RunTask") =
                (event["tdur"].as_f64(), event["name"].as_str().unwrap_or_default())
            {
                by_process.entry(process).or_default().push(micros / 1000.0);
            }
        }
        // The process of the page works most.
        let most = by_process.into_values().max_by(|a, b| a.iter().sum::<f64>().total_cmp(&b.iter().sum()));
        Ok(most.unwrap_or_default())
    }

    /// CPU time in ms that the page's main thread has used in all its tasks so far.
    pub fn main_thread(&self) -> f64 {
        self.cdp("Performance.enable", json!({ "timeDomain": "threadTicks" }));
        let all = self.cdp("Performance.getMetrics", json!({}));
        let tasks = all["metrics"].as_array().into_iter().flatten().find(|metric| metric["name"] == "TaskDuration");
        tasks.and_then(|metric| metric["value"].as_f64()).expect("the browser counts it") * 1000.0
    }

    /// A picture of the page as PNG.
    pub fn picture(&self) -> Vec<u8> {
        let picture = self.cdp("Page.captureScreenshot", json!({ "format": "png" }));
        base64(picture["data"].as_str().expect("a picture"))
    }

    /// Writes a picture of the page to `target/screenshots/NAME.png`, and returns the path.
    pub fn screenshot(&self, name: &str) -> PathBuf {
        let own = std::env::current_exe().expect("this program");
        let folder = own.ancestors().nth(3).expect("target/PROFILE/deps/NAME").join("screenshots");
        std::fs::create_dir_all(&folder).expect("target can be written");
        let path = folder.join(format!("{name}.png"));
        std::fs::write(&path, self.picture()).expect("target can be written");
        path
    }

    /// Sends a command of the Chrome DevTools Protocol, and returns its answer.
    pub fn cdp(&self, name: &str, params: Value) -> Value {
        self.try_cdp(name, params).expect("the browser knows it")
    }

    fn try_cdp(&self, name: &str, params: Value) -> Result<Value, String> {
        self.in_session("/goog/cdp/execute", json!({ "cmd": name, "params": params }))
    }

    fn in_session(&self, path: &str, body: Value) -> Result<Value, String> {
        self.post(&format!("{}{path}", self.session), body)
    }

    fn post(&self, path: &str, body: Value) -> Result<Value, String> {
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
        webdriver(self.addr, &format!("{head}\r\nHost: {}\r\n\r\n{body}", self.addr))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Killing only the driver would leave its browser running, so the session is ended first.
        if !self.session.is_empty() {
            let request = format!("DELETE {} HTTP/1.1\r\nHost: {}\r\n\r\n", self.session, self.addr);
            let _ = webdriver(self.addr, &request);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Sends one request to the driver. Returns the `value` of the answer, or the message of the error.
fn webdriver(addr: SocketAddr, request: &str) -> Result<Value, String> {
    let text = exchange(addr, request).map_err(|error| format!("chromedriver: {error}"))?;
    let answer: Value = serde_json::from_str(&text).map_err(|error| format!("chromedriver: {error}: {text}"))?;
    match answer["value"]["error"].as_str() {
        Some(_) => Err(answer["value"]["message"].as_str().unwrap_or_default().to_string()),
        None => Ok(answer["value"].clone()),
    }
}

/// The body of an answer. The driver always gives its length.
fn exchange(addr: SocketAddr, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(addr)?;
    // The first start of a browser on a cold machine reads hundreds of megabytes.
    stream.set_read_timeout(Some(4 * MAX_WAIT))?;
    stream.write_all(request.as_bytes())?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(("content-length", value)) = line.to_ascii_lowercase().split_once(':') {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// The bytes of a base64 text.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut word, mut bits) = (Vec::new(), 0u32, 0);
    for digit in text.chars().map_while(|c| DIGITS.find(c)) {
        word = word << 6 | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_comes_back() {
        assert_eq!(super::base64("Z2xhc3M="), b"glass");
        assert_eq!(super::base64("//79"), [255, 254, 253]);
    }
}
