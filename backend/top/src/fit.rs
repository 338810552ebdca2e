//! Texts in the room that there is.

/// A text of at most `room` letters. A longer one ends at a whole word, because part of a number is another number.
pub fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.into();
    }
    let cut: String = text.chars().take(room.saturating_sub(1)).collect();
    let words = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{}…", words.trim_end_matches([',', ':', ' ']))
}

/// The number and the unit of a tile in at most `room` letters: `5.27 of 5.6 kW`, else `5.27 kW`, else the number alone,
/// else a sign that there is no room. A figure is never cut, because part of it is another figure.
pub fn figure([number, unit]: &[String; 2], room: usize) -> [String; 2] {
    let short = unit.rsplit(' ').next().unwrap_or_default();
    let fits = |unit: &&str| number.chars().count() + unit.chars().count() < room;
    match [unit.as_str(), short].into_iter().find(fits) {
        Some(unit) => [number.clone(), format!(" {unit}")],
        None if number.chars().count() <= room => [number.clone(), String::new()],
        None => ["…".into(), String::new()],
    }
}
