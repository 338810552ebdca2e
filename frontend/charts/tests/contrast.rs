//! Checks the contrast of every text and mark on every surface, in both themes, computed from the tokens of the
//! stylesheet. It must be at least 4.5:1 for text and 3:1 for graphics (WCAG 2.2).

const SHEET: &str = include_str!("../../../static/style.css");
const THEMES: [&str; 2] = [":root {", ":root[data-theme=\"light\"] {"];

/// The declarations of the block that begins with `start`.
fn block(start: &str) -> &'static str {
    let at = SHEET.find(start).expect("the stylesheet has the block") + start.len();
    let block = &SHEET[at..];
    &block[..block.find('}').expect("a block ends")]
}

/// Red, green and blue of a color token, 0 to 255 each.
fn token(block: &str, name: &str) -> [f64; 3] {
    let at = block.find(&format!("--{name}: #")).unwrap_or_else(|| panic!("--{name} is no opaque color"));
    let hex = &block[at + name.len() + 5..][..6];
    [0, 2, 4].map(|i| f64::from(u8::from_str_radix(&hex[i..i + 2], 16).expect("a color has six digits")))
}

/// Relative luminance as WCAG defines it, 0 to 1.
fn luminance(rgb: [f64; 3]) -> f64 {
    let [r, g, b] = rgb.map(|v| {
        let v = v / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Names of tokens whose contrast on one of the surfaces is below `least`.
fn weak(names: &[&str], surfaces: &[&str], least: f64) -> Vec<String> {
    let mut weak = Vec::new();
    for theme in THEMES.map(|start| (start, block(start))) {
        for surface in surfaces {
            for name in names {
                let found = contrast(token(theme.1, name), token(theme.1, surface));
                if found < least {
                    weak.push(format!("{}: {name} on {surface} is {found:.2}", theme.0));
                }
            }
        }
    }
    weak
}

#[test]
fn black_and_white_are_as_far_apart_as_can_be() {
    assert!((contrast([0.0; 3], [255.0; 3]) - 21.0).abs() < 1e-9);
    // This is the lightest gray that passes on white.
    assert!(contrast([118.0; 3], [255.0; 3]) >= 4.5 && contrast([119.0; 3], [255.0; 3]) < 4.5);
}

#[test]
fn text_can_be_read_on_every_surface() {
    let texts = ["text", "text-2", "text-3"];
    assert_eq!(weak(&texts, &["page", "card", "raised"], 4.5), [""; 0]);
}

#[test]
fn marks_can_be_seen_on_every_surface() {
    let states = ["ok", "warn", "bad", "unknown", "focus", "ink"];
    assert_eq!(weak(&states, &["page", "card", "raised"], 3.0), [""; 0]);
    let series = ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"];
    assert_eq!(weak(&series, &["card"], 3.0), [""; 0]);
}

#[test]
fn who_chose_light_and_whose_system_is_light_see_the_same() {
    let words = |start: &str| block(start).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(":root[data-theme=\"light\"] {"), words(":root:not([data-theme=\"dark\"]) {"));
}
