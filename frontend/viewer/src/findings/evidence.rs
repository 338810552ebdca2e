//! The evidence of a finding: the machines in its charts, and a line for each side of the comparison.

use crate::curves::CurveChart;
use charts::band::quantile;
use shared::finding::Finding;

/// Maximum number of machines in one chart.
const MAX_MACHINES: usize = 4;

/// Text before and after the placeholder of a tag; None without a placeholder.
pub fn sides(tag: &str) -> Option<(&str, &str)> {
    let (before, rest) = tag.split_once('{')?;
    Some((before, rest.split_once('}')?.1))
}

/// The placeholder's value in the name of a series.
pub fn instance<'a>(tag: &str, series: &'a str) -> &'a str {
    let inner = sides(tag).and_then(|(before, after)| series.strip_prefix(before)?.strip_suffix(after));
    inner.unwrap_or_default()
}

/// The machines whose devices are drawn: first those with the problem, then the affected ones.
pub fn machines(finding: &Finding) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let places = finding.subject.iter().chain(&finding.affects).map(|place| &place.source);
    for name in places.chain(finding.evidence.iter().map(|evidence| &evidence.source)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names.truncate(MAX_MACHINES);
    names
}

/// Maximum number of devices of a chart that are distinguished from their peers.
pub const MAX_SUBJECTS: usize = 4;

/// The subjects of a finding on one machine. Charts and tiles mark these devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subjects {
    gpus: Vec<u32>,
    /// Tag and instance of each piece of evidence.
    series: Vec<(String, String)>,
}

impl Subjects {
    /// The subjects of a finding on the machine with this name.
    pub fn from_finding(finding: &Finding, source: &str) -> Self {
        let places = finding.subject.iter().filter(|place| place.source == source);
        let proofs = finding.evidence.iter().filter(|one| one.source == source);
        Subjects {
            gpus: places.flat_map(|place| place.gpus.iter().copied()).collect(),
            series: proofs.map(|one| (one.tag.clone(), one.instance.clone())).collect(),
        }
    }

    /// The tags that prove it on this machine, the strongest first.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.series.iter().map(|(tag, _)| tag.as_str())
    }

    /// Whether the finding is about this device. Where it names GPUs, the evidence may also have their peers, which are
    /// not its subjects.
    pub fn has(&self, tag: &str, instance: &str) -> bool {
        if tag.starts_with("gpu.{i}") && !self.gpus.is_empty() {
            return instance.parse().is_ok_and(|n: u32| self.gpus.contains(&n));
        }
        self.series.iter().any(|(own, at)| own == tag && at == instance)
    }

    /// Positions of the series (tag and instance) that are distinguished from the others; empty where it is about all
    /// of them, or more than a chart can distinguish.
    pub fn among<'a>(&self, all: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<usize> {
        if self.series.is_empty() && self.gpus.is_empty() {
            return Vec::new();
        }
        let (mut count, mut own) = (0, Vec::new());
        for (tag, instance) in all {
            if self.has(tag, instance) {
                own.push(count);
            }
            count += 1;
        }
        if own.len() > MAX_SUBJECTS || own.len() == count { Vec::new() } else { own }
    }
}

/// The mean of the subjects, and the median of their peers, in each column.
pub fn two_lines(chart: &CurveChart) -> (Vec<Option<f64>>, Vec<Option<f64>>) {
    let columns = chart.curves.iter().map(|curve| curve.values.len()).max().unwrap_or(0);
    let at = |column: usize, wanted: bool| {
        let own = chart.curves.iter().enumerate().filter(|(i, _)| chart.subjects.contains(i) == wanted);
        let mut values: Vec<f64> = own.filter_map(|(_, curve)| *curve.values.get(column)?).collect();
        values.sort_unstable_by(f64::total_cmp);
        (!values.is_empty()).then(|| quantile(&values, 0.5))
    };
    ((0..columns).map(|i| at(i, true)).collect(), (0..columns).map(|i| at(i, false)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curves::Curve;

    #[test]
    fn the_device_of_a_series_is_what_stands_in_the_placeholder_of_its_tag() {
        assert_eq!(instance("gpu.{i}.powerWatts", "gpu.12.powerWatts"), "12");
        assert_eq!(instance("disk.{mount}.usagePercent", "disk./a.b.usagePercent"), "/a.b");
        assert_eq!(instance("memory_percent", "memory_percent"), "");
    }

    #[test]
    fn a_finding_about_a_gpu_marks_it_and_never_the_peer_that_proves_it() {
        let about = |gpus: &[u32], series: &[(&str, &str)]| Subjects {
            gpus: gpus.into(),
            series: series.iter().map(|(tag, at)| (tag.to_string(), at.to_string())).collect(),
        };
        let gpus = ["0", "1", "2", "3", "4", "5", "6", "7"];
        let among = |one: &Subjects, tag: &str| one.among(gpus.iter().map(|at| (tag, *at)));
        let slow = about(&[7], &[("gpu.{i}.smClock", "7"), ("gpu.{i}.pipeTensorActive", "0")]);
        assert_eq!(among(&slow, "gpu.{i}.pipeTensorActive"), [7], "GPU 0 is one of those that wait");
        assert_eq!(among(&slow, "gpu.{i}.temp"), [7], "in a chart that proves nothing, too");
        assert_eq!(among(&slow, "disk.{mount}.usagePercent"), [0; 0]);
        assert_eq!(
            among(&about(&[0, 1, 2, 3, 4, 5, 6, 7], &[]), "gpu.{i}.temp"),
            [0; 0],
            "all of them are no exception"
        );
        let full = about(&[], &[("disk.{mount}.usagePercent", "/data")]);
        let mounts = ["/", "/data"].map(|at| ("disk.{mount}.usagePercent", at));
        assert_eq!(full.among(mounts.into_iter()), [1]);
        assert_eq!(slow.tags().collect::<Vec<_>>(), ["gpu.{i}.smClock", "gpu.{i}.pipeTensorActive"]);
    }

    #[test]
    fn both_sides_are_one_line_each() {
        let curve = |values: &[Option<f64>]| Curve { name: String::new(), values: values.into() };
        let curves = vec![curve(&[Some(1.0), None]), curve(&[Some(9.0), Some(7.0)]), curve(&[Some(5.0), None])];
        let chart = CurveChart { curves, subjects: vec![0], ..CurveChart::clone(&CurveChart::nothing()) };
        assert_eq!(two_lines(&chart), (vec![Some(1.0), None], vec![Some(7.0), Some(7.0)]));
    }
}
