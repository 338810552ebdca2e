//! One alert: its sentence, its notifications or why there were none, its series with the limit, and its actions.

use super::series::{Wanted, follow};
use super::{deeds, silences, words};
use crate::access::Access;
use crate::address::Tab;
use crate::browser::now;
use crate::fetch;
use crate::pages::findings::one::{line, shown};
use crate::pages::team::form::Form;
use crate::panels::curves::Curves;
use crate::shortcuts::{self, Action};
use crate::state::Page;
use crate::widgets::parts::{If, flag, text};
use charts::marks::CellMark;
use leptos::prelude::*;
use shared::alert::{Alert, AlertEvents, AlertHappened};
use std::sync::Arc;
use viewer::alerts::{AlertStand, AlertSubject, place, shape, span, subject};
use viewer::curves::CurveChart;

/// The address of its subject: the page of its machine at its span with its series highlighted, or its run.
fn address(page: Page, alert: &Alert) -> Option<String> {
    match subject(alert)? {
        AlertSubject::Machine(source) => {
            let tag = alert.labels.get("tag").cloned().unwrap_or_default();
            let found = page.store.with_value(|store| {
                store
                    .catalog
                    .known(&tag)
                    .map(|found| (store.catalog.metrics[usize::from(found.metric)].tag.clone(), found.instance))
            });
            let (chart, label, _) = found.map(|(tag, instance)| line(page, &tag, &instance)).unwrap_or_default();
            Some(shown(page, &source, span(alert, page.newest()), (chart, label)))
        }
        AlertSubject::Run(run) => {
            let rank = alert.labels.get("rank").map(|rank| format!("rank {rank}"));
            Some(page.address_of_run(run, rank))
        }
    }
}

/// The words of the button that leads there.
fn opens(alert: &Alert) -> String {
    match subject(alert) {
        Some(AlertSubject::Run(_)) => "Open run".into(),
        _ => format!("Open at {}", words::clock(alert.began)),
    }
}

/// An event of an alert, in words.
fn happened_words(one: &AlertHappened) -> String {
    let what = match one.what.as_str() {
        "firing" => "firing",
        "resolved" => "resolved",
        "acked" => "acknowledged",
        "flapping" => "flapping: notifications are paused",
        other => other,
    };
    let by = if one.who.is_empty() { String::new() } else { format!(" by {}", one.who) };
    let said = if one.words.is_empty() { String::new() } else { format!(": {}", one.words) };
    format!("{what}{by}{said}")
}

/// An alert with all its details.
#[component]
pub fn One(
    /// The alert.
    alert: Memo<Option<Alert>>,
    /// The open form.
    form: RwSignal<Option<Form>>,
    /// The server's error for the last action.
    wrong: RwSignal<String>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let of = move |read: fn(&Alert, i64) -> String| {
        text(move || {
            page.beat.track();
            alert.with(|one| one.as_ref().map(|one| read(one, page.server_now())).unwrap_or_default())
        })
    };
    let is = move |what: fn(&Alert) -> bool| flag(move || alert.with(|one| one.as_ref().is_some_and(what)));
    let there = text(move || {
        // The catalog may arrive later than the alert.
        page.plan.track();
        page.fleet.track();
        alert.with(|one| one.as_ref().and_then(|one| address(page, one))).unwrap_or_default()
    });
    let silence = move |_| {
        let asked = alert.with_untracked(|one| one.as_ref().map(|one| silences::of_alert(access, one, now() / 1_000)));
        form.set(asked);
    };
    let take_on =
        move |_| alert.with_untracked(|one| one.iter().for_each(|one| deeds::acknowledge(page, &one.id, wrong)));
    let may = move || words::may_write(access);
    let labels = move || {
        let known = alert.with(|one| one.as_ref().map(|one| one.labels.clone()).unwrap_or_default());
        known
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> })
            .collect_view()
    };
    let rule = text(move || page.address_of_alerts(Tab::Rules, ""));
    view! {
        <section
            class="panel finding-one"
            aria-label="The alert"
            data-alert=of(|one, _| one.id.clone())
            data-rule=of(|one, _| one.rule.clone())
            data-state=of(|one, _| AlertStand::from_alert(one).name().into())
            data-severity=of(|one, _| one.severity.as_str().into())
        >
            <a class="back" href=page.address_of_alerts(Tab::Alerts, "") on:click=move |event| {
                event.prevent_default();
                page.step(|view| view.alert = String::new());
            }>"‹ Alerts"</a>
            <header>
                <span class=of(|one, _| shape(one.severity, AlertStand::from_alert(one)).0.into()) aria-hidden="true">{of(|one, _| shape(one.severity, AlertStand::from_alert(one)).1.into())}</span>
                <h2>{of(|one, _| one.name.clone())}</h2>
                <span class="u">{of(words::times)}</span>
                <span class="end">
                    <If when=flag(move || may() && alert.with(|one| one.as_ref().is_some_and(|one| one.ended.is_none())))>
                        <button class="btn" data-do="silence" on:click=silence title="Silence it for a while (s)">"Silence…"</button>
                        <If when=is(|one| one.acked.is_none())>
                            <button class="btn" data-do="ack" on:click=take_on title="Stop its notifications until it ends (e)">"Acknowledge"</button>
                        </If>
                    </If>
                    <If when=flag(move || there.with(|to| !to.is_empty()))>
                        <a class="btn primary" data-do="open-alert" href=there>{of(|one, _| opens(one))}</a>
                    </If>
                </span>
            </header>
            <p class="sentence"><b>{of(|one, _| one.sentence.clone())}</b></p>
            <p class="below">{of(words::below)}</p>
            <p class="below">{of(|one, _| place(one))}</p>
            <If when=is(|one| !one.text.is_empty())><pre class="from-code">{of(|one, _| one.text.clone())}</pre></If>
            <Proof alert there/>
            <History alert/>
            <h3>"Machine"</h3>
            <dl class="facts">{labels}</dl>
            <p class="below"><a href=rule data-do="rules" title=shortcuts::title("Rules", &[Action::Alerts])>"The rules"</a></p>
        </section>
    }
}

/// The series of an alert with its span shaded; nothing where it has none.
#[component]
fn Proof(alert: Memo<Option<Alert>>, there: Signal<String>) -> impl IntoView {
    let page = expect_context::<Page>();
    let wanted = Memo::new(move |_| {
        let one = alert.get()?;
        let of = |name: &str| one.labels.get(name).filter(|value| !value.is_empty()).cloned();
        let (from, to) = span(&one, page.newest());
        // The end of an open alert moves with the time.
        let span = if one.ended.is_some() { Ok((from, to)) } else { Err((to - from + 59_999) / 60_000 * 60_000) };
        Some(Wanted { tag: of("tag")?, source: of("source")?, most: None, span, limits: Vec::new() })
    });
    let drawn = follow(page, wanted);
    let chart = Signal::derive(move || {
        drawn.with(|drawn| drawn.as_ref().map_or_else(CurveChart::nothing, |drawn| drawn.chart.clone()))
    });
    let marks = Signal::derive(move || {
        let mark = |one: &Alert| CellMark {
            from: one.began,
            to: one.ended.unwrap_or(i64::MAX / 4),
            name: one.name.clone(),
            failed: false,
            strong: true,
            fault: true,
        };
        Arc::new(alert.with(|one| one.iter().map(mark).collect::<Vec<_>>()))
    });
    let title = text(move || drawn.with(|drawn| drawn.as_ref().map(|drawn| drawn.title.clone()).unwrap_or_default()));
    let unit = text(move || chart.with(|chart| chart.symbol()));
    let at = RwSignal::new(None::<i64>);
    view! {
        <If when=flag(move || drawn.with(Option::is_some))>
            <div class="proofs">
                <figure>
                    <figcaption><a href=there>{title}</a>" "<span class="u">{unit}</span></figcaption>
                    <div class="lines-plot proof"><Curves chart marks at label=text(move || format!("{}, {}: the alert is shaded", title.get(), unit.get()))/></div>
                </figure>
            </div>
        </If>
    }
}

/// The history of an alert; empty until it is known.
#[component]
fn History(alert: Memo<Option<Alert>>) -> impl IntoView {
    // The history is requested again after each change of the alert's state.
    let stand = Memo::new(move |_| {
        alert.with(|one| one.as_ref().map(|one| (one.id.clone(), one.state, one.severity, one.acked.clone())))
    });
    let events = RwSignal::new(Vec::<AlertHappened>::new());
    Effect::new(move || {
        let Some((id, ..)) = stand.get() else { return events.set(Vec::new()) };
        let coded = String::from(js_sys::encode_uri_component(&id));
        fetch::ask("GET", &format!("api/v1/alerts/{coded}"), None, move |answer| {
            // Another alert may be shown by now, or the page may be closed.
            let is_wanted = stand.try_with_untracked(|now| now.as_ref().is_some_and(|now| now.0 == id)) == Some(true);
            if is_wanted && let Ok(told) = answer.read::<AlertEvents>() {
                events.set(told.events);
            }
        });
    });
    let happened = move || {
        let row = |one: AlertHappened| {
            let words = happened_words(&one);
            view! { <dt>{words::clock(one.t)}</dt><dd data-event=one.what>{words}</dd> }
        };
        events.get().into_iter().map(row).collect_view()
    };
    view! {
        <If when=flag(move || events.with(|all| !all.is_empty()))>
            <h3>"History"</h3>
            <dl class="facts">{happened}</dl>
        </If>
    }
}
