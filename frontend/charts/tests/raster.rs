//! Reducing samples to columns changes no pixel. On a raster with one bit per pixel, the reduced line and a line
//! through every sample give the same picture. Both go through all of the drawing code.

use charts::reduce::Reducer;
use charts::{Chart, Frame, Hue, Line, Measures, axis, theme};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};
use proptest::prelude::*;
use shared::catalog::Range;
use shared::unit::Unit;
use std::collections::BTreeSet;
use std::convert::Infallible;

/// Units in a pixel.
const UNITS: i32 = 4;
const SIZE: (i32, i32) = (300 * UNITS, 120 * UNITS);

/// A backend that keeps the pixels covered by lines, and ignores all other calls.
#[derive(Default)]
struct Raster(BTreeSet<(i32, i32)>);

type Refused = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for &mut Raster {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (SIZE.0 as u32, SIZE.1 as u32)
    }

    fn ensure_prepared(&mut self) -> Refused {
        Ok(())
    }

    fn present(&mut self) -> Refused {
        Ok(())
    }

    fn draw_pixel(&mut self, _: BackendCoord, _: BackendColor) -> Refused {
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(&mut self, _: BackendCoord, _: BackendCoord, _: &S, _: bool) -> Refused {
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, _: &str, _: &T, _: BackendCoord) -> Refused {
        Ok(())
    }

    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        _: &str,
        _: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        Ok((0, 0))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, _: &S) -> Refused {
        let pixels: Vec<_> = path.into_iter().map(|(x, y)| (x.div_euclid(UNITS), y.div_euclid(UNITS))).collect();
        self.0.extend(&pixels);
        for pair in pixels.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let n = (x1 - x0).abs().max((y1 - y0).abs()).max(1);
            let at = |a: i32, b: i32, i: i32| (2 * a * n + 2 * (b - a) * i + n).div_euclid(2 * n);
            self.0.extend((0..=n).map(|i| (at(x0, x1, i), at(y0, y1, i))));
        }
        Ok(())
    }
}

/// Width of the plot in pixels; it has as many columns.
fn pixels() -> i64 {
    let m = Measures::default();
    i64::from(SIZE.0 / UNITS) - (m.left + m.right) as i64
}

fn drawn(samples: &[(i64, f64)], width: i64, step: i64) -> BTreeSet<(i32, i32)> {
    let mut reducer = Reducer::new(width, i64::MAX / 4);
    samples.iter().for_each(|(t, v)| reducer.push(*t, *v));
    let axis = axis::values(Unit::Percent, Range::PERCENT, 0.0, 100.0);
    let frame = Frame {
        chart: Chart::Line,
        size: SIZE,
        css: f64::from(UNITS),
        device: f64::from(UNITS),
        theme: &theme::DARK,
        measures: Measures::default(),
        from: 0,
        to: pixels() * step,
        zone: charts::axis::Zone::UTC,
        along: charts::axis::Along::Time,
        axis: &axis,
        step: width,
        // Samples are as far apart as columns are wide, so that no column is drawn as its mean.
        interval: step,
        lines: &[Line { columns: reducer.columns(), hue: Hue::Of(0), bright: true }],
        band: &[],
        heat: None,
        lanes: &[],
        limits: &[],
        gaps: &[],
        live: false,
        age: "",
    };
    let mut raster = Raster::default();
    charts::draw(&charts::into_area(&mut raster), &frame).expect("a raster refuses nothing");
    raster.0
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn first_smallest_largest_and_last_of_a_column_draw_what_all_samples_draw(
        // Each step is the time since the previous sample, and a value. The time counts quarters of a column, plus 8;
        // many samples thus share a column.
        steps in prop::collection::vec((0i64..14, 0u8..=100), 2..900),
        quarter in 1i64..500,
    ) {
        let (mut t, step) = (0, quarter * 4);
        let samples: Vec<(i64, f64)> =
            steps.iter().map(|(dt, v)| { t += (dt - 8).max(0) * quarter; (t, f64::from(*v)) }).collect();
        let within: Vec<_> = samples.into_iter().filter(|(t, _)| *t < pixels() * step).collect();
        prop_assert_eq!(drawn(&within, 1, step), drawn(&within, step, step));
    }
}
