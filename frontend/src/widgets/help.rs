//! The list of all keys.

use super::{dialog, dom};

/// Keys with spaces between, and what they do.
const KEYS: [(&str, &[(&str, &str)]); 3] = [
    (
        "In a chart",
        &[
            ("Tab", "to the charts, and on"),
            ("↑ ↓", "the chart before, the next one"),
            ("← →", "values one sample back or on; with Shift ten"),
            ("Home End", "values at the start or the end"),
            ("Enter", "keep the values, or let them go"),
            ("M", "its menu: table, picture, CSV, link, another chart over it"),
        ],
    ),
    (
        "Time",
        &[
            ("1–9 0", "the windows of the bar"),
            ("/", "type a span: 90s, 14:00-14:20"),
            ("+ -", "closer, wider, around the values"),
            ("[ ]", "half a window back or on"),
            ("Backspace", "one step back"),
            ("L Space", "stand still, or go on live"),
            ("Esc", "close what lies over the page; else live"),
        ],
    ),
    (
        "The page",
        &[
            ("C", "compare with the span before"),
            ("D", "what changed in this span"),
            ("R O", "record this span to a file, open one"),
            ("T", "dark or light"),
            ("?", "this list"),
        ],
    ),
];
/// Those that mean something else, or only something, while a recording is shown.
const RECORDED: (&str, &[(&str, &str)]) = (
    "In a recording instead",
    &[("Space", "play, or pause"), ("< >", "slower, faster"), ("J L", "a tenth of the window back or on")],
);

/// Opens the list.
pub fn open(recorded: bool) {
    let Some(body) = dialog::open("Keys") else { return };
    body.set_class_name("body keys");
    for (title, keys) in KEYS.iter().chain(recorded.then_some(&RECORDED)) {
        let group = dom::add(&body, "section", "", "");
        dom::add(&group, "h3", "", title);
        let list = dom::add(&group, "dl", "", "");
        for (names, words) in *keys {
            let name = dom::add(&list, "dt", "", "");
            names.split(' ').for_each(|key| drop(dom::add(&name, "kbd", "", key)));
            dom::add(&list, "dd", "", words);
        }
    }
}
