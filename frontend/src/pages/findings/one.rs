//! One finding: its sentence, its evidence as charts with links to their metrics, other changes, and its confidence.

use super::dismiss::Dismissal;
use super::evidence::{Piece, follow};
use super::words;
use crate::address::{Tab, View};
use crate::pages::runs::parts::sentence;
use crate::panels::curves::Curves;
use crate::state::Page;
use crate::widgets::parts::{Each, If, flag, text};
use charts::marks::CellMark;
use leptos::prelude::*;
use shared::finding::{Change, Evidence, Finding};
use shared::series::SeriesDef;
use shared::unit::number;
use std::sync::Arc;
use viewer::curves::CurveChart;
use viewer::draft::Draft;
use viewer::findings::words::{device, sure};

/// The chart of a tag, and the name of a line on it; empty where the catalog has neither.
pub fn line(page: Page, tag: &str, instance: &str) -> (String, String, String) {
    page.store.with_value(|store| {
        let Some(position) = store.catalog.position(tag) else { return Default::default() };
        let metric = &store.catalog.metrics[usize::from(position)];
        let def = SeriesDef { metric: position, instance: instance.to_string() };
        (metric.chart.clone(), store.catalog.label(&def), metric.title.clone())
    })
}

/// The address of the charts of a machine at a span, with one of them first and one line of it followed.
pub fn shown(page: Page, source: &str, span: (i64, i64), (chart, pin): (String, String)) -> String {
    let View { window, theme, .. } = page.view_now();
    page.query(&View {
        source: Some(source.to_string()),
        frozen: Some(span),
        front: Some(chart).filter(|chart| !chart.is_empty()).into_iter().collect(),
        pin: Some(pin).filter(|pin| !pin.is_empty()).into_iter().collect(),
        window,
        theme,
        ..View::default()
    })
}

/// A finding with all its details.
#[component]
pub fn Detail(
    /// The finding.
    finding: Memo<Option<Finding>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let of = move |read: fn(&Finding, i64) -> String| {
        text(move || {
            page.beat.track();
            finding.with(|one| one.as_ref().map(|one| read(one, page.server_now())).unwrap_or_default())
        })
    };
    let shape = move || finding.with(|one| one.as_ref().map(words::shape_of).unwrap_or_default());
    let source = move |one: &Finding| one.subject.first().map(|place| place.source.clone()).unwrap_or_default();
    let there = text(move || {
        finding.with(|one| {
            let Some(one) = one else { return String::new() };
            shown(page, &source(one), words::span(one, page.newest()), Default::default())
        })
    });
    let has_machine = flag(move || finding.with(|one| one.as_ref().is_some_and(|one| !source(one).is_empty())));
    let has_next = flag(move || finding.with(|one| one.as_ref().is_some_and(|one| !one.next.is_empty())));
    let pieces = follow(page, finding.into(), false);
    let tags =
        Signal::derive(move || pieces.with(|pieces| pieces.iter().map(|piece| piece.tag.clone()).collect::<Vec<_>>()));
    let marks: RwSignal<Arc<Vec<CellMark>>> = RwSignal::new(Arc::new(Vec::new()));
    Effect::new(move || {
        let mark = finding.with(|one| one.as_ref().map(|one| crate::state::finding_mark(one, true)));
        marks.set(Arc::new(mark.into_iter().collect()));
    });
    let at = RwSignal::new(None::<i64>);
    let chart = Callback::new(move |tag: String| view! { <Proof tag pieces finding marks at/> }.into_any());
    let rule = text(move || {
        let kind = finding.with(|one| one.as_ref().map(|one| one.kind.clone()).unwrap_or_default());
        page.address_of_alerts(Tab::Rules, &Draft::parse(&format!("finding {kind} for 2m")).write())
    });
    view! {
        <section class="panel finding-one" aria-label="The finding" data-finding=text(move || finding.with(|one| one.as_ref().map(|one| one.id.clone()).unwrap_or_default()))>
            <a class="back" href=page.address_of_finding(None) on:click=move |event| {
                event.prevent_default();
                page.step(|view| view.finding = None);
            }>"‹ Findings"</a>
            <header>
                <span class=text(move || shape().0) aria-hidden="true">{text(move || shape().1)}</span>
                <h2>{of(|one, _| words::split_sentence(one).0.trim_end_matches([';', ':', ',']).to_string())}</h2>
                <span class="u">{of(|one, now| words::times(one, now, true))}</span>
                <span class="end">
                    <If when=flag(move || !page.over.get() && page.alerts.with(|told| told.known))>
                        <a class="btn" data-do="make-rule" href=rule>"Make a rule…"</a>
                    </If>
                    <If when=has_machine>
                        <a class="btn primary" data-do="open-finding" href=there>{of(|one, _| format!("Open at {}", words::clock(one.since, false)))}</a>
                    </If>
                </span>
            </header>
            <p class="sentence">{of(|one, _| sentence(&words::split_sentence(one).1))}</p>
            <If when=has_next><p class="sentence" data-next="">{of(|one, _| words::next(one))}</p></If>
            <p class="below">{of(|one, _| {
                let waits = words::waits(one);
                let who = one.subject.iter().map(words::place).take(4).collect::<Vec<_>>().join(", ");
                let device = one.device.as_ref().map(|name| format!("{name} of ")).unwrap_or_default();
                let waits = if waits.is_empty() { String::new() } else { format!("; {waits}") };
                format!("{} ({}): {device}{who}{waits}.", words::kind(&one.kind), one.severity.as_str())
            })}</p>
            {move || related(page, finding)}
            <div class="proofs"><Each keys=tags row=chart/></div>
            <Reasons finding/>
            <h3>"Confidence"</h3>
            <p class="below">{of(|one, _| sure(one.confidence))}" "<span class="u">{of(|one, _| format!("Rule {}, reported at {}.", one.rule, words::clock(one.told, true)))}</span></p>
            <Dismissal finding/>
        </section>
    }
}

/// The findings that it follows from, and those that follow from it.
fn related(page: Page, finding: Memo<Option<Finding>>) -> Option<impl IntoView + use<>> {
    let one = finding.get()?;
    Some(page.findings.with(|all| {
        let cause =
            all.all.iter().filter(|other| one.because.as_ref() == Some(&other.id)).map(|other| ("Because: ", other));
        let follows = all
            .all
            .iter()
            .filter(|other| other.because.as_ref() == Some(&one.id))
            .map(|other| ("Consequences: ", other));
        let line = |(word, other): (&'static str, &Finding)| {
            let (head, rest) = words::split_sentence(other);
            let to = page.address_of_finding(Some(other.id.clone()));
            view! { <p class="below"><b>{word}</b><a href=to>{format!("{head} {rest}")}</a></p> }
        };
        cause.chain(follows).map(line).collect_view()
    }))
}

/// The conditions of a finding, and other metrics that changed.
#[component]
fn Reasons(finding: Memo<Option<Finding>>) -> impl IntoView {
    let page = expect_context::<Page>();
    // Names and units arrive with the catalog, in parts.
    let is_named = Memo::new(move |_| {
        page.beat.track();
        page.store.with_value(|store| store.catalog.metrics.len())
    });
    let evidence = move || {
        is_named.track();
        finding
            .with(|one| one.as_ref().map(|one| one.evidence.clone()).unwrap_or_default())
            .into_iter()
            .map(|one| proof(page, one))
            .collect_view()
    };
    let changed = Memo::new(move |_| {
        finding.with(|one| one.as_ref().map(|one| (one.changed.clone(), one.since, words::span(one, page.newest()))))
    });
    let changes = move || {
        is_named.track();
        changed.get().map(|(changed, _, span)| changed.into_iter().map(|one| change(page, one, span)).collect_view())
    };
    view! {
        <h3>"Evidence"</h3>
        <ul class="evidence">{evidence}</ul>
        <If when=flag(move || changed.with(|all| all.as_ref().is_some_and(|(all, ..)| !all.is_empty())))>
            <h3>"Other changes"</h3>
            <ul class="evidence changed">{changes}</ul>
        </If>
    }
}

/// One condition: its text, as a link to its chart.
fn proof(page: Page, one: Evidence) -> impl IntoView {
    let (chart, label, _) = line(page, &one.tag, &one.instance);
    let place = device(&label, &one.source);
    let tag = one.tag.clone();
    match one.value {
        Some(_) => {
            let to = shown(page, &one.source, (one.from, one.to), (chart, label));
            view! { <li data-tag=tag><a href=to>{one.words}</a>" "<span class="u">{place}</span></li> }.into_any()
        }
        None => {
            view! { <li data-tag=tag class="absent-proof">{one.words}" "<span class="u">{place}</span></li> }.into_any()
        }
    }
}

/// A metric that changed as well: from and to which value, and whether it was the first.
fn change(page: Page, one: Change, span: (i64, i64)) -> impl IntoView {
    let (chart, label, title) = line(page, &one.tag, &one.instance);
    let (before, after) = page.store.with_value(|store| {
        let position = store.catalog.position(&one.tag);
        let metric = position.and_then(|position| store.catalog.metrics.get(usize::from(position)));
        let said = |value: f64| match metric {
            Some(metric) => {
                let (text, symbol) = shared::unit::quantity(value, metric.unit);
                if symbol.is_empty() { text } else { format!("{text} {symbol}") }
            }
            None => number(value),
        };
        (said(one.before), said(one.after))
    });
    let place = device(&label, &one.source);
    let what = if title.is_empty() { one.tag.clone() } else { title };
    let to = shown(page, &one.source, span, (chart, label));
    let first = if one.first { ", changed first" } else { "" };
    view! { <li data-tag=one.tag><a href=to>{format!("{what}: {before} to {after}")}</a>" "<span class="u">{format!("{place}{first}")}</span></li> }
}

/// The chart of one tag.
#[component]
fn Proof(
    tag: String,
    pieces: RwSignal<Vec<Piece>>,
    finding: Memo<Option<Finding>>,
    marks: RwSignal<Arc<Vec<CellMark>>>,
    at: RwSignal<Option<i64>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let own = tag.clone();
    let piece = Memo::new(move |_| pieces.with(|pieces| pieces.iter().find(|piece| piece.tag == own).cloned()));
    let chart = Signal::derive(move || {
        piece.with(|piece| piece.as_ref().map_or_else(CurveChart::nothing, |piece| piece.chart.clone()))
    });
    let title = text(move || piece.with(|piece| piece.as_ref().map(|piece| piece.title.clone()).unwrap_or_default()));
    // The text of a limit would lie over the lines here: their space is low.
    let usual = text(move || {
        let level = chart.with(|chart| Some((chart.limits.first()?.value, chart.axis().scale)));
        level.map(|(value, scale)| format!("; dashed: usually {}", scale.number(value))).unwrap_or_default()
    });
    let unit = text(move || chart.with(|chart| chart.symbol()));
    let mine = StoredValue::new(tag.clone());
    // A link to the chart of the machine concerned, at this span.
    let to = text(move || {
        finding.with(|one| {
            let evidence =
                one.as_ref().and_then(|one| one.evidence.iter().find(|e| mine.with_value(|tag| e.tag == *tag)));
            let Some(evidence) = evidence else { return String::new() };
            let (chart_id, label, _) = line(page, &evidence.tag, &evidence.instance);
            shown(page, &evidence.source, chart.with(|chart| (chart.from, chart.to)), (chart_id, label))
        })
    });
    let label = text(move || {
        let (title, unit) = (title.get(), unit.get());
        let names = chart
            .with(|chart| chart.subjects.iter().map(|i| chart.curves[*i].name.clone()).collect::<Vec<_>>().join(", "));
        let peers = chart.with(|chart| chart.curves.len() - chart.subjects.len());
        match names.is_empty() {
            true => format!("{title}, {unit}: {peers} lines"),
            false => format!("{title}, {unit}: {names} against {peers} others"),
        }
    });
    view! {
        <figure data-tag=tag data-lines=text(move || chart.with(|chart| chart.curves.len().to_string())) data-subjects=text(move || chart.with(|chart| chart.subjects.len().to_string()))>
            <figcaption><a href=to>{title}</a>" "<span class="u">{unit}{usual}</span></figcaption>
            <div class="lines-plot proof"><Curves chart marks at label/></div>
        </figure>
    }
}
