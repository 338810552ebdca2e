//! Output of rocm-smi without `--json`: a table (`--csv`) or lines of text. Both are converted to the form of its JSON,
//! one object per card with the same names, so that names are interpreted in one place.

use serde_json::{Map, Value};

/// Maximum number of cards of a machine, including partitions.
const MAX_CARDS: usize = 512;

/// A table: the header names the columns, and the first one is `device`. Unterminated lines are skipped.
pub(super) fn table(text: &str) -> Option<Value> {
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::trim);
    let header: Vec<&str> = lines.find(|line| line.starts_with("device,"))?.split(',').collect();
    let mut cards = Map::new();
    for line in lines.take(MAX_CARDS) {
        let cells: Vec<&str> = line.split(',').collect();
        // A comma in a name would shift the cells after it.
        if cells.len() == header.len() && cells[0].starts_with("card") {
            let card = header.iter().zip(&cells).skip(1).map(|(name, cell)| (name.to_string(), Value::from(*cell)));
            cards.insert(cells[0].to_string(), Value::Object(card.collect()));
        }
    }
    (!cards.is_empty()).then_some(Value::Object(cards))
}

/// Lines like `GPU[0]    : GPU use (%): 0`. Unterminated lines are skipped.
pub(super) fn lines(text: &str) -> Option<Value> {
    let mut cards = Map::new();
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let Some((number, rest)) = line.strip_prefix("GPU[").and_then(|rest| rest.split_once(']')) else { continue };
        let Some((_, said)) = rest.split_once(':') else { continue };
        let Some((key, value)) = said.trim().split_once(": ").filter(|_| number.parse::<u16>().is_ok()) else {
            continue;
        };
        let known = cards.len() < MAX_CARDS || cards.contains_key(&format!("card{number}"));
        // `sclk clock level: S: (137Mhz)` is `"sclk clock speed:": "(137Mhz)"` in the JSON.
        let (key, value) = match key.strip_suffix(" clock level") {
            Some(clock) => (format!("{clock} clock speed:"), value.rsplit(' ').next().unwrap_or("")),
            None => (key.to_string(), value.trim()),
        };
        if let Some(Value::Object(card)) =
            known.then(|| cards.entry(format!("card{number}")).or_insert_with(|| Value::Object(Map::new())))
        {
            card.entry(key).or_insert_with(|| Value::from(value));
        }
    }
    (!cards.is_empty()).then_some(Value::Object(cards))
}

#[cfg(test)]
mod tests {
    use super::super::rocm_smi::gpus;
    use super::super::tool::tests::present_in;
    use super::*;
    use crate::recordings;

    type Form = fn(&str) -> Option<Value>;

    fn present(form: Form, text: &str) -> Vec<(String, f64)> {
        form(text).map(|document| present_in(gpus, &document)).unwrap_or_default()
    }

    /// Checks that a truncated text gives only values of the whole text, except those in `replaced` (a later line
    /// replaces them). With a digit changed, no other tag may appear.
    fn survives(form: Form, text: &str, replaced: &[&str]) {
        let whole = present(form, text);
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(1 + text.len() / 2000) {
            for reading in present(form, &text[..end]) {
                let later = replaced.iter().any(|end| reading.0.ends_with(end));
                assert!(later || whole.contains(&reading), "cut at {end}: {reading:?}");
            }
        }
        let digits: Vec<usize> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
        for &at in digits.iter().step_by(1 + digits.len() / 500) {
            // The card number is part of the tag.
            if text[..at].ends_with("GPU[") || text[..at].ends_with("card") {
                continue;
            }
            for other in ["x", "-", "99999999"] {
                let altered = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                for (tag, _) in present(form, &altered) {
                    assert!(whole.iter().any(|(known, _)| *known == tag), "{tag} appears");
                }
            }
        }
    }

    fn pairs(list: &[(&str, f64)]) -> Vec<(String, f64)> {
        list.iter().map(|(tag, value)| (tag.to_string(), *value)).collect()
    }

    const TABLE: &str = "\
WARNING: low-power state
device,Card Series,GPU use (%),Average Graphics Package Power (W),Max Graphics Package Power (W),sclk clock speed:
card0,Some card,40,50.0,200.0,(1700Mhz)
card3,Some card,N/A,N/A (Secondary die),200.0,(N/A)
card4,A card, with a comma,1,1,1,(1Mhz)
card5,Some card,7,8.0,400.0,
";

    const LINES: &str = "\
======================= ROCm System Management Interface =======================
GPU[0]\t\t: GPU use (%): 40
GPU[0]\t\t: VRAM Total Memory (B): 409600
GPU[0]\t\t: VRAM Total Used Memory (B): 102400
GPU[0]\t\t: sclk clock level: S: (137Mhz)
GPU[0]\t\t: Not supported
GPU[0]\t\t: 0: 500Mhz *
GPU[2]          : Average Graphics Package Power (W): 50.0
GPU[2]          : Max Graphics Package Power (W): 200.0
GPU[3]          : Average Graphics Package Power (W): N/A (Secondary die)
                Primary die shows total power
";

    #[test]
    fn tables_and_lines_of_ours_are_read() {
        let limit = |i: u32| format!("gpu.{i}.enforcedPowerLimitWatts");
        assert_eq!(
            present(table, TABLE),
            pairs(&[
                (&limit(0), 200.0),
                ("gpu.0.gpu", 40.0),
                ("gpu.0.powerPercent", 25.0),
                ("gpu.0.powerWatts", 50.0),
                ("gpu.0.smClock", 1700.0),
                (&limit(5), 400.0),
                ("gpu.5.gpu", 7.0),
                ("gpu.5.powerPercent", 2.0),
                ("gpu.5.powerWatts", 8.0),
            ])
        );
        assert_eq!(
            present(lines, LINES),
            pairs(&[
                ("gpu.0.gpu", 40.0),
                ("gpu.0.memoryAllocated", 25.0),
                ("gpu.0.memoryAllocatedBytes", 102_400.0),
                ("gpu.0.memoryTotalBytes", 409_600.0),
                ("gpu.0.smClock", 137.0),
                (&limit(2), 200.0),
                ("gpu.2.powerPercent", 25.0),
                ("gpu.2.powerWatts", 50.0),
            ])
        );
        survives(table, TABLE, &[]);
        survives(lines, LINES, &[]);
    }

    #[test]
    fn recordings_yield_their_values() {
        let text = recordings::text("amd/rocm-smi-a_mi300x-x4_rocm6.0.txt");
        // The list is from the same output in JSON form, without the clocks.
        let (clocks, listed): (Vec<_>, Vec<_>) =
            present(lines, &text).into_iter().partition(|(tag, _)| tag.ends_with("Clock"));
        recordings::check("amd_rocm-smi_mi300x-x4_rocm6.0_CONVERTED", &listed);
        let shader = |i: u32, megahertz| (format!("gpu.{i}.smClock"), megahertz);
        let memory = |i: u32| (format!("gpu.{i}.memoryClock"), 900.0);
        let wanted = [(0, 137.0), (1, 133.0), (2, 141.0), (3, 132.0)];
        assert_eq!(clocks, wanted.map(|(i, megahertz)| [memory(i), shader(i, megahertz)]).concat());
        // The junction temperature precedes the memory temperature, which replaces it.
        survives(lines, &text, &[".temp"]);
    }

    #[test]
    #[ignore = "reads recordings that are not published; WATCHGLASS_RECORDINGS names their folder"]
    fn with_recordings_tables_of_power_and_of_commas_yield_their_values() {
        let text = recordings::text("amd/rocm-smi-showpower_mi250-x8dies_rocm6.txt");
        let powers = [("gpu.0.powerWatts", 237.0), ("gpu.2.powerWatts", 230.0), ("gpu.4.powerWatts", 220.0)];
        assert_eq!(present(lines, &text), pairs(&[&powers[..], &[("gpu.6.powerWatts", 235.0)]].concat()));
        survives(lines, &text, &[]);
        let text = recordings::text("amd/rocm-smi_rx7900xtx-x4_rocm7.2.3_cut.csv");
        let read = present(table, &text);
        // The recording has three of the four cards: temperature of the memory, power, 27947008 bytes of used memory.
        for (i, temp, power) in [(0, 42.0, 19.0), (1, 58.0, 18.0), (2, 53.0, 19.0)] {
            let own: Vec<_> = read.iter().filter(|(tag, _)| tag.starts_with(&format!("gpu.{i}."))).cloned().collect();
            let own: Vec<(&str, f64)> = own.iter().map(|(tag, value)| (&tag["gpu.0.".len()..], *value)).collect();
            assert_eq!(
                own,
                [
                    ("gpu", 0.0),
                    ("memoryAllocated", 0.11),
                    ("memoryAllocatedBytes", 27_947_008.0),
                    ("memoryReadWriteActivity", 0.0),
                    ("memoryTotalBytes", 25_753_026_560.0),
                    ("powerWatts", power),
                    ("temp", temp),
                ]
            );
        }
        assert_eq!(read.len(), 3 * 7);
        survives(table, &text, &[]);
    }
}
