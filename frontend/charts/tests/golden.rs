//! Golden pictures: each drawing in both themes as SVG text. `BLESS=1 cargo test -p watchglass-charts` writes them anew;
//! look at them before they are committed.

use charts::over::Label;
use charts::reduce::Reducer;
use charts::theme::{DARK, LIGHT};
use charts::{Band, Chart, Frame, Gap, Hue, Limit, Line, Measures, Theme, axis};
use plotters::drawing::IntoDrawingArea;
use plotters::prelude::SVGBackend;
use plotters::style::Color;
use shared::catalog::Range;
use shared::unit::Unit;

const END: i64 = 1_795_219_200_000; // a midnight, so that a date stands on the axis
const SPAN: i64 = 300_000;

/// A quiet wave with a gap of 40 s and one spike of 2 s.
fn wave(k: i64, gap: bool) -> Reducer {
    let mut r = Reducer::new(1, 1_500);
    for i in 0..=300 {
        let t = END - SPAN + 60_000 + i * 1000;
        let base = 40.0 + 8.0 * k as f64 + ((i * (k + 3)) % 17) as f64 / 2.0;
        let v = if (200..202).contains(&i) && k == 1 { 97.0 } else { base };
        if !(gap && (120..160).contains(&i)) {
            r.push(t, v);
        }
    }
    r
}

fn picture(chart: Chart, theme: &Theme) -> String {
    let gaps = [Gap { from: END - SPAN + 179_000, to: END - SPAN + 220_000, text: "no data 40 s".into() }];
    let n = if chart == Chart::Area { 1 } else { 6 };
    let reduced: Vec<Reducer> = (0..n).map(|k| wave(k, true)).collect();
    let hue = |i: usize| if n == 1 { Hue::Ink } else { Hue::Of(i as u8) };
    let lines: Vec<Line> =
        reduced.iter().enumerate().map(|(i, r)| Line { columns: r.columns(), hue: hue(i), bright: true }).collect();
    let band: Vec<Band> = reduced[0]
        .columns()
        .iter()
        .map(|c| Band { t: c.t, values: [-30.0, -9.0, 0.0, 11.0, 35.0].map(|d| c.last + d), joined: c.joined })
        .collect();
    let labels: Vec<Label> = (0..n)
        .map(|i| Label {
            name: format!("GPU {i}"),
            value: reduced[i as usize].columns().last().map_or(f64::NAN, |c| c.last),
            text: format!("{}", 40 + 8 * i),
            hue: hue(i as usize),
            strength: 1.0,
            bright: true,
        })
        .collect();
    let axis = axis::values(Unit::Percent, Range::PERCENT, 30.0, 97.0);
    let frame = Frame {
        chart,
        size: (1400, 352),
        css: 2.0,
        device: 1.0,
        theme,
        measures: Measures::default(),
        from: END - SPAN + 60_000,
        to: END + 60_000,
        offset: 0,
        axis: &axis,
        step: 1,
        interval: 1000,
        lines: if chart == Chart::Band { &[] } else { &lines },
        band: if chart == Chart::Band { &band } else { &[] },
        limits: &[Limit { value: 90.0, text: "limit 90 %".into() }],
        gaps: &gaps,
        live: true,
    };
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (1400, 352)).into_drawing_area();
        area.fill(&theme.card.to_rgba()).expect("SVG text refuses nothing");
        charts::draw(&area, &frame).expect("SVG text refuses nothing");
        let at = (chart == Chart::Line).then_some(END - 30_000);
        charts::over::draw(&area, &frame, "%", at, END + 60_000, &labels).expect("SVG text refuses nothing");
        area.present().expect("SVG text refuses nothing");
    }
    svg
}

fn check(name: &str, chart: Chart) {
    for (theme, tone) in [(&DARK, "dark"), (&LIGHT, "light")] {
        let svg = picture(chart, theme);
        let path = format!("{}/tests/golden/{name}-{tone}.svg", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &svg).expect("the folder of golden pictures can be written");
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(svg == golden, "{name}-{tone} differs from {path}; BLESS=1 writes it anew, then look at it");
    }
}

#[test]
fn one_series_is_a_filled_line() {
    check("area", Chart::Area);
}

#[test]
fn a_few_series_are_lines_with_names_and_a_crosshair() {
    check("line", Chart::Line);
}

#[test]
fn many_series_are_a_band() {
    check("band", Chart::Band);
}

#[test]
fn a_gap_is_no_line_and_zero_is_one() {
    let full = |v: f64| {
        let mut r = Reducer::new(1, 1_500);
        (0..60).for_each(|i| r.push(END + i * 1000, if (20..40).contains(&i) { v } else { 5.0 }));
        r.columns().iter().filter(|c| !c.joined).count()
    };
    assert_eq!((full(0.0), full(f64::NAN)), (1, 2));
}
