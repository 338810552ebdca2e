//! One panel of the board: its elements, its pictures, and how they are drawn.

use super::layer::{Layer, Words};
use crate::address::View;
use crate::panels::summary::summary;
use crate::state::Hover;
use crate::store::Store;
use crate::store::source::Source;
use crate::surface::CanvasSurface;
use charts::Frame;
use charts::canvas::Canvas;
use charts::labels::LabelPlace;
use charts::over::EdgeLabels;
use charts::poster::{Head, TITLE_HEIGHT_PX};
use shared::unit::rough_duration;
use viewer::picture::{Look, PanelState, Picture, RedrawKey, Rows};
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlCanvasElement};

/// A picture whose lines are drawn together with those of the panel: an earlier period, or another chart.
pub struct Under {
    /// Id of the chart.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// Data of the chart.
    pub picture: Picture,
    /// Shift of the period, in ms; 0 for another chart.
    pub shift: i64,
    /// True when the period is of a recording, whose series may be others.
    pub recorded: bool,
}

impl Under {
    /// The values at an instant, by position of the panel's own series; NaN where there is none of the same name.
    pub fn values(&self, own: &Picture, at: i64, look: &Look) -> Vec<f64> {
        let values = self.picture.values(Some(self.picture.snap(at).unwrap_or(at)), self.shifted_look(look).span.1);
        if !self.recorded {
            return values;
        }
        let place = |name: &str| self.picture.names.iter().position(|other| other.full == name);
        let value = |name: &str| values.get(place(name)?).copied();
        own.names.iter().map(|name| value(&name.full).unwrap_or(f64::NAN)).collect()
    }

    /// The look for this picture, whose span is earlier by `shift`.
    pub fn shifted_look(&self, look: &Look) -> Look {
        let (from, to) = look.span;
        Look { span: (from - self.shift, to - self.shift), frozen: true, live: false, ..look.clone() }
    }
}

/// Data that a panel is drawn from.
#[derive(Clone, Copy)]
pub struct Data<'a> {
    /// All data of the page.
    pub store: &'a Store,
    /// The machine that is shown.
    pub source: Option<&'a Source>,
    /// The recording that is drawn under it, its machine, and its shift in ms.
    pub beside: Option<(&'a Store, Option<&'a Source>, i64)>,
}

/// A panel on the page.
pub struct PanelView {
    /// Id of the chart.
    pub id: String,
    /// True when the panel has the whole width of the page.
    pub wide: bool,
    /// Data of the panel.
    pub picture: Picture,
    /// The same chart in an earlier period, while the page compares.
    pub past: Option<Under>,
    /// Another chart that is drawn over this one.
    pub other: Option<Under>,
    /// Position of each labeled series, and the middle of its label in CSS pixels from the top of the plot.
    pub places: Vec<LabelPlace>,
    /// The element of the panel.
    pub article: Element,
    /// True when the panel is on the screen or near it.
    pub in_view: bool,
    /// The canvas with the data.
    pub base: Layer,
    over: Layer,
    note: Words,
    sums: [Words; 3],
    age: Words,
    drawn: Option<[Option<RedrawKey>; 3]>,
    /// The pointer state that the layer over the data shows.
    pointed: Option<Pointed>,
    said: (String, usize, &'static str),
    /// The sentence for screen readers, and when it was written last, ms since the epoch.
    summary: (String, i64),
}

/// An instant in ms since the epoch, the position of a series, and whether the chart is pointed at itself.
type Pointed = (Option<i64>, Option<usize>, bool);

/// Interval between two sentences for screen readers, in ms: an announcement each second is too much.
const SUMMARY_INTERVAL_MS: i64 = 10_000;

impl PanelView {
    /// Makes a panel around its element; None when a part of the element is missing.
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
            pointed: None,
            said: (String::new(), usize::MAX, ""),
            summary: (String::new(), 0),
        })
    }

    /// True when each series is drawn as a line.
    pub fn lines(&self) -> bool {
        charts::Chart::for_series(self.picture.names.len()) == charts::Chart::Line
    }

    /// Position of the series in the row of a heat map under the pointer; None elsewhere.
    pub fn row(&self, hover: &Hover) -> Option<usize> {
        if hover.panel != self.id || self.picture.in_row(0).is_none() {
            return None;
        }
        let near = self.places.iter().min_by(|a, b| (a.y - hover.y).abs().total_cmp(&(b.y - hover.y).abs()))?;
        self.picture.in_row(*near.series.first()?)
    }

    /// Place and size of the plot in the window, in CSS pixels.
    pub fn plot(&self) -> Option<web_sys::DomRect> {
        Some(self.article.query_selector(".plot").ok()??.get_bounding_client_rect())
    }

    /// Takes the size from the page. `dpr` is the number of device pixels in a CSS pixel, `family` the CSS font family.
    pub fn fit(&mut self, dpr: f64, family: &str) {
        if self.base.fit(dpr, family) {
            self.drawn = None;
        }
        self.over.fit(dpr, family);
    }

    /// Updates the attributes and the age that describe the data. This is done for panels out of view too.
    pub fn describe_data(&mut self, source: Option<&Source>, look: &Look, window: &str) {
        self.picture.measure(source, &self.id, look);
        let (samples, state) = (self.picture.samples, self.picture.state.name());
        let set = |name: &str, value: &str| {
            // This fails only for invalid names, and the names are constants.
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
            PanelState::Stale if !look.frozen => {
                format!("last sample {} ago", rough_duration(look.now - self.picture.newest))
            }
            _ => String::new(),
        };
        self.age.set(&age);
    }

    /// Draws the data if the picture would differ from the one on the canvas. `focus` is the position of the
    /// highlighted series.
    pub fn draw(&mut self, data: &Data, view: &View, look: &Look, focus: Option<usize>) {
        let units = self.base.units();
        let keys = self.prepare(data, view, look, (units, self.wide), focus);
        if self.drawn.as_ref() != Some(&keys) {
            let PanelView { picture, past, other, base, .. } = self;
            picture.with_frame(look, units, focus, |frame| {
                base.draw(Some(look.theme), |area| paint(area, frame, look, past, other))
            });
            self.drawn = Some(keys);
        }
        self.write();
        self.describe(look);
    }

    /// Draws the whole panel, with a title and labels, on the layer of a poster.
    pub fn poster(&mut self, data: &Data, view: &View, look: &Look, poster: Poster) {
        let (all, head) = (poster.layer.units(), (TITLE_HEIGHT_PX * look.css).round() as i32);
        let units = (all.0, all.1 - head);
        self.prepare(data, view, look, (units, true), None);
        // The next drawing on the page has another width.
        self.drawn = None;
        let PanelView { picture, past, other, article, .. } = self;
        let title = article.query_selector("h3").ok().flatten().and_then(|h| h.text_content()).unwrap_or_default();
        let labels = picture.labels(poster.at, look.span.1, None);
        let (unit, newest) = (picture.unit, picture.last(look.span.1));
        let words = Head { title: &title, note: &picture.note, source: &poster.words };
        picture.with_frame(look, units, None, |frame| {
            let said = EdgeLabels { labels: &labels, unit, joined_as: None, before: &[] };
            poster.layer.draw(Some(look.theme), |area| {
                // This backend never returns an error.
                let Ok(below) = charts::poster::head(area, frame, &words) else { return };
                paint(&below, frame, look, past, other);
                drop(charts::over::draw(&below, frame, poster.at, newest, said));
            })
        });
    }

    /// Height of the chart in a poster, in CSS pixels. A heat map needs a height for each of its rows.
    pub fn height(&self) -> f64 {
        let rows = self.picture.names.len() as f64;
        if self.picture.in_row(0).is_some() { (rows * 14.0 + 40.0).clamp(180.0, 1800.0) } else { 260.0 }
    }

    /// Updates the pictures for a canvas of a size in units; with `wide` series have their full names. Returns the
    /// redraw keys of the panel, the earlier period and the other chart.
    fn prepare(
        &mut self,
        data: &Data,
        view: &View,
        look: &Look,
        (units, wide): ((i32, i32), bool),
        focus: Option<usize>,
    ) -> [Option<RedrawKey>; 3] {
        let Data { store, source, beside } = *data;
        let epoch = source.map_or(0, |s| s.epoch);
        (self.picture.muted, self.picture.dim) = masks(view, store, source, &self.id);
        self.picture.rows = Rows::read(&view.heat);
        self.picture.update(store, source, &self.id, wide, look, units.0);
        self.choose_under(data, view, look);
        let mut keys = [Some(self.picture.redraw_key(look, units, focus, epoch)), None, None];
        for (under, key) in [&mut self.past, &mut self.other].into_iter().zip(&mut keys[1..]) {
            let Some(under) = under else { continue };
            let look = under.shifted_look(look);
            let (store, source) = match beside {
                Some((store, source, _)) if under.recorded => {
                    under.picture.muted = masks(view, store, source, &under.id).0;
                    (store, source)
                }
                _ => {
                    under.picture.muted.clone_from(&self.picture.muted);
                    (store, source)
                }
            };
            under.picture.update(store, source, &under.id, false, &look, units.0);
            *key = Some(under.picture.redraw_key(&look, units, None, epoch));
        }
        keys
    }

    fn choose_under(&mut self, data: &Data, view: &View, look: &Look) {
        let (from, to) = look.span;
        let earlier = view.versus.map(|ms| if ms == 0 { to - from } else { ms });
        let recorded = data.beside.map(|(_, _, shift)| shift);
        let keep = |under: &mut Option<Under>, id: Option<&str>, shift: i64, recorded: bool| match (id, under) {
            (None, under) => *under = None,
            (Some(id), Some(u)) if u.id == id && (u.shift, u.recorded) == (shift, recorded) => {}
            // A recording does not move with the time.
            (Some(id), Some(u)) if u.id == id && u.recorded && recorded => u.shift = shift,
            (Some(id), under) => {
                let title = data.store.catalog.layout.charts.iter().find(|c| c.id == id).map_or("", |c| &c.title);
                let (id, title) = (id.into(), title.into());
                *under = Some(Under { id, title, picture: Picture::default(), shift, recorded });
            }
        };
        let shift = recorded.or(earlier);
        keep(&mut self.past, shift.map(|_| self.id.as_str()), shift.unwrap_or(0), recorded.is_some());
        let other = view.over.iter().find(|(on, _)| *on == self.id).map(|(_, other)| other.as_str());
        keep(&mut self.other, other, 0, false);
    }

    /// Writes the chart in a sentence where a screen reader finds it.
    fn describe(&mut self, look: &Look) {
        if (0..SUMMARY_INTERVAL_MS).contains(&(look.now - self.summary.1)) {
            return;
        }
        self.summary.1 = look.now;
        let sentence = summary(&self.picture, look.span.1);
        if self.summary.0 != sentence
            && let Ok(Some(plot)) = self.article.query_selector(".plot")
        {
            let title = self.article.query_selector("h3 button").ok().flatten().and_then(|title| title.text_content());
            // This fails only for invalid names, and the name is a constant.
            let _ = plot.set_attribute("aria-label", &format!("{}: {sentence}", title.unwrap_or_default()));
            // Only a plot with a label may take the keys from a screen reader.
            let _ = plot.set_attribute("role", "application");
            self.summary.0 = sentence;
        }
    }

    /// Writes the note and the figures of the title line.
    fn write(&mut self) {
        let hidden = self.picture.muted.iter().filter(|m| **m).count();
        let mut note = self.picture.note.clone();
        if hidden > 0 {
            note += &format!(", {hidden} hidden");
        }
        if let Some(past) = self.past.as_ref().filter(|past| past.picture.blank) {
            note += &match past.recorded {
                true => ", not in the recording".to_string(),
                false => format!(", no data {} earlier", rough_duration(past.shift)),
            };
        }
        if let Some((axis, unit)) = self.other.as_ref().and_then(|o| Some((o.picture.axis()?, o.picture.unit))) {
            let title = self.other.as_ref().map_or("", |o| &o.title);
            note += &format!("; dashed: {title}, {} to {} {unit}", axis.number(axis.lo), axis.number(axis.hi));
        }
        self.note.set(&note);
        self.sums.iter_mut().zip(&self.picture.sums).for_each(|(w, text)| w.set(text));
    }

    /// Redraws the layer over the data after the pointer moved to another instant, series or chart.
    pub fn follow(&mut self, look: &Look, hover: Option<&Hover>, focus: Option<usize>) {
        if self.pointed != Some(self.pointed(hover, focus)) {
            self.draw_over(look, hover, focus);
        }
    }

    /// The pointer state for the layer over the data: the instant of the sample, the highlighted series, and whether
    /// the pointer is over this chart.
    fn pointed(&self, hover: Option<&Hover>, focus: Option<usize>) -> Pointed {
        let here = hover.is_some_and(|h| h.panel == self.id);
        (hover.map(|h| self.picture.snap(h.t).unwrap_or(h.t)), focus.or_else(|| self.row(hover?)), here)
    }

    /// Draws the layer over the data: crosshair and labels. `focus` is the position of the highlighted series.
    pub fn draw_over(&mut self, look: &Look, hover: Option<&Hover>, focus: Option<usize>) {
        // The row of a heat map under the pointer is highlighted on this layer only.
        let (at, focus, here) = self.pointed(hover, focus);
        self.pointed = Some((at, focus, here));
        let PanelView { picture, over, places, .. } = self;
        let labels = picture.labels(at, look.span.1, focus);
        let (unit, newest) = (picture.unit, picture.last(look.span.1));
        let units = over.units();
        // The chart under the pointer labels its series one by one.
        let here = focus.is_some() || here;
        let joined_as = picture.peers().filter(|_| !here);
        let said = EdgeLabels { labels: &labels, unit, joined_as, before: places };
        let drawn = picture.with_frame(look, units, focus, |frame| {
            over.draw(None, |area| charts::over::draw(area, frame, at, newest, said).unwrap_or_default())
        });
        *places = drawn.flatten().unwrap_or_default();
    }
}

/// The target and the texts of a chart that is saved as a picture.
pub struct Poster<'a> {
    /// Layer on which the chart is drawn.
    pub layer: &'a mut Layer,
    /// Name of the machine, and the span.
    pub words: String,
    /// Instant whose values the labels show, ms since the epoch; None for the newest values.
    pub at: Option<i64>,
}

/// Draws a frame with the lines of the other pictures. This backend never returns an error.
fn paint(
    area: &charts::Area<Canvas<'_, CanvasSurface>>,
    frame: &Frame,
    look: &Look,
    past: &Option<Under>,
    other: &Option<Under>,
) {
    drop(charts::marks::draw(area, frame, &look.marks));
    drop(charts::draw(area, frame));
    if let Some(past) = past {
        past.picture.with_frame(&past.shifted_look(look), frame.size, None, |then| {
            drop(charts::ghost::draw(area, &Frame { axis: frame.axis, ..then.clone() }, 0.5));
        });
    }
    if let Some(other) = other {
        other.picture.with_frame(look, frame.size, None, |then| drop(charts::ghost::draw(area, then, 0.9)));
    }
}

/// Hidden series and faint series, by position. Both lists are empty when none is.
fn masks(view: &View, store: &Store, source: Option<&Source>, id: &str) -> (Vec<bool>, Vec<bool>) {
    let here = |list: &[(String, String)]| list.iter().any(|(chart, _)| chart == id);
    let (only, off) = (here(&view.only), here(&view.off));
    let members = source.and_then(|s| Some((s, s.charts.get(id)?)));
    let kernel = view.kernel.as_deref();
    let Some((source, members)) = members.filter(|_| only || off || !view.pin.is_empty() || kernel.is_some()) else {
        return Default::default();
    };
    let def = |i: &u32| source.defs.get(*i as usize);
    let names = members.lines.iter().map(|i| def(i).map_or_else(String::new, |d| store.catalog.label(d)));
    let names: Vec<String> = names.collect();
    let in_list = |list: &[(String, String)], name: &str| list.iter().any(|(chart, n)| chart == id && n == name);
    // Beside a notebook, other notebooks are left out.
    let others: Vec<bool> = members
        .lines
        .iter()
        .map(|i| {
            kernel.zip(def(i)).is_some_and(|(own, def)| {
                let of_kernels = store
                    .catalog
                    .metric(def)
                    .is_some_and(|m| shared::catalog::kernel::ROWS.iter().any(|row| row.tag == m.tag));
                of_kernels && !shared::catalog::kernel::is_instance_of(own, &def.instance)
            })
        })
        .collect();
    let hidden = |n: &String| (only && !in_list(&view.only, n)) || in_list(&view.off, n);
    let muted: Vec<bool> = names.iter().zip(others).map(|(n, other)| other || hidden(n)).collect();
    // A highlighted series that is hidden in this chart makes no other series faint.
    let pinned = names.iter().zip(&muted).any(|(n, muted)| !muted && view.pin.contains(n));
    let dim = names.iter().map(|n| pinned && !view.pin.contains(n)).collect();
    (muted, dim)
}
