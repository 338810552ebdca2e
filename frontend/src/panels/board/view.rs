//! One panel of the board: its elements, its pictures, and how it is drawn.

use super::layer::{Layer, Words};
use crate::address::View;
use crate::panels::picture::{Look, Picture, Rows, Sight, State};
use crate::state::Hover;
use crate::store::Store;
use crate::store::source::Source;
use crate::surface::CanvasSurface;
use charts::canvas::Canvas;
use charts::poster::{HEAD, Head};
use charts::{Frame, axis};
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlCanvasElement};

/// A picture whose lines are drawn under those of the panel: an earlier period, or another chart.
pub struct Under {
    /// Its chart.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its data.
    pub picture: Picture,
    /// How much earlier it lies, ms.
    pub shift: i64,
}

impl Under {
    /// The look of its own span.
    pub fn look(&self, look: &Look) -> Look {
        let (from, to) = look.span;
        Look { span: (from - self.shift, to - self.shift), frozen: true, live: false, ..look.clone() }
    }
}

/// A panel on the page.
pub struct PanelView {
    /// Id of its chart.
    pub id: String,
    /// Whether it has the whole width.
    pub wide: bool,
    /// Its data.
    pub picture: Picture,
    /// The same chart earlier, when it is compared.
    pub past: Option<Under>,
    /// Another chart that lies over it.
    pub other: Option<Under>,
    /// Middle of each label, CSS pixels from the top of the plot.
    pub places: Vec<(usize, f64)>,
    /// Its element.
    pub article: Element,
    /// Whether it is on the screen, or nearly.
    pub in_view: bool,
    /// The canvas of the data.
    pub base: Layer,
    over: Layer,
    note: Words,
    sums: [Words; 3],
    age: Words,
    drawn: Option<[Option<Sight>; 3]>,
    said: (String, usize, &'static str),
}

impl PanelView {
    /// A panel around its element; none when a part of it is missing.
    pub fn new(id: String, wide: bool, article: Element) -> Option<Self> {
        let canvas = |n: u32| article.query_selector_all("canvas").ok()?.item(n)?.dyn_into::<HtmlCanvasElement>().ok();
        let words = |selector: &str| Words::find(&article, selector);
        Some(PanelView {
            base: Layer::new(canvas(0)?)?,
            over: Layer::new(canvas(1)?)?,
            note: words(".note")?,
            sums: [words(".sum-min")?, words(".sum-mean")?, words(".sum-max")?],
            age: words(".age")?,
            id,
            wide,
            picture: Picture::default(),
            past: None,
            other: None,
            places: Vec::new(),
            article,
            in_view: true,
            drawn: None,
            said: (String::new(), usize::MAX, ""),
        })
    }

    /// True when its series are drawn one by one.
    pub fn lines(&self) -> bool {
        charts::Chart::for_series(self.picture.names.len()) == charts::Chart::Line
    }

    /// The series in the row of a heat map that is pointed at.
    pub fn row(&self, hover: &Hover) -> Option<usize> {
        if hover.panel != self.id || self.picture.in_row(0).is_none() {
            return None;
        }
        let near = self.places.iter().min_by(|a, b| (a.1 - hover.y).abs().total_cmp(&(b.1 - hover.y).abs()))?;
        self.picture.in_row(near.0)
    }

    /// Where its plot is in the window.
    pub fn plot(&self) -> Option<web_sys::DomRect> {
        Some(self.article.query_selector(".plot").ok()??.get_bounding_client_rect())
    }

    /// Takes its size from the page.
    pub fn fit(&mut self, dpr: f64, family: &str) {
        if self.base.fit(dpr, family) {
            self.drawn = None;
        }
        self.over.fit(dpr, family);
    }

    /// What describes the data, whether or not the panel is in view.
    pub fn say(&mut self, source: Option<&Source>, look: &Look, window: &str) {
        self.picture.measure(source, &self.id, look);
        let (samples, state) = (self.picture.samples, self.picture.state.name());
        let set = |name: &str, value: &str| {
            // Only names that are no attribute names are refused.
            let _ = self.article.set_attribute(name, value);
        };
        if self.said.0 != window {
            set("data-window", window);
            self.said.0 = window.to_string();
        }
        if self.said.1 != samples {
            set("data-samples", &samples.to_string());
            self.said.1 = samples;
        }
        if self.said.2 != state {
            set("data-state", state);
            self.said.2 = state;
        }
        let age = match self.picture.state {
            State::Stale if !look.frozen => {
                format!("last sample {} ago", axis::duration(look.now - self.picture.newest))
            }
            _ => String::new(),
        };
        self.age.set(&age);
    }

    /// Draws the data where it would look another than it does.
    pub fn draw(&mut self, store: &Store, source: Option<&Source>, view: &View, look: &Look, focus: Option<usize>) {
        let units = self.base.units();
        let sights = self.prepare(store, source, view, look, (units, self.wide), focus);
        if self.drawn.as_ref() != Some(&sights) {
            let PanelView { picture, past, other, base, .. } = self;
            picture.with_frame(look, units, focus, |frame| {
                base.draw(Some(look.theme), |area| paint(area, frame, look, past, other))
            });
            self.drawn = Some(sights);
        }
        self.write();
    }

    /// Draws it whole, with words above and labels, on a layer that stands nowhere. `at` is the instant that is shown.
    pub fn poster(&mut self, (store, source): (&Store, Option<&Source>), view: &View, look: &Look, poster: Poster) {
        let (all, head) = (poster.layer.units(), (HEAD * look.css).round() as i32);
        let units = (all.0, all.1 - head);
        self.prepare(store, source, view, look, (units, true), None);
        // The next drawing on the page is of another width.
        self.drawn = None;
        let PanelView { picture, past, other, article, .. } = self;
        let title = article.query_selector("h3").ok().flatten().and_then(|h| h.text_content()).unwrap_or_default();
        let labels = picture.labels(poster.at, look.span.1, None);
        let (unit, newest) = (picture.unit, picture.last(look.span.1));
        let words = Head { title: &title, note: &picture.note, source: &poster.words };
        picture.with_frame(look, units, None, |frame| {
            poster.layer.draw(Some(look.theme), |area| {
                // Our backend refuses nothing.
                let Ok(below) = charts::poster::head(area, frame, &words) else { return };
                paint(&below, frame, look, past, other);
                drop(charts::over::draw(&below, frame, unit, poster.at, newest, &labels));
            })
        });
    }

    /// CSS pixels that the chart needs, drawn by itself: rows have a height of their own.
    pub fn height(&self) -> f64 {
        let rows = self.picture.names.len() as f64;
        if self.picture.in_row(0).is_some() { (rows * 14.0 + 40.0).clamp(180.0, 1800.0) } else { 260.0 }
    }

    /// Brings its pictures up to date for a canvas of that size, `wide` with names in full; answers with how they look.
    fn prepare(
        &mut self,
        store: &Store,
        source: Option<&Source>,
        view: &View,
        look: &Look,
        (units, wide): ((i32, i32), bool),
        focus: Option<usize>,
    ) -> [Option<Sight>; 3] {
        let epoch = source.map_or(0, |s| s.epoch);
        (self.picture.muted, self.picture.dim) = masks(view, store, source, &self.id);
        self.picture.rows = Rows::read(&view.heat);
        self.picture.update(store, source, &self.id, wide, look, units.0);
        self.choose_under(store, view, look);
        let mut sights = [Some(self.picture.sight(look, units, focus, epoch)), None, None];
        for (under, sight) in [&mut self.past, &mut self.other].into_iter().zip(&mut sights[1..]) {
            let Some(under) = under else { continue };
            let look = under.look(look);
            under.picture.muted.clone_from(&self.picture.muted);
            under.picture.update(store, source, &under.id, false, &look, units.0);
            *sight = Some(under.picture.sight(&look, units, None, epoch));
        }
        sights
    }

    fn choose_under(&mut self, store: &Store, view: &View, look: &Look) {
        let (from, to) = look.span;
        let shift = view.versus.map(|ms| if ms == 0 { to - from } else { ms });
        let keep = |under: &mut Option<Under>, id: Option<&str>, shift: i64| match (id, &under) {
            (None, _) => *under = None,
            (Some(id), Some(u)) if u.id == id && u.shift == shift => {}
            (Some(id), _) => {
                let title = store.catalog.layout.charts.iter().find(|c| c.id == id).map_or("", |c| &c.title);
                *under = Some(Under { id: id.into(), title: title.into(), picture: Picture::default(), shift });
            }
        };
        keep(&mut self.past, shift.map(|_| self.id.as_str()), shift.unwrap_or(0));
        let other = view.over.iter().find(|(on, _)| *on == self.id).map(|(_, other)| other.as_str());
        keep(&mut self.other, other, 0);
    }

    /// The words of its title line.
    fn write(&mut self) {
        let hidden = self.picture.muted.iter().filter(|m| **m).count();
        let mut note = self.picture.note.clone();
        if hidden > 0 {
            note += &format!(", {hidden} hidden");
        }
        if let Some(past) = self.past.as_ref().filter(|past| past.picture.blank) {
            note += &format!(", no data {} earlier", axis::duration(past.shift));
        }
        if let Some((axis, unit)) = self.other.as_ref().and_then(|o| Some((o.picture.axis()?, o.picture.unit))) {
            let title = self.other.as_ref().map_or("", |o| &o.title);
            note += &format!("; dashed: {title}, {} to {} {unit}", axis.number(axis.lo), axis.number(axis.hi));
        }
        self.note.set(&note);
        self.sums.iter_mut().zip(&self.picture.sums).for_each(|(w, text)| w.set(text));
    }

    /// Draws the layer over the data.
    pub fn draw_over(&mut self, look: &Look, hover: Option<&Hover>, focus: Option<usize>) {
        // The row of a heat map under the pointer has the attention, on this layer alone.
        let focus = focus.or_else(|| self.row(hover?));
        let PanelView { picture, over, places, .. } = self;
        let at = hover.map(|h| picture.snap(h.t).unwrap_or(h.t));
        let labels = picture.labels(at, look.span.1, focus);
        let (unit, newest) = (picture.unit, picture.last(look.span.1));
        let units = over.units();
        let drawn = picture.with_frame(look, units, focus, |frame| {
            over.draw(None, |area| charts::over::draw(area, frame, unit, at, newest, &labels).unwrap_or_default())
        });
        *places = drawn.flatten().unwrap_or_default();
    }
}

/// A chart that is taken away.
pub struct Poster<'a> {
    /// Where it is drawn.
    pub layer: &'a mut Layer,
    /// Machine and span.
    pub words: String,
    /// The instant that is shown.
    pub at: Option<i64>,
}

/// Draws a frame with what lies under it; our backend refuses nothing.
fn paint(
    area: &charts::Area<Canvas<'_, CanvasSurface>>,
    frame: &Frame,
    look: &Look,
    past: &Option<Under>,
    other: &Option<Under>,
) {
    drop(charts::draw(area, frame));
    if let Some(past) = past {
        past.picture.with_frame(&past.look(look), frame.size, None, |then| {
            drop(charts::ghost::draw(area, &Frame { axis: frame.axis, ..then.clone() }, 0.5));
        });
    }
    if let Some(other) = other {
        other.picture.with_frame(look, frame.size, None, |then| drop(charts::ghost::draw(area, then, 0.9)));
    }
}

/// Which series of a chart are out of sight, and which stand back, by position.
fn masks(view: &View, store: &Store, source: Option<&Source>, id: &str) -> (Vec<bool>, Vec<bool>) {
    let here = |list: &[(String, String)]| list.iter().any(|(chart, _)| chart == id);
    let (only, off) = (here(&view.only), here(&view.off));
    let members = source.and_then(|s| Some((s, s.charts.get(id)?)));
    let Some((source, members)) = members.filter(|_| only || off || !view.pin.is_empty()) else {
        return Default::default();
    };
    let def = |i: &u32| source.defs.get(*i as usize);
    let names = members.lines.iter().map(|i| def(i).map_or_else(String::new, |d| store.catalog.label(d)));
    let names: Vec<String> = names.collect();
    let in_list = |list: &[(String, String)], name: &str| list.iter().any(|(chart, n)| chart == id && n == name);
    let muted: Vec<bool> = names.iter().map(|n| (only && !in_list(&view.only, n)) || in_list(&view.off, n)).collect();
    // A followed series that is out of sight here takes the light from nobody.
    let pinned = names.iter().zip(&muted).any(|(n, muted)| !muted && view.pin.contains(n));
    let dim = names.iter().map(|n| pinned && !view.pin.contains(n)).collect();
    (muted, dim)
}
