//! Handles pointers on plots. One set of listeners serves the whole page.
//!
//! Mouse: dragging zooms all charts, with shift it pans; the wheel with ctrl zooms at the pointer; a double click goes
//! one step back; a click pins the crosshair. On a label a click isolates the series, with ctrl it hides the series,
//! with shift it highlights the series in all charts. Escape cancels a drag. Touch: one finger scrolls the page, a
//! resting finger moves the crosshair, two fingers zoom and pan.

use super::crosshair::{self, PlotPlace};
use super::series::{self, Choice};
use crate::browser;
use crate::panels::board::Board;
use leptos::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{Element, Event, MouseEvent, PointerEvent, WheelEvent};

/// Distance in CSS pixels that a pressed pointer may move and still make a click.
const CLICK_SLOP_PX: f64 = 5.0;
/// Time that a finger must rest before it moves the crosshair.
const TOUCH_HOLD: std::time::Duration = std::time::Duration::from_millis(400);
/// A pause of the wheel, in ms, after which a turn begins a new step back.
const WHEEL_PAUSE_MS: f64 = 600.0;

const HEARD_EVENTS: [&str; 9] = [
    "pointerdown",
    "pointermove",
    "pointerup",
    "pointercancel",
    "pointerleave",
    "wheel",
    "dblclick",
    "contextmenu",
    "touchmove",
];

/// A mouse button that is held down.
struct Press {
    place: PlotPlace,
    /// The instant at which the button was pressed, and the span shown then; ms since the epoch.
    t: i64,
    span: (i64, i64),
    pan: bool,
    moved: bool,
}

impl Press {
    /// True when the press had drawn a span and [`cancel`] removed it.
    fn cancelled(&self, root: &Element) -> bool {
        self.moved && !self.pan && !root.has_attribute("data-select")
    }
}

/// A finger on a plot.
struct Finger {
    id: i32,
    x: f64,
    y: f64,
    /// Instant under the finger when the second finger touched, ms since the epoch.
    t: i64,
    /// True when no other finger was down since this one touched.
    alone: bool,
}

#[derive(Default)]
struct Gesture {
    press: Option<Press>,
    fingers: Vec<Finger>,
    /// True when a finger has rested long enough and moves the crosshair.
    resting: bool,
    /// Number of the current touch. A timer of an earlier touch sees another number and does nothing.
    touch: u32,
    /// When the wheel was turned last, in ms; None before the first turn.
    wheeled: Option<f64>,
}

/// Adds the listeners for pointers to the page.
pub fn listen(board: Board, main: &Element) {
    let gesture = Rc::new(RefCell::new(Gesture::default()));
    let root = main.clone();
    let heard = Closure::<dyn FnMut(Event)>::new(move |event: Event| on(board, &gesture, &root, &event));
    // The closure is needed as long as the page exists.
    let callback: js_sys::Function = heard.into_js_value().unchecked_into();
    for name in HEARD_EVENTS {
        // The browser always accepts a listener.
        let _ = main.add_event_listener_with_callback(name, &callback);
    }
    let _ = browser::window().add_event_listener_with_callback("scroll", &callback);
}

/// Cancels the selection of a span by dragging; true when there was one.
pub fn cancel() -> bool {
    let drawn = browser::by_id("page").filter(|root| root.has_attribute("data-select"));
    drawn.inspect(|root| select(root, None)).is_some()
}

/// The plot under an event, and the event's place on it.
fn place(event: &MouseEvent) -> Option<(Element, PlotPlace)> {
    let plot = event.target()?.dyn_into::<Element>().ok()?.closest(".plot").ok()??;
    let panel = plot.closest("article").ok()??.get_attribute("data-panel")?;
    let rect = plot.get_bounding_client_rect();
    let (x, y) = (f64::from(event.client_x()), f64::from(event.client_y()));
    Some((plot, PlotPlace { panel, x: x - rect.left(), y: y - rect.top(), width: rect.width(), top: rect.top() }))
}

fn on(board: Board, gesture: &Rc<RefCell<Gesture>>, root: &Element, event: &Event) {
    let kind = event.type_();
    if kind == "scroll" {
        return crosshair::scrolled(board);
    }
    if kind == "touchmove" {
        let g = gesture.borrow();
        if g.resting || g.fingers.len() > 1 {
            event.prevent_default();
        }
        return;
    }
    let Some(mouse) = event.dyn_ref::<MouseEvent>() else { return };
    let found = place(mouse);
    let finger = event.dyn_ref::<PointerEvent>().filter(|p| p.pointer_type() == "touch");
    let g = &mut *gesture.borrow_mut();
    match (kind.as_str(), found) {
        ("pointerleave", _) | ("pointermove", None) if g.press.is_none() && finger.is_none() => crosshair::left(board),
        ("pointercancel", _) => {
            *g = Gesture { touch: g.touch + 1, ..Gesture::default() };
            select(root, None);
        }
        ("contextmenu", Some(_)) if g.resting => event.prevent_default(),
        ("dblclick", Some((_, place))) if place.label(board).is_none() => board.page.step_back(),
        ("wheel", Some((_, place))) => {
            if let Some(wheel) = event.dyn_ref::<WheelEvent>().filter(|w| w.ctrl_key() || w.meta_key()) {
                event.prevent_default();
                turned(board, g, wheel, &place);
            }
        }
        ("pointerdown", Some((plot, place))) => match finger {
            Some(finger) => touched(board, gesture, g, finger, place),
            None if mouse.button() == 0 => {
                // This fails only when the pointer no longer exists.
                let _ = plot.set_pointer_capture(mouse.unchecked_ref::<PointerEvent>().pointer_id());
                let (t, span) = (place.t(board), board.page.span());
                g.press = Some(Press { place, t, span, pan: mouse.shift_key(), moved: false });
            }
            None => {}
        },
        ("pointermove", Some((_, place))) => match finger {
            Some(finger) => finger_moved(board, g, finger.pointer_id(), place),
            None => mouse_moved(board, g, root, place),
        },
        ("pointerup", found) => match finger {
            Some(finger) => {
                if let ([only], Some((_, place)), false) = (&g.fingers[..], &found, g.resting) {
                    let still = (place.x - only.x).abs().max((place.y - only.y).abs()) < CLICK_SLOP_PX * 2.0;
                    match place.label(board).filter(|_| still && only.alone) {
                        Some(label) if label.alone => {
                            series::choose(board, &place.panel, label.series, Choice::Isolate);
                        }
                        Some(label) => crosshair::unfold(board, &place.panel, label.series),
                        None => {}
                    }
                }
                g.fingers.retain(|f| f.id != finger.pointer_id());
                if g.fingers.is_empty() {
                    g.touch += 1;
                    g.resting = false;
                }
            }
            None => {
                let press = g.press.take().filter(|press| !press.cancelled(root));
                select(root, None);
                if let (Some(press), Some((_, place))) = (press, found) {
                    released(board, press, place, mouse);
                }
            }
        },
        _ => {}
    }
}

/// Zooms by a turn of the wheel.
fn turned(board: Board, g: &mut Gesture, wheel: &WheelEvent, place: &PlotPlace) {
    let lines = if wheel.delta_mode() == WheelEvent::DOM_DELTA_PIXEL { 1.0 } else { 16.0 };
    // The time of the turn itself: a page that draws slowly hears of it later.
    let at = wheel.time_stamp();
    if g.wheeled.replace(at).is_none_or(|before| at - before > WHEEL_PAUSE_MS) {
        board.page.begin_step();
    }
    let factor = js_sys::Math::exp((wheel.delta_y() * lines).clamp(-400.0, 400.0) * 0.002);
    board.page.zoom(place.t(board), factor);
}

fn mouse_moved(board: Board, g: &mut Gesture, root: &Element, place: PlotPlace) {
    g.press.take_if(|press| press.cancelled(root));
    let Some(press) = &mut g.press else { return crosshair::moved(board, &place, false) };
    let dx = place.x - press.place.x;
    if !press.moved && dx.abs() > CLICK_SLOP_PX {
        press.moved = true;
        if press.pan {
            board.page.begin_step();
        }
    }
    if press.moved && press.pan {
        let (from, to) = press.span;
        let (left, right) = board.gutters();
        let by = (dx / (place.width - left - right).max(1.0) * (to - from) as f64) as i64;
        board.page.show(from - by, to - by);
    } else if press.moved {
        let (from, to) = board.page.span();
        let share = |t: i64| ((t - from) as f64 / (to - from).max(1) as f64).clamp(0.0, 1.0);
        let (a, b) = (share(press.t), share(place.t(board)));
        select(root, Some((a.min(b), a.max(b))));
    }
    crosshair::moved(board, &place, false);
}

fn released(board: Board, press: Press, place: PlotPlace, mouse: &MouseEvent) {
    match press {
        Press { moved: true, pan: true, .. } => {}
        Press { moved: true, t, .. } => {
            let end = place.t(board);
            board.page.begin_step();
            board.page.show(t.min(end), t.max(end));
        }
        _ => match place.label(board) {
            Some(label) if !label.alone => crosshair::unfold(board, &place.panel, label.series),
            Some(label) => {
                let choice = match () {
                    () if mouse.ctrl_key() || mouse.meta_key() => Choice::Hide,
                    () if mouse.shift_key() => Choice::Pin,
                    () => Choice::Isolate,
                };
                series::choose(board, &place.panel, label.series, choice);
            }
            None => crosshair::toggle_pin(board),
        },
    }
}

/// Marks the part of all plots that will be zoomed to, as shares of the span from 0 to 1. The stylesheet draws the
/// mark.
fn select(root: &Element, shares: Option<(f64, f64)>) {
    match shares {
        None => drop(root.remove_attribute("data-select")),
        Some((a, b)) => {
            browser::set(root, "data-select", "");
            browser::set_style(root, "--from", &format!("{:.0}", a * 10_000.0));
            browser::set_style(root, "--to", &format!("{:.0}", b * 10_000.0));
        }
    }
}

fn touched(board: Board, gesture: &Rc<RefCell<Gesture>>, g: &mut Gesture, finger: &PointerEvent, place: PlotPlace) {
    if g.fingers.is_empty() {
        g.touch += 1;
        let (number, later) = (g.touch, gesture.clone());
        let at = place.clone();
        set_timeout(
            move || {
                let mut g = later.borrow_mut();
                // A finger on a label means its series, however long it rests.
                if g.touch == number && g.fingers.len() == 1 && at.label(board).is_none() {
                    g.resting = true;
                    crosshair::moved(board, &at, true);
                }
            },
            TOUCH_HOLD,
        );
        // A tap removes the crosshair that an earlier touch left. On a label it may be the second of two.
        if place.label(board).is_none() {
            crosshair::clear(board);
            board.page.redraw();
        }
    }
    g.fingers.push(Finger { id: finger.pointer_id(), x: place.x, y: place.y, t: place.t(board), alone: true });
    if g.fingers.len() > 1 {
        g.fingers.iter_mut().for_each(|f| f.alone = false);
    }
    if let [a, _] = &mut g.fingers[..] {
        board.page.begin_step();
        let first = PlotPlace { x: a.x, ..place };
        a.t = first.t(board);
        g.resting = false;
    }
}

fn finger_moved(board: Board, g: &mut Gesture, id: i32, place: PlotPlace) {
    let Some(finger) = g.fingers.iter_mut().find(|f| f.id == id) else { return };
    let far = (place.x - finger.x).abs().max((place.y - finger.y).abs()) > CLICK_SLOP_PX * 2.0;
    if g.resting {
        return crosshair::moved(board, &place, true);
    }
    if g.fingers.len() == 1 {
        if far {
            // A finger that moves scrolls the page, so it does not count as resting.
            g.touch += 1;
        }
        return;
    }
    if let Some(finger) = g.fingers.iter_mut().find(|f| f.id == id) {
        finger.x = place.x;
    }
    let [a, b, ..] = &g.fingers[..] else { return };
    let ((ax, at), (bx, bt)) = if a.x < b.x { ((a.x, a.t), (b.x, b.t)) } else { ((b.x, b.t), (a.x, a.t)) };
    if bx - ax < 24.0 || bt <= at {
        return;
    }
    // Both instants stay under their fingers.
    let (left, right) = board.gutters();
    let per_pixel = (bt - at) as f64 / (bx - ax);
    let from = at - ((ax - left) * per_pixel) as i64;
    board.page.show(from, from + ((place.width - left - right) * per_pixel) as i64);
}
