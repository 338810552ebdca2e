//! What pointers do to plots, heard once for the whole page.
//!
//! Mouse: drag zooms all charts, shift-drag pans, ctrl and wheel zooms at the cursor, a double click goes one step back,
//! a click pins the crosshair; on a label a click isolates the series, with ctrl hides it, with shift follows it through
//! all charts; Esc lets go of a drag. Touch: one finger scrolls the page, resting it moves the crosshair, two fingers zoom and pan.

use super::crosshair::{self, Place};
use super::series::{self, Choice};
use crate::browser;
use crate::panels::board::Board;
use leptos::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{Element, Event, MouseEvent, PointerEvent, WheelEvent};

/// CSS pixels that a press may move and still be a click.
const STILL: f64 = 5.0;
/// How long a finger rests before it moves the crosshair.
const REST: std::time::Duration = std::time::Duration::from_millis(400);
/// A wheel that pauses for longer begins a new step, ms.
const PAUSE: i64 = 600;

const HEARD: [&str; 9] = [
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

/// A press of a mouse button.
struct Press {
    place: Place,
    /// Where it was pressed, in time and as span at that moment.
    t: i64,
    span: (i64, i64),
    pan: bool,
    moved: bool,
}

impl Press {
    /// Whether it drew a span that [`cancel`] let go of.
    fn cancelled(&self, root: &Element) -> bool {
        self.moved && !self.pan && !root.has_attribute("data-select")
    }
}

/// A finger.
struct Finger {
    id: i32,
    x: f64,
    y: f64,
    /// The instant under it when the second finger came.
    t: i64,
    /// Whether no other finger was there meanwhile.
    alone: bool,
}

#[derive(Default)]
struct Gesture {
    press: Option<Press>,
    fingers: Vec<Finger>,
    /// A finger rested: it moves the crosshair.
    resting: bool,
    /// Number of the touch, so that a late timer does not speak for the next one.
    touch: u32,
    wheeled: i64,
}

/// Hears pointers from now on.
pub fn listen(board: Board, main: &Element) {
    let gesture = Rc::new(RefCell::new(Gesture::default()));
    let root = main.clone();
    let heard = Closure::<dyn FnMut(Event)>::new(move |event: Event| on(board, &gesture, &root, &event));
    // It lives as long as the page.
    let callback: js_sys::Function = heard.into_js_value().unchecked_into();
    for name in HEARD {
        // A listener is never refused.
        let _ = main.add_event_listener_with_callback(name, &callback);
    }
    let _ = browser::window().add_event_listener_with_callback("scroll", &callback);
}

/// Lets go of the span that is being drawn; true when one was.
pub fn cancel() -> bool {
    let drawn = browser::by_id("page").filter(|root| root.has_attribute("data-select"));
    drawn.inspect(|root| select(root, None)).is_some()
}

/// The place of an event on the plot under it.
fn place(event: &MouseEvent) -> Option<(Element, Place)> {
    let plot = event.target()?.dyn_into::<Element>().ok()?.closest(".plot").ok()??;
    let panel = plot.closest("article").ok()??.get_attribute("data-panel")?;
    let rect = plot.get_bounding_client_rect();
    let (x, y) = (f64::from(event.client_x()), f64::from(event.client_y()));
    Some((plot, Place { panel, x: x - rect.left(), y: y - rect.top(), width: rect.width(), top: rect.top() }))
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
                let lines = if wheel.delta_mode() == WheelEvent::DOM_DELTA_PIXEL { 1.0 } else { 16.0 };
                let now = browser::now();
                if now - std::mem::replace(&mut g.wheeled, now) > PAUSE {
                    board.page.remember();
                }
                board
                    .page
                    .zoom(place.t(board), js_sys::Math::exp((wheel.delta_y() * lines).clamp(-400.0, 400.0) * 0.002));
            }
        }
        ("pointerdown", Some((plot, place))) => match finger {
            Some(finger) => touched(board, gesture, g, finger, place),
            None if mouse.button() == 0 => {
                // Refused only for a pointer that is gone.
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
                    let still = (place.x - only.x).abs().max((place.y - only.y).abs()) < STILL * 2.0;
                    if let Some(i) = place.label(board).filter(|_| still && only.alone) {
                        series::choose(board, &place.panel, i, Choice::Isolate);
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

fn mouse_moved(board: Board, g: &mut Gesture, root: &Element, place: Place) {
    g.press.take_if(|press| press.cancelled(root));
    let Some(press) = &mut g.press else { return crosshair::moved(board, &place, false) };
    let dx = place.x - press.place.x;
    if !press.moved && dx.abs() > STILL {
        press.moved = true;
        if press.pan {
            board.page.remember();
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

fn released(board: Board, press: Press, place: Place, mouse: &MouseEvent) {
    match press {
        Press { moved: true, pan: true, .. } => {}
        Press { moved: true, t, .. } => {
            let end = place.t(board);
            board.page.remember();
            board.page.show(t.min(end), t.max(end));
        }
        _ => match place.label(board) {
            Some(i) => {
                let choice = match () {
                    () if mouse.ctrl_key() || mouse.meta_key() => Choice::Hide,
                    () if mouse.shift_key() => Choice::Pin,
                    () => Choice::Isolate,
                };
                series::choose(board, &place.panel, i, choice);
            }
            None => crosshair::toggle_pin(board),
        },
    }
}

/// Shows what will be zoomed to, in all charts: the stylesheet draws it.
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

fn touched(board: Board, gesture: &Rc<RefCell<Gesture>>, g: &mut Gesture, finger: &PointerEvent, place: Place) {
    if g.fingers.is_empty() {
        g.touch += 1;
        let (number, later) = (g.touch, gesture.clone());
        let at = place.clone();
        set_timeout(
            move || {
                let mut g = later.borrow_mut();
                // On a label it means the series, however long it rests.
                if g.touch == number && g.fingers.len() == 1 && at.label(board).is_none() {
                    g.resting = true;
                    crosshair::moved(board, &at, true);
                }
            },
            REST,
        );
        // A tap lets go of what a resting finger left.
        crosshair::clear(board);
        board.page.redraw();
    }
    g.fingers.push(Finger { id: finger.pointer_id(), x: place.x, y: place.y, t: place.t(board), alone: true });
    if g.fingers.len() > 1 {
        g.fingers.iter_mut().for_each(|f| f.alone = false);
    }
    if let [a, _] = &mut g.fingers[..] {
        board.page.remember();
        let first = Place { x: a.x, ..place };
        a.t = first.t(board);
        g.resting = false;
    }
}

fn finger_moved(board: Board, g: &mut Gesture, id: i32, place: Place) {
    let Some(finger) = g.fingers.iter_mut().find(|f| f.id == id) else { return };
    let far = (place.x - finger.x).abs().max((place.y - finger.y).abs()) > STILL * 2.0;
    if g.resting {
        return crosshair::moved(board, &place, true);
    }
    if g.fingers.len() == 1 {
        if far {
            // It scrolls, and does not rest.
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
