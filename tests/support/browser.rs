//! Controls a page of a real browser. All tests of a program share one Chromium. Each page has a browser context of its
//! own with a new profile: cookies, storage, cache, permissions and settings of the test. They are removed with the
//! page.

use crate::chromium::Chromium;
use crate::keys;
use crate::waiting::{MAX_WAIT, until_or};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A script that runs before the page's own scripts. It records faults, sent messages, layout shifts, and the time when
/// the page is first live.
const WITNESS: &str = r#"
window.__faults = [];
const fault = text => window.__faults.push(String(text));
addEventListener("error", e => fault("error: " + (e.message || (e.target && e.target.outerHTML))), true);
addEventListener("unhandledrejection", e => fault("rejection: " + e.reason));
addEventListener("securitypolicyviolation", e => fault("csp: " + e.violatedDirective + " " + e.blockedURI + " " + e.sample));
const error = console.error;
console.error = (...words) => { fault("console: " + words.join(" ")); error.apply(console, words); };
// Requests of the page: the kind of each message, as it is numbered on the wire.
window.__sent = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  if (data[0] === 0) window.__sent.push(data[1]);
  return send.call(this, data);
};
// Layout shifts without user input: from where to where.
window.__shifted = [];
new PerformanceObserver(list => {
  const near = (a, b) => Math.abs(a.x - b.x) < 1 && Math.abs(a.y - b.y) < 1
    && Math.abs(a.width - b.width) < 3 && Math.abs(a.height - b.height) < 3;
  for (const e of list.getEntries()) if (!e.hadRecentInput) {
    const place = r => [r.x, r.y, r.width, r.height].map(n => n.toFixed(2)).join(" ");
    // Less than a pixel, as when a font has come, is seen by nobody; nor that a sentence in the same place ends sooner.
    if (e.sources.length && e.sources.every(s => near(s.previousRect, s.currentRect))) continue;
    for (const s of e.sources) window.__shifted.push([s.node && (s.node.className || s.node.textContent.slice(0, 60)),
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

/// An expression for the state of the page, used in the message of a failed test.
const DESCRIBE: &str = r#"{ url: location.href, link: document.documentElement.dataset.link, faults: window.__faults,
  panels: [...document.querySelectorAll("article[data-panel]")].map(
    p => [p.dataset.panel, p.dataset.state, p.dataset.samples, p.dataset.window].join(" ")),
  text: document.body && document.body.innerText.slice(0, 300) }"#;

/// A script that finds the place of a click: the middle of the first element that a selector finds, once that has not
/// moved for a frame. An element out of view is scrolled into view. An element that covers it is an error. A press that
/// misses it, because it has moved since, is kept from the page, and `__missed` is true.
const AIM: &str = r#"(selector => new Promise((done, fail) => {
  let last = "", covered = 0;
  const look = () => {
    const element = document.querySelector(selector);
    if (!element) return fail(Error("there is no such element"));
    const box = [...element.getClientRects()].find(r => r.width > 0 && r.height > 0);
    if (!box) return fail(Error("it has no size"));
    const here = [box.x, box.y, box.width, box.height].join();
    if (here !== last) {
      last = here;
      return requestAnimationFrame(look);
    }
    const middle = (from, to, most) => (Math.max(from, 0) + Math.min(to, most)) / 2;
    const x = middle(box.left, box.right, innerWidth), y = middle(box.top, box.bottom, innerHeight);
    const hit = document.elementFromPoint(x, y);
    if (!hit || !element.contains(hit)) {
      // A moving element may cover it for a few frames.
      if (++covered > 90) return fail(Error("it is covered by " + (hit ? hit.outerHTML.slice(0, 200) : "nothing, out of view")));
      if (covered === 1) element.scrollIntoView({ behavior: "instant", block: "center", inline: "nearest" });
      return requestAnimationFrame(look);
    }
    const kinds = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
    const watch = event => {
      if (event.type === "pointerdown") window.__missed = !element.contains(event.target);
      // An element that moves away while the button is down is not clicked, nor one that another takes the place of.
      const under = () => document.elementFromPoint(event.clientX, event.clientY);
      const gone = () => element.isConnected ? !element.contains(under()) : document.querySelector(selector) !== null;
      if (event.type === "pointerup" && gone()) window.__missed = true;
      if (window.__missed) [event.stopImmediatePropagation(), event.preventDefault()];
      else if (event.type === "pointerup") window.__let_go();
    };
    if (window.__let_go) window.__let_go();
    window.__let_go = () => kinds.forEach(kind => removeEventListener(kind, watch, true));
    window.__missed = false;
    kinds.forEach(kind => addEventListener(kind, watch, true));
    done([x, y]);
  };
  look();
}))"#;

/// The control key as a mouse modifier.
pub const CTRL: u8 = 2;
/// The shift key as a modifier for mouse and keys.
pub const SHIFT: u8 = 8;

/// The Chromium that the pages of this program share.
static SHARED: Mutex<Option<Arc<Chromium>>> = Mutex::new(None);

/// A browser with one page, which is closed when this is dropped.
pub struct Browser {
    chromium: Arc<Chromium>,
    /// The context of the page. None in a Chromium of its own.
    context: Option<String>,
    session: String,
    /// Whether there was input since the last command to the page: it may have led to another page.
    touched: AtomicBool,
}

impl Browser {
    /// Starts a browser with a page of 1440 x 900 CSS pixels. All share a clipboard, and none has the permissions of a
    /// profile: see [`alone`](Self::alone).
    ///
    /// # Panics
    /// Panics when Chromium is missing: `cargo xtask setup --browser` installs it.
    pub fn start() -> Self {
        let chromium = shared();
        let context = chromium.call("", "Target.createBrowserContext", json!({ "disposeOnDetach": true }));
        let context = context.expect("a context")["browserContextId"].as_str().map(str::to_string);
        Self::in_context(chromium, context)
    }

    /// Starts a browser with a Chromium of its own and a new profile, with the same page. This is for measurements, and
    /// for state that all pages of a Chromium share.
    ///
    /// # Panics
    /// Panics as [`start`](Self::start) does.
    pub fn alone() -> Self {
        Self::in_context(Arc::new(Chromium::start()), None)
    }

    /// Starts a browser like [`alone`](Self::alone) with a trace of its [tasks](Self::tasks).
    ///
    /// # Panics
    /// Panics as [`start`](Self::start) does.
    pub fn traced() -> Self {
        let browser = Self::alone();
        browser.chromium.trace().expect("a trace begins");
        browser
    }

    fn in_context(chromium: Arc<Chromium>, context: Option<String>) -> Self {
        let session = chromium.open(context.as_deref()).expect("a page opens");
        let browser = Browser { chromium, context, session, touched: AtomicBool::new(false) };
        for name in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.cdp(name, json!({}));
        }
        // Each page has the focus, regardless of how many there are.
        browser.cdp("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        // The locale decides between clocks of 12 and of 24 hours.
        browser.cdp("Emulation.setLocaleOverride", json!({ "locale": "en-GB" }));
        browser.before_each_page(WITNESS);
        browser.size(1440, 900);
        browser
    }

    /// Goes to an address and waits until the document is loaded.
    #[track_caller]
    pub fn open(&self, url: &str) {
        self.try_open(url).expect("the page loads");
    }

    fn try_open(&self, url: &str) -> Result<(), String> {
        let answer = self.try_cdp("Page.navigate", json!({ "url": url }))?;
        if let Some(error) = answer["errorText"].as_str() {
            return Err(format!("{url}: {error}"));
        }
        // No new document is loaded when only the part behind the # differs.
        let Some(document) = answer["loaderId"].as_str() else { return Ok(()) };
        self.chromium
            .wait(&self.session, url, |page| !page.is_loading && page.documents.iter().any(|one| one == document))
    }

    /// Runs a script in each page that is opened from now on, before the page's own.
    pub fn before_each_page(&self, script: &str) {
        self.cdp("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script }));
    }

    /// Loads the page again.
    #[track_caller]
    pub fn reload(&self) {
        let before = self.chromium.documents(&self.session);
        self.cdp("Page.reload", json!({}));
        let again = self
            .chromium
            .wait(&self.session, "it is loaded again", |page| !page.is_loading && page.documents.len() > before);
        again.expect("the page loads");
    }

    /// The value of a JavaScript expression in the page.
    ///
    /// # Panics
    /// Panics when the expression throws.
    #[track_caller]
    pub fn eval(&self, expression: &str) -> Value {
        self.try_eval(expression).expect("the expression has a value")
    }

    /// The value of a JavaScript expression in the page; null where it throws, and while the page is being replaced. This
    /// is for waits of a test's own.
    pub fn peek(&self, expression: &str) -> Value {
        self.try_eval(expression).unwrap_or_default()
    }

    fn try_eval(&self, expression: &str) -> Result<Value, String> {
        self.run(&format!("return ({expression});"))
    }

    /// The value of the body of a function, or of the promise that it returns.
    fn run(&self, body: &str) -> Result<Value, String> {
        let source = json!({ "expression": format!("(function () {{ {body}\n}})()"), "returnByValue": true, "awaitPromise": true });
        let answer = match self.try_cdp("Runtime.evaluate", source) {
            // An expression that leads to another page, such as a step back, has no value.
            Err(why) if why.ends_with("Inspected target navigated or closed") => return Ok(Value::Null),
            answer => answer?,
        };
        if let Some(thrown) = answer.get("exceptionDetails") {
            let words = thrown["exception"]["description"].as_str().or(thrown["text"].as_str());
            return Err(words.unwrap_or_default().to_string());
        }
        // Values that JSON does not have, such as NaN, are null.
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until a JavaScript expression is truthy, and returns its value.
    ///
    /// # Panics
    /// Panics when this takes too long, and then describes the page.
    #[track_caller]
    pub fn until(&self, expression: &str) -> Value {
        let last = std::cell::RefCell::new(Ok(Value::Null));
        until_or(
            MAX_WAIT,
            || {
                // There is no answer while a page is being replaced.
                let value = self.try_eval(expression);
                let is_so = |v: &Value| !matches!(v, Value::Null | Value::Bool(false)) && *v != 0 && *v != "";
                let found = value.as_ref().ok().filter(|value| is_so(value)).cloned();
                *last.borrow_mut() = value;
                found
            },
            || {
                let page = self.try_eval(DESCRIBE).unwrap_or_default();
                format!("{expression}\nit was {:?}\n{page:#}", last.borrow())
            },
        )
    }

    /// Runs a script in the page, and waits for the promise that it returns.
    ///
    /// # Panics
    /// Panics when the script throws.
    #[track_caller]
    pub fn script(&self, source: &str) -> Value {
        self.run(source).expect("the script runs")
    }

    /// Clicks in the middle of the first element that a CSS selector finds, and scrolls there first.
    ///
    /// # Panics
    /// Panics when a mouse cannot hit it in time: it is missing, it has no size, or another element covers it.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let last = std::cell::RefCell::new(String::new());
        let hits = || {
            // An element is missing while its part of the page is loaded.
            let place = self.try_eval(&format!("{AIM}({})", json!(selector)));
            let place = place.map_err(|error| last.replace(error)).ok()?;
            let side = |at: usize| place[at].as_f64().expect("a length");
            self.click_at((side(0), side(1)), 0);
            // A page that the click led to does not have this variable.
            self.try_eval("!window.__missed").map_or(Some(()), |hit| (hit == true).then_some(()))
        };
        until_or(MAX_WAIT, hits, || format!("{selector} never stands still: {}", last.borrow()));
    }

    /// Gives the focus to the first element that a CSS selector finds. Below an open dialog no element can have it, so
    /// this waits for the dialog's end.
    #[track_caller]
    pub fn focus(&self, selector: &str) {
        self.until(&format!(
            "(one => one && (one.focus(), document.activeElement === one))(document.querySelector({}))",
            json!(selector)
        ));
    }

    /// Presses and releases a key, given by its JavaScript name.
    pub fn press(&self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.cdp("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// Presses and releases a key as a person does, so that the browser itself reacts too. The key is one character or
    /// one of [`keys`]. `held` is 0 or [`SHIFT`].
    pub fn strike(&self, key: &str, held: u8) {
        for event in keys::strike(key, held) {
            self.cdp("Input.dispatchKeyEvent", event);
        }
    }

    /// Types a text into the focused field.
    pub fn insert(&self, text: &str) {
        self.cdp("Input.insertText", json!({ "text": text }));
    }

    /// Types a text into the focused element, followed by Enter.
    pub fn type_line(&self, text: &str) {
        self.insert(text);
        for kind in ["keyDown", "keyUp"] {
            let enter =
                json!({ "type": kind, "key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13 });
            self.cdp("Input.dispatchKeyEvent", enter);
        }
    }

    /// Left, top, width and height, in CSS pixels, of the first element that a CSS selector finds.
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

    /// Turns the wheel by `by` pixels at a place.
    pub fn wheel(&self, place: (f64, f64), by: f64, held: u8) {
        self.mouse("mouseWheel", place, held, json!({ "deltaX": 0, "deltaY": by }));
    }

    fn mouse(&self, kind: &str, (x, y): (f64, f64), held: u8, more: Value) {
        let mut event = json!({ "type": kind, "x": x, "y": y, "modifiers": held });
        let (event_fields, more) = (event.as_object_mut().expect("an object"), more);
        event_fields.extend(more.as_object().cloned().unwrap_or_default());
        self.cdp("Input.dispatchMouseEvent", event);
    }

    /// Sends a touch event: `touchStart`, `touchMove` or `touchEnd` (which has no places).
    pub fn touch(&self, kind: &str, places: &[(f64, f64)]) {
        let points = places.iter().enumerate().map(|(id, (x, y))| json!({ "x": x, "y": y, "id": id }));
        self.cdp("Input.dispatchTouchEvent", json!({ "type": kind, "touchPoints": points.collect::<Vec<_>>() }));
    }

    /// Sets the size of the page in CSS pixels. A narrow page is a phone, with two device pixels per CSS pixel.
    pub fn size(&self, width: u32, height: u32) {
        self.size_at(width, height, if width < 600 { 2 } else { 1 });
    }

    /// Sets the size like [`size`](Self::size), with `scale` device pixels per CSS pixel.
    pub fn size_at(&self, width: u32, height: u32, scale: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600 });
        self.cdp("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Sets the theme that the system prefers, `dark` or `light`.
    pub fn prefer(&self, theme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": theme });
        self.cdp("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    /// The faults since the page was loaded: errors, violations of the content security policy, failed requests.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> =
            serde_json::from_value(self.eval("window.__faults")).expect("a list of sentences");
        // A violation in the first document comes too early for a script, and a missing file is not a script error.
        // Both are in the log.
        faults.extend(self.chromium.errors(&self.session).into_iter().map(|words| format!("log: {words}")));
        faults
    }

    /// CPU time in ms of each task of the page's main thread since the last call. The browser must be
    /// [traced](Self::traced). It is the thread's own time, so other load on the machine does not count. The browser
    /// may deliver the last seconds with the next call. An error is returned when it does not answer in time.
    pub fn tasks(&self) -> Result<Vec<f64>, String> {
        let mut by_process = BTreeMap::<u64, Vec<f64>>::new();
        for event in self.chromium.traced()? {
            // The main thread's id is the process id.
            let (process, thread) = (event["pid"].as_u64(), event["tid"].as_u64());
            let Some(process) = process.filter(|_| process == thread) else { continue };
            if let (Some(micros), "ThreadControllerImpl::RunTask") =
                (event["tdur"].as_f64(), event["name"].as_str().unwrap_or_default())
            {
                by_process.entry(process).or_default().push(micros / 1000.0);
            }
        }
        // The page's process is the one with the most CPU time.
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
        STANDARD.decode(picture["data"].as_str().expect("a picture")).expect("base64")
    }

    /// Saves the page's downloads in a folder, without a dialog.
    pub fn save_to(&self, folder: &Path) {
        let mut about = json!({ "behavior": "allow", "downloadPath": folder });
        if let Some(context) = &self.context {
            about["browserContextId"] = context.as_str().into();
        }
        self.chromium.call("", "Browser.setDownloadBehavior", about).expect("the browser knows it");
    }

    /// Writes a screenshot of the page to `target/screenshots/NAME.png`, and returns the path.
    pub fn screenshot(&self, name: &str) -> PathBuf {
        let own = std::env::current_exe().expect("this program");
        let folder = own.ancestors().nth(3).expect("target/PROFILE/deps/NAME").join("screenshots");
        std::fs::create_dir_all(&folder).expect("target can be written");
        let path = folder.join(format!("{name}.png"));
        std::fs::write(&path, self.picture()).expect("target can be written");
        path
    }

    /// Sends a command of the Chrome DevTools Protocol, and returns its result.
    #[track_caller]
    pub fn cdp(&self, name: &str, params: Value) -> Value {
        self.try_cdp(name, params).expect("the browser knows it")
    }

    fn try_cdp(&self, name: &str, params: Value) -> Result<Value, String> {
        // A click or key may lead to another page, and the next command is for that one.
        if self.touched.swap(false, Ordering::Relaxed) {
            let _ = self.chromium.call(&self.session, "Runtime.evaluate", json!({ "expression": "0" }));
        }
        self.chromium.wait(&self.session, "a page is loaded", |page| !page.is_loading)?;
        self.touched.store(name.starts_with("Input."), Ordering::Relaxed);
        self.chromium.call(&self.session, name, params)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // In a Chromium of its own, the page ends with the browser.
        if let Some(context) = &self.context {
            let _ = self.chromium.call("", "Target.disposeBrowserContext", json!({ "browserContextId": context }));
            self.chromium.forget(&self.session);
        }
    }
}

/// The Chromium of this program. When one has ended, the tests with its pages fail, and the next test starts another.
fn shared() -> Arc<Chromium> {
    // A failed start fails its test and poisons the lock. The next test retries.
    let mut shared = SHARED.lock();
    match shared.as_ref().filter(|chromium| chromium.runs()) {
        Some(chromium) => chromium.clone(),
        None => shared.insert(Arc::new(Chromium::start())).clone(),
    }
}
