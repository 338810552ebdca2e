//! Tests that many large charts are drawn over several frames, and that all of them are drawn in the end.

use super::no_faults;
use watchglass_tests::browser::Browser;
use watchglass_tests::stage::Stage;

/// A clock by which each chart takes longer than a frame, and a list of the charts that are drawn in each frame.
const WATCHED: &str = r#"
const now = Performance.prototype.now;
// The clock is only wrong while a frame is made, because the connection has an eye on clocks.
let asked = 0;
Performance.prototype.now = function () { return now.call(this) + (asked && 20 * asked++); };
window.__frames = new Map();
let frame = 0;
const request = window.requestAnimationFrame;
window.requestAnimationFrame = work => request.call(window, t => {
  frame = t;
  asked = 1;
  try { work(t); } finally { asked = 0; }
});
const put = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...args) {
  const chart = this.canvas.closest("article.chart");
  if (chart && this.canvas === chart.querySelector("canvas")) {
    if (!window.__frames.has(frame)) window.__frames.set(frame, new Set());
    window.__frames.get(frame).add(chart.dataset.panel);
  }
  return put.apply(this, args);
};
"#;
/// The charts on the screen that were not drawn since the list was cleared.
const UNDRAWN_CHARTS: &str = r#"(seen => [...document.querySelectorAll("article.chart")].filter(a => {
  const r = a.getBoundingClientRect();
  return r.height > 0 && r.bottom > 0 && r.top < innerHeight && !seen.has(a.dataset.panel);
}).map(a => a.dataset.panel))(new Set([...window.__frames.values()].flatMap(s => [...s])))"#;

#[test]
fn large_charts_are_drawn_over_several_frames_and_all_of_them_in_the_end() {
    let stage = Stage::with_past(8);
    let browser = Browser::start();
    browser.before_each_page(WATCHED);
    browser.size_at(1440, 2400, 1);
    browser.open(&format!("{}?w=5m", stage.url));
    browser.until(r#"document.querySelectorAll("article.chart").length >= 6"#);
    browser.until(&format!("!{UNDRAWN_CHARTS}.length"));
    // The pointer is at the last chart on the screen, which is then drawn first.
    let last = browser.eval(
        r#"(a => a[a.length - 1].dataset.panel)([...document.querySelectorAll("article.chart")]
            .filter(a => a.getBoundingClientRect().bottom < innerHeight - 60))"#,
    );
    let last = last.as_str().expect("a chart").to_string();
    let [left, top, width, height] = browser.rect(&format!("article[data-panel='{last}'] .plot"));
    browser.move_to((left + width / 2.0, top + height / 2.0));
    browser.until("!document.querySelector('#tip').hidden");
    // The second change comes before the first is drawn.
    browser.script(
        "window.__frames.clear();
         document.querySelector('[data-window-choice=\"1m\"]').click();
         document.querySelector('[data-window-choice=\"15m\"]').click();",
    );
    browser.until(&format!("!{UNDRAWN_CHARTS}.length"));
    let frames = browser.eval("[...window.__frames.values()].map(s => [...s])");
    let frames: Vec<Vec<String>> = serde_json::from_value(frames).expect("names of charts by frame");
    assert!(frames.iter().all(|frame| frame.len() <= 2), "a frame has time for two: {frames:?}");
    assert_eq!(frames[0][0], last, "the chart under the pointer leads: {frames:?}");
    no_faults(&browser);
}
