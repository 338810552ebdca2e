//! The editor of a rule: a sentence with fields over a chart of the watched series, a line to drag, and the backtest.
//! The address of the page holds the draft.

use super::series::{DrawnSeries, Wanted, follow};
use super::{deeds, words};
use crate::access::Access;
use crate::fetch::{self, Json};
use crate::pages::team::asked::Polled;
use crate::panels::curves::Curves;
use crate::state::Page;
use crate::widgets::parts::{If, flag, text};
use charts::marks::CellMark;
use charts::order;
use leptos::ev::{KeyboardEvent, PointerEvent};
use leptos::html;
use leptos::prelude::*;
use shared::alert::{AlertSeverity, Channel, Channels, Checked, Fired, Rule, Tested};
use shared::catalog::Kind;
use shared::unit::{Scale, Unit, number, rough_duration};
use std::sync::Arc;
use std::time::Duration;
use viewer::alerts::metric;
use viewer::curves::CurveChart;
use viewer::draft::{Draft, Level, When, length, plainly, seconds, severity};

/// Span of the backtest, in seconds.
const SPAN_SECONDS: i64 = 43_200;
/// Delay of a backtest after the last change.
const BACKTEST_DELAY: Duration = Duration::from_millis(300);
/// Maximum number of cards in the backtest.
const MAX_CARDS: usize = 6;
/// Machines in the list to choose from.
const MAX_MACHINES: usize = 200;
/// Times for which a condition may have to hold, seconds.
const HOLD_TIMES_S: [i64; 9] = [0, 30, 60, 120, 300, 600, 900, 1_800, 3_600];

/// Title and unit of the metric that a draft watches; None where the catalog does not have it yet.
fn measured(page: Page, level: &Level) -> Option<(String, Unit)> {
    // The catalog may arrive later than the page.
    page.plan.track();
    page.fleet.track();
    page.store.with_value(|store| {
        let metric = store.catalog.metrics.get(usize::from(metric(&store.catalog, &level.tag)?))?;
        Some((metric.title.clone(), level.unit_of(metric.unit)))
    })
}

/// The symbol of a unit for display.
fn symbol(unit: &str) -> &str {
    if unit == "C" { "°C" } else { unit }
}

/// Changes the draft in the address.
fn change(page: Page, change: impl FnOnce(&mut Draft)) {
    let mut draft = Draft::read(&page.view.with_untracked(|view| view.alert.clone()));
    change(&mut draft);
    page.change(|view| view.alert = draft.write());
}

fn change_level(page: Page, what: impl FnOnce(&mut Level)) {
    change(page, |draft| {
        if let When::Level(level) = &mut draft.when {
            what(level);
        }
    });
}

/// The panel.
#[component]
pub fn Written() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let draft = Memo::new(move |_| Draft::read(&page.view.with(|view| view.alert.clone())));
    let level = Memo::new(move |_| match draft.get().when {
        When::Level(level) => Some(level),
        When::Words(_) => None,
    });
    let (said, busy) = (RwSignal::new(String::new()), RwSignal::new(false));
    let channels = Polled::follow(access, move || Some(words::of_team(access, "api/v1/channels")));
    let known = Memo::new(move |_| channels.read(|told: &Channels| told.channels.clone()));
    let rule = move || draft.with_untracked(|draft| rule_of(page, draft));
    let (checked, wrong) = follow_checks(page, draft);
    let leave = move || page.step(|view| view.alert = String::new());
    let save = move |_| {
        let rule = rule();
        let (method, path) = match rule.id.is_empty() {
            true => ("POST", words::of_team(access, "api/v1/rules")),
            false => ("PUT", words::of_id("api/v1/rules", &rule.id)),
        };
        busy.set(true);
        access.ask(method, path, deeds::sent(&rule), move |answer| {
            // The page may have gone.
            let _ = busy.try_set(false);
            if answer.is_ok() {
                page.alert_changes.update(|n| *n += 1);
                leave();
            } else {
                let _ = wrong.try_set(answer.problem());
            }
        });
    };
    let may = flag(move || words::may_write(access));
    let title = text(move || if draft.with(|draft| draft.id.is_some()) { "Edit rule" } else { "New rule" });
    let verdict =
        move || checked.with(|checked| checked.as_ref().map(|checked| checked.sentence.clone()).unwrap_or_default());
    let fired =
        Memo::new(move |_| checked.with(|checked| checked.as_ref().map(|c| c.fired.clone()).unwrap_or_default()));
    view! {
        <section class="panel written" aria-label=title data-checked=text(move || checked.with(|c| c.as_ref().map(|c| c.times.to_string()).unwrap_or_default()))>
            <header>
                <h2>{title}</h2>
                <span class="end">
                    <button class="plain" data-do="discard" on:click=move |_| leave()>"Discard"</button>
                    <TestButton draft channels=known said/>
                    <If when=may><button class="btn primary" data-do="save-rule" disabled=busy on:click=save>"Save rule"</button></If>
                </span>
            </header>
            <If when=flag(move || !may.get())><p class="below">"Members of the team can save rules."</p></If>
            <Sentence draft channels=known/>
            <If when=flag(move || level.with(Option::is_some))>
                <Plot level source=text(move || draft.with(|draft| draft.fact("source").to_string())) fired/>
            </If>
            <p class="verdict" role="status">
                <If when=flag(move || !verdict().is_empty())>"It "<b>{text(verdict)}</b>"."</If>
            </p>
            <p class="wrong" role="alert">{wrong}</p>
            <WouldFire level checked fired/>
            <p class="did" role="status">{said}</p>
        </section>
    }
}

/// The rule in the form of the API.
fn rule_of(page: Page, draft: &Draft) -> Rule {
    let title = match &draft.when {
        When::Level(level) => measured(page, level).map(|(title, _)| title).unwrap_or_default(),
        When::Words(_) => String::new(),
    };
    Rule {
        id: draft.id.clone().unwrap_or_default(),
        name: draft.named(&title),
        severity: draft.severity,
        when: draft.when.write(),
        on: draft.on.iter().cloned().collect(),
        to: draft.to.clone(),
        note: Some(draft.note.clone()).filter(|note| !note.is_empty()),
        resolved: true,
        quiet: true,
        enabled: true,
        version: draft.version,
        ..Rule::default()
    }
}

/// The backtest of a draft, requested again after each change of its condition, and the error of that request.
fn follow_checks(page: Page, draft: Memo<Draft>) -> (RwSignal<Option<Checked>>, RwSignal<String>) {
    let (checked, wrong) = (RwSignal::new(None::<Checked>), RwSignal::new(String::new()));
    let turn = StoredValue::new(0u32);
    let check = move || {
        let mine = turn.with_value(|turn| turn + 1);
        turn.set_value(mine);
        let wait = move || {
            if turn.try_with_value(|turn| *turn == mine) != Some(true) {
                return;
            }
            let body = Json::object([
                ("rule", Json::object(deeds::sent(&draft.with_untracked(|draft| rule_of(page, draft))))),
                ("span", (SPAN_SECONDS as f64).into()),
            ]);
            fetch::ask("POST", "api/v1/rules/check", Some(body), move |answer| {
                if turn.try_with_value(|turn| *turn == mine) != Some(true) {
                    return;
                }
                let (new, why) = match answer.read::<Checked>() {
                    Ok(new) => (Some(new), String::new()),
                    Err(why) => (None, why),
                };
                checked.set(new);
                wrong.set(why);
            });
        };
        set_timeout(wait, BACKTEST_DELAY);
    };
    // The name, the severity and the channels do not affect the backtest.
    let watched = Memo::new(move |_| draft.with(|draft| (draft.when.write(), draft.on.clone())));
    Effect::new(move || {
        // A memo without a reader is never computed: tracking it is not enough.
        let _ = watched.get();
        check();
    });
    (checked, wrong)
}

/// The button that sends a test notification to the first channel of the rule; `said` is the result.
#[component]
fn TestButton(draft: Memo<Draft>, channels: Memo<Vec<Channel>>, said: RwSignal<String>) -> impl IntoView {
    let access = expect_context::<Access>();
    let first = Memo::new(move |_| {
        let to = draft.with(|draft| draft.to.clone());
        channels.with(|all| {
            let told = |one: &&Channel| to.as_ref().map_or(one.is_default, |to| to.contains(&one.name));
            all.iter().find(told).map(|one| (one.id.clone(), one.name.clone()))
        })
    });
    let test = move |_| {
        let Some((id, name)) = first.get_untracked() else { return };
        said.set(format!("Sending to {name}…"));
        access.ask("POST", format!("{}/test", words::of_id("api/v1/channels", &id)), Vec::new(), move |answer| {
            let sentence = answer.read::<Tested>().map_or_else(|why| why, |tested| tested.sentence);
            let _ = said.try_set(format!("{name}: {sentence}"));
        });
    };
    let words = text(move || {
        first.with(|first| first.as_ref().map(|(_, name)| format!("Test: notify {name}")).unwrap_or_default())
    });
    view! {
        <If when=flag(move || first.with(Option::is_some))>
            <button class="btn" data-do="test-rule" on:click=test>{words}</button>
        </If>
    }
}

/// The times at which it would have fired.
#[component]
fn WouldFire(level: Memo<Option<Level>>, checked: RwSignal<Option<Checked>>, fired: Memo<Vec<Fired>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let unit = move || level.get().and_then(|level| measured(page, &level)).map(|(_, unit)| unit);
    let more = text(move || match checked.with(|c| c.as_ref().map_or(0, |c| c.times as usize)) {
        n if n > MAX_CARDS => format!("and {} more", n - MAX_CARDS),
        _ => String::new(),
    });
    let cards = move || {
        page.plan.track();
        let unit = unit();
        let card = |(at, one): (usize, &Fired)| view! { <li><b>{format!("{}. {}", at + 1, words::clock(one.from))}</b>{card(one, unit)}<br/><span class="u">{one.subject.clone()}</span></li> };
        fired.with(|all| all.iter().take(MAX_CARDS).enumerate().map(card).collect_view())
    };
    view! {
        <ol class="fired">{cards}</ol>
        <p class="below">{more}</p>
    }
}

/// Duration of the alert that would have fired, and its worst value.
fn card(fired: &Fired, unit: Option<Unit>) -> String {
    let lasted = match fired.to {
        Some(to) => format!(", for {}", rough_duration(to - fired.from)),
        None => ", still firing".into(),
    };
    let worst = fired.worst.map(|worst| {
        let (text, symbol) = unit.map_or((number(worst), ""), |unit| shared::unit::quantity(worst, unit));
        format!(", worst {text} {symbol}")
    });
    format!("{lasted}{}", worst.unwrap_or_default())
}

/// A field of the sentence: one of several values with their words.
#[component]
fn Pick(
    name: &'static str,
    label: &'static str,
    #[prop(into)] value: Signal<String>,
    #[prop(into)] options: Signal<Vec<(String, String)>>,
    put: Callback<String>,
) -> impl IntoView {
    let list = move || {
        let chosen = value.get();
        let mut all = options.get();
        if !all.iter().any(|(value, _)| *value == chosen) {
            all.push((chosen.clone(), chosen.clone()));
        }
        all.into_iter()
            .map(|(value, words)| {
                let selected = value == chosen;
                view! { <option value=value selected=selected>{words}</option> }
            })
            .collect_view()
    };
    view! { <select class="tok" name=name aria-label=label on:change=move |event| put.run(event_target_value(&event))>{list}</select> }
}

/// A field of the sentence that is typed.
#[component]
fn Type(
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    #[prop(into)] value: Signal<String>,
    put: Callback<String>,
) -> impl IntoView {
    view! {
        <input
            class="tok"
            name=name
            aria-label=label
            placeholder=hint
            autocomplete="off"
            spellcheck="false"
            prop:value=value
            on:change=move |event| put.run(event_target_value(&event))
        />
    }
}

/// The tags that can be watched, with their titles; metrics with the same title are distinguished by the tag.
fn tags(page: Page) -> Vec<(String, String)> {
    page.store.with_value(|store| {
        let of = store.catalog.metrics.iter().filter(|m| m.kind != Kind::State && !m.title.is_empty());
        let pattern = |tag: &str| match tag.split_once('{').and_then(|(a, rest)| Some((a, rest.split_once('}')?.1))) {
            Some((before, after)) => format!("{before}*{after}"),
            None => tag.to_string(),
        };
        let mut all: Vec<(String, String)> = of.map(|m| (pattern(&m.tag), m.title.clone())).collect();
        order::sort_by(&mut all, |a, b| a.1.cmp(&b.1).then(a.0.cmp(&b.0)));
        let several: Vec<bool> = (0..all.len())
            .map(|i| {
                let same = |other: Option<usize>| {
                    other.and_then(|other| all.get(other)).is_some_and(|other| other.1 == all[i].1)
                };
                same(i.checked_sub(1)) || same(Some(i + 1))
            })
            .collect();
        all.into_iter()
            .zip(several)
            .map(|((tag, title), several)| {
                let words = if several { format!("{title}, {tag}") } else { title };
                (tag, words)
            })
            .collect()
    })
}

/// The sentence.
#[component]
fn Sentence(draft: Memo<Draft>, channels: Memo<Vec<Channel>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let is_level = flag(move || draft.with(|draft| matches!(draft.when, When::Level(_))));
    view! {
        <p class="sentence-of-rule">
            "When "
            <If when=is_level>
                <LevelFields draft/>
            </If>
            <If when=flag(move || !is_level.get())>
                <Type name="when" label="Condition" hint="run crashed" value=text(move || draft.with(|draft| draft.when.write())) put=Callback::new(move |when: String| change(page, |draft| draft.when = When::read(&when)))/>
            </If>
            <Audience draft channels/>
        </p>
    }
}

/// The part of the sentence about a limit.
#[component]
fn LevelFields(draft: Memo<Draft>) -> impl IntoView {
    let page = expect_context::<Page>();
    let of = move |read: fn(&Level) -> String| {
        text(move || {
            draft.with(|draft| match &draft.when {
                When::Level(level) => read(level),
                When::Words(_) => String::new(),
            })
        })
    };
    // In a tag the instance replaces the star.
    let tag_options = Signal::derive(move || {
        page.plan.track();
        page.fleet.track();
        tags(page)
    });
    let put_tag = Callback::new(move |tag: String| {
        change_level(page, |level| {
            let counter = page.store.with_value(|store| {
                metric(&store.catalog, &tag)
                    .and_then(|at| store.catalog.metrics.get(usize::from(at)))
                    .is_some_and(|m| m.kind == Kind::Counter)
            });
            level.tag = tag;
            level.rate = counter.then_some(60);
            // A limit of another unit is invalid here: the line is in the middle until it is dragged.
            if measured(page, level).is_none_or(|(_, unit)| level.base(unit).is_none()) {
                level.unit = String::new();
                level.margin = None;
            }
        });
    });
    let sides =
        Signal::derive(|| vec![("above".to_string(), "above".to_string()), ("below".to_string(), "below".to_string())]);
    let holds = Signal::derive(move || HOLD_TIMES_S.map(|s| (length(s), rough_duration(s * 1_000))).to_vec());
    let margins = Signal::derive(move || {
        draft.with(|draft| {
            let When::Level(level) = &draft.when else { return Vec::new() };
            let said = |margin: f64| {
                (plainly(margin), format!("{} {}", number(margin), symbol(&level.unit)).trim_end().to_string())
            };
            let none = (String::new(), "immediately".to_string());
            level.margins().into_iter().map(said).chain([none]).collect()
        })
    });
    let put_limit = Callback::new(move |value: String| {
        if let Ok(limit) = value.trim().replace(',', "").parse::<f64>() {
            change_level(page, |level| level.limit = limit);
        }
    });
    let unit = text(move || {
        draft.with(|draft| match &draft.when {
            When::Level(level) if level.unit.is_empty() => {
                measured(page, level).map(|(_, unit)| unit.symbol().to_string()).unwrap_or_default()
            }
            When::Level(level) => symbol(&level.unit).to_string(),
            When::Words(_) => String::new(),
        })
    });
    let other = text(move || {
        draft.with(|draft| match &draft.when {
            When::Level(level) if level.above => "below",
            _ => "above",
        })
    });
    view! {
        <Pick name="tag" label="Metric" value=of(|level| level.tag.clone()) options=tag_options put=put_tag/>
        " is "
        <Pick name="side" label="Above or below" value=of(|level| (if level.above { "above" } else { "below" }).into()) options=sides put=Callback::new(move |side: String| change_level(page, |level| level.above = side == "above"))/>
        " "
        <Type name="limit" label="Limit" hint="85" value=of(|level| number(level.limit)) put=put_limit/>
        " "{unit}" for "
        <Pick name="hold" label="Duration" value=of(|level| length(level.hold)) options=holds put=Callback::new(move |hold: String| change_level(page, |level| level.hold = seconds(&hold).unwrap_or(level.hold)))/>
        ", until it is "
        <Pick name="margin" label="Margin below or above the limit at which it ends" value=of(|level| level.margin.map(plainly).unwrap_or_default()) options=margins put=Callback::new(move |margin: String| change_level(page, |level| level.margin = margin.parse().ok()))/>
        " "{other}
    }
}

/// The part of the sentence about the machines, the people and the name.
#[component]
fn Audience(draft: Memo<Draft>, channels: Memo<Vec<Channel>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let fact = move |name: &'static str| text(move || draft.with(|draft| draft.fact(name).to_string()));
    let put_fact = move |name: &'static str| {
        Callback::new(move |value: String| change(page, |draft| draft.set_fact(name, value.trim())))
    };
    let machines = Signal::derive(move || {
        page.fleet.track();
        let names = page.store.with_value(|store| {
            store.index.iter().take(MAX_MACHINES).map(|entry| entry.name.clone()).collect::<Vec<_>>()
        });
        let any = (String::new(), "any machine".to_string());
        [any].into_iter().chain(names.into_iter().map(|name| (name.clone(), name))).collect::<Vec<_>>()
    });
    let told = text(move || {
        draft.with(|draft| match &draft.to {
            None => "*".to_string(),
            Some(to) => to.join(","),
        })
    });
    let tell = Signal::derive(move || {
        let usual =
            [("*".to_string(), "the default channels".to_string()), (String::new(), "in this page only".to_string())];
        let own = channels.with(|all| all.iter().map(|one| (one.name.clone(), one.name.clone())).collect::<Vec<_>>());
        usual.into_iter().chain(own).collect::<Vec<_>>()
    });
    let put_told = Callback::new(move |value: String| {
        change(page, |draft| {
            draft.to = match value.as_str() {
                "*" => None,
                names => Some(names.split(',').filter(|name| !name.is_empty()).map(String::from).collect()),
            }
        });
    });
    let severities = Signal::derive(|| {
        [AlertSeverity::Info, AlertSeverity::Warning, AlertSeverity::Critical]
            .map(|one| (one.as_str().to_string(), one.as_str().to_string()))
            .to_vec()
    });
    let title = move || {
        draft.with(|draft| {
            let title = match &draft.when {
                When::Level(level) => measured(page, level).map(|(title, _)| title).unwrap_or_default(),
                When::Words(_) => String::new(),
            };
            draft.named(&title)
        })
    };
    view! {
        ", on "
        <Pick name="source" label="Machine" value=fact("source") options=machines put=put_fact("source")/>
        " in "
        <Type name="project" label="Project" hint="any project" value=fact("project") put=put_fact("project")/>
        ", notify "
        <Pick name="to" label="Channel" value=told options=tell put=put_told/>
        " with severity "
        <Pick name="severity" label="Severity" value=text(move || draft.with(|draft| draft.severity.as_str())) options=severities put=Callback::new(move |word: String| change(page, |draft| draft.severity = severity(&word).unwrap_or_default()))/>
        " "
        <Type name="name" label="Name of the rule" hint="a name" value=text(title) put=Callback::new(move |name: String| change(page, |draft| draft.name = name.trim().to_string()))/>
        "."
    }
}

/// The line of the limit over the chart; copies share the same signals.
#[derive(Clone, Copy)]
struct LimitLine {
    page: Page,
    level: Memo<Option<Level>>,
    shown: Signal<Arc<CurveChart>>,
    /// Left, top, right and bottom of the plot in its area, pixels.
    edges: RwSignal<[f64; 4]>,
    /// The value at which the line is held while it is dragged, in the base unit.
    held: RwSignal<Option<f64>>,
}

impl LimitLine {
    /// The lowest and the highest value of the axis in the base unit, and its scale.
    fn reach(self) -> (f64, f64, Scale) {
        self.shown.with(|chart| {
            let axis = chart.axis();
            (axis.lo, axis.hi, axis.scale)
        })
    }

    /// Position of a value, in pixels from the top of the area.
    fn top(self, value: f64) -> f64 {
        let ([_, top, _, bottom], (lo, hi, _)) = (self.edges.get(), self.reach());
        bottom - (value - lo) / (hi - lo).max(f64::MIN_POSITIVE) * (bottom - top)
    }

    /// The limit, in the base unit.
    fn value(self) -> Option<f64> {
        self.held.get().or_else(|| limit_and_end(self.page, self.level).map(|(limit, _)| limit))
    }

    /// The value that clears the alert, in the base unit; it moves with the line.
    fn clears(self) -> Option<f64> {
        let (limit, clears) = limit_and_end(self.page, self.level)?;
        Some(clears? + self.held.get().map_or(0.0, |held| held - limit))
    }

    fn put(self, base: f64) {
        let (lo, hi, scale) = self.reach();
        change_level(self.page, |level| level.put(base, hi - lo, scale));
    }

    /// The limit in words.
    fn in_words(self, base: f64) -> Option<String> {
        let (lo, hi, scale) = self.reach();
        let mut level = self.level.get()?;
        level.put(base, hi - lo, scale);
        let side = if level.above { "above" } else { "below" };
        Some(format!("{side} {} {}", number(level.limit), symbol(&level.unit)).trim_end().to_string())
    }

    /// The value under the pointer.
    fn under(self, area: NodeRef<html::Div>, event: &PointerEvent) -> Option<f64> {
        let rect = area.get_untracked()?.get_bounding_client_rect();
        let [_, top, _, bottom] = self.edges.get_untracked();
        let (lo, hi, _) = untrack(|| self.reach());
        let share = (bottom - (f64::from(event.client_y()) - rect.top())) / (bottom - top).max(1.0);
        // A little beyond the axis is room for a limit above all that was.
        Some(lo + share.clamp(if lo > 0.0 { -0.25 } else { 0.0 }, 1.25) * (hi - lo))
    }

    /// Moves the line by a key.
    fn press(self, event: &KeyboardEvent) {
        let (lo, hi, _) = untrack(|| self.reach());
        let steps = match event.key().as_str() {
            "ArrowUp" | "ArrowRight" => 1.0,
            "ArrowDown" | "ArrowLeft" => -1.0,
            "PageUp" => 10.0,
            "PageDown" => -10.0,
            _ => return,
        };
        event.prevent_default();
        event.stop_propagation();
        if let Some(now) = untrack(|| self.value()) {
            self.put(now + steps * (hi - lo) / 100.0);
        }
    }
}

/// The limit and the end of it in the base unit.
fn limit_and_end(page: Page, level: Memo<Option<Level>>) -> Option<(f64, Option<f64>)> {
    page.plan.track();
    let level = level.get()?;
    let (_, unit) = measured(page, &level)?;
    Some((level.base(unit)?, level.clears(unit)))
}

/// A length in CSS, to half a pixel.
fn px(value: f64) -> String {
    format!("{}px", (value * 2.0).round() as i64 / 2)
}

/// The chart with the line to drag.
#[component]
fn Plot(level: Memo<Option<Level>>, #[prop(into)] source: Signal<String>, fired: Memo<Vec<Fired>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let wanted = Memo::new(move |_| {
        let level = level.get()?;
        let most = Some(level.above);
        Some(Wanted { tag: level.tag, source: source.get(), most, span: Err(SPAN_SECONDS * 1_000), limits: Vec::new() })
    });
    let drawn = follow(page, wanted);
    let chart = Memo::new(move |_| {
        let drawn = drawn.with(|drawn| drawn.as_ref().map(|drawn| drawn.chart.clone()))?;
        let mut chart = CurveChart::clone(&drawn);
        let lines = limit_and_end(page, level);
        chart.reach = lines.map(|(limit, clears)| [limit].into_iter().chain(clears).collect()).unwrap_or_default();
        Some(Arc::new(chart))
    });
    let shown = Signal::derive(move || chart.get().unwrap_or_else(CurveChart::nothing));
    let marks = Signal::derive(move || {
        let end = shown.with(|chart| chart.to);
        let mark = |one: &Fired| CellMark {
            from: one.from,
            to: one.to.unwrap_or(end),
            name: String::new(),
            failed: false,
            strong: true,
            fault: true,
        };
        let mut marks: Vec<CellMark> = fired.with(|all| all.iter().map(mark).collect());
        order::sort_by_key(&mut marks, |mark| mark.from);
        Arc::new(marks)
    });
    let (at, edges) = (RwSignal::new(None::<i64>), RwSignal::new([0.0; 4]));
    let line = LimitLine { page, level, shown, edges, held: RwSignal::new(None) };
    let area = NodeRef::<html::Div>::new();
    let moved = move |event: PointerEvent| {
        if line.held.get_untracked().is_some() {
            line.held.set(line.under(area, &event));
        }
    };
    let up = move |_: PointerEvent| {
        if let Some(base) = line.held.get_untracked() {
            line.put(base);
            line.held.set(None);
        }
    };
    let note = text(move || drawn.with(|drawn| plot_note(drawn.as_ref(), level)));
    let has = flag(move || limit_and_end(page, level).is_some() && chart.with(Option::is_some) && edges.get()[2] > 0.0);
    view! {
        <p class="u plot-note">{note}</p>
        <div class="rule-plot" node_ref=area on:pointermove=moved on:pointerup=up on:pointercancel=move |_| line.held.set(None)>
            <Curves chart=shown marks at edges label=text(move || format!("{}; drag the line to change the limit", note.get()))/>
            <div class="flags" aria-hidden="true">{move || flags(line, fired)}</div>
            <If when=has><Handle line/></If>
        </div>
    }
}

/// A description of the chart, in words.
fn plot_note(drawn: Option<&DrawnSeries>, level: Memo<Option<Level>>) -> String {
    let Some(drawn) = drawn else { return "There is no data for this yet.".to_string() };
    let unit = drawn.chart.symbol();
    let of = match drawn.series {
        1 => String::new(),
        n if level.with(|level| level.as_ref().is_none_or(|level| level.above)) => {
            format!(", the highest of {n} series")
        }
        n => format!(", the lowest of {n} series"),
    };
    let some = drawn.machines.map(|n| format!(", 16 of {n} machines drawn")).unwrap_or_default();
    format!("{}, {unit}{of}{some}; 12 h", drawn.title)
}

/// A flag at each time at which it would have fired, with the number of its card.
fn flags(line: LimitLine, fired: Memo<Vec<Fired>>) -> impl IntoView {
    let ([left, _, right, _], (from, to)) = (line.edges.get(), line.shown.with(|chart| (chart.from, chart.to)));
    let place = |(at, one): (usize, &Fired)| {
        let share = ((one.from - from) as f64 / (to - from).max(1) as f64).clamp(0.0, 1.0);
        let x = px(left + share * (right - left));
        view! { <span class="flag" style:left=x><span class="shape is-warn">"▲"</span>{at + 1}</span> }
    };
    fired.with(|all| all.iter().take(MAX_CARDS).enumerate().map(place).collect_view())
}

/// The line to drag, and the one at which the alert ends.
#[component]
fn Handle(line: LimitLine) -> impl IntoView {
    let handle = NodeRef::<html::Div>::new();
    let down = move |event: PointerEvent| {
        event.prevent_default();
        if let Some(handle) = handle.get_untracked() {
            // The pointer may have gone by now.
            let _ = handle.set_pointer_capture(event.pointer_id());
            crate::browser::focus(&handle);
        }
        line.held.set(untrack(|| line.value()));
    };
    let top = text(move || line.value().map(|value| px(line.top(value))).unwrap_or_default());
    let clear_top = text(move || line.clears().map(|value| px(line.top(value))).unwrap_or_default());
    let left = text(move || px(line.edges.get()[0]));
    let width = text(move || px(line.edges.get()[2] - line.edges.get()[0]));
    let words = text(move || line.value().and_then(|base| line.in_words(base)).unwrap_or_default());
    let number_of = move |read: fn(f64, f64, f64) -> f64| {
        text(move || {
            let (lo, hi, scale) = line.reach();
            shared::unit::fixed(read(lo, hi, line.value().unwrap_or_default()) / scale.divisor, 2)
        })
    };
    view! {
        <i class="clears" style:top=clear_top style:left=left style:width=width></i>
        <div
            class="limit"
            node_ref=handle
            role="slider"
            tabindex="0"
            aria-label="Limit"
            aria-orientation="vertical"
            aria-valuemin=number_of(|lo, _, _| lo)
            aria-valuemax=number_of(|_, hi, _| hi)
            aria-valuenow=number_of(|_, _, value| value)
            aria-valuetext=words
            style:top=top
            style:left=left
            style:width=width
            on:pointerdown=down
            on:keydown=move |event| line.press(&event)
        ><span>"⇕ "{words}</span></div>
    }
}
