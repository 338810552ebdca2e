//! Writes the view into the address of the page and reads it from there, so that a link shows the sender's view. It
//! works on text alone.
//!
//! - `w=90s` is the window; `from=&to=` the frozen span, in Unix seconds as in the API (older links have ms).
//! - `theme` and `source` are names; `theme=lab` follows the surrounding page.
//! - `hide=a,b` are hidden charts; `open=a,b` and `shut=a,b` are sections that a person unfolded and folded.
//! - `front=a,b` are the first charts, in this order; `layout` is the name of the layout that these four came from.
//! - `card=NAME~TAG~TAG` is a chart of one's own: see [`card`](crate::card).
//! - `only=CHART~SERIES`, `off=CHART~SERIES` and `pin=SERIES` are series that are isolated, hidden and highlighted in
//!   all charts.
//! - `over=CHART~CHART` is one chart drawn over another.
//! - `vs=1h` is an earlier period to compare with, `vs=before` the span just before.
//! - `kernel=ID` shows the charts of a Jupyter kernel first; `view=compact` is for the side of a notebook.
//! - `heat=mean.values` is the order of the rows of heat maps, and the content of their cells.
//! - `page=` names a page other than that of one machine.
//! - `run=` is a run that is shown; several are compared. `align=clock` aligns several runs by the clock, `align=step` by
//!   training step, not by their starts.
//! - `state=`, `sort=` and `columns=` are the states, the order and the columns of the list of runs.
//! - `tab=` is a part of the page of alerts; `alert=` the alert that is shown there, or the rule that is being edited.
//! - `with=` is a further machine to compare with, `find=` filters the fleet, `by=` groups it.
//! - On a hub, `team=` is the team whose people and keys are shown, `view=` the saved view that was opened, `share=`
//!   the share link.

use crate::range;
use shared::new_marker::kernel_id;
use shared::window;

/// All view settings of the user, without the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Length of the live window in ms.
    pub window: i64,
    /// The frozen span, ms since the epoch; None while the page is live.
    pub frozen: Option<(i64, i64)>,
    /// The theme that the user chose; None to follow the system.
    pub theme: Option<Tone>,
    /// Name of the machine; None for the first one.
    pub source: Option<String>,
    /// Ids of hidden charts.
    pub hide: Vec<String>,
    /// Ids of sections that the user unfolded.
    pub open: Vec<String>,
    /// Ids of sections that the user folded.
    pub shut: Vec<String>,
    /// Ids of the first charts, in this order.
    pub front: Vec<String>,
    /// The cards, as text that [`Card`](crate::card::Card) writes and reads.
    pub cards: Vec<String>,
    /// Name of the layout that folds, hidden charts and their order came from; None if there is none.
    pub layout: Option<String>,
    /// Isolated series as id of the chart and name: the chart shows these alone.
    pub only: Vec<(String, String)>,
    /// Hidden series as id of the chart and name.
    pub off: Vec<(String, String)>,
    /// Names of series that are highlighted in all charts.
    pub pin: Vec<String>,
    /// Pairs of chart ids: the first chart also shows the series of the second.
    pub over: Vec<(String, String)>,
    /// Distance to the earlier period of a comparison, in ms. 0 means the length of the span; None means no comparison.
    pub versus: Option<i64>,
    /// The requested page; None for the one that fits the data.
    pub place: Option<Route>,
    /// Names of further machines to compare with the shown one.
    pub with: Vec<String>,
    /// Filter of the fleet; empty for all machines.
    pub find: String,
    /// The label by which the fleet is grouped; empty for the usual one.
    pub by: String,
    /// Ids of the runs that are shown.
    pub runs: Vec<String>,
    /// Alignment of several runs: `clock`, `step`, or empty for their starts.
    pub align: String,
    /// States of the listed runs, separated by commas; empty for all.
    pub state: String,
    /// The column by which runs are sorted; empty for the usual one.
    pub sort: String,
    /// The columns of the list of runs, separated by commas; empty for the usual ones.
    pub columns: String,
    /// Id of the finding that is shown; None for the first.
    pub finding: Option<String>,
    /// The part of the page of alerts that is shown, as [`Tab`] names it; empty for the alerts themselves.
    pub tab: String,
    /// Id of the alert that is shown. On the rules tab, the rule that is being edited, in the form of
    /// [`Draft`](crate::draft::Draft). Empty for none.
    pub alert: String,
    /// The team whose people, keys and machines are shown, by id; None for the first.
    pub team: Option<String>,
    /// Id of the saved view that was opened; None for none.
    pub saved: Option<String>,
    /// Id of the share link through which the page is opened; None for none.
    pub share: Option<String>,
    /// Id of the Jupyter kernel whose charts are first; None for none.
    pub kernel: Option<String>,
    /// True beside a notebook, with little room.
    pub compact: bool,
    /// True when the theme is that of the surrounding page.
    pub lab: bool,
    /// Order and values of the rows of heat maps, as text that [`Rows`](crate::picture::Rows) writes and reads.
    pub heat: String,
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// One machine.
    Host,
    /// All machines.
    Fleet,
    /// Some machines on one chart each.
    Compare,
    /// The training jobs.
    Runs,
    /// One training job, or several beside each other.
    Run,
    /// Problems, present and past.
    Findings,
    /// Firing alerts, rules, notification channels and silences.
    Alerts,
    /// The machines of a team: their keys, names and labels.
    Machines,
    /// The people of a team.
    Team,
    /// The keys of programs.
    Keys,
    /// The share links of a team.
    Links,
    /// The audit log.
    Audit,
    /// Usage.
    Usage,
    /// The account of the signed-in user.
    Me,
}

impl Route {
    const ALL: [Route; 14] = [
        Route::Host,
        Route::Fleet,
        Route::Compare,
        Route::Runs,
        Route::Run,
        Route::Findings,
        Route::Alerts,
        Route::Machines,
        Route::Team,
        Route::Keys,
        Route::Links,
        Route::Audit,
        Route::Usage,
        Route::Me,
    ];

    /// Its name in the address.
    pub fn name(self) -> &'static str {
        match self {
            Route::Host => "host",
            Route::Fleet => "fleet",
            Route::Compare => "compare",
            Route::Runs => "runs",
            Route::Run => "run",
            Route::Findings => "findings",
            Route::Alerts => "alerts",
            Route::Machines => "machines",
            Route::Team => "team",
            Route::Keys => "keys",
            Route::Links => "links",
            Route::Audit => "audit",
            Route::Usage => "usage",
            Route::Me => "me",
        }
    }

    /// True if the page draws machines, so that their values are needed.
    pub fn draws(self) -> bool {
        use Route::{Alerts, Compare, Findings, Fleet, Host, Run, Runs};
        matches!(self, Host | Fleet | Compare | Runs | Run | Findings | Alerts)
    }
}

/// A part of the page of alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    /// Firing and past alerts.
    Alerts,
    /// Alert rules.
    Rules,
    /// Notification channels and deliveries.
    Deliveries,
    /// Silences.
    Silences,
}

impl Tab {
    /// All parts in their order.
    pub const ALL: [Tab; 4] = [Tab::Alerts, Tab::Rules, Tab::Deliveries, Tab::Silences];

    /// Its name in the address.
    pub fn name(self) -> &'static str {
        match self {
            Tab::Alerts => "",
            Tab::Rules => "rules",
            Tab::Deliveries => "deliveries",
            Tab::Silences => "silences",
        }
    }

    /// The part with this name.
    pub fn from_name(name: &str) -> Tab {
        Tab::ALL.into_iter().find(|tab| tab.name() == name).unwrap_or(Tab::Alerts)
    }
}

/// The theme of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Light text on a dark background.
    Dark,
    /// Dark text on a light background.
    Light,
}

impl Tone {
    /// Name of the theme in the address and in `data-theme`.
    pub fn name(self) -> &'static str {
        match self {
            Tone::Dark => "dark",
            Tone::Light => "light",
        }
    }
}

/// Runs that are compared by the clock.
pub const CLOCK: &str = "clock";
/// Runs that are compared by training step.
pub const STEP: &str = "step";
/// The view with little room; any other value is a saved view.
const COMPACT: &str = "compact";
/// Names of the parameters that make a layout.
const LAYOUT: [&str; 4] = ["hide", "open", "shut", "front"];
/// Maximum length of the name of a layout, characters.
pub const MAX_NAME_CHARS: usize = 40;
/// Largest number of parameters that are read; the others are ignored.
const MAX_LIST_ENTRIES: usize = 200;

/// Reads a view from decoded pairs of name and value. Invalid values keep their default; the second result has a
/// sentence about each.
pub fn read(pairs: impl IntoIterator<Item = (String, String)>) -> (View, Vec<String>) {
    let mut view = View { window: window::DEFAULT.ms, ..View::default() };
    let (mut from, mut to, mut wrong) = (None, None, Vec::new());
    let fits = |ms: &i64| (range::MIN_WINDOW_MS..=range::MAX_WINDOW_MS).contains(ms);
    for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()).take(MAX_LIST_ENTRIES) {
        let mut both = |list: fn(&mut View) -> &mut Vec<(String, String)>| {
            let pair = value.split_once('~').map(|(a, b)| (a.to_string(), b.to_string()));
            list(&mut view).extend(pair);
        };
        match name.as_str() {
            "only" => both(|v| &mut v.only),
            "off" => both(|v| &mut v.off),
            "over" => both(|v| &mut v.over),
            "pin" => view.pin.push(value),
            "card" => view.cards.push(value),
            "w" => match range::length(&value).filter(fits) {
                Some(window) => view.window = window,
                None => wrong.push(format!("w={} is not a window: write 5s to 31d", short(&value))),
            },
            "from" | "to" => {
                let at = range::since_epoch(&value);
                if at.is_none() {
                    wrong.push(format!("{name}={} is not a time: write Unix seconds", short(&value)));
                }
                *(if name == "from" { &mut from } else { &mut to }) = Some(at);
            }
            "theme" if value == "lab" => view.lab = true,
            "theme" => view.theme = tone(&value).or(view.theme),
            "kernel" => match kernel_id(&value) {
                Ok(id) => view.kernel = Some(id),
                Err(_) => wrong.push(format!("kernel={} is not the ID of a kernel", short(&value))),
            },
            "view" if value == COMPACT => view.compact = true,
            "source" => view.source = Some(value),
            "heat" => view.heat = value,
            "page" => view.place = Route::ALL.into_iter().find(|place| place.name() == value),
            "with" => view.with.push(value),
            "find" => view.find = value,
            "by" => view.by = value,
            "run" => view.runs.push(value),
            "align" if [CLOCK, STEP].contains(&value.as_str()) => view.align = value,
            "state" => view.state = value,
            "sort" => view.sort = value,
            "columns" => view.columns = value,
            "finding" => view.finding = Some(value),
            "tab" => view.tab = value,
            "alert" => view.alert = value,
            "team" => view.team = Some(value),
            "view" => view.saved = Some(value),
            "share" => view.share = Some(value),
            "hide" => view.hide.extend(ids(&value)),
            "open" => view.open.extend(ids(&value)),
            "shut" => view.shut.extend(ids(&value)),
            "front" => view.front.extend(ids(&value)),
            "layout" => view.layout = Some(value.chars().take(MAX_NAME_CHARS).collect()),
            "vs" if value == "before" => view.versus = Some(0),
            "vs" => view.versus = range::length(&value).filter(|ms| *ms >= range::MIN_WINDOW_MS),
            _ => {}
        }
    }
    match (from, to) {
        (Some(Some(from)), Some(Some(to))) if fits(&(to - from)) => view.frozen = Some((from, to)),
        (Some(Some(from)), Some(Some(to))) if to <= from => wrong.push("to= is before from=".into()),
        (Some(Some(_)), Some(Some(_))) => wrong.push("from= and to= must be 5s to 31d apart".into()),
        (Some(Some(_)), None) | (None, Some(Some(_))) => wrong.push("from= and to= belong together".into()),
        _ => {}
    }
    (view, wrong)
}

/// The theme of this name.
pub fn tone(name: &str) -> Option<Tone> {
    [Tone::Dark, Tone::Light].into_iter().find(|tone| tone.name() == name)
}

/// The ids in a list; an empty list has none.
pub fn ids(list: &str) -> impl Iterator<Item = String> {
    list.split(',').filter(|s| !s.is_empty()).map(str::to_string)
}

/// The first 24 characters of a value, for an error message.
fn short(value: &str) -> String {
    value.chars().take(24).collect()
}

/// The pairs of name and value for a view. Values at their default are left out.
pub fn write(view: &View) -> Vec<(&'static str, String)> {
    let mut pairs = vec![("w", range::name(view.window))];
    if let Some((from, to)) = view.frozen {
        pairs.push(("from", range::seconds(from)));
        pairs.push(("to", range::seconds(to)));
    }
    if let Some(tone) = view.theme {
        pairs.push(("theme", tone.name().to_string()));
    }
    pairs.extend(view.lab.then(|| ("theme", "lab".to_string())));
    pairs.extend(view.compact.then(|| ("view", COMPACT.to_string())));
    pairs.extend(view.kernel.iter().map(|id| ("kernel", id.clone())));
    if let Some(source) = &view.source {
        pairs.push(("source", source.clone()));
    }
    for (name, list) in LAYOUT.into_iter().zip([&view.hide, &view.open, &view.shut, &view.front]) {
        if !list.is_empty() {
            pairs.push((name, list.join(",")));
        }
    }
    pairs.extend(view.cards.iter().map(|card| ("card", card.clone())));
    pairs.extend(view.layout.iter().map(|name| ("layout", name.clone())));
    for (name, list) in [("only", &view.only), ("off", &view.off), ("over", &view.over)] {
        pairs.extend(list.iter().map(|(a, b)| (name, format!("{a}~{b}"))));
    }
    pairs.extend(view.pin.iter().map(|name| ("pin", name.clone())));
    pairs.extend(view.place.map(|place| ("page", place.name().to_string())));
    pairs.extend(view.with.iter().map(|name| ("with", name.clone())));
    pairs.extend(view.runs.iter().map(|id| ("run", id.clone())));
    let texts = [
        ("heat", &view.heat),
        ("find", &view.find),
        ("by", &view.by),
        ("align", &view.align),
        ("state", &view.state),
        ("sort", &view.sort),
        ("columns", &view.columns),
        ("tab", &view.tab),
        ("alert", &view.alert),
    ];
    for (name, text) in texts {
        if !text.is_empty() {
            pairs.push((name, text.clone()));
        }
    }
    for (name, id) in [("finding", &view.finding), ("team", &view.team), ("view", &view.saved), ("share", &view.share)]
    {
        pairs.extend(id.iter().map(|id| (name, id.clone())));
    }
    match view.versus {
        Some(0) => pairs.push(("vs", "before".into())),
        Some(ms) => pairs.push(("vs", range::name(ms))),
        None => {}
    }
    pairs
}

/// The path of a request to the API with the share link of the page's own query. A browser may hold several links, and a
/// session beside them; a request that names none is answered as for another one.
pub fn with_share(path: &str, query: &str) -> String {
    let named = query.trim_start_matches('?').split('&').find_map(|pair| pair.strip_prefix("share="));
    match named.filter(|id| !id.is_empty() && path.starts_with("api/") && !path.contains("share=")) {
        Some(id) => format!("{path}{}share={id}", if path.contains('?') { '&' } else { '?' }),
        None => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_share_link_asks_as_that_link() {
        let of = |path: &str| with_share(path, "?w=5m&share=h1");
        assert_eq!(of("api/v1/findings?active=1"), "api/v1/findings?active=1&share=h1");
        assert_eq!(of("api/v1/runs"), "api/v1/runs?share=h1");
        assert_eq!([of("api/v1/session?share=h2"), of("./")], ["api/v1/session?share=h2", "./"]);
        assert_eq!(
            [with_share("api/v1/runs", ""), with_share("api/v1/runs", "?share=")],
            ["api/v1/runs", "api/v1/runs"]
        );
    }

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
            open: vec!["gpu".into(), "processes".into()],
            shut: vec!["disk".into()],
            front: vec!["gpu.temp".into(), "disk".into()],
            cards: vec!["GPU 3~gpu.3.temp~gpu.3.powerWatts".into(), "50 %25~cpu".into()],
            layout: Some("heat & air".into()),
            only: vec![two("temp", "GPU 3"), two("disk", "/mnt/a, b~c")],
            off: vec![two("power", "GPU 1")],
            pin: vec!["GPU 3".into(), "GPU 4".into()],
            over: vec![two("temp", "power")],
            kernel: Some("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9".into()),
            compact: true,
            lab: true,
            heat: "mean.values".into(),
            place: Some(Route::Compare),
            tab: "rules".into(),
            alert: "gpu.*.temp > 85 C for 2m~.name=a & b".into(),
            with: vec!["node-7".into(), "node-8".into()],
            find: "rack:r1 state:late".into(),
            by: "pod".into(),
            runs: vec!["a-1".into(), "b-2".into()],
            align: CLOCK.into(),
            state: "failed,crashed".into(),
            sort: "gpu_hours".into(),
            columns: "name,user,cost".into(),
            finding: Some("hang:node-7:3:1795219200".into()),
            team: Some("t1".into()),
            saved: Some("v1".into()),
            share: Some("s1".into()),
            versus: Some(0),
        };
        assert_eq!(read(write(&view).into_iter().map(|(n, v)| (n.to_string(), v))), (view.clone(), vec![]));
        let other = View { versus: Some(86_400_000), ..view };
        assert_eq!(read(write(&other).into_iter().map(|(n, v)| (n.to_string(), v))), (other, vec![]));
    }

    #[test]
    fn a_kernel_of_any_program_is_shown() {
        let kernel = |id: &str| read([("kernel".to_string(), id.to_string())]);
        assert_eq!(kernel("v2-29684vbBr").0.kernel.as_deref(), Some("v2-29684vbBr"), "of VS Code");
        let (view, wrong) = kernel("a b");
        assert_eq!((view.kernel, wrong.len()), (None, 1));
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
            (&[("from", "soon"), ("to", "1795219500")], "from=soon is not a time"),
            (&[("from", "1795219500"), ("to", "1795219200")], "before"),
            (&[("from", "1795219200"), ("to", "1799319200")], "31d apart"),
            (&[("from", "1795219200")], "belong together"),
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
