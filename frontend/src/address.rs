//! The view in the address: `?w=5m`, or `?from=&to=` when frozen, `theme`, `source`, `hide`. Pure text, so that a link
//! shows what the sender saw.

use shared::window::{self, Window};

/// What is shown, apart from the data.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Length of the window.
    pub window: Window,
    /// The span that stands still, ms since the epoch.
    pub frozen: Option<(i64, i64)>,
    /// `dark` or `light`, when a person chose.
    pub theme: Option<Tone>,
    /// Name of the source; none is the first.
    pub source: Option<String>,
    /// Charts that are left out.
    pub hide: Vec<String>,
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

/// Reads a view from pairs of name and value, already decoded. What is not understood is left at its default.
pub fn read(pairs: impl IntoIterator<Item = (String, String)>) -> View {
    let mut view = View { window: window::DEFAULT, frozen: None, theme: None, source: None, hide: Vec::new() };
    let (mut from, mut to) = (None, None);
    for (name, value) in pairs {
        match name.as_str() {
            "w" => view.window = window::by_name(&value).unwrap_or(window::DEFAULT),
            "from" => from = value.parse::<i64>().ok(),
            "to" => to = value.parse::<i64>().ok(),
            "theme" if value == "dark" => view.theme = Some(Tone::Dark),
            "theme" if value == "light" => view.theme = Some(Tone::Light),
            "source" if !value.is_empty() => view.source = Some(value),
            "hide" => view.hide = value.split(',').filter(|s| !s.is_empty()).map(str::to_string).collect(),
            _ => {}
        }
    }
    if let (Some(from), Some(to)) = (from, to) {
        let longest = window::WINDOWS[window::WINDOWS.len() - 1].ms;
        if from >= 0 && to > from && to - from <= longest {
            view.frozen = Some((from, to));
        }
    }
    view
}

/// The pairs that say this view; what is at its default is left out.
pub fn write(view: &View) -> Vec<(&'static str, String)> {
    let mut pairs = vec![("w", view.window.name.to_string())];
    if let Some((from, to)) = view.frozen {
        pairs.push(("from", from.to_string()));
        pairs.push(("to", to.to_string()));
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
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_comes_back_from_its_address() {
        let view = View {
            window: window::WINDOWS[3],
            frozen: Some((1_000, 3_601_000)),
            theme: Some(Tone::Light),
            source: Some("node 3 & co".into()),
            hide: vec!["load".into(), "swap".into()],
        };
        assert_eq!(read(write(&view).into_iter().map(|(n, v)| (n.to_string(), v))), view);
    }

    #[test]
    fn nonsense_falls_back_to_the_default() {
        let pairs = [("w", "9y"), ("from", "7"), ("to", "3"), ("theme", "<b>"), ("what", "1")];
        let view = read(pairs.map(|(n, v)| (n.to_string(), v.to_string())));
        assert_eq!((view.window, view.frozen, view.theme), (window::DEFAULT, None, None));
    }
}
