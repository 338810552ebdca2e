//! Ranks how well a name matches a search.

/// A search word with at most this many letters must match the start of a word: "oom" is in "zoom".
const SHORT_WORD: usize = 3;

/// Rank of a match inside a word: behind all that begin so, and behind what a symptom leads to. "hang" is in "changes".
pub const INSIDE_RANK: usize = 20;

/// Rank of a text for a search: 0 if it begins with it, 1 if a word does, 2 if each search word begins a word, and
/// [`INSIDE_RANK`] if one is only inside. A capital letter in a name begins a word. None if a search word is missing.
/// `typed` is in lower case.
pub fn rank(text: &str, typed: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let begins = |at: usize| {
        let is_capital = text[at..].starts_with(|c: char| c.is_ascii_uppercase());
        let follows = |c: char| if is_capital { c.is_ascii_uppercase() } else { c.is_ascii_alphanumeric() };
        !text[..at].ends_with(follows)
    };
    let begins_word = |word: &str| lower.match_indices(word).any(|(at, _)| begins(at));
    let has = |word: &str| word.len() > SHORT_WORD && lower.contains(word) || begins_word(word);
    if !typed.split_whitespace().all(has) {
        return None;
    }
    match lower.find(typed) {
        Some(0) => Some(0),
        Some(at) if begins(at) => Some(1),
        _ if typed.split_whitespace().all(begins_word) => Some(2),
        _ => Some(INSIDE_RANK),
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

/// Rank of a thing by its name or by further words, which rank behind it; the better one counts.
pub fn rank_with(name: &str, others: &str, typed: &str) -> Option<usize> {
    rank(name, typed).into_iter().chain(rank(others, typed).map(|rank| rank + 1)).min()
}

/// Beginnings of words, and phrases, by which a person may name a symptom, with search words for the charts, findings
/// and actions that show it.
const SYMPTOMS: [(&str, &[&str]); 20] = [
    ("oom", &["out of memory", "memory"]),
    ("out of memory", &["memory"]),
    ("throttl", &["throttle", "slowdown", "clock", "temperature"]),
    ("overheat", &["temperature", "throttle"]),
    ("hot", &["temperature", "throttle"]),
    ("crash", &["training jobs", "ended", "xid"]),
    ("fail", &["training jobs", "ended", "errors"]),
    ("killed", &["training jobs", "out of memory", "ended"]),
    ("died", &["training jobs", "ended", "xid"]),
    ("dead", &["training jobs", "ended", "lost"]),
    ("idl", &["gpu utilization", "idle"]),
    ("unused", &["gpu utilization", "idle"]),
    ("hang", HANG),
    ("hung", HANG),
    ("stuck", HANG),
    ("stall", HANG),
    ("frozen", HANG),
    ("slow", &["differs", "outlier", "straggler", "throttle"]),
    ("lagg", &["outlier", "straggler"]),
    ("full", &["disk", "memory"]),
];

/// Search words for a job that hangs.
const HANG: &[&str] = &["gpu power", "gpu utilization", "hang"];

/// Additional search words for the typed text, the nearest first. `typed` is in lower case. Any word of it may name a
/// symptom: "disk full", "gpu idle", "throttling".
pub fn symptoms(typed: &str) -> impl Iterator<Item = &'static str> {
    let is_begun = |symptom: &str, word: &str| word.len() >= SHORT_WORD && symptom.starts_with(word);
    let names = move |symptom: &str| match symptom.contains(' ') {
        true => typed.contains(symptom) || is_begun(symptom, typed),
        false => typed.split_whitespace().any(|word| word.starts_with(symptom) || is_begun(symptom, word)),
    };
    SYMPTOMS.iter().filter(move |(symptom, _)| names(symptom)).flat_map(|(_, texts)| texts.iter().copied())
}

/// The part of a description that contains the first search word, if the description contains all of them.
pub fn meaning(help: &str, typed: &str) -> Option<String> {
    let word = typed.split_whitespace().next().filter(|word| word.len() > 2)?;
    rank(help, typed).filter(|rank| *rank < INSIDE_RANK)?;
    let part = help.split(['.', ';']).find(|part| part.to_ascii_lowercase().contains(word));
    Some(part.unwrap_or(help).trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::{INSIDE_RANK, meaning, rank, rank_name, rank_with, symptoms};

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
        assert_eq!(texts("oom"), ["out of memory", "memory"]);
        assert_eq!((texts("idl"), texts("o"), texts("gpu")), (vec!["gpu utilization", "idle"], vec![], vec![]));
        assert!(["", "change", "a b"].iter().all(|typed| texts(typed).is_empty()));
        // Its other forms, and beside other words.
        for (word, others) in [
            ("throttle", ["throttling", "throttled", "gpu throttles"]),
            ("idle", ["idling", "gpu idle", "idle gpus"]),
            ("crash", ["crashed", "run crashed", "crashes"]),
            ("hang", ["hanging", "hung", "job is stuck"]),
            ("full", ["disk full", "memory is full", "fully"]),
            ("slow", ["slower", "slow gpu", "why so slow"]),
            ("oom", ["cuda oom", "oom killer", "oomkilled"]),
        ] {
            assert!(!texts(word).is_empty() && others.iter().all(|other| texts(other) == texts(word)), "{word}");
        }
        assert_eq!(texts("cuda out of memory"), ["memory"]);
    }

    #[test]
    fn further_words_count_where_they_fit_better_than_the_name() {
        assert_eq!(rank_with("GPU power", "GPU power, watts", "power"), Some(1));
        assert_eq!(rank_with("Changes in this span", "why it hangs", "hang"), Some(2));
        assert_eq!((rank_with("Kilowatts", "heat", "watts"), rank_with("a", "b", "c")), (Some(INSIDE_RANK), None));
    }

    #[test]
    fn what_begins_so_comes_first_and_each_word_must_be_there() {
        assert_eq!(rank("GPU power", "gpu p"), Some(0));
        assert_eq!(rank("GPU power", "power"), Some(1));
        assert_eq!(rank("Network power", "ower"), Some(INSIDE_RANK));
        assert_eq!(rank("Changes in this span", "hang"), Some(INSIDE_RANK));
        assert_eq!(rank("gpu.{i}.powerWatts", "watts"), Some(1));
        assert_eq!((rank("GPU power", "pu"), rank("rssMB", "mb")), (None, Some(1)));
        assert_eq!((rank("Zoom in", "oom"), rank("Zoom out, oom", "oom")), (None, Some(2)), "a short word begins one");
        assert_eq!(rank("GPU power", "power gpu"), Some(2));
        assert_eq!(rank("GPU power", "power disk"), None);
        assert_eq!(rank("watchglass_gpu_power_watts{gpu}", "gpu_power"), Some(1));
    }
}
