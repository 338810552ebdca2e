//! The list of all keys.

use super::{dialog, dom};

/// Keys with spaces between, and what they do.
const KEYS: [(&str, &[(&str, &str)]); 3] = [
    (
        "In a chart",
        &[
            ("Tab", "to the charts, and on"),
            ("↑ ↓", "the chart before, the next one"),
            ("← →", "values one sample before or after; with Shift ten"),
            ("Home End", "values at the start or the end"),
            ("Enter", "keep the values, or let them go"),
            ("m", "its menu: table, picture, CSV, link, another chart over it"),
        ],
    ),
    (
        "Time",
        &[
            ("1 2 3 4 5 6 7", "the last 1m, 5m, 15m, 1h, 3h, 6h, 12h"),
            ("/", "type a span: 90s, 14:00-14:20"),
            ("+ -", "closer, wider, around the values"),
            ("[ ]", "half a window back or on"),
            ("Backspace", "one step back"),
            ("l Space", "stand still, or go on live"),
            ("Esc", "close what lies over the page; else live"),
        ],
    ),
    (
        "The page",
        &[
            ("c", "compare with the span before"),
            ("d", "what changed in this span"),
            ("t", "dark or light"),
            ("?", "this list"),
        ],
    ),
];
/// Those that mean something else, or only something, while a recording is shown.
const RECORDED: (&str, &[(&str, &str)]) = (
    "In a recording",
    &[("Space", "play, or pause"), ("< >", "slower, faster"), ("j l", "a tenth of the window back or on")],
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
