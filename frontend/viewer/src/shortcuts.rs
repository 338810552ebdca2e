//! The one table of keys: names of the keys, a description, and the action. The list of keys on the page, the titles of
//! buttons and docs/use/keys.md are made from it.

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Moves the focus by this number of charts.
    Chart(i32),
    /// Moves the crosshair by this number of samples, with shift by ten times as many. `i64::MIN` and `i64::MAX` go to
    /// the ends of the span.
    Read(i64),
    /// Moves the crosshair to the mark before (negative) or to the next one.
    Mark(i32),
    /// Pins the crosshair, or unpins it.
    Pin,
    /// Opens the menu of a chart, or closes it.
    Menu,
    /// Describes what a chart shows.
    About,
    /// Chooses the window at this position of the bar, from 0.
    Window(usize),
    /// Opens the search field for charts, machines, processes, times and actions.
    Find,
    /// Lists the stored layouts.
    Layouts,
    /// Halves the span.
    Closer,
    /// Doubles the span.
    Wider,
    /// Moves the span by this number of halves of its length.
    Pan(i64),
    /// Goes back to the span before.
    Back,
    /// Freezes the page, or returns to live.
    Freeze,
    /// Closes the overlay; without one, returns the page to live.
    Leave,
    /// Compares with the span before, or ends the comparison.
    Compare,
    /// Opens or closes the list of changes in the span.
    Changed,
    /// Lists the devices that differ from their peers.
    Differs,
    /// Goes to the page of findings.
    Findings,
    /// Goes to the page of alerts.
    Alerts,
    /// Writes a note at the crosshair, or about the span.
    Note,
    /// Saves the span as a recording.
    Record,
    /// Opens a recording.
    Open,
    /// Switches to the other theme.
    Theme,
    /// Shows the list of keys.
    Keys,
    /// Goes to the page of all machines. Pressed as a key, it waits for the letter of a page.
    Go,
    /// Plays the recording, or pauses it.
    Play,
    /// Changes the speed of the recording by this number of steps.
    Speed(i32),
    /// Moves the recording by this number of tenths of the window.
    Jump(i64),
}

/// Keys that belong together: one row of the list.
pub struct Shortcut {
    /// Names of the keys on a keyboard, with a space between each two.
    pub names: &'static str,
    /// Description of the action.
    pub words: &'static str,
    /// Name of each key in the browser, and its action. Empty for keys that the browser handles itself.
    pub keys: &'static [(&'static str, Action)],
}

/// Rows with a common title.
pub struct Group {
    /// Title of the group.
    pub title: &'static str,
    /// Rows in the order of the list.
    pub rows: &'static [Shortcut],
    /// True for the keys of recordings. They work only while a recording is shown, and then take precedence over all
    /// others.
    pub recorded: bool,
}

const fn row(names: &'static str, words: &'static str, keys: &'static [(&'static str, Action)]) -> Shortcut {
    Shortcut { names, words, keys }
}

/// All keys of the page.
pub static KEYS: [Group; 4] = [
    Group {
        title: "In a chart",
        recorded: false,
        rows: &[
            row("Tab", "next chart", &[]),
            row("↑ ↓", "previous, next chart", &[("ArrowUp", Action::Chart(-1)), ("ArrowDown", Action::Chart(1))]),
            row(
                "← →",
                "one sample back or forward; with Shift ten",
                &[("ArrowLeft", Action::Read(-1)), ("ArrowRight", Action::Read(1))],
            ),
            row(
                "Home End",
                "first or last value",
                &[("Home", Action::Read(i64::MIN)), ("End", Action::Read(i64::MAX))],
            ),
            row("Enter", "pin or unpin the values", &[("Enter", Action::Pin)]),
            row("M", "menu: table, picture, CSV, link, overlay", &[("m", Action::Menu)]),
            row("I", "about: meaning, unit, source, names", &[("i", Action::About)]),
        ],
    },
    Group {
        title: "Time",
        recorded: false,
        rows: &[
            row(
                "1–9 0",
                "select a window",
                &[
                    ("1", Action::Window(0)),
                    ("2", Action::Window(1)),
                    ("3", Action::Window(2)),
                    ("4", Action::Window(3)),
                    ("5", Action::Window(4)),
                    ("6", Action::Window(5)),
                    ("7", Action::Window(6)),
                    ("8", Action::Window(7)),
                    ("9", Action::Window(8)),
                    ("0", Action::Window(9)),
                ],
            ),
            row(
                "+ -",
                "zoom in or out around the values",
                &[("+", Action::Closer), ("=", Action::Closer), ("-", Action::Wider)],
            ),
            row("[ ]", "half a window back or forward", &[("[", Action::Pan(-1)), ("]", Action::Pan(1))]),
            row("( )", "previous, next mark", &[("(", Action::Mark(-1)), (")", Action::Mark(1))]),
            row("Backspace", "one step back", &[("Backspace", Action::Back)]),
            row("L Space", "pause or resume", &[(" ", Action::Freeze), ("l", Action::Freeze)]),
            row("N", "write a note at the values, or about this span", &[("n", Action::Note)]),
            row("Esc", "close the dialog, else go live", &[("Escape", Action::Leave)]),
        ],
    },
    Group {
        title: "The page",
        recorded: false,
        rows: &[
            row("/ Ctrl-K", "find a chart, metric, machine, time or action", &[("/", Action::Find)]),
            row("C", "compare with the previous span", &[("c", Action::Compare)]),
            row("D W", "changes and outliers in this span", &[("d", Action::Changed), ("w", Action::Differs)]),
            row("F", "findings, active and resolved", &[("f", Action::Findings)]),
            row("A", "alerts: firing, rules, notifications", &[("a", Action::Alerts)]),
            row("E S N", "among the alerts: acknowledge, silence, create a rule", &[]),
            row("R O", "record this span to a file, open a file", &[("r", Action::Record), ("o", Action::Open)]),
            row("V", "layouts: which sections are open, hidden and first", &[("v", Action::Layouts)]),
            row("T", "dark or light theme", &[("t", Action::Theme)]),
            row("G F R T", "fleet; runs; team", &[("g", Action::Go)]),
            row("?", "this list", &[("?", Action::Keys)]),
        ],
    },
    Group {
        title: "In a recording",
        recorded: true,
        rows: &[
            row("Space", "play or pause", &[(" ", Action::Play)]),
            row(
                "< >",
                "slower, faster",
                &[("<", Action::Speed(-1)), (",", Action::Speed(-1)), (">", Action::Speed(1)), (".", Action::Speed(1))],
            ),
            row("J L", "a tenth of the window back or forward", &[("j", Action::Jump(-1)), ("l", Action::Jump(1))]),
        ],
    },
];

fn all(recorded: bool) -> impl Iterator<Item = &'static (&'static str, Action)> {
    KEYS.iter().filter(move |g| g.recorded == recorded).flat_map(|g| g.rows).flat_map(|row| row.keys)
}

impl Action {
    /// True when the action makes sense on every page, not only on that of one machine.
    pub fn anywhere(self) -> bool {
        matches!(
            self,
            Action::Find
                | Action::Keys
                | Action::Theme
                | Action::Go
                | Action::Findings
                | Action::Alerts
                | Action::Leave
        )
    }

    /// Name of the action in the search, and further search words. None if it needs a chart, or is one of several
    /// choices.
    pub fn names(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Action::Chart(_) | Action::Read(_) | Action::Pin | Action::Menu | Action::About => return None,
            Action::Window(_) | Action::Find => return None,
            Action::Layouts => ("Layouts: which sections are open, hidden and first", "arrangement, order, unhide"),
            Action::Closer => ("Zoom in", "closer"),
            Action::Wider => ("Zoom out", "wider"),
            Action::Pan(..0) => ("Half a window back", "pan left, earlier"),
            Action::Pan(_) => ("Half a window forward", "pan right, later"),
            Action::Mark(..0) => ("Previous mark", "flag, cell, finding, epoch, earlier"),
            Action::Mark(_) => ("Next mark", "flag, cell, finding, epoch, later"),
            Action::Back => ("One step back", "undo, previous view"),
            Action::Freeze => ("Pause or resume", "freeze, stand still, stop, go on"),
            Action::Leave => ("Close the dialog, else go live", "escape, reset"),
            Action::Compare => ("Compare with the previous span", "earlier, overlay"),
            Action::Changed => ("Changes in this span", "what changed, difference, before and after"),
            Action::Differs => ("Outliers in this span", "who differs, straggler, unlike its peers"),
            Action::Alerts => ("Alerts, rules and notifications", "bell, notices, silences, channels, threshold"),
            Action::Findings => ("Findings, active and resolved", "what is wrong, problems, faults, diagnosis"),
            Action::Note => ("Write a note at the values, or about this span", "comment, annotate, mark, flag"),
            Action::Record => ("Record this span to a file", "save, download, export"),
            Action::Open => ("Open a recording", "load a file, import, W&B, CSV"),
            Action::Theme => ("Dark or light", "theme, colors, mode"),
            Action::Keys => ("All keys", "help, shortcuts, keyboard"),
            Action::Go => ("All machines", "fleet, hosts, nodes"),
            Action::Play => ("Play, or pause", "the recording"),
            Action::Speed(..0) => ("Slower", "speed of the recording"),
            Action::Speed(_) => ("Faster", "speed of the recording"),
            Action::Jump(..0) => ("A tenth of the window back", "jump"),
            Action::Jump(_) => ("A tenth of the window forward", "jump"),
        })
    }
}

/// The action of a key, given by the browser's name with letters in lower case; None when the key has no action.
pub fn action(key: &str, recorded: bool) -> Option<Action> {
    let known = |recorded| all(recorded).find(|(name, _)| *name == key).map(|(_, action)| *action);
    recorded.then(|| known(true)).flatten().or_else(|| known(false))
}

/// The actions that can be found by name, each once, with the equivalent keys: `Space L`.
pub fn offered(recorded: bool) -> Vec<(Action, String)> {
    let mut found: Vec<(Action, String)> = Vec::new();
    let keys = KEYS.iter().flat_map(|group| group.rows).flat_map(|row| row.keys);
    for (key, means) in keys.filter(|(key, means)| means.names().is_some() && action(key, recorded) == Some(*means)) {
        let key = match *key {
            " " => "Space".to_string(),
            key if key.len() == 1 => key.to_uppercase(),
            key => key.to_string(),
        };
        match found.iter_mut().find(|(known, _)| known == means) {
            Some((_, keys)) => *keys = format!("{keys} {key}"),
            None => found.push((*means, key)),
        }
    }
    found
}

/// The title of a button: its description, with the equivalent keys.
pub fn title(words: &str, actions: &[Action]) -> String {
    let key = |action: &Action| {
        let known = |recorded| all(recorded).find(|(_, a)| a == action).map(|(name, _)| *name);
        known(false).or_else(|| known(true)).map(|name| if name == " " { "space" } else { name })
    };
    let keys: Vec<&str> = actions.iter().filter_map(key).collect();
    format!("{words} ({})", keys.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS_PAGE: &str = include_str!("../../../docs/use/keys.md");

    #[test]
    fn each_action_that_needs_no_chart_is_offered_once_by_its_name() {
        for recorded in [false, true] {
            let offered = offered(recorded);
            let names: Vec<&str> = offered.iter().filter_map(|(action, _)| Some(action.names()?.0)).collect();
            assert!(names.len() == offered.len() && names.iter().enumerate().all(|(i, n)| !names[..i].contains(n)));
        }
        let keys = |of: Action| offered(false).into_iter().find(|(action, _)| *action == of).map(|(_, keys)| keys);
        assert_eq!(keys(Action::Freeze).as_deref(), Some("Space L"));
        assert_eq!(keys(Action::Differs).as_deref(), Some("W"));
        assert_eq!((keys(Action::Play), keys(Action::Menu)), (None, None));
    }

    #[test]
    fn a_key_means_one_thing_and_each_is_named_as_it_is_pressed() {
        for recorded in [false, true] {
            let keys: Vec<&str> = all(recorded).map(|(name, _)| *name).collect();
            assert!(keys.iter().enumerate().all(|(i, key)| !keys[..i].contains(key)), "{keys:?}");
        }
        for row in KEYS.iter().flat_map(|g| g.rows) {
            let named = |key: &str| match key {
                " " => row.names.contains("Space"),
                "Escape" => row.names.contains("Esc"),
                "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight" => row.names.contains(['↑', '↓', '←', '→']),
                "=" | "," | "." => true, // This is the same key as the named one, without shift.
                digit if digit.bytes().all(|b| b.is_ascii_digit()) => row.names == "1–9 0",
                key => row.names.split(' ').any(|name| name.eq_ignore_ascii_case(key)),
            };
            assert!(row.keys.iter().all(|(key, _)| named(key)), "{}", row.names);
        }
    }

    #[test]
    fn a_recording_has_its_own_meaning_of_some_keys_and_that_of_the_page_of_the_others() {
        assert_eq!((action("l", false), action("l", true)), (Some(Action::Freeze), Some(Action::Jump(1))));
        assert_eq!((action("j", false), action("t", true)), (None, Some(Action::Theme)));
    }

    #[test]
    fn titles_name_the_keys() {
        assert_eq!(title("Theme", &[Action::Theme]), "Theme (t)");
        assert_eq!(title("Pause or resume", &[Action::Freeze]), "Pause or resume (space)");
        assert_eq!(title("Slower or faster", &[Action::Speed(-1), Action::Speed(1)]), "Slower or faster (< >)");
    }

    #[test]
    fn the_page_of_keys_names_every_key_and_no_other() {
        let table = KEYS_PAGE.split("| what | with the mouse | with keys |").nth(1).expect("keys.md has the table");
        let column: Vec<&str> =
            table.lines().skip(2).take_while(|l| l.starts_with('|')).filter_map(|l| l.split('|').nth(3)).collect();
        let column = column.join(" ");
        let names = || KEYS.iter().filter(|g| !g.recorded).flat_map(|g| g.rows).flat_map(|row| row.names.split(' '));
        for name in column.split('`').skip(1).step_by(2) {
            let digit = name.bytes().all(|b| b.is_ascii_digit());
            assert!(digit || names().any(|n| n.eq_ignore_ascii_case(name)), "keys.md has a key that is none: {name}");
        }
        let column = column.to_lowercase();
        for name in names().filter(|name| !["1–9", "↑", "↓", "←", "→"].contains(name)) {
            let name = name.to_lowercase();
            assert!(
                column.contains(&format!("`{name}`")) || (name.len() > 1 && column.contains(&name)),
                "keys.md lacks {name}"
            );
        }
    }
}
