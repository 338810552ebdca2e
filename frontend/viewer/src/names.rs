//! Names and colors of the series of one chart.

use charts::Hue;
use shared::catalog::{Catalog, LABEL, rank};
use shared::series::{SeriesDef, SeriesId};

/// Name and color of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name without the first words that are common to all names of the chart.
    pub short: String,
    /// The full name.
    pub full: String,
    /// Color of the series.
    pub hue: Hue,
}

/// Names and colors of `series`, in the same order.
pub fn names(catalog: &Catalog, defs: &[SeriesDef], series: &[SeriesId]) -> Vec<Name> {
    let of = |id: &SeriesId| defs.get(*id as usize);
    let full: Vec<String> = series.iter().map(|id| of(id).map_or_else(String::new, |d| catalog.label(d))).collect();
    let word = full.first().and_then(|f| f.rfind(' ').map(|i| f[..=i].to_string())).filter(|w| !w.trim().is_empty());
    let common = word.filter(|w| full.len() > 1 && full.iter().all(|f| f.starts_with(w) && f.len() > w.len()));
    let hues = hues(&series.iter().map(|id| of(id).map_or("", |d| d.instance.as_str())).collect::<Vec<_>>());
    let short = |f: &String| f[common.as_ref().map_or(0, String::len)..].to_string();
    full.iter().zip(hues).map(|(f, hue)| Name { short: short(f), full: f.clone(), hue }).collect()
}

/// Colors by instance. A GPU has the same hue in every chart. Instances that are not distinct numbers get hues by
/// position, and two such instances get the two hues that differ most.
fn hues(instances: &[&str]) -> Vec<Hue> {
    let number = |instance: &&str| match instance.strip_prefix(LABEL) {
        Some(label) => rank(label),
        None => instance.parse().ok(),
    };
    let numbers: Option<Vec<u32>> = instances.iter().map(number).collect();
    let distinct = |n: &Vec<u32>| n.iter().enumerate().all(|(i, one)| !n[..i].contains(one));
    match (instances.len(), numbers.filter(distinct)) {
        (0 | 1, _) => vec![Hue::Ink; instances.len()],
        (_, Some(numbers)) => numbers.into_iter().map(|n| Hue::Of((n % 8) as u8)).collect(),
        (2, None) => vec![Hue::Of(1), Hue::Of(0)],
        (n, None) => (0..n).map(|i| Hue::Of(([1, 0, 2, 3, 4, 5, 6, 7][i % 8]) as u8)).collect(),
    }
}

/// Plural noun for the series, such as `GPUs` for `GPU 0` and `GPU 1`. None unless they are at least three devices of
/// one kind that differ only by number.
pub fn peers(names: &[Name]) -> Option<String> {
    let device = |name: &Name| {
        let (word, number) = name.full.rsplit_once(' ')?;
        number.bytes().all(|b| b.is_ascii_digit()).then(|| word.to_string())
    };
    let first = device(names.first()?)?;
    let alike = names.len() > 2 && names.iter().all(|name| device(name).as_ref() == Some(&first));
    alike.then(|| format!("{first}s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_one_kind_are_peers() {
        let names = |all: &[&str]| -> Vec<Name> {
            let name = |full: &&str| Name { short: String::new(), full: full.to_string(), hue: Hue::Ink };
            all.iter().map(name).collect()
        };
        assert_eq!(peers(&names(&["GPU 0", "GPU 1", "GPU 12"])).as_deref(), Some("GPUs"));
        for others in [&["GPU 0", "GPU 1"][..], &["GPU 0", "GPU 1", "Core 2"], &["read", "written", "busy"], &[]] {
            assert_eq!(peers(&names(others)), None, "{others:?}");
        }
    }

    #[test]
    fn a_number_has_its_hue_and_a_pair_the_two_that_differ_most() {
        assert_eq!(hues(&["3", "9"]), [Hue::Of(3), Hue::Of(1)]);
        assert_eq!(hues(&["", ""]), [Hue::Of(1), Hue::Of(0)]);
        assert_eq!(hues(&["0"]), [Hue::Ink]);
        assert_eq!(hues(&["0", "0", "1"])[0], Hue::Of(1));
    }
}
