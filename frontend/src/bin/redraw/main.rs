//! Measures the drawing of the page for `cargo xtask bench`. [`Redraw`] draws one chart from samples; [`board`] has the
//! panels of the page with their store.

pub mod board;

use charts::canvas::SUBPIXELS;
use charts::reduce::Reducer;
use charts::{Chart, Frame, Hue, Line, Measures, axis};
use frontend::panels::board::layer::Layer;
use shared::catalog::Range;
use shared::unit::Unit;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::HtmlCanvasElement;

/// One chart with one series that has a sample a second.
#[wasm_bindgen]
pub struct Redraw {
    layer: Layer,
    times: Vec<i64>,
    values: Vec<f64>,
    size: (u32, u32),
}

/// Time of the first sample, ms since the epoch.
const START: i64 = 1_700_000_000_000;

#[wasm_bindgen]
impl Redraw {
    /// Makes a chart on a canvas of `width` times `height` device pixels; `values` are its samples.
    #[wasm_bindgen(constructor)]
    pub fn new(canvas: HtmlCanvasElement, width: u32, height: u32, values: Vec<f64>) -> Redraw {
        let size = (width, height);
        let layer = Layer::apart(canvas, size, "sans-serif", false).expect("a canvas has a context");
        let times = (0..values.len() as i64).map(|i| START + i * 1_000).collect();
        Redraw { layer, times, values, size }
    }

    /// Reduces all samples and draws the chart. Nothing is kept from the call before.
    pub fn draw(&mut self) {
        let (from, to) = (START, START + self.values.len() as i64 * 1_000);
        let (width, height) = (self.size.0 as i32 * SUBPIXELS, self.size.1 as i32 * SUBPIXELS);
        let measures = Measures::default();
        let pixels = (f64::from(self.size.0) - measures.left - measures.right) as i64;
        let step = ((to - from) / 1_000 + pixels - 1) / pixels * 1_000;
        let mut reducer = Reducer::new(step, 1_500);
        reducer.extend(&self.times, &self.values, 1.0);
        let columns = reducer.columns();
        let lo = columns.iter().map(|c| c.min).fold(f64::INFINITY, f64::min);
        let hi = columns.iter().map(|c| c.max).fold(f64::NEG_INFINITY, f64::max);
        let axis = axis::values(Unit::Percent, Range::FromZero, lo, hi);
        let theme = &charts::theme::DARK;
        let frame = Frame {
            chart: Chart::Line,
            size: (width, height),
            css: f64::from(SUBPIXELS),
            device: f64::from(SUBPIXELS),
            theme,
            measures,
            from,
            to,
            zone: axis::Zone::UTC,
            along: axis::Along::Time,
            axis: &axis,
            step,
            interval: 1_000,
            lines: &[Line { columns, hue: Hue::Of(0), bright: true }],
            band: &[],
            heat: None,
            lanes: &[],
            limits: &[],
            gaps: &[],
            live: true,
            age: "",
        };
        // This backend never returns an error.
        self.layer.draw(Some(theme), |area| drop(charts::draw(area, &frame)));
    }
}

fn main() {}
