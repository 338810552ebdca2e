//! Sizes as people type them: `500MiB`, `2GiB`.

use super::{GIB, KIB, MIB, TIB, Unit, text};

/// The units of typed sizes, with their bytes; if several leave a whole number, the first is used.
const UNITS: [(&str, u64); 6] = [
    ("TiB", TIB as u64),
    ("GiB", GIB as u64),
    ("MiB", MIB as u64),
    ("KiB", KIB as u64),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
];

/// A size for people: `64 KiB`; bytes.
pub fn size(bytes: u64) -> String {
    text(bytes as f64, Unit::Bytes)
}

/// A size in the form in which it is typed and parsed; bytes. Sizes that are no multiple of a unit are cut to whole
/// KiB.
pub fn typed(bytes: u64) -> String {
    let exact = UNITS.iter().find(|(_, size)| bytes.is_multiple_of(*size));
    let (unit, size) = exact.unwrap_or(&UNITS[3]);
    format!("{}{unit}", bytes / size)
}

/// Parses a whole number with its unit, in bytes; None for other text, and for numbers too large for 64 bits.
pub fn read(text: &str) -> Option<u64> {
    let (digits, size) = UNITS.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)))?;
    digits.trim().parse::<u64>().ok()?.checked_mul(*size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_written_as_it_is_read() {
        for text in ["500MiB", "2GiB", "3TiB", "17KiB", "5MB"] {
            assert_eq!(read(text).map(typed).as_deref(), Some(text));
        }
        let bytes = read("2GB");
        assert_eq!((bytes, bytes.map(typed).as_deref().and_then(read)), (Some(2_000_000_000), bytes));
        assert_eq!(read("1024 MiB").map(typed).as_deref(), Some("1GiB"));
        for wrong in ["", "5", "MiB", "-1MiB", "1.5GiB", "99999999999TiB", "1 mib"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!([size(64 << 10), size(8 << 20)], ["64 KiB", "8 MiB"]);
    }
}
