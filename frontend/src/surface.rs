//! What the drawings draw on: the browser's canvas, or a text of SVG that asks the canvas for the widths of texts alone.
//! Both are one type, so that every drawing is in the page once.

use charts::canvas::Surface;
use charts::svg::Svg;
use web_sys::CanvasRenderingContext2d;

/// A canvas and the family of its font.
pub struct CanvasSurface {
    /// Its context.
    pub context: CanvasRenderingContext2d,
    /// `font-family` of the page.
    pub family: String,
    /// Where strokes and words go in place of the canvas.
    pub svg: Option<Svg>,
}

fn rgba((r, g, b, a): (u8, u8, u8, f64)) -> String {
    // Opacity in thousandths: integers keep the formatting of floats out of the path that runs for each shape.
    format!("rgba({r},{g},{b},.{:03})", ((a * 1000.0).round() as u32).min(999))
}

fn css(color: (u8, u8, u8, f64)) -> String {
    let (r, g, b, a) = color;
    if a >= 0.9995 { format!("rgb({r},{g},{b})") } else { rgba(color) }
}

impl CanvasSurface {
    fn trace(&self, points: &[f32]) {
        self.context.begin_path();
        for p in points.chunks_exact(2) {
            // A line to nowhere begins the path.
            self.context.line_to(f64::from(p[0]), f64::from(p[1]));
        }
    }
}

impl Surface for CanvasSurface {
    fn set_fill(&mut self, color: (u8, u8, u8, f64)) {
        if let Some(svg) = &mut self.svg {
            return svg.set_fill(color);
        }
        self.context.set_fill_style_str(&css(color));
    }

    fn set_stroke(&mut self, color: (u8, u8, u8, f64), width: f32) {
        if let Some(svg) = &mut self.svg {
            return svg.set_stroke(color, width);
        }
        self.context.set_stroke_style_str(&css(color));
        self.context.set_line_width(f64::from(width));
        self.context.set_line_join("bevel");
    }

    fn set_font(&mut self, size: f32, bold: bool) {
        if let Some(svg) = &mut self.svg {
            svg.set_font(size, bold);
        }
        let weight = if bold { 500 } else { 400 };
        let tenths = (size * 10.0).round() as u32;
        self.context.set_font(&format!("{weight} {}.{}px {}", tenths / 10, tenths % 10, self.family));
        self.context.set_text_baseline("middle");
    }

    fn in_pieces(&self) -> bool {
        self.svg.is_none()
    }

    fn polylines(&mut self, points: &[f32], ends: &[usize]) {
        if let Some(svg) = &mut self.svg {
            return svg.polylines(points, ends);
        }
        self.context.begin_path();
        let mut start = 0;
        for &end in ends {
            for (i, p) in points[start..end].chunks_exact(2).enumerate() {
                let (x, y) = (f64::from(p[0]), f64::from(p[1]));
                if i == 0 { self.context.move_to(x, y) } else { self.context.line_to(x, y) }
            }
            start = end;
        }
        self.context.stroke();
    }

    fn polygon(&mut self, points: &[f32]) {
        if let Some(svg) = &mut self.svg {
            return svg.polygon(points);
        }
        self.trace(points);
        self.context.fill();
    }

    fn rect(&mut self, x: f32, y: f32, width: f32, height: f32) {
        if let Some(svg) = &mut self.svg {
            return svg.rect(x, y, width, height);
        }
        self.context.fill_rect(f64::from(x), f64::from(y), f64::from(width), f64::from(height));
    }

    fn disc(&mut self, x: f32, y: f32, radius: f32) {
        if let Some(svg) = &mut self.svg {
            return svg.disc(x, y, radius);
        }
        self.context.begin_path();
        // The radius is never negative, which is the only refusal there is.
        let _ = self.context.arc(f64::from(x), f64::from(y), f64::from(radius), 0.0, std::f64::consts::TAU);
        self.context.fill();
    }

    fn text(&mut self, text: &str, x: f32, y: f32, align: u8) {
        if let Some(svg) = &mut self.svg {
            return svg.text(text, x, y, align);
        }
        self.context.set_text_align(["left", "center", "right"][usize::from(align.min(2))]);
        // Half a pixel down: the middle of digits lies above the middle of the em box. A canvas refuses no text.
        let _ = self.context.fill_text(text, f64::from(x), f64::from(y) + 0.5);
    }

    fn measure(&mut self, text: &str) -> f32 {
        self.context.measure_text(text).map_or(0.0, |m| m.width() as f32)
    }
}
