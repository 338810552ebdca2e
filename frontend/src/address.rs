//! The view in the address, so that a link shows what the sender saw. Pure text.
//!
//! `w=90s` the window; `from=&to=` the span that stands still, Unix seconds as in the API (older links have ms);
//! `theme`, `source`; `hide=a,b` charts that are left out; `only=CHART~SERIES`, `off=CHART~SERIES` and `pin=SERIES`
//! series that are isolated, hidden and followed through all charts; `over=CHART~CHART` one chart drawn over another;
//! `vs=1h` an earlier period to compare with, `vs=before` the span just before; `heat=mean.values` the order of the rows
//! of heat maps and what they show.

use crate::range;
use shared::window;

/// What is shown, apart from the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Length of the live window, ms.
    pub window: i64,
    /// The span that stands still, ms since the epoch.
    pub frozen: Option<(i64, i64)>,
    /// `dark` or `light`, when a person chose.
    pub theme: Option<Tone>,
    /// Name of the source; none is the first.
    pub source: Option<String>,
    /// Charts that are left out.
    pub hide: Vec<String>,
    /// Series that stand alone in their chart: chart and name.
    pub only: Vec<(String, String)>,
    /// Series that are out of sight: chart and name.
    pub off: Vec<(String, String)>,
    /// Series that are followed through all charts.
    pub pin: Vec<String>,
    /// Charts that have another one's series drawn over them.
    pub over: Vec<(String, String)>,
    /// How much earlier the period lies that is compared with, ms; 0 is the length of the span itself.
    pub versus: Option<i64>,
    /// How the rows of heat maps stand, as [`Rows`](crate::panels::picture::Rows) writes it.
    pub heat: String,
}

/// Dark or light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// For dark surroundings.
    Dark,
    /// For bright ones.
    Light,
}

impl Tone {
    /// Its name in the address and in `data-theme`.
    pub fn name(self) -> &'static str {
        match self {
            Tone::Dark => "dark",
            Tone::Light => "light",
        }
    }
}

/// Names that may stand in an address; each may come more than once.
pub const NAMES: [&str; 12] =
    ["w", "from", "to", "theme", "source", "hide", "only", "off", "pin", "over", "vs", "heat"];
/// Entries of a list that are read at most.
const MOST: usize = 200;

/// Reads a view from pairs of name and value, already decoded. What is not understood is left at its default, and said:
/// a sentence for each.
pub fn read(pairs: impl IntoIterator<Item = (String, String)>) -> (View, Vec<String>) {
    let mut view = View { window: window::DEFAULT.ms, ..View::default() };
    let (mut from, mut to, mut wrong) = (None, None, Vec::new());
    let fits = |ms: &i64| (range::SHORTEST..=range::LONGEST).contains(ms);
    for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()).take(MOST) {
        let mut both = |list: fn(&mut View) -> &mut Vec<(String, String)>| {
            let pair = value.split_once('~').map(|(a, b)| (a.to_string(), b.to_string()));
            list(&mut view).extend(pair);
        };
        match name.as_str() {
            "only" => both(|v| &mut v.only),
            "off" => both(|v| &mut v.off),
            "over" => both(|v| &mut v.over),
            "pin" => view.pin.push(value),
            "w" => match range::length(&value).filter(fits) {
                Some(window) => view.window = window,
                None => wrong.push(format!("w={} is no window: write 5s to 31d", short(&value))),
            },
            "from" | "to" => {
                let at = range::since_epoch(&value);
                if at.is_none() {
                    wrong.push(format!("{name}={} is no time: write Unix seconds", short(&value)));
                }
                *(if name == "from" { &mut from } else { &mut to }) = Some(at);
            }
            "theme" if value == "dark" => view.theme = Some(Tone::Dark),
            "theme" if value == "light" => view.theme = Some(Tone::Light),
            "source" => view.source = Some(value),
            "heat" => view.heat = value,
            "hide" => view.hide.extend(value.split(',').filter(|s| !s.is_empty()).map(str::to_string)),
            "vs" if value == "before" => view.versus = Some(0),
            "vs" => view.versus = range::length(&value).filter(|ms| *ms >= range::SHORTEST),
            _ => {}
        }
    }
    match (from, to) {
        (Some(Some(from)), Some(Some(to))) if fits(&(to - from)) => view.frozen = Some((from, to)),
        (Some(Some(from)), Some(Some(to))) if to <= from => wrong.push("to= lies before from=".into()),
        (Some(Some(_)), Some(Some(_))) => wrong.push("from= and to= are not 5s to 31d apart".into()),
        (Some(Some(_)), None) | (None, Some(Some(_))) => wrong.push("from= and to= go together".into()),
        _ => {}
    }
    (view, wrong)
}

/// As much of a value as is worth repeating.
fn short(value: &str) -> String {
    value.chars().take(24).collect()
}

/// The pairs that say this view; what is at its default is left out.
pub fn write(view: &View) -> Vec<(&'static str, String)> {
    let mut pairs = vec![("w", range::name(view.window))];
    if let Some((from, to)) = view.frozen {
        pairs.push(("from", range::seconds(from)));
        pairs.push(("to", range::seconds(to)));
    }
    if let Some(tone) = view.theme {
        pairs.push(("theme", tone.name().to_string()));
    }
    if let Some(source) = &view.source {
        pairs.push(("source", source.clone()));
    }
    if !view.hide.is_empty() {
        pairs.push(("hide", view.hide.join(",")));
    }
    for (name, list) in [("only", &view.only), ("off", &view.off), ("over", &view.over)] {
        pairs.extend(list.iter().map(|(a, b)| (name, format!("{a}~{b}"))));
    }
    pairs.extend(view.pin.iter().map(|name| ("pin", name.clone())));
    if !view.heat.is_empty() {
        pairs.push(("heat", view.heat.clone()));
    }
    match view.versus {
        Some(0) => pairs.push(("vs", "before".into())),
        Some(ms) => pairs.push(("vs", range::name(ms))),
        None => {}
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> View {
        read(list.iter().map(|(n, v)| (n.to_string(), v.to_string()))).0
    }

    #[test]
    fn a_view_comes_back_from_its_address() {
        let two = |a: &str, b: &str| (a.to_string(), b.to_string());
        let view = View {
            window: 5_400_000,
            frozen: Some((1_795_219_200_000, 1_795_219_273_250)),
            theme: Some(Tone::Light),
            source: Some("node 3 & co".into()),
            hide: vec!["load".into(), "swap".into()],
            only: vec![two("temp", "GPU 3"), two("disk", "/mnt/a, b~c")],
            off: vec![two("power", "GPU 1")],
            pin: vec!["GPU 3".into(), "GPU 4".into()],
            over: vec![two("temp", "power")],
            heat: "mean.values".into(),
            versus: Some(0),
        };
        assert_eq!(read(write(&view).into_iter().map(|(n, v)| (n.to_string(), v))), (view.clone(), vec![]));
        let other = View { versus: Some(86_400_000), ..view };
        assert_eq!(read(write(&other).into_iter().map(|(n, v)| (n.to_string(), v))), (other, vec![]));
    }

    #[test]
    fn a_link_of_before_with_milliseconds_shows_the_same() {
        let old = pairs(&[("w", "5m"), ("from", "1795219200000"), ("to", "1795219500000")]);
        let new = pairs(&[("w", "5m"), ("from", "1795219200"), ("to", "1795219500.000")]);
        assert_eq!(old.frozen, Some((1_795_219_200_000, 1_795_219_500_000)));
        assert_eq!(old, new);
    }

    #[test]
    fn what_of_an_address_cannot_be_shown_is_said() {
        let wrong = |list: &[(&str, &str)]| read(list.iter().map(|(n, v)| (n.to_string(), v.to_string()))).1;
        for (list, word) in [
            (&[("w", "9y")][..], "w=9y"),
            (&[("w", "32d")], "5s to 31d"),
            (&[("from", "soon"), ("to", "1795219500")], "from=soon is no time"),
            (&[("from", "1795219500"), ("to", "1795219200")], "before"),
            (&[("from", "1795219200"), ("to", "1799319200")], "31d apart"),
            (&[("from", "1795219200")], "go together"),
        ] {
            let said = wrong(list);
            assert!(said.len() == 1 && said[0].contains(word), "{list:?}: {said:?}");
        }
        assert_eq!(wrong(&[("w", "7m"), ("from", "1795219200"), ("to", "1795219500"), ("utm", "x")]), [""; 0]);
        assert!(wrong(&[("w", &"9".repeat(500))])[0].len() < 80);
    }

    #[test]
    fn nonsense_falls_back_to_the_default() {
        let view = pairs(&[
            ("w", "9y"),
            ("from", "7"),
            ("to", "3"),
            ("theme", "<b>"),
            ("what", "1"),
            ("only", "x"),
            ("vs", "-1"),
            ("pin", ""),
        ]);
        assert_eq!(view, pairs(&[]));
        assert_eq!(pairs(&[("from", "0"), ("to", "99999999")]).frozen, None, "longer than 12 h");
    }
}
