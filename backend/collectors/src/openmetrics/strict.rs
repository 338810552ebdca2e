//! Checks the rules of OpenMetrics 1.0. By the specification, a page with one invalid part is invalid as a whole.
//!
//! A page is checked before it is parsed, line by line. Only a hash of 8 bytes is stored for each name and, within a
//! family, for each set of labels.
//! within a family, for each set of labels.

use super::key::{self, Piece};
use super::strict_family::{Fault, StrictFamily, StrictSample};
use super::text::{self, Bad, Type};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Maximum number of samples of a page; it limits the memory of the check.
pub(super) const MAX_SAMPLES: usize = 1_000_000;

/// Suffixes of the samples in a family of this type.
fn endings(kind: Option<Type>) -> &'static [&'static str] {
    match kind {
        Some(Type::Counter) => &["_total", "_created"],
        Some(Type::Summary) => &["", "_count", "_sum", "_created"],
        Some(Type::Histogram) => &["_count", "_sum", "_bucket", "_created"],
        Some(Type::GaugeHistogram) => &["_gcount", "_gsum", "_bucket"],
        Some(Type::Info) => &["_info"],
        _ => &[""],
    }
}

/// Checks a page.
///
/// # Errors
/// The page ends before its `# EOF`; or the first line that breaks a rule, with that rule.
pub(super) fn check(page: &str) -> Result<(), Bad> {
    text::whole(page, true)?;
    let mut pages = Pages { family: None, names: HashSet::new(), hasher: RandomState::new(), samples: 0 };
    let (mut number, mut ended) = (0, false);
    for line in page.strip_suffix('\n').unwrap_or(page).split('\n') {
        number += 1;
        let found = match line {
            _ if ended => Err("something stands behind `# EOF`"),
            "# EOF" => {
                ended = true;
                pages.close()
            }
            line if line.starts_with('#') => pages.about(line),
            line => pages.sample(line),
        };
        found.map_err(|fault| Bad::Rule(number, fault))?;
    }
    if ended { Ok(()) } else { Err(Bad::Truncated) }
}

struct Pages {
    family: Option<StrictFamily>,
    /// Hashes of the used names of families and of their samples.
    names: HashSet<u64>,
    hasher: RandomState,
    samples: usize,
}

impl Pages {
    fn about(&mut self, line: &str) -> Result<(), Fault> {
        let mut words = line.splitn(3, ' ');
        let (Some("#"), Some(word), Some(rest)) = (words.next(), words.next(), words.next()) else {
            return Err("a comment that is no HELP, TYPE or UNIT");
        };
        let quoted = rest.starts_with('"');
        let (name, said) = match quoted {
            true => key::family(rest).ok_or("the name's closing quote is missing")?,
            false => {
                rest.split_once(' ').map(|(name, said)| (name.into(), said)).ok_or("nothing is said of the name")?
            }
        };
        if !quoted && key::key(&name) != Some(name.len()) {
            return Err("no name of a metric");
        }
        if self.family.as_ref().is_none_or(|family| family.name != *name) {
            self.close()?;
            self.family = Some(StrictFamily::new(name.into_owned(), endings(None)));
        }
        let Some(family) = &mut self.family else { return Ok(()) };
        match word {
            _ if family.has_samples() => Err("metadata behind the samples of its family"),
            "HELP" if std::mem::replace(&mut family.helped, true) => Err("a second HELP of the family"),
            "HELP" => Ok(()),
            "TYPE" if std::mem::replace(&mut family.typed, true) => Err("a second TYPE of the family"),
            "TYPE" => {
                family.kind = Type::read(said);
                family.endings = endings(family.kind);
                match family.kind.is_some() || said == "unknown" {
                    true => Ok(()),
                    false => Err("no type of OpenMetrics"),
                }
            }
            "UNIT" if family.unit.is_some() => Err("a second UNIT of the family"),
            "UNIT" => {
                family.unit = Some(said.to_string());
                Ok(())
            }
            _ => Err("a comment that is no HELP, TYPE or UNIT"),
        }
    }

    fn sample(&mut self, line: &str) -> Result<(), Fault> {
        self.samples += 1;
        if self.samples > MAX_SAMPLES {
            return Err("more than 1,000,000 samples");
        }
        let end = key::key(line).ok_or("no sample")?;
        let (name, labels, odd) = key::parts(&line[..end]);
        let labels_printed = line[..end].split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}').trim());
        if labels_printed.starts_with(',') || labels_printed.ends_with(',') {
            return Err("a comma that is not between two labels");
        }
        if odd.is_some() {
            return Err("a name or a label that is there twice, is empty, or begins with `__`");
        }
        let behind = line[end..].strip_prefix(' ').ok_or("no blank in front of the value")?;
        let native = behind.starts_with('{');
        let fits = |family: &StrictFamily| match native {
            true => family.kind == Some(Type::Histogram),
            false => name.strip_prefix(&*family.name).is_some_and(|ending| family.endings.contains(&ending)),
        };
        if !self.family.as_ref().is_some_and(fits) {
            self.close()?;
            self.family = Some(StrictFamily::new(name.to_string(), endings(None)));
        }
        let hasher = &self.hasher;
        let Some(family) = &mut self.family else { return Ok(()) };
        if native {
            return family.native(&name, behind);
        }
        let (value, stamp, exemplar) = tail(behind)?;
        family.take(&StrictSample { name: &name, labels: &labels, value, stamp, exemplar }, hasher)
    }

    /// Ends the family.
    fn close(&mut self) -> Result<(), Fault> {
        let Some(mut family) = self.family.take() else { return Ok(()) };
        let own = family.endings.iter().copied().filter(|ending| !ending.is_empty());
        for ending in own.chain([""]) {
            if !self.names.insert(self.hasher.hash_one(format!("{}{ending}", family.name))) {
                return Err("a name that another family above has or claims");
            }
        }
        family.close()
    }
}

/// Value, timestamp, and whether there is an exemplar.
fn tail(text: &str) -> Result<(f64, Option<f64>, bool), Fault> {
    let (printed, rest) = text.split_once(' ').map_or((text, None), |(value, rest)| (value, Some(rest)));
    let value = printed.parse().map_err(|_| "no number")?;
    let Some(rest) = rest else { return Ok((value, None, false)) };
    if rest.starts_with('#') {
        return exemplar(rest).map(|()| (value, None, true));
    }
    let (stamp, rest) = rest.split_once(' ').map_or((rest, None), |(stamp, rest)| (stamp, Some(rest)));
    let stamp = time(stamp)?;
    match rest {
        Some(rest) => exemplar(rest).map(|()| (value, Some(stamp), true)),
        None => Ok((value, Some(stamp), false)),
    }
}

fn time(text: &str) -> Result<f64, Fault> {
    text.parse().ok().filter(|time: &f64| time.is_finite()).ok_or("no time stamp")
}

/// Maximum number of characters in the labels of an exemplar.
const MAX_EXEMPLAR_CHARS: usize = 128;

fn exemplar(text: &str) -> Result<(), Fault> {
    const FAULT: Fault = "an exemplar that is none";
    let labels = text.strip_prefix("# ").filter(|rest| rest.starts_with('{')).ok_or(FAULT)?;
    let mut length = 0;
    let end = key::walk(labels, |piece| match piece {
        Piece::Label { name, value, .. } => length += name.chars().count() + key::unescape(value).chars().count(),
        Piece::Name { .. } => length = usize::MAX / 2,
    });
    let rest = labels[end.ok_or(FAULT)?..].strip_prefix(' ').ok_or(FAULT)?;
    if length > MAX_EXEMPLAR_CHARS {
        return Err("an exemplar with more than 128 characters");
    }
    let (value, stamp) = rest.split_once(' ').map_or((rest, None), |(value, stamp)| (value, Some(stamp)));
    value.parse::<f64>().map_err(|_| FAULT)?;
    stamp.map_or(Ok(()), |stamp| time(stamp).map(drop))
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
