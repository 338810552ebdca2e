//! Writes a picture as SVG text. It has the same calls as a browser's canvas ([`Surface`](crate::canvas::Surface)), so
//! that a saved picture looks like the page. It cannot measure texts; the caller does that.

use std::fmt::Write;

/// Red, green and blue from 0 to 255, and opacity from 0 to 1.
type Color = (u8, u8, u8, f64);

/// An SVG picture that is being written.
#[derive(Clone, Debug)]
pub struct Svg {
    text: String,
    fill: String,
    stroke: String,
    font: String,
}

impl Svg {
    /// Begins an empty picture of a size in pixels; `family` is the CSS font family of its texts.
    pub fn new((width, height): (u32, u32), family: &str) -> Self {
        let mut text = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family=""#
        );
        escape(&mut text, family);
        text += "\" dominant-baseline=\"central\">\n";
        Svg { text, fill: String::new(), stroke: String::new(), font: String::new() }
    }

    /// Ends the picture and returns its text.
    pub fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }

    /// Sets the fill color of shapes and texts.
    pub fn set_fill(&mut self, color: Color) {
        self.fill = paint("fill", color);
    }

    /// Sets the color of lines, and their width in pixels.
    pub fn set_stroke(&mut self, color: Color, width: f32) {
        self.stroke = format!("{} stroke-width=\"{}\"", paint("stroke", color), Length(width));
    }

    /// Sets the size of texts in pixels, and whether they are bold.
    pub fn set_font(&mut self, size: f32, bold: bool) {
        let weight = if bold { " font-weight=\"500\"" } else { "" };
        self.font = format!("font-size=\"{}\"{weight}", Length(size));
    }

    /// Draws lines in one stroke. `points` holds x and y in turn; `ends` holds the index in `points` at which each line
    /// ends.
    pub fn polylines(&mut self, points: &[f32], ends: &[usize]) {
        self.text += "<path d=\"";
        let mut start = 0;
        for &end in ends {
            self.points(&points[start..end]);
            start = end;
        }
        self.end(format_args!("\" fill=\"none\" {} stroke-linejoin=\"bevel\"/>", self.stroke.clone()));
    }

    /// Fills a shape; `points` holds x and y of its corners in turn.
    pub fn polygon(&mut self, points: &[f32]) {
        self.text += "<path d=\"";
        self.points(points);
        self.end(format_args!("Z\" {}/>", self.fill.clone()));
    }

    /// Fills a rectangle, given by its left upper corner and its size.
    pub fn rect(&mut self, x: f32, y: f32, width: f32, height: f32) {
        let [x, y, width, height] = [x, y, width, height].map(Length);
        let fill = self.fill.clone();
        self.end(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {fill}/>"));
    }

    /// Fills a disc around the point (`x`, `y`).
    pub fn disc(&mut self, x: f32, y: f32, radius: f32) {
        let ([x, y, r], fill) = ([x, y, radius].map(Length), self.fill.clone());
        self.end(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {fill}/>"));
    }

    /// Writes a text whose middle is at height `y`. `align` is the part of the text at `x`: 0 left end, 1 middle, 2
    /// right end.
    pub fn text(&mut self, text: &str, x: f32, y: f32, align: u8) {
        let anchor = ["", " text-anchor=\"middle\"", " text-anchor=\"end\""][usize::from(align.min(2))];
        let head = format!("<text x=\"{}\" y=\"{}\" {} {}{anchor}>", Length(x), Length(y), self.font, self.fill);
        self.text += &head;
        escape(&mut self.text, text);
        self.end(format_args!("</text>"));
    }

    fn points(&mut self, points: &[f32]) {
        for (i, p) in points.chunks_exact(2).enumerate() {
            // Writing to a string never fails.
            let _ = write!(self.text, "{}{} {}", if i == 0 { 'M' } else { 'L' }, Length(p[0]), Length(p[1]));
        }
    }

    fn end(&mut self, words: std::fmt::Arguments) {
        let _ = self.text.write_fmt(words);
        self.text.push('\n');
    }
}

/// A length that is written with up to two decimals. It uses integers, so that the page needs no code to format floats.
struct Length(f32);

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n = (self.0 * 100.0).round() as i32;
        let sign = if n < 0 { "-" } else { "" };
        let (whole, rest) = (n.unsigned_abs() / 100, n.unsigned_abs() % 100);
        match rest {
            0 => write!(f, "{sign}{whole}"),
            _ if rest % 10 == 0 => write!(f, "{sign}{whole}.{}", rest / 10),
            _ => write!(f, "{sign}{whole}.{rest:02}"),
        }
    }
}

fn paint(name: &str, (r, g, b, a): Color) -> String {
    let color = format!("{name}=\"#{r:02x}{g:02x}{b:02x}\"");
    if a >= 0.9995 { color } else { format!("{color} {name}-opacity=\".{:03}\"", (a * 1000.0).round() as u32) }
}

/// Appends a text with its markup escaped, because names come from outside. Characters that XML forbids are left out or
/// become spaces.
fn escape(into: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => *into += "&amp;",
            '<' => *into += "&lt;",
            '>' => *into += "&gt;",
            '"' => *into += "&quot;",
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => into.push(' '),
            c => into.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_one_element() {
        let mut svg = Svg::new((100, 50), "Inter, \"Noto Sans\"");
        svg.set_fill((255, 0, 16, 1.0));
        svg.set_stroke((1, 2, 3, 0.055), 1.5);
        svg.set_font(12.0, true);
        svg.polylines(&[0.0, 0.25, 10.5, -3.0, 1.0, 1.0, 2.0, 2.0], &[4, 8]);
        svg.polygon(&[0.0, 0.0, 4.0, 0.0, 0.0, 4.0]);
        svg.rect(1.0, 2.0, 3.0, 4.75);
        svg.disc(5.0, 6.0, 2.5);
        svg.text("a<b & \"c\"\u{7}", 9.0, 8.0, 2);
        let lines: Vec<String> = svg.finish().lines().map(str::to_string).collect();
        assert_eq!(
            lines,
            [
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50" viewBox="0 0 100 50" font-family="Inter, &quot;Noto Sans&quot;" dominant-baseline="central">"#,
                r##"<path d="M0 0.25L10.5 -3M1 1L2 2" fill="none" stroke="#010203" stroke-opacity=".055" stroke-width="1.5" stroke-linejoin="bevel"/>"##,
                r##"<path d="M0 0L4 0L0 4Z" fill="#ff0010"/>"##,
                r##"<rect x="1" y="2" width="3" height="4.75" fill="#ff0010"/>"##,
                r##"<circle cx="5" cy="6" r="2.5" fill="#ff0010"/>"##,
                r##"<text x="9" y="8" font-size="12" font-weight="500" fill="#ff0010" text-anchor="end">a&lt;b &amp; &quot;c&quot; </text>"##,
                "</svg>",
            ]
        );
    }
}
