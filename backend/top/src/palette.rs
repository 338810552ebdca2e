//! Colors: those of the page's themes, as close as this terminal allows.

use charts::theme::{DARK, LIGHT};
use charts::{Hue, Theme};
use ratatui_core::style::{Color, Modifier, Style};

/// Number of colors of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// None, or none are wanted (`NO_COLOR`).
    None,
    /// The 16 standard colors, whose shades a person may have configured.
    Sixteen,
    /// 256 colors: the cube of 6 x 6 x 6, and grays.
    Cube,
    /// 24 bits.
    True,
}

/// The characters that may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// Braille, 2 x 4 dots a cell.
    Braille,
    /// Quarters of blocks, 2 x 2 a cell.
    Blocks,
    /// ASCII alone.
    Ascii,
}

/// Capabilities of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Colors.
    pub depth: Depth,
    /// Signs.
    pub signs: Signs,
    /// Whether its background is light.
    pub light: bool,
}

/// A use of a color.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ink {
    /// Numbers.
    Text,
    /// Words beside numbers.
    Faint,
    /// Warnings.
    Warn,
    /// A series.
    Of(Hue),
    /// The middle of many series.
    Band,
    /// Heat map value from 0 (least) to 1 (most).
    Heat(f64),
}

impl Palette {
    /// Detects the terminal's capabilities from its environment variables. `ascii`: whether a person wants ASCII only.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>, ascii: bool) -> Palette {
        let var = |name: &str| env(name).filter(|text| !text.is_empty());
        let (term, color) = (var("TERM").unwrap_or_default(), var("COLORTERM").unwrap_or_default());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(var).unwrap_or_default().to_lowercase();
        let depth = match () {
            () if var("NO_COLOR").is_some() || term == "dumb" => Depth::None,
            () if ["truecolor", "24bit"].contains(&color.as_str()) || term.ends_with("-direct") => Depth::True,
            () if term.contains("256color") => Depth::Cube,
            () => Depth::Sixteen,
        };
        let signs = match () {
            () if ascii || term == "dumb" || !(locale.contains("utf-8") || locale.contains("utf8")) => Signs::Ascii,
            // The Linux console has a font of 512 signs, none of them Braille.
            () if term == "linux" => Signs::Blocks,
            () => Signs::Braille,
        };
        // Some terminals report the background as one of the 16 colors: 7 and 9 to 15 are light.
        let ground = var("COLORFGBG").and_then(|text| text.rsplit(';').next()?.parse::<u8>().ok());
        Palette { depth, signs, light: ground.is_some_and(|ground| ground == 7 || (9..=15).contains(&ground)) }
    }

    fn theme(self) -> &'static Theme {
        if self.light { &LIGHT } else { &DARK }
    }

    /// The style of a use.
    pub fn style(self, ink: Ink) -> Style {
        let theme = self.theme();
        let plain = Style::new();
        let (rgb, few) = match ink {
            Ink::Text => return plain,
            Ink::Faint if self.depth == Depth::None => return plain,
            Ink::Warn if self.depth == Depth::None => return plain.add_modifier(Modifier::BOLD),
            Ink::Faint => (theme.text_3, Color::DarkGray),
            Ink::Warn => (theme.warn, Color::Yellow),
            Ink::Band => (theme.unknown, Color::DarkGray),
            Ink::Of(hue) => (hue.color(theme), few(hue)),
            Ink::Heat(share) => {
                let few = [Color::Blue, Color::Cyan, Color::Green, Color::Yellow, Color::LightRed];
                (Theme::ramp(&theme.heat[1..], share), few[((share.clamp(0.0, 1.0) * 4.0).round()) as usize])
            }
        };
        let color = match self.depth {
            Depth::None => return plain,
            Depth::Sixteen => few,
            Depth::Cube => Color::Indexed(cube(rgb.0, rgb.1, rgb.2)),
            Depth::True => Color::Rgb(rgb.0, rgb.1, rgb.2),
        };
        plain.fg(color)
    }

    /// A sign, or its ASCII substitute.
    pub fn sign(self, sign: &'static str, ascii: &'static str) -> &'static str {
        if self.signs == Signs::Ascii { ascii } else { sign }
    }

    /// A foreign text, limited to the characters that may be written.
    pub fn text(self, text: &str) -> String {
        let plain = |c: char| match c {
            _ if self.signs != Signs::Ascii && !c.is_control() => c,
            '–' | '—' => '-',
            '▲' => '!',
            '▾' => '-',
            '▸' => '+',
            '·' => '.',
            '…' => '~',
            '°' => '\'',
            '×' => 'x',
            'µ' => 'u',
            _ if c.is_ascii() && !c.is_control() => c,
            _ => '?',
        };
        text.chars().map(plain).collect()
    }
}

/// One of the 16 colors for a series.
fn few(hue: Hue) -> Color {
    const FEW_COLORS: [Color; 8] = [
        Color::Yellow,
        Color::Cyan,
        Color::Blue,
        Color::Green,
        Color::Magenta,
        Color::Red,
        Color::LightBlue,
        Color::LightGreen,
    ];
    match hue {
        Hue::Ink => Color::Cyan,
        Hue::Of(i) => FEW_COLORS[usize::from(i) % 8],
        Hue::Odd(_) => Color::LightRed,
    }
}

/// The nearest color of the cube and its grays.
fn cube(r: u8, g: u8, b: u8) -> u8 {
    const LEVELS: [i32; 6] = [0, 95, 135, 175, 215, 255];
    let level = |v: u8| (0..6).min_by_key(|i| (LEVELS[*i] - i32::from(v)).abs()).unwrap_or(0);
    let far = |c: [i32; 3]| {
        let own = [r, g, b].map(i32::from);
        (0..3).map(|i| (c[i] - own[i]).pow(2)).sum::<i32>()
    };
    let steps = [level(r), level(g), level(b)];
    let gray = ((i32::from(r) + i32::from(g) + i32::from(b)) / 3 - 3).clamp(0, 235) / 10;
    let gray = gray.min(23);
    let (colored, neutral) = (far(steps.map(|i| LEVELS[i])), far([8 + gray * 10; 3]));
    if neutral < colored { (232 + gray) as u8 } else { (16 + 36 * steps[0] + 6 * steps[1] + steps[2]) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette_of(vars: &[(&str, &str)], ascii: bool) -> Palette {
        Palette::from_env(&|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()), ascii)
    }

    #[test]
    fn the_environment_says_what_a_terminal_can_show() {
        let utf = ("LANG", "de_DE.UTF-8");
        let shows = |vars: &[(&str, &str)]| {
            let p = palette_of(vars, false);
            (p.depth, p.signs)
        };
        assert_eq!(shows(&[utf, ("TERM", "xterm"), ("COLORTERM", "truecolor")]), (Depth::True, Signs::Braille));
        assert_eq!(shows(&[utf, ("TERM", "tmux-256color")]), (Depth::Cube, Signs::Braille));
        assert_eq!(shows(&[utf, ("TERM", "linux")]), (Depth::Sixteen, Signs::Blocks));
        assert_eq!(shows(&[utf, ("TERM", "dumb")]), (Depth::None, Signs::Ascii));
        assert_eq!(shows(&[("LANG", "C"), ("TERM", "xterm")]), (Depth::Sixteen, Signs::Ascii));
        assert_eq!(shows(&[utf, ("LC_ALL", "C"), ("TERM", "xterm")]).1, Signs::Ascii, "LC_ALL wins");
        assert_eq!(shows(&[utf, ("TERM", "xterm-256color"), ("NO_COLOR", "1")]), (Depth::None, Signs::Braille));
        assert_eq!(palette_of(&[utf, ("TERM", "xterm")], true).signs, Signs::Ascii);
        assert!(
            palette_of(&[("COLORFGBG", "0;default;15")], false).light
                && !palette_of(&[("COLORFGBG", "15;0")], false).light
        );
    }

    #[test]
    fn a_color_of_the_cube_is_the_nearest() {
        assert_eq!((cube(0, 0, 0), cube(255, 255, 255), cube(255, 0, 0)), (16, 231, 196));
        assert_eq!(cube(128, 128, 128), 244, "a gray is a gray");
    }

    #[test]
    fn without_colors_no_style_has_one() {
        let palette = Palette { depth: Depth::None, signs: Signs::Braille, light: false };
        let inks = [Ink::Text, Ink::Faint, Ink::Warn, Ink::Of(Hue::Of(3)), Ink::Band, Ink::Heat(0.7)];
        assert!(inks.iter().all(|ink| palette.style(*ink).fg.is_none()));
        let ascii = Palette { signs: Signs::Ascii, ..palette };
        assert_eq!(ascii.text("66 °C – ▲ GPU\u{1b}[2J"), "66 'C - ! GPU?[2J");
    }
}
