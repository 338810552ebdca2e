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

/// Reads a view from pairs of name and value, already decoded. What is not understood is left at its default.
pub fn read(pairs: impl IntoIterator<Item = (String, String)>) -> View {
    let mut view = View { window: window::DEFAULT.ms, ..View::default() };
    let (mut from, mut to) = (None, None);
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
            "w" => view.window = range::length(&value).filter(fits).unwrap_or(window::DEFAULT.ms),
            "from" => from = range::since_epoch(&value),
            "to" => to = range::since_epoch(&value),
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
    if let (Some(from), Some(to)) = (from, to) {
        view.frozen = Some((from, to)).filter(|_| fits(&(to - from)));
    }
    view
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
        read(list.iter().map(|(n, v)| (n.to_string(), v.to_string())))
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
        assert_eq!(read(write(&view).into_iter().map(|(n, v)| (n.to_string(), v))), view);
        let other = View { versus: Some(86_400_000), ..view };
        assert_eq!(read(write(&other).into_iter().map(|(n, v)| (n.to_string(), v))), other);
    }

    #[test]
    fn a_link_of_before_with_milliseconds_shows_the_same() {
        let old = pairs(&[("w", "5m"), ("from", "1795219200000"), ("to", "1795219500000")]);
        let new = pairs(&[("w", "5m"), ("from", "1795219200"), ("to", "1795219500.000")]);
        assert_eq!(old.frozen, Some((1_795_219_200_000, 1_795_219_500_000)));
        assert_eq!(old, new);
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
