//! Texts of the pages of people and machines: browsers, labels.

/// Browser and system of a user agent, in two words.
pub fn browser_of(agent: &str) -> String {
    const BROWSERS: [(&str, &str); 5] =
        [("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrom", "Chrome"), ("Safari/", "Safari")];
    const SYSTEMS: [(&str, &str); 5] =
        [("Android", "Android"), ("iPhone", "iPhone"), ("Windows", "Windows"), ("Mac OS", "macOS"), ("Linux", "Linux")];
    let find =
        |all: [(&str, &'static str); 5]| all.into_iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| name);
    match (find(BROWSERS), find(SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(one), None) | (None, Some(one)) => one.into(),
        (None, None) => agent.chars().take(24).collect(),
    }
}

/// Typed labels: `rack=r1 room=2`. None if a word is no label.
pub fn labels(typed: &str) -> Option<Vec<(String, String)>> {
    let word = |word: &str| {
        let (key, value) = word.split_once(['=', ':'])?;
        (!key.is_empty() && !value.is_empty()).then(|| (key.to_string(), value.to_string()))
    };
    typed.split([' ', ',']).filter(|word| !word.is_empty()).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_told_in_two_words() {
        let chrome =
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Safari/537.36";
        assert_eq!(browser_of(chrome), "Chrome on Linux");
        let safari = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Safari/604.1";
        assert_eq!(browser_of(safari), "Safari on iPhone");
        assert_eq!(browser_of("curl/8.1"), "curl/8.1");
    }

    #[test]
    fn labels_are_read_as_people_write_them() {
        let two = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(labels("rack=r1  room:2,site=b"), Some(vec![two("rack", "r1"), two("room", "2"), two("site", "b")]));
        assert_eq!(labels(""), Some(vec![]), "no label is left");
        assert_eq!(labels("rack"), None);
        assert_eq!(labels("=r1"), None);
    }
}
