//! Golden pictures: each drawing in both themes as SVG text. `BLESS=1 cargo test -p watchglass-charts` rewrites them.
//! Look at them before you commit them.

use charts::labels::Label;
use charts::over::EdgeLabels;
use charts::reduce::Reducer;
use charts::theme::{DARK, LIGHT};
use charts::value::{self, Spark};
use charts::{Band, Bar, Chart, Frame, Gap, Heat, Hue, Lane, Limit, Line, Measures, Theme, axis};
use plotters::drawing::IntoDrawingArea;
use plotters::prelude::SVGBackend;
use plotters::style::Color;
use shared::catalog::Range;
use shared::unit::Unit;

const END: i64 = 1_795_219_200_000; // A midnight, so that the axis shows a date.
const SPAN: i64 = 300_000;

/// A calm series with a gap of 40 s if `gap`; series 1 has a spike of 2 s.
fn wave(k: i64, gap: bool, step: i64) -> Reducer {
    let mut r = Reducer::new(step, 1_500);
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

const FROM: i64 = END - SPAN + 60_000;
const TO: i64 = END + 60_000;

/// Two rows of bars like those of a training job: several states, a span without data, and one alert.
fn lanes() -> Vec<Lane> {
    let bar = |from: i64, to: i64, word: &str, strength: f64, alert: bool| Bar {
        from: FROM + from * 1000,
        to: FROM + to * 1000,
        word: word.into(),
        strength,
        alert,
        ..Bar::default()
    };
    let cap = vec![
        bar(0, 60, "none", 0.0, false),
        bar(60, 119, "power, 2 of 8", 0.3, false),
        bar(160, 300, "power, all", 0.6, false),
    ];
    let xid = vec![bar(0, 119, "none", 0.0, false), bar(160, 250, "none", 0.0, false), bar(250, 300, "79", 0.6, true)];
    vec![Lane { name: "Cap".into(), bars: cap }, Lane { name: "XID".into(), bars: xid }]
}

/// The label of a series whose last value is `value`.
fn label(name: String, value: f64, hue: Hue) -> Label {
    let text = if value.is_finite() { format!("{value:.0}") } else { "–".into() };
    Label { name, value, text, hue, bright: true }
}

/// The parts of a picture that differ between tests.
struct Scene {
    chart: Chart,
    lines: usize,
    values: bool,
    lanes: Vec<Lane>,
    at: Option<i64>,
    hidden: usize,
    wide: u32,
    tall: u32,
    css: f64,
    device: f64,
    /// Noun for lines that share a label.
    joined_as: Option<&'static str>,
}

impl Default for Scene {
    fn default() -> Self {
        Scene {
            chart: Chart::Line,
            lines: 6,
            values: false,
            lanes: Vec::new(),
            at: None,
            hidden: 0,
            wide: 1400,
            tall: 352,
            css: 2.0,
            device: 1.0,
            joined_as: None,
        }
    }
}

fn picture(scene: &Scene, theme: &Theme) -> String {
    let Scene { chart, lines: n, .. } = *scene;
    let gaps = [Gap { from: END - SPAN + 179_000, to: END - SPAN + 220_000, text: "no data 40 s".into() }];
    let heat = chart == Chart::Heat;
    let step = if heat { 5_000 } else { 1 };
    let reduced: Vec<Reducer> = (0..n as i64)
        .map(|k| match k {
            5 if heat => zero(step),
            _ => wave(k % 7, !heat || k == 9, step),
        })
        .collect();
    let hue = |i: usize| if n == 1 { Hue::Ink } else { Hue::Of(i as u8 % 8) };
    let lines: Vec<Line> =
        reduced.iter().enumerate().map(|(i, r)| Line { columns: r.columns(), hue: hue(i), bright: true }).collect();
    let band: Vec<Band> = reduced
        .first()
        .map_or(&[][..], |r| r.columns())
        .iter()
        .map(|c| Band {
            slot: c.slot,
            t: c.t,
            values: [-30.0, -9.0, 0.0, 11.0, 35.0].map(|d| c.last + d),
            joined: c.joined,
        })
        .collect();
    let last = |i: usize| reduced[i].columns().last().map_or(f64::NAN, |c| c.last);
    let mut labels: Vec<Label> = (0..n).map(|i| label(format!("GPU {i}"), last(i), hue(i))).collect();
    match chart {
        Chart::Line => labels[2].value = f64::NAN,
        Chart::Band => labels.insert(0, label("median".into(), last(0), Hue::Ink)),
        Chart::Heat => labels.push(label("median".into(), 68.0, Hue::Ink)),
        _ => {}
    }
    labels.iter_mut().rev().take(scene.hidden).for_each(|l| l.bright = false);
    labels.iter_mut().filter(|l| !l.value.is_finite()).for_each(|l| l.text = "–".into());
    let names: Vec<String> = (0..n).map(|i| i.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let axis = axis::values(Unit::Percent, Range::PERCENT, 30.0, 97.0);
    let Scene { wide, tall, css, device, .. } = *scene;
    let limits = [Limit { value: 90.0, text: "limit 90 %".into() }];
    let frame = Frame {
        chart,
        size: (wide as i32, tall as i32),
        css,
        device,
        theme,
        measures: Measures { right: if scene.joined_as.is_some() { 138.0 } else { 100.0 }, ..Measures::default() },
        from: FROM,
        to: TO,
        zone: charts::axis::Zone::UTC,
        along: charts::axis::Along::Time,
        axis: &axis,
        step,
        interval: 1000,
        lines: &lines,
        band: if matches!(chart, Chart::Band | Chart::Heat) { &band } else { &[] },
        heat: heat.then_some(Heat { names: &names, values: scene.values }),
        lanes: &scene.lanes,
        limits: if chart.traits().has_rows() { &[] } else { &limits },
        gaps: &gaps,
        live: true,
        age: "every 1 s",
    };
    let said = EdgeLabels { labels: &labels, unit: "%", joined_as: scene.joined_as, before: &[] };
    svg((wide, tall), theme, |area| {
        charts::draw(area, &frame).expect("SVG text refuses nothing");
        charts::over::draw(area, &frame, scene.at, TO, said).expect("SVG text refuses nothing");
    })
}

/// A series that is always zero.
fn zero(step: i64) -> Reducer {
    let mut r = Reducer::new(step, 1_500);
    (0..=300).for_each(|i| r.push(FROM + i * 1000, 0.0));
    r
}

fn svg(size: (u32, u32), theme: &Theme, draw: impl FnOnce(&charts::Area<SVGBackend>)) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&theme.card.to_rgba()).expect("SVG text refuses nothing");
        draw(&area);
        area.present().expect("SVG text refuses nothing");
    }
    svg
}

fn check(name: &str, draw: impl Fn(&Theme) -> String) {
    for (theme, tone) in [(&DARK, "dark"), (&LIGHT, "light")] {
        let svg = draw(theme);
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
    check("area", |theme| picture(&Scene { chart: Chart::Area, lines: 1, ..Scene::default() }, theme));
}

#[test]
fn a_few_series_are_lines_with_names_and_a_crosshair_over_states() {
    let scene = Scene { lanes: lanes(), at: Some(END - 30_000), tall: 432, ..Scene::default() };
    check("line", |theme| picture(&scene, theme));
}

#[test]
fn lines_that_lie_together_share_a_label_at_their_height() {
    let scene = Scene { joined_as: Some("GPUs"), lines: 8, ..Scene::default() };
    check("line-joined", |theme| picture(&scene, theme));
    let text = picture(&scene, &charts::theme::DARK);
    assert!(text.contains("others") || text.contains("GPUs"), "no label is shared");
}

#[test]
fn many_series_are_a_band_and_a_few_names() {
    check("band", |theme| picture(&Scene { chart: Chart::Band, lines: 2, ..Scene::default() }, theme));
}

#[test]
fn many_series_are_rows_of_their_distance_from_the_median_or_their_values() {
    for (name, values) in [("heat", false), ("heat-values", true)] {
        let scene = Scene { chart: Chart::Heat, lines: 12, values, tall: 300, ..Scene::default() };
        check(name, |theme| picture(&scene, theme));
    }
}

#[test]
fn states_are_rows_of_bars() {
    let scene = Scene { chart: Chart::Lanes, lines: 0, lanes: lanes(), tall: 200, ..Scene::default() };
    check("lanes", |theme| picture(&scene, theme));
}

#[test]
fn a_value_has_a_small_line_that_ends_where_data_end() {
    let points: Vec<(i64, f64)> = (0..60)
        .map(|i| {
            (
                FROM + i * 5_000,
                if (20..28).contains(&i) {
                    f64::NAN
                } else if (40..44).contains(&i) {
                    0.0
                } else {
                    90.0 + (i % 3) as f64
                },
            )
        })
        .collect();
    check("value", |theme| {
        let spark = Spark {
            size: (480, 96),
            css: 2.0,
            line: 1.5,
            theme,
            span: (FROM, FROM + 295_000),
            points: &points,
            hi: 100.0,
        };
        svg((480, 96), theme, |area| value::draw(area, &spark).expect("SVG text refuses nothing"))
    });
}

/// Every kind of chart, each with series, rows of states and a crosshair.
fn kinds() -> [Scene; 6] {
    let of = |chart, lines, lanes| Scene { chart, lines, lanes, at: Some(END - 30_000), ..Scene::default() };
    [
        of(Chart::Area, 1, lanes()),
        of(Chart::Line, 6, lanes()),
        Scene { joined_as: Some("GPUs"), ..of(Chart::Line, 8, Vec::new()) },
        of(Chart::Band, 2, lanes()),
        Scene { values: true, ..of(Chart::Heat, 12, Vec::new()) },
        of(Chart::Lanes, 0, lanes()),
    ]
}

#[test]
fn no_size_and_no_zoom_ends_a_drawing() {
    let sizes: Vec<u32> = (0..=40).chain((41..=200).step_by(7)).chain([139, 140, 4_000]).collect();
    for kind in kinds() {
        for (css, device) in [(0.25, 0.5), (1.0, 1.0), (1.5, 1.0), (4.0, 2.0)] {
            for (i, &wide) in sizes.iter().enumerate() {
                // Each width with three heights, and each height with some width.
                for tall in [sizes[sizes.len() - 1 - i], sizes[(i * 7) % sizes.len()], 148] {
                    picture(&Scene { wide, tall, css, device, lanes: kind.lanes.clone(), ..kind }, &DARK);
                }
            }
        }
    }
}

#[test]
fn a_narrow_chart_gives_its_labels_space_to_the_data() {
    for (name, wide, tall) in [("narrow", 120, 100), ("tiny", 44, 36)] {
        check(name, |theme| {
            picture(&Scene { wide, tall, css: 1.0, at: Some(END - 30_000), ..Scene::default() }, theme)
        });
    }
}

#[test]
fn what_is_hidden_has_no_dot_at_the_crosshair() {
    let circles = |hidden| {
        let scene = Scene { at: Some(END - 30_000), hidden, ..Scene::default() };
        picture(&scene, &DARK).matches("<circle").count()
    };
    // A dot is two circles, and one of the six series has no value.
    assert_eq!((circles(0), circles(3)), (10, 4));
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
