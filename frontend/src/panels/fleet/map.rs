//! The map of a fleet on its canvas: drawing, pointer and keys.

use super::{Brush, follow};
use crate::browser;
use crate::panels::board::layer::Layer;
use crate::state::{LinkState, Page};
use crate::store::fleet::hosts::{Host, HostGroup, Totals};
use crate::store::fleet::words;
use crate::widgets::list::ticks::Ticks;
use charts::Grade;
use charts::map::{self, Cell, Manner, Map, Mark, Plan};
use leptos::ev::{KeyboardEvent, MouseEvent};
use leptos::html;
use leptos::prelude::*;
use shared::connection_state::ConnectionState;
use shared::finding::{Finding, Severity};
use std::sync::Arc;

/// Below this width in CSS pixels the map is that of a phone.
const PHONE_PX: f64 = 560.0;
/// Width of a letter of a name in CSS pixels, about.
const LETTER_PX: f64 = 7.0;
/// Distance of a name from the cells beside it in CSS pixels.
const NAME_GAP_PX: i32 = 12;

/// Content of the map; copies share the same signals.
#[derive(Clone, Copy)]
pub struct Shown {
    /// Machines in the order of their names.
    pub hosts: Memo<Arc<Vec<Host>>>,
    /// The same in groups.
    pub groups: Memo<Arc<Vec<HostGroup>>>,
    /// Findings on machines, the worst first.
    pub wrong: Memo<Arc<Vec<Finding>>>,
    /// The findings on the machine of an index entry, in a sentence; empty without any.
    pub said: Callback<Host, String>,
    /// Text that a machine must fit, in lower case; others are faint.
    pub filter: Signal<String>,
    /// Whether cells show how busy a device is, in place of how far it is from its peers.
    pub values: Signal<bool>,
    /// Names of the machines that the user chose.
    pub chosen: Ticks,
    /// Name of the machine at the pointer or the keys.
    pub here: RwSignal<Option<String>>,
    /// Place of that machine in the window, in CSS pixels.
    pub spot: RwSignal<(f64, f64)>,
}

/// The places of the last drawing, and which host of the list is in each.
#[derive(Default)]
struct Drawn {
    plan: Option<Plan>,
    order: Vec<usize>,
}

/// The map. `open` is called with the name of a machine to show.
#[component]
pub fn FleetMap(
    /// The content of the map.
    shown: Shown,
    /// Opens a machine.
    open: Callback<String>,
    /// Speaks a text to a screen reader.
    say: Callback<String>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let canvas = NodeRef::<html::Canvas>::new();
    let drawn = StoredValue::new(Drawn::default());
    follow(page, canvas, move |layer, brush| {
        let next = paint(page, layer, brush, &shown);
        drawn.set_value(next);
    });
    Effect::new(move || {
        // A new choice or filter is drawn at once, not with the next values.
        shown.filter.track();
        shown.values.track();
        shown.chosen.0.track();
        shown.here.track();
        shown.groups.with(|_| ());
        page.redraw();
    });
    let under = move |event: &MouseEvent| {
        let name = under(&canvas.get_untracked()?, drawn, shown, event)?;
        shown.spot.set((f64::from(event.client_x()), f64::from(event.client_y())));
        Some(name)
    };
    // True while the machine was chosen by keys.
    let keyed = StoredValue::new(false);
    let pressed = move |event: KeyboardEvent| {
        if let Some(name) = press(&event, shown, drawn, open) {
            if let (Some(at), Some(canvas)) = (place_of(drawn, shown, &name), canvas.get_untracked()) {
                let rect = canvas.get_bounding_client_rect();
                shown.spot.set((rect.left() + at.0, rect.top() + at.1));
            }
            let host = shown.hosts.with_untracked(|hosts| hosts.iter().find(|h| h.entry.name == name).cloned());
            if let Some(host) = host {
                let wrong = shown.said.run(host.clone());
                say.run(spoken(&host, &wrong, page.server_now()));
            }
            keyed.set_value(true);
            shown.here.set(Some(name));
        }
    };
    let label = Memo::new(move |_| label(page, &shown));
    view! {
        <div
            class="map"
            id="map"
            role="application"
            aria-roledescription="map"
            aria-label=label
            aria-describedby="how-map"
            tabindex="0"
            on:pointermove=move |event| {
                // A page that scrolls below a resting mouse sends a move event, too; the machine chosen by keys then
                // stays.
                if !keyed.get_value() || (event.movement_x(), event.movement_y()) != (0, 0) {
                    keyed.set_value(false);
                    shown.here.set(under(&event));
                }
            }
            on:pointerleave=move |_| shown.here.set(None)
            on:click=move |event| {
                if let Some(name) = under(&event) {
                    match event.ctrl_key() || event.shift_key() || event.meta_key() {
                        true => shown.chosen.toggle(name),
                        false => open.run(name),
                    }
                }
            }
            on:blur=move |_| shown.here.set(None)
            on:keydown=pressed
        >
            <canvas node_ref=canvas aria-hidden="true"></canvas>
        </div>
    }
}

/// The name of the machine in a place of the last drawing.
fn name_at(drawn: StoredValue<Drawn>, shown: Shown, at: Option<usize>) -> Option<String> {
    drawn.with_value(|drawn| {
        let host = *drawn.order.get(at?)?;
        shown.hosts.with_untracked(|hosts| hosts.get(host).map(|host| host.entry.name.clone()))
    })
}

/// The name of the machine under the pointer.
fn under(
    canvas: &web_sys::HtmlCanvasElement,
    drawn: StoredValue<Drawn>,
    shown: Shown,
    event: &MouseEvent,
) -> Option<String> {
    let rect = canvas.get_bounding_client_rect();
    let (x, y) = (f64::from(event.client_x()) - rect.left(), f64::from(event.client_y()) - rect.top());
    name_at(drawn, shown, drawn.with_value(|drawn| drawn.plan.as_ref()?.at(x, y)))
}

/// The place in the last drawing of the machine of a name.
fn place_at(drawn: StoredValue<Drawn>, shown: Shown, name: Option<&String>) -> Option<usize> {
    drawn.with_value(|drawn| {
        let host = shown.hosts.with_untracked(|hosts| hosts.iter().position(|h| Some(&h.entry.name) == name))?;
        drawn.order.iter().position(|i| *i == host)
    })
}

/// Position of a tooltip about a machine: right of it, in CSS pixels of the canvas.
fn place_of(drawn: StoredValue<Drawn>, shown: Shown, name: &String) -> Option<(f64, f64)> {
    let at = place_at(drawn, shown, Some(name))?;
    let place = drawn.with_value(|drawn| drawn.plan.as_ref().and_then(|plan| plan.boxes.get(at).copied()));
    place.map(|(x, y, wide, high)| (f64::from(x + wide), f64::from(y + high / 2)))
}

/// Handles a key. Returns the machine to which an arrow moves.
fn press(event: &KeyboardEvent, shown: Shown, drawn: StoredValue<Drawn>, open: Callback<String>) -> Option<String> {
    if event.ctrl_key() || event.meta_key() || event.alt_key() {
        return None;
    }
    let here = shown.here.get_untracked();
    let at = place_at(drawn, shown, here.as_ref());
    let arrow = match event.key().as_str() {
        "ArrowLeft" => (-1, 0),
        "ArrowRight" => (1, 0),
        "ArrowUp" => (0, -1),
        "ArrowDown" => (0, 1),
        "Enter" => {
            here.into_iter().for_each(|name| open.run(name));
            event.prevent_default();
            return None;
        }
        " " => {
            here.into_iter().for_each(|name| shown.chosen.toggle(name));
            event.prevent_default();
            event.stop_propagation();
            return None;
        }
        _ => return None,
    };
    event.prevent_default();
    event.stop_propagation();
    let next = match at {
        None => Some(0),
        Some(at) => drawn.with_value(|drawn| drawn.plan.as_ref().and_then(|plan| plan.beside(at, arrow))),
    };
    name_at(drawn, shown, next)
}

/// State of the fleet, the first text for screen readers.
fn label(page: Page, shown: &Shown) -> String {
    let framed = shown.hosts.with(|hosts| {
        let framed = hosts.iter().filter(|host| shown.wrong.with(|all| faults(host, all).0 != Grade::Plain));
        framed.map(|host| host.entry.name.clone()).collect::<Vec<_>>()
    });
    shown.hosts.with(|hosts| {
        let said = words::sentence(hosts, &Totals::from_hosts(hosts), page.checked(), page.server_now());
        match framed.is_empty() {
            true => format!("Machines: {} {}", said.head, said.rest),
            false => format!("Machines: {} has a problem.", named(&framed)),
        }
    })
}

/// The first machines by name, and how many more there are.
fn named(hosts: &[String]) -> String {
    const MAX_NAMED: usize = 4;
    match hosts.len().saturating_sub(MAX_NAMED) {
        0 => hosts.join(", "),
        more => format!("{} and {more} more", hosts[..MAX_NAMED].join(", ")),
    }
}

fn spoken(host: &Host, wrong: &str, now: i64) -> String {
    let busy = host.busy();
    let busy = if busy.is_finite() { format!(", {busy:.0} percent busy") } else { String::new() };
    let wrong = if wrong.is_empty() { String::new() } else { format!("; {wrong}") };
    format!("{}: {}{busy}{wrong}", host.entry.name, words::explained(host, now))
}

/// The findings in `wrong` whose subject is the machine itself, not one that waits for it.
pub fn of_host<'a>(host: &Host, wrong: &'a [Finding]) -> impl Iterator<Item = &'a Finding> {
    let (name, key) = (host.entry.name.clone(), host.entry.key.clone());
    wrong.iter().filter(move |one| one.subject.iter().any(|place| [&name, &key].contains(&&place.source)))
}

/// The worst grade of a machine's findings, and the positions of the devices concerned.
fn faults(host: &Host, wrong: &[Finding]) -> (Grade, Vec<usize>) {
    let (mut grade, mut faulty) = (Grade::Plain, Vec::new());
    for one in of_host(host, wrong) {
        let own = if one.severity == Severity::Critical { Grade::Critical } else { Grade::Warning };
        grade = if grade == Grade::Critical { grade } else { own };
        let here = one.subject.iter().filter(|place| [&host.entry.name, &host.entry.key].contains(&&place.source));
        faulty.extend(here.flat_map(|place| &place.gpus).map(|gpu| *gpu as usize));
    }
    (grade, faulty)
}

/// The shape of a machine's state. `kept` is the retention of the server, in ms.
fn mark(state: &ConnectionState, kept: i64) -> Mark {
    match state {
        ConnectionState::Live => Mark::Live,
        ConnectionState::Filling { missing, .. } => {
            Mark::Filling(1.0 - (*missing as f64 / kept.max(1) as f64).clamp(0.0, 1.0))
        }
        ConnectionState::Late => Mark::Late,
        ConnectionState::Unreachable => Mark::Lost,
        ConnectionState::Stopped(_) | ConnectionState::Ended => Mark::Stopped,
        ConnectionState::Refused(_) => Mark::Refused,
    }
}

/// The name without the domain that all machines share.
fn short(name: &str) -> &str {
    match name.split_once('.') {
        Some((host, _)) if host.contains(|c: char| c.is_ascii_alphabetic()) => host,
        _ => name,
    }
}

fn mean(hosts: &[Host], of: &[usize]) -> String {
    let known = of.iter().map(|i| hosts[*i].busy()).filter(|v| v.is_finite());
    let (sum, n) = known.fold((0.0, 0), |(sum, n), v| (sum + v, n + 1));
    if n == 0 { String::new() } else { format!("{:.0} %", sum / f64::from(n)) }
}

/// Beside each group: how busy it is; and how busy its part is, with the number of its machines.
fn notes(hosts: &[Host], groups: &[HostGroup]) -> Vec<(String, String)> {
    groups
        .iter()
        .map(|group| {
            let part: Vec<usize> =
                groups.iter().filter(|g| g.part == group.part).flat_map(|g| g.hosts.iter().copied()).collect();
            let all = words::count(part.len(), "host", "hosts");
            (mean(hosts, &group.hosts), format!("{}\n{all}", mean(hosts, &part)))
        })
        .collect()
}

/// Draws the map. Returns the positions in it.
fn paint(page: Page, layer: &mut Layer, brush: &Brush, shown: &Shown) -> Drawn {
    let (hosts, groups) = (shown.hosts.get_untracked(), shown.groups.get_untracked());
    let now = page.server_now();
    let kept = page.store.read_value().hello.as_ref().map_or(0, |hello| hello.retention);
    let filter = shown.filter.get_untracked().to_lowercase();
    let (chosen, here) = (shown.chosen.0.get_untracked(), shown.here.get_untracked());
    let stale = page.state.get_untracked() != LinkState::Live;
    let order: Vec<usize> =
        groups.iter().flat_map(|group| group.hosts.iter().copied()).filter(|i| *i < hosts.len()).collect();
    let notes = notes(&hosts, &groups);
    let drawn_groups: Vec<map::Group> = groups
        .iter()
        .zip(&notes)
        .map(|(group, (note, part_note))| map::Group {
            name: &group.name,
            note,
            part: &group.part,
            part_note,
            hosts: group.hosts.len(),
        })
        .collect();
    let longest = hosts.iter().map(|host| short(&host.entry.name).chars().count()).max().unwrap_or(0);
    let rect = layer.canvas.get_bounding_client_rect();
    let name = (longest as f64 * LETTER_PX * brush.measures.text / 12.0) as i32 + NAME_GAP_PX;
    let phone = browser::viewport().0 < PHONE_PX;
    let plan = Plan::new(&drawn_groups, rect.width() as i32, name, phone);
    if (rect.height() - f64::from(plan.height)).abs() > 0.5 {
        // In print the page is zoomed: its CSS pixels differ from the measured ones.
        let own = f64::from(layer.canvas.offset_width()) / rect.width().max(1.0);
        browser::set_style(&layer.canvas, "height", &format!("{}px", f64::from(plan.height) * own));
        layer.fit(brush.dpr, &brush.family);
    }
    let wrong = shown.wrong.get_untracked();
    let faulty: Vec<(Grade, Vec<usize>)> = order.iter().map(|i| faults(&hosts[*i], &wrong)).collect();
    let details: Vec<(Vec<Cell>, String)> = order
        .iter()
        .map(|i| {
            let host = &hosts[*i];
            let cells = host.cells().into_iter().map(|(busy, apart)| Cell { busy, apart }).collect();
            let word = if plan.manner == Manner::Named { words::state(host, now) } else { String::new() };
            (cells, word)
        })
        .collect();
    let drawn_hosts: Vec<map::Host> = order
        .iter()
        .zip(&details)
        .zip(&faulty)
        .map(|((i, (cells, word)), (grade, faulty))| {
            let host = &hosts[*i];
            map::Host {
                name: short(&host.entry.name),
                cells,
                mark: mark(&host.entry.state, kept),
                word,
                grade: *grade,
                faulty,
                dim: !filter.is_empty() && !host.fits(&filter),
                chosen: chosen.contains(&host.entry.name),
                here: here.as_ref() == Some(&host.entry.name),
            }
        })
        .collect();
    let map = Map {
        size: layer.units(),
        css: brush.css(),
        device: brush.device(),
        theme: brush.theme,
        measures: brush.measures,
        values: shown.values.get_untracked(),
        stale,
        groups: &drawn_groups,
        hosts: &drawn_hosts,
    };
    // This backend never returns an error.
    layer.draw(Some(brush.theme), |area| drop(map::draw(area, &map, &plan)));
    Drawn { plan: Some(plan), order }
}
