//! Actions of the mouse: a click selects, the wheel scrolls.

use crate::keys::{self, Effect};
use crate::listing;
use crate::model::{Model, Over};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui_core::layout::{Position, Rect};

/// Lines per step of the wheel.
const LINES: isize = 3;

/// Handles a mouse event at its position.
pub fn point(model: &mut Model, mouse: MouseEvent) -> Effect {
    let effect = pointed(model, mouse);
    model.list();
    effect
}

fn pointed(model: &mut Model, mouse: MouseEvent) -> Effect {
    let wheel = match mouse.kind {
        MouseEventKind::ScrollDown => 1,
        MouseEventKind::ScrollUp => -1,
        MouseEventKind::Down(MouseButton::Left) => 0,
        _ => return Effect::Nothing,
    };
    model.view.note.clear();
    if model.view.over != Over::Nothing {
        let key = if wheel < 0 { KeyCode::Up } else { KeyCode::Down };
        return if wheel == 0 { Effect::Nothing } else { keys::press(model, KeyEvent::new(key, KeyModifiers::NONE)) };
    }
    let position = Position::new(mouse.column, mouse.row);
    let over = |rect: &Rect| rect.contains(position);
    match (model.places.processes.filter(over), wheel) {
        (Some(rect), 0) => {
            let line = usize::from(mouse.row - rect.y).checked_sub(2).map(|row| model.view.first + row);
            match (line, model.view.chosen) {
                (Some(line), Some((_, at))) if line == at => listing::fold(model, None),
                (Some(line), _) if line < model.listed.len() => listing::choose(model, line),
                _ => model.view.chosen = None,
            }
        }
        (Some(_), _) => {
            // The view follows a selected process, so scrolling deselects it.
            model.view.chosen = None;
            listing::scroll(model, wheel * LINES);
        }
        (None, 0) => click(model, position),
        (None, _) => return keys::chart(model, wheel as i32),
    }
    Effect::Draw
}

/// Selects a chart, and the instant at the pointer.
fn click(model: &mut Model, position: Position) {
    let places = &model.places;
    let chart = places.charts.iter().find(|(_, rect)| rect.contains(position)).map(|(at, _)| *at);
    let chart = chart.or(places.rows.filter(|rect| rect.contains(position)).map(|_| 0));
    let plot = places.plots.iter().find(|(_, rect)| rect.contains(position)).map(|(_, rect)| *rect);
    if let Some(chart) = chart {
        (model.view.focus, model.view.chosen) = (chart, None);
    }
    // Before the first sample there is no time to freeze.
    if let Some(plot) = plot.filter(|_| model.newest() > 0) {
        let (from, to) = model.span();
        let share = f64::from(position.x - plot.x) / f64::from(plot.width.saturating_sub(1).max(1));
        model.view.frozen = Some((from, to));
        model.view.crosshair = Some(from + (share * (to - from) as f64).round() as i64);
    }
}
