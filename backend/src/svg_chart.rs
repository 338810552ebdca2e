//! A chart as a static picture, for notebooks and reports: SVG text, drawn by the page's own drawing code.

use charts::axis::{self, Axis};
use charts::canvas::{Canvas, Pen, SUBPIXELS, Surface};
use charts::labels::Label;
use charts::over::EdgeLabels;
use charts::poster::{Head, TITLE_HEIGHT_PX};
use charts::reduce::{Column, Reducer};
use charts::svg::Svg;
use charts::theme::{DARK, LIGHT};
use charts::{Band, Chart, Frame, Hue, Line, Measures};
use shared::catalog::Range;
use shared::rollup::Bucket;
use shared::unit::Unit;
use std::fmt::Write;
use viewer::spread::{Spread, outliers, stand};

/// Fonts similar to the page's own, for any viewer.
const FAMILY: &str = "Inter, system-ui, sans-serif";
const MEASURES: Measures = Measures { text: 12.0, left: 48.0, right: 140.0, line: 1.5 };

/// Contents of a picture.
pub struct SvgChart {
    /// Title above it.
    pub title: String,
    /// The machine and the span, in words.
    pub words: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Range of its axis.
    pub range: Range,
    /// Start and end of the span, milliseconds since the Unix epoch.
    pub span: (i64, i64),
    /// Time between two samples, milliseconds.
    pub interval: i64,
    /// Time of one column, milliseconds.
    pub step: i64,
    /// Name, hue and roll-ups of each series, oldest first, in steps of `step`.
    pub series: Vec<(String, Hue, Vec<Bucket>)>,
}

/// Size and theme of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Width and height in pixels, the title included.
    pub size: (u32, u32),
    /// Use the light theme.
    pub is_light: bool,
}

impl Paper {
    /// Number of distinct columns.
    pub fn columns(&self) -> i64 {
        (f64::from(self.size.0) - MEASURES.left - MEASURES.right).max(1.0) as i64
    }
}

/// Draws it. Its title, for screen readers, lists mean, minimum and maximum of each series.
pub fn draw(figure: &SvgChart, paper: Paper) -> String {
    let factor = figure.unit.to_base();
    let reduced: Vec<Reducer> = figure.series.iter().map(|(_, _, buckets)| reduce(figure, buckets, factor)).collect();
    let columns: Vec<&[Column]> = reduced.iter().map(Reducer::columns).collect();
    let (from, to) = figure.span;
    let all = || columns.iter().flat_map(|columns| columns.iter());
    let axis = axis::values(
        figure.unit,
        figure.range,
        all().map(|c| c.min).fold(f64::INFINITY, f64::min),
        all().map(|c| c.max).fold(f64::NEG_INFINITY, f64::max),
    );
    let chart = Chart::for_series(columns.len());
    let mut spread = Spread::default();
    let named: Vec<usize> = if chart == Chart::Band {
        spread.show(&columns, from.div_euclid(figure.step)..to.div_euclid(figure.step) + 1);
        let stands: Vec<_> = columns.iter().map(|own| stand(own, &spread.band, axis.hi - axis.lo, false)).collect();
        outliers(&stands)
    } else {
        (0..columns.len()).collect()
    };
    let hue = |place: usize, at: usize| match chart {
        Chart::Band => Hue::Odd(place as u8),
        _ => figure.series[at].1,
    };
    let line = |(place, at): (usize, &usize)| Line { columns: columns[*at], hue: hue(place, *at), bright: true };
    let lines: Vec<Line> = named.iter().enumerate().map(line).collect();
    let label = |name: String, value: f64, hue: Hue| {
        let text = if value.is_finite() { axis.number(value) } else { "–".into() };
        Label { name, value, text, hue, bright: true }
    };
    let mut labels: Vec<Label> = Vec::new();
    if let Some(last) = spread.band.last() {
        labels.push(label("median".into(), last.values[2], Hue::Ink));
    }
    labels.extend(named.iter().enumerate().map(|(place, at)| {
        let newest = columns[*at].last().map_or(f64::NAN, |column| column.last);
        let name = if columns.len() == 1 { String::new() } else { figure.series[*at].0.clone() };
        label(name, newest, hue(place, *at))
    }));

    let frame = frame(figure, paper, chart, &axis, &lines, &spread.band);
    let unit = axis.scale.symbol;
    let of = (chart.traits().note)(columns.len());
    let note = [unit, &of].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let head = Head { title: &figure.title, note: &note, source: &figure.words };
    let said = EdgeLabels { labels: &labels, unit, joined_as: None, before: &[] };
    let mut sheet = Sheet { svg: Svg::new(paper.size, FAMILY), size: 12.0 };
    let mut pen = Pen::default();
    {
        let area = charts::into_area(Canvas::new(&mut sheet, &mut pen, paper.size));
        // This backend returns no errors.
        if let Ok(below) = charts::poster::head(&area, &frame, &head) {
            let _ = charts::draw(&below, &frame);
            let _ = charts::over::draw(&below, &frame, None, to, said);
        }
    }
    titled(sheet.svg.finish(), &summary(figure, factor))
}

/// The frame of the drawing, without the parts for a live page.
fn frame<'a>(
    figure: &SvgChart,
    paper: Paper,
    chart: Chart,
    axis: &'a Axis,
    lines: &'a [Line<'a>],
    band: &'a [Band],
) -> Frame<'a> {
    let (width, height) = paper.size;
    Frame {
        chart,
        size: (width as i32 * SUBPIXELS, height as i32 * SUBPIXELS - TITLE_HEIGHT_PX as i32 * SUBPIXELS),
        css: f64::from(SUBPIXELS),
        device: f64::from(SUBPIXELS),
        theme: if paper.is_light { &LIGHT } else { &DARK },
        measures: MEASURES,
        from: figure.span.0,
        to: figure.span.1,
        zone: charts::axis::Zone::UTC,
        along: charts::axis::Along::Time,
        axis,
        step: figure.step,
        interval: figure.interval,
        lines,
        band,
        heat: None,
        lanes: &[],
        limits: &[],
        gaps: &[],
        live: false,
        age: "",
    }
}

fn reduce(figure: &SvgChart, buckets: &[Bucket], factor: f64) -> Reducer {
    let mut reducer = Reducer::new(figure.step, (figure.interval * 3).max(figure.step * 3 / 2));
    for bucket in buckets {
        let last = bucket.t + figure.step - 1;
        reducer.push_many((bucket.t, last), [bucket.min, bucket.max, bucket.mean].map(|v| v * factor), bucket.count);
    }
    reducer
}

/// The numbers of each series in words.
fn summary(figure: &SvgChart, factor: f64) -> String {
    let mut text = format!("{}, {}", figure.title, figure.words);
    for (name, _, buckets) in &figure.series {
        let samples: u32 = buckets.iter().map(|bucket| bucket.count).sum();
        let least = buckets.iter().map(|bucket| bucket.min).fold(f64::INFINITY, f64::min);
        let most = buckets.iter().map(|bucket| bucket.max).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = buckets.iter().map(|bucket| bucket.mean * f64::from(bucket.count)).sum();
        if samples == 0 {
            let _ = write!(text, "\n{name}: no samples");
            continue;
        }
        let scale = figure.unit.base().scale(most.abs().max(least.abs()) * factor);
        let [mean, least, most] = [sum / f64::from(samples), least, most].map(|v| scale.number(v * factor));
        let _ = write!(text, "\n{name}: mean {mean} {0}, {least} to {most} {0}", scale.symbol);
    }
    text
}

/// Adds a title for programs and screen readers.
fn titled(svg: String, title: &str) -> String {
    let Some(end) = svg.find('>') else { return svg };
    let plain = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("{}\n<title>{plain}</title>{}", &svg[..=end], &svg[end + 1..])
}

/// SVG text as a surface. It cannot measure letters, so widths approximate those of the page's font.
struct Sheet {
    svg: Svg,
    size: f32,
}

/// Width of a letter as a share of the font's size.
fn letter(letter: char) -> f32 {
    match letter {
        'i' | 'l' | 'j' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.28,
        'f' | 'r' | 't' | '(' | ')' | '/' | '-' => 0.38,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.88,
        '0'..='9' => 0.62,
        'A'..='Z' => 0.69,
        _ => 0.57,
    }
}

impl Surface for Sheet {
    fn set_fill(&mut self, color: (u8, u8, u8, f64)) {
        self.svg.set_fill(color);
    }

    fn set_stroke(&mut self, color: (u8, u8, u8, f64), width: f32) {
        self.svg.set_stroke(color, width);
    }

    fn set_font(&mut self, size: f32, bold: bool) {
        self.size = size;
        self.svg.set_font(size, bold);
    }

    fn polylines(&mut self, points: &[f32], ends: &[usize]) {
        self.svg.polylines(points, ends);
    }

    fn polygon(&mut self, points: &[f32]) {
        self.svg.polygon(points);
    }

    fn rect(&mut self, x: f32, y: f32, width: f32, height: f32) {
        self.svg.rect(x, y, width, height);
    }

    fn disc(&mut self, x: f32, y: f32, radius: f32) {
        self.svg.disc(x, y, radius);
    }

    fn text(&mut self, text: &str, x: f32, y: f32, align: u8) {
        self.svg.text(text, x, y, align);
    }

    fn measure(&mut self, text: &str) -> f32 {
        text.chars().map(letter).sum::<f32>() * self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(series: usize) -> SvgChart {
        let bucket =
            |at: i64, t: i64| Bucket { t: t * 1_000, min: 1.0, max: 90.0, mean: at as f64, last: 1.0, count: 1 };
        let one =
            |at: i64| (format!("GPU {at} <b>"), Hue::Of((at % 8) as u8), (0..60).map(|t| bucket(at, t)).collect());
        SvgChart {
            title: "GPU utilization".into(),
            words: "node-7".into(),
            unit: Unit::Percent,
            range: Range::PERCENT,
            span: (0, 60_000),
            interval: 1_000,
            step: 1_000,
            series: (0..series as i64).map(one).collect(),
        }
    }

    #[test]
    fn a_figure_says_its_numbers_and_has_a_line_for_each_of_a_few_series() {
        let paper = Paper { size: (720, 316), is_light: true };
        let svg = draw(&figure(2), paper);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("<title>GPU utilization, node-7\nGPU 0 &lt;b&gt;: mean 0 %, 1 to 90 %\nGPU 1"), "{svg}");
        assert!(!svg.contains("<b>"), "names are text");
        assert!(svg.matches("<path").count() >= 2);
        assert_ne!(svg, draw(&figure(2), Paper { is_light: false, ..paper }));
        assert!(draw(&figure(64), paper).contains("median, p10–p90 of 64"));
        assert!(draw(&figure(0), paper).contains("<title>GPU utilization"));
    }
}
