//! The numbers on top: a value over several series, its denominator, the extreme series by name, and a sparkline.

use super::board::layer::{Layer, Words};
use crate::store::Store;
use crate::store::source::Source;
use charts::value::{self, Spark};
use viewer::picture::Look;
use viewer::tile::{self, Figure, MISSING_PREFIX, SPARKLINE_MS, Say, Sparkline};
use web_sys::{Element, HtmlCanvasElement};

/// A tile on the page.
pub struct TileView {
    /// Id of the tile.
    pub id: String,
    /// Canvas of the sparkline.
    pub layer: Layer,
    corner: Words,
    number: Words,
    /// Width of the longest number that was shown, in digits.
    width: f64,
    symbol: Words,
    note: Words,
    sparkline: Sparkline,
}

impl TileView {
    /// Makes a tile around its element; None when a part of the element is missing.
    pub fn new(id: String, element: &Element) -> Option<Self> {
        use wasm_bindgen::JsCast;
        let canvas = element.query_selector("canvas").ok()??.dyn_into::<HtmlCanvasElement>().ok()?;
        Some(TileView {
            id,
            layer: Layer::new(canvas)?,
            corner: Words::find(element, ".corner")?,
            number: Words::find(element, ".number")?,
            width: 0.0,
            symbol: Words::find(element, ".symbol")?,
            note: Words::find(element, ".note")?,
            sparkline: Sparkline::default(),
        })
    }

    /// Writes the texts and draws the sparkline.
    pub fn draw(&mut self, store: &Store, source: Option<&Source>, look: &Look) {
        let Some(tile) = store.catalog.layout.tiles.iter().find(|t| t.id == self.id) else { return };
        let Some(source) = source else { return };
        let t = look.span.1.min(source.last_t().unwrap_or(look.span.1));
        let say = Say { store, source, tile, t };
        let Figure { number, symbol, scale, of, value } = say.figure();
        // The unit is close to the number, and moves only where the number becomes longer than ever before.
        let width = number.bytes().map(|b| if b == b'.' || b == b',' { 0.45 } else { 1.0 }).sum::<f64>();
        self.width = self.width.max(width);
        self.number.style("min-width", &format!("{}ch", if number == "0" { 1.0 } else { self.width }));
        self.number.set(&number);
        // The space before it is its own: nothing moves at the first value.
        self.symbol.set(&if value.is_some() { format!(" {symbol}") } else { String::new() });
        self.corner.set(&say.corner());
        self.line(&say, look, of);
        let lost = say.lost();
        let named = say.named(&look.subjects).filter(|_| lost.is_none());
        self.note.mark("odd", named.is_some());
        let slow = || self.sparkline.straggler(&say, look.span.1);
        let note = lost.or(named).or_else(slow).unwrap_or_else(|| say.note(scale));
        self.note.mark("lost", note.starts_with(MISSING_PREFIX));
        self.note.set(&note);
    }

    fn line(&mut self, say: &Say, look: &Look, of: Option<f64>) {
        let to = look.span.1;
        let points = self.sparkline.points(say, to);
        let spark = Spark {
            size: self.layer.units(),
            css: look.css,
            line: look.measures.line,
            theme: look.theme,
            span: (to - SPARKLINE_MS, to),
            points: &points,
            hi: tile::top(&points, of, say.unit()),
        };
        // This backend never returns an error.
        self.layer.draw(Some(look.theme), |area| drop(value::draw(area, &spark)));
    }
}
