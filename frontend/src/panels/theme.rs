//! The colors of drawings: those of the page's theme, or with forced colors their background and text.

use crate::address::Tone;
use crate::browser::{document, window};
use charts::Theme;
use charts::theme::{self, DARK, LIGHT, RGBAColor};

/// Media query for colors that the user has forced on all pages.
pub const FORCED_COLORS: &str = "(forced-colors: active)";

fn is_forced() -> bool {
    window().match_media(FORCED_COLORS).ok().flatten().is_some_and(|query| query.matches())
}

/// The colors for drawings in this tone.
pub fn theme(tone: Tone) -> &'static Theme {
    let own = if tone == Tone::Dark { &DARK } else { &LIGHT };
    if is_forced() { forced().unwrap_or(own) } else { own }
}

/// A theme on the ground that the browser forces; None where it does not name it.
fn forced() -> Option<&'static Theme> {
    let style = window().get_computed_style(document().body()?.as_ref()).ok()??;
    let color = |name: &str| read(&style.get_property_value(name).ok()?);
    Some(theme::forced(color("background-color")?, color("color")?))
}

/// A color as the browser computes it: `rgb(0, 0, 0)`.
fn read(text: &str) -> Option<RGBAColor> {
    let inner = text.strip_prefix("rgb(")?.strip_suffix(')')?;
    let mut parts = inner.split(',').map(|part| part.trim().parse::<u8>().ok());
    Some(RGBAColor(parts.next()??, parts.next()??, parts.next()??, 1.0))
}
