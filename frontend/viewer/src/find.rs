//! Ranks how well a name matches a search.

/// A search word with at most this many letters must match the start of a word: "oom" is in "zoom".
const SHORT_WORD: usize = 3;

/// Rank of a text for a search: 0 if it begins with it, 1 if a word does, 2 if the letters are inside. None if a search
/// word is missing. `typed` is in lower case.
pub fn rank(text: &str, typed: &str) -> Option<usize> {
    let text = text.to_ascii_lowercase();
    let begins = |at: usize| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
    let has = |word: &str| text.match_indices(word).any(|(at, _)| word.len() > SHORT_WORD || begins(at));
    if !typed.split_whitespace().all(has) {
        return None;
    }
    match text.find(typed) {
        Some(0) => Some(0),
        Some(at) if begins(at) => Some(1),
        _ => Some(2),
    }
}

/// Rank of the name of a metric. It may be typed without its numbers, with those of one device, or in the form of W&B:
/// `gpu.power` and `system.gpu.0.powerWatts` are `gpu.{i}.powerWatts`.
pub fn rank_name(name: &str, typed: &str) -> Option<usize> {
    let bare = |name: &str| {
        let parts = name.strip_prefix("system.").unwrap_or(name).split('.');
        let words = parts.filter(|part| !part.starts_with('{') && !part.bytes().all(|c| c.is_ascii_digit()));
        words.collect::<Vec<_>>().join(".")
    };
    let wanted = bare(typed);
    rank(name, typed).or_else(|| rank(&bare(name), &wanted).filter(|_| !wanted.is_empty()))
}

/// Symptoms that a person may type, with search words for the charts and actions that show them.
const SYMPTOMS: [(&str, &[&str]); 10] = [
    ("oom", &["out of memory", "memory"]),
    ("out of memory", &["memory"]),
    ("throttle", &["slowdown", "clock", "temperature"]),
    ("crash", &["training jobs", "xid"]),
    ("fail", &["training jobs", "errors"]),
    ("idle", &["gpu utilization"]),
    ("hang", &["gpu power", "gpu utilization"]),
    ("stuck", &["gpu power", "gpu utilization"]),
    ("slow", &["differs", "outlier", "straggler"]),
    ("full", &["disk", "memory"]),
];

/// Additional search words for the typed text, the nearest first. `typed` is in lower case.
pub fn symptoms(typed: &str) -> impl Iterator<Item = &'static str> {
    let meant = SYMPTOMS
        .iter()
        .filter(move |(word, _)| typed.len() >= SHORT_WORD && word.starts_with(typed) || typed.starts_with(word));
    meant.flat_map(|(_, texts)| texts.iter().copied())
}

/// The part of a description that contains the first search word, if the description contains all of them.
pub fn meaning(help: &str, typed: &str) -> Option<String> {
    let word = typed.split_whitespace().next().filter(|word| word.len() > 2)?;
    rank(help, typed)?;
    let part = help.split(['.', ';']).find(|part| part.to_ascii_lowercase().contains(word));
    Some(part.unwrap_or(help).trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::{meaning, rank, rank_name, symptoms};

    #[test]
    fn of_a_description_the_part_is_shown_in_which_the_word_stands() {
        let help = "Share of time. NVML GPM SM utilization; DCGM field 1002.";
        assert_eq!(meaning(help, "dcgm").as_deref(), Some("DCGM field 1002"));
        assert_eq!(meaning(help, "nvml sm").as_deref(), Some("NVML GPM SM utilization"));
        assert_eq!((meaning(help, "sm"), meaning(help, "dcgm rocm")), (None, None));
    }

    #[test]
    fn a_metric_is_found_without_its_numbers_or_with_them() {
        let power = "gpu.{i}.powerWatts";
        assert_eq!(rank_name(power, "gpu.power"), Some(0));
        assert_eq!(rank_name(power, "system.gpu.0.powerwatts"), Some(0));
        assert_eq!(rank_name(power, "powerwatts"), Some(1));
        assert_eq!(rank_name("watchglass_gpu_power_watts{gpu}", "gpu_power"), Some(1));
        assert_eq!((rank_name(power, "14.5"), rank_name(power, "0"), rank_name(power, "gpu.temp")), (None, None, None));
    }

    #[test]
    fn a_symptom_leads_to_what_shows_it() {
        let texts = |typed: &str| symptoms(typed).collect::<Vec<_>>();
        assert_eq!(
            (texts("oom"), texts("throttled")),
            (vec!["out of memory", "memory"], vec!["slowdown", "clock", "temperature"])
        );
        assert_eq!(
            (texts("idl"), texts("gpu"), texts("o"), texts("")),
            (vec!["gpu utilization"], vec![], vec![], vec![])
        );
    }

    #[test]
    fn what_begins_so_comes_first_and_each_word_must_be_there() {
        assert_eq!(rank("GPU power", "gpu p"), Some(0));
        assert_eq!(rank("GPU power", "power"), Some(1));
        assert_eq!(rank("Network power", "ower"), Some(2));
        assert_eq!((rank("Zoom in", "oom"), rank("Zoom out, oom", "oom")), (None, Some(2)), "a short word begins one");
        assert_eq!(rank("GPU power", "power gpu"), Some(2));
        assert_eq!(rank("GPU power", "power disk"), None);
        assert_eq!(rank("watchglass_gpu_power_watts{gpu}", "gpu_power"), Some(1));
    }
}
