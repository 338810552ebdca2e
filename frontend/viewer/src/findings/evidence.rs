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

/// Whether a finding is about this device.
pub fn is_subject(finding: &Finding, tag: &str, source: &str, instance: &str) -> bool {
    let shown = |e: &shared::finding::Evidence| e.tag == tag && e.source == source && e.instance == instance;
    let held = |place: &shared::finding::Place| {
        let gpu = instance.parse().is_ok_and(|n: u32| place.gpus.contains(&n));
        place.source == source && tag.starts_with("gpu.{i}") && gpu
    };
    finding.evidence.iter().any(shown) || finding.subject.iter().any(held)
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
    fn both_sides_are_one_line_each() {
        let curve = |values: &[Option<f64>]| Curve { name: String::new(), values: values.into() };
        let curves = vec![curve(&[Some(1.0), None]), curve(&[Some(9.0), Some(7.0)]), curve(&[Some(5.0), None])];
        let chart = CurveChart { curves, subjects: vec![0], ..CurveChart::clone(&CurveChart::nothing()) };
        assert_eq!(two_lines(&chart), (vec![Some(1.0), None], vec![Some(7.0), Some(7.0)]));
    }
}
