//! A bitmap of dots in cells: 2 x 4 in Braille, 2 x 2 in quarters of blocks, one in ASCII.

use crate::palette::Signs;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// Dots, and one style for each cell: that of the last dot.
pub struct Canvas {
    signs: Signs,
    cells: (usize, usize),
    dots: Vec<u8>,
    styles: Vec<Style>,
}

impl Canvas {
    /// An empty canvas of `columns` x `rows` cells.
    pub fn new(signs: Signs, columns: u16, rows: u16) -> Self {
        let cells = (usize::from(columns), usize::from(rows));
        Canvas { signs, cells, dots: vec![0; cells.0 * cells.1], styles: vec![Style::new(); cells.0 * cells.1] }
    }

    /// Dots per cell, across and down.
    fn density(&self) -> (usize, usize) {
        match self.signs {
            Signs::Braille => (2, 4),
            Signs::Blocks => (2, 2),
            Signs::Ascii => (1, 1),
        }
    }

    /// Size in dots, across and down.
    pub fn size(&self) -> (i64, i64) {
        let (w, h) = self.density();
        ((self.cells.0 * w) as i64, (self.cells.1 * h) as i64)
    }

    /// Sets a dot; (0, 0) is the lower left one. Dots outside are ignored.
    pub fn dot(&mut self, x: i64, y: i64, style: Style) {
        let ((w, h), (wide, high)) = (self.density(), self.size());
        if !(0..wide).contains(&x) || !(0..high).contains(&y) {
            return;
        }
        let (x, y) = (x as usize, (high - 1 - y) as usize);
        let cell = y / h * self.cells.0 + x / w;
        self.dots[cell] |= 1 << (y % h * w + x % w);
        self.styles[cell] = style;
    }

    /// Sets the dots of a column between two heights.
    pub fn bar(&mut self, x: i64, (a, b): (i64, i64), style: Style) {
        let high = self.size().1;
        (a.min(b).max(0)..=a.max(b).min(high - 1)).for_each(|y| self.dot(x, y, style));
    }

    /// Sets the dots of a line.
    pub fn line(&mut self, (x0, y0): (i64, i64), (x1, y1): (i64, i64), style: Style) {
        let n = (x1 - x0).abs().max((y1 - y0).abs()).max(1);
        // The steps are bounded; a longer line leaves the canvas on both sides.
        let most = 4 * (self.size().0 + self.size().1);
        (0..=n.min(most)).for_each(|i| {
            let at = |a: i64, b: i64| (2 * a * n + 2 * (b - a) * i + n).div_euclid(2 * n);
            self.dot(at(x0, x1), at(y0, y1), style);
        });
    }

    /// Writes the cells that have a dot.
    pub fn write(&self, area: Rect, buffer: &mut Buffer) {
        for (i, dots) in self.dots.iter().enumerate().filter(|(_, dots)| **dots > 0) {
            let (x, y) = (area.x + (i % self.cells.0) as u16, area.y + (i / self.cells.0) as u16);
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.set_char(sign(self.signs, *dots)).set_style(self.styles[i]);
            }
        }
    }
}

/// The sign of these dots; bit 0 is the upper left one, row by row.
fn sign(signs: Signs, dots: u8) -> char {
    match signs {
        Signs::Braille => {
            // Unicode numbers the dots down the left column, then down the right one, and adds the fourth row last.
            const PLACES: [u8; 8] = [0, 3, 1, 4, 2, 5, 6, 7];
            let bits =
                PLACES.iter().enumerate().filter(|(i, _)| dots & 1 << i != 0).fold(0, |bits, (_, at)| bits | 1 << at);
            char::from_u32(0x2800 + u32::from(bits as u8)).unwrap_or(' ')
        }
        Signs::Blocks => {
            const QUARTERS: [char; 16] =
                [' ', '▘', '▝', '▀', '▖', '▌', '▞', '▛', '▗', '▚', '▐', '▜', '▄', '▙', '▟', '█'];
            QUARTERS[usize::from(dots & 15)]
        }
        Signs::Ascii => '*',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(signs: Signs, draw: impl Fn(&mut Canvas)) -> Vec<String> {
        let mut canvas = Canvas::new(signs, 4, 2);
        draw(&mut canvas);
        let area = Rect::new(0, 0, 4, 2);
        let mut buffer = Buffer::empty(area);
        canvas.write(area, &mut buffer);
        (0..2).map(|y| (0..4).map(|x| buffer[(x, y)].symbol()).collect()).collect()
    }

    #[test]
    fn dots_stand_where_they_are_set_in_every_kind_of_signs() {
        let rising = |c: &mut Canvas| {
            let (w, h) = c.size();
            c.line((0, 0), (w - 1, h - 1), Style::new());
        };
        assert_eq!(drawn(Signs::Braille, rising), ["  ⡠⠊", "⡠⠊  "]);
        assert_eq!(drawn(Signs::Blocks, rising), ["  ▄▀", "▄▀  "]);
        assert_eq!(drawn(Signs::Ascii, rising), ["  **", "**  "]);
        assert_eq!(drawn(Signs::Braille, |c| c.bar(1, (0, 99), Style::new())), ["⢸   ", "⢸   "]);
    }

    #[test]
    fn nothing_is_drawn_beyond_the_edges_and_a_line_without_end_ends() {
        let far = |c: &mut Canvas| c.line((-5, -5), (i64::from(i32::MAX), 1), Style::new());
        drawn(Signs::Braille, far);
        assert_eq!(drawn(Signs::Ascii, |c| c.dot(4, 0, Style::new())), ["    ", "    "]);
    }
}
