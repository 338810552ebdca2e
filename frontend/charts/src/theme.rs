//! The colors of the two themes for the drawings. `static/style.css` has the same colors for the page; a test
//! compares both.

pub use plotters::style::RGBAColor;
use std::sync::{Mutex, PoisonError};

/// The colors of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Theme {
    /// Ground on which charts are drawn.
    pub card: RGBAColor,
    /// Color of numbers.
    pub text: RGBAColor,
    /// Color of names.
    pub text_2: RGBAColor,
    /// Color of axes, limits and notes: the faintest text.
    pub text_3: RGBAColor,
    /// Neutral color of single series, medians and sparklines.
    pub ink: RGBAColor,
    /// Color of the horizontal hairlines.
    pub grid: RGBAColor,
    /// Color of the line at zero.
    pub zero: RGBAColor,
    /// Color of tick marks, and of the right edge when it is now.
    pub hair_strong: RGBAColor,
    /// Color of the hatch in gaps.
    pub hatch: RGBAColor,
    /// Color of a warning. A shape and a word always accompany it, because not everybody can distinguish it.
    pub warn: RGBAColor,
    /// Color of a problem worse than a warning. A shape and a word accompany it, too.
    pub bad: RGBAColor,
    /// Color of a state that is no warning.
    pub unknown: RGBAColor,
    /// Color of a series that differs from its peers, the same in lines and maps.
    pub odd: RGBAColor,
    /// Color of a busy device in a map that is like its peers: the background of outliers.
    pub cell: RGBAColor,
    /// Hues of series, in the order of their use.
    pub hues: [RGBAColor; 8],
    /// Colors from the lowest value to the highest. Their lightness rises in even steps, also for the color-blind.
    pub heat: [RGBAColor; 6],
    /// Colors from far above the median, over the median, to far below it.
    pub diverge: [RGBAColor; 5],
}

impl Theme {
    /// The color of a ramp at `share`, 0 to 1; `stops` holds at least two colors.
    pub fn ramp(stops: &[RGBAColor], share: f64) -> RGBAColor {
        let at = share.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
        let k = (at as usize).min(stops.len() - 2);
        let (a, b, f) = (stops[k], stops[k + 1], at - k as f64);
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * f).round() as u8;
        RGBAColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2), 1.0)
    }
}

const fn rgb(hex: u32) -> RGBAColor {
    RGBAColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8, 1.0)
}

const fn white(alpha: f64) -> RGBAColor {
    RGBAColor(255, 255, 255, alpha)
}

const fn night(alpha: f64) -> RGBAColor {
    RGBAColor(15, 23, 34, alpha)
}

/// Colors of the dark theme.
pub const DARK: Theme = Theme {
    card: rgb(0x151a21),
    text: rgb(0xe8ecf1),
    text_2: rgb(0xaeb6c0),
    text_3: rgb(0x858e99),
    ink: rgb(0xa3b4cb),
    grid: white(0.055),
    zero: white(0.16),
    hair_strong: white(0.14),
    hatch: white(0.1),
    warn: rgb(0xf5a524),
    bad: rgb(0xff5d5d),
    unknown: rgb(0x8b949e),
    odd: rgb(0xe0913f),
    cell: rgb(0x3a4757),
    heat: [rgb(0x00204d), rgb(0x31446b), rgb(0x666970), rgb(0x958f78), rgb(0xcab969), rgb(0xffea46)],
    diverge: [rgb(0x4f9fe0), rgb(0x2d4f70), rgb(0x20262e), rgb(0x6d4a26), rgb(0xf09a3e)],
    hues: [
        rgb(0xc58644),
        rgb(0x6cd9f6),
        rgb(0x5c78b1),
        rgb(0xccce38),
        rgb(0x9193ff),
        rgb(0xc44772),
        rgb(0x21a39d),
        rgb(0xb3dcab),
    ],
};

/// Colors of the light theme.
pub const LIGHT: Theme = Theme {
    card: rgb(0xffffff),
    text: rgb(0x14191f),
    text_2: rgb(0x4a545f),
    text_3: rgb(0x68727d),
    ink: rgb(0x44566f),
    grid: night(0.06),
    zero: night(0.22),
    hair_strong: night(0.18),
    hatch: night(0.09),
    warn: rgb(0x9a6700),
    bad: rgb(0xcf222e),
    unknown: rgb(0x6e7781),
    odd: rgb(0xb9590b),
    cell: rgb(0xbdc8d4),
    heat: [rgb(0xffea46), rgb(0xcab969), rgb(0x958f78), rgb(0x666970), rgb(0x31446b), rgb(0x00204d)],
    diverge: [rgb(0x1c6fb5), rgb(0x9cc3e4), rgb(0xeef0f2), rgb(0xe9b988), rgb(0xb9590b)],
    hues: [
        rgb(0x5a380d),
        rgb(0x469ec5),
        rgb(0x0c5189),
        rgb(0x6c7101),
        rgb(0x6d64cf),
        rgb(0xa8385e),
        rgb(0x017e78),
        rgb(0x729865),
    ],
};

/// Themes on backgrounds that the browser forces. They change rarely, so few are made.
static FORCED: Mutex<Vec<&'static Theme>> = Mutex::new(Vec::new());
/// Maximum number of them; beyond it the last one is used for all.
const MAX_FORCED: usize = 16;

/// The theme for a background and a text color that the user has forced on all pages (`forced-colors`).
pub fn forced(ground: RGBAColor, text: RGBAColor) -> &'static Theme {
    let mut known = FORCED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_this = |theme: &&&'static Theme| (theme.card, theme.text) == (ground, text);
    if let Some(theme) = known.iter().find(is_this).or(known.get(MAX_FORCED - 1)) {
        return theme;
    }
    let bright = |color: RGBAColor| u32::from(color.0) * 2 + u32::from(color.1) * 5 + u32::from(color.2);
    // A line that is visible on a dark card is so on a dark ground.
    let base = if bright(ground) < bright(text) { DARK } else { LIGHT };
    let faint = |share| RGBAColor(text.0, text.1, text.2, share);
    let theme = Theme {
        card: ground,
        text,
        text_2: text,
        text_3: text,
        ink: text,
        grid: faint(0.25),
        zero: faint(0.6),
        hair_strong: faint(0.6),
        hatch: faint(0.3),
        ..base
    };
    // Drawings keep their theme for the life of the page.
    let theme: &'static Theme = Box::leak(Box::new(theme));
    known.push(theme);
    theme
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forced_colors_keep_hues_that_are_visible_on_their_ground() {
        let (black, white) = (rgb(0), rgb(0xffffff));
        let night = forced(black, white);
        assert_eq!((night.card, night.text_3, night.odd), (black, white, DARK.odd));
        assert_eq!(forced(white, black).odd, LIGHT.odd);
        assert!(std::ptr::eq(night, forced(black, white)), "it is made once");
    }

    fn css(color: RGBAColor) -> String {
        let RGBAColor(r, g, b, a) = color;
        if a == 1.0 {
            format!("#{r:02x}{g:02x}{b:02x}")
        } else {
            format!("rgba({r}, {g}, {b}, {})", a.to_string().trim_start_matches('0'))
        }
    }

    #[test]
    fn the_stylesheet_says_the_same() {
        let sheet = include_str!("../../../static/style.css");
        for (theme, start) in [(DARK, ":root {"), (LIGHT, ":root[data-theme=\"light\"] {")] {
            let at = sheet.find(start).expect("the stylesheet has both themes");
            let block = &sheet[at..at + sheet[at..].find("\n}").expect("a block ends")];
            let mut tokens = vec![
                ("card", theme.card),
                ("text", theme.text),
                ("text-2", theme.text_2),
                ("text-3", theme.text_3),
                ("ink", theme.ink),
                ("grid", theme.grid),
                ("zero", theme.zero),
                ("hair-strong", theme.hair_strong),
                ("hatch", theme.hatch),
                ("warn", theme.warn),
                ("bad", theme.bad),
                ("unknown", theme.unknown),
                ("odd", theme.odd),
                ("cell", theme.cell),
            ];
            let names: Vec<String> = (0..8).map(|i| format!("g{i}")).collect();
            tokens.extend(names.iter().map(String::as_str).zip(theme.hues));
            for (name, color) in tokens {
                let line = format!("--{name}: {};", css(color));
                assert!(block.contains(&line), "{start} lacks {line}");
            }
            for (name, stops) in [("heat", &theme.heat[..]), ("diverge", &theme.diverge[..])] {
                let line = format!("--{name}: {};", stops.iter().map(|c| css(*c)).collect::<Vec<_>>().join(", "));
                assert!(block.contains(&line), "{start} lacks {line}");
            }
        }
    }
}
