//! Conversion between tag text and metric ids: filling templates, reading tags in any spelling, matching patterns.
//!
//! The tag grammar is loose (paths hold slashes and dots, keys hold spaces and brackets), so a tag is never split at
//! dots. It is read by the known text before and after its placeholder. If two templates match, the one with more known
//! text wins.

use super::Metric;

/// A resolved tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedTag {
    /// Position of the row.
    pub metric: u16,
    /// Text in the place of the placeholder; empty if there is none.
    pub instance: String,
    /// The text after `/l:`, with which W&B marks the writer of a shared run.
    pub label: Option<String>,
}

impl ResolvedTag {
    /// The instance of a rank's series, if the text has a label and the row's tag no placeholder.
    pub fn of_rank(&self) -> Option<String> {
        self.label.as_ref().filter(|_| self.instance.is_empty()).map(|label| format!("{LABEL}{label}"))
    }
}

/// The catalog cannot have this tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagError {
    /// The tag as given.
    pub tag: String,
    /// The nearest template.
    pub nearest: String,
}

impl std::fmt::Display for TagError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "no metric has the tag {:?}; the nearest is {:?}; GET api/v1/catalog lists all",
            self.tag, self.nearest
        )
    }
}
impl std::error::Error for TagError {}

/// Text before and after the placeholder, and whether the placeholder stands for numbers: `{i}`, or `{i.mig.j}` for two
/// with a word between them.
pub(crate) fn split(template: &str) -> Option<(&str, &str, bool)> {
    let open = template.find('{')?;
    let close = open + template[open..].find('}')?;
    let name = &template[open + 1..close];
    Some((&template[..open], &template[close + 1..], name == "i" || name.starts_with("i.")))
}

/// The name in the braces.
fn placeholder(template: &str) -> &str {
    split(template).map_or("", |(before, after, _)| &template[before.len() + 1..template.len() - after.len() - 1])
}

/// Prefix of a label, with which W&B marks the writer of a shared run. For the series of a rank, prefix and label are
/// the instance of a row without a placeholder: `cpu/l:rank_3`.
pub const LABEL: &str = "/l:";

/// The template with the instance in the placeholder's place; a label is appended to one without a placeholder.
pub fn fill(template: &str, instance: &str) -> String {
    match split(template) {
        Some((before, after, _)) => format!("{before}{instance}{after}"),
        None if instance.starts_with(LABEL) => format!("{template}{instance}"),
        None => template.to_string(),
    }
}

/// The label in the place of the instance, if the template has no placeholder.
pub fn label<'a>(template: &str, instance: &'a str) -> Option<&'a str> {
    instance.strip_prefix(LABEL).filter(|_| split(template).is_none())
}

/// The number in the label of a rank that has no other name.
pub fn rank(label: &str) -> Option<u32> {
    label.strip_prefix("rank_")?.parse().ok()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether the text is the beginning of a kernel's id: of a UUID, or of the name that VS Code or a console gives.
fn is_kernel(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

/// Whether the text has a number for each letter of the pattern, and its words.
fn are_numbers(pattern: &str, text: &str) -> bool {
    let fits = |(word, part): (&str, &str)| if word.len() == 1 { is_number(part) } else { word == part };
    pattern.split('.').count() == text.split('.').count() && pattern.split('.').zip(text.split('.')).all(fits)
}

/// Templates of the devices that MIG cuts from a GPU, and of the partitions of an AMD GPU. They are instances of the
/// GPU's rows if they have no row of their own.
const GPU_PARTS: [&str; 2] = ["i.mig.j", "i.xcp.j"];

/// Names and values of labels in the tag of a scraped sample, `{a="1",b="2"}`; empty for anything else.
pub fn labels(instance: &str) -> Vec<(&str, String)> {
    let mut rest = instance.strip_prefix('{').unwrap_or("");
    let mut all = Vec::new();
    while let Some((name, after)) = rest.split_once("=\"") {
        let (mut value, mut chars) = (String::new(), after.char_indices());
        let end = loop {
            match chars.next() {
                Some((end, '"')) => break end,
                Some((_, '\\')) => value.extend(chars.next().map(|(_, c)| if c == 'n' { '\n' } else { c })),
                Some((_, c)) => value.push(c),
                None => return all,
            }
        };
        all.push((name.trim_start_matches(','), value));
        rest = &after[end + 1..];
    }
    all
}

/// The text of labels in the tag of a sample, `{a="1",b="2"}`, in the given order; empty if there are none. The inverse
/// of [`labels`].
pub fn label_text(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", all.join(","))
}

#[cfg(test)]
thread_local! {
    /// Templates that texts were compared with.
    static READS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The instance, when the text is of this template.
fn read<'a>(template: &str, text: &'a str) -> Option<&'a str> {
    #[cfg(test)]
    READS.set(READS.get() + 1);
    let Some((before, after, numbers)) = split(template) else {
        return (template == text).then_some("");
    };
    let instance = text.strip_prefix(before)?.strip_suffix(after)?;
    let fits = match placeholder(template) {
        // Labels bring their own braces, and a sample may have none.
        "labels" => instance.is_empty() || (instance.starts_with('{') && instance.ends_with('}')),
        "kernel" => is_kernel(instance),
        "kernel.gpu.i" => instance.split_once(".gpu.").is_some_and(|(id, gpu)| is_kernel(id) && is_number(gpu)),
        name if numbers => {
            let is_part = || GPU_PARTS.iter().any(|part| are_numbers(part, instance));
            are_numbers(name, instance) || (before == "gpu." && name == "i" && is_part())
        }
        _ => !instance.is_empty(),
    };
    fits.then_some(instance)
}

fn known_text(template: &str) -> usize {
    let words = |name: &str| name.split('.').filter(|word| word.len() > 1).map(str::len).sum::<usize>();
    match split(template) {
        None => template.len() + 1,
        Some((before, after, true)) => before.len() + after.len() + words(placeholder(template)),
        Some((before, after, false)) => before.len() + after.len(),
    }
}

fn read_bare(metrics: &[Metric], text: &str) -> Option<(u16, String)> {
    let mut best: Option<(usize, u16, String)> = None;
    let mut offer = |known: usize, metric: usize, instance: &str| {
        if best.as_ref().is_none_or(|(k, ..)| known > *k) {
            best = Some((known, metric as u16, instance.to_string()));
        }
    };
    for (i, metric) in metrics.iter().enumerate().filter(|(_, metric)| !metric.tag.is_empty()) {
        if let Some(instance) = read(&metric.tag, text) {
            offer(2 * known_text(&metric.tag) + 1, i, instance); // a canonical tag wins over an equal alias
        }
        for alias in &metric.aliases {
            match alias.split_once(" => ") {
                Some((spelling, instance)) if spelling == text => offer(2 * known_text(spelling), i, instance),
                Some(_) => {}
                None => {
                    if let Some(instance) = read(alias, text) {
                        offer(2 * known_text(alias), i, instance);
                    }
                }
            }
        }
    }
    best.map(|(_, metric, instance)| match placeholder(&metrics[usize::from(metric)].tag) {
        "path" => (metric, with_slashes(instance)),
        _ => (metric, instance),
    })
}

/// W&B 0.15 wrote the slashes of a path as backslashes, `disk.\.usageGB`. Paths of Windows begin with a drive, or with
/// two backslashes.
fn with_slashes(path: String) -> String {
    match path.strip_prefix('\\') {
        Some(rest) if !rest.starts_with('\\') => path.replace('\\', "/"),
        _ => path,
    }
}

/// Whether the text ends inside the value of `{name="value"}`.
fn in_quotes(text: &str) -> bool {
    let Some(open) = text.find("=\"") else { return false };
    let (mut inside, mut escaped) = (false, false);
    for c in text[open..].chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = inside,
            '"' => inside = !inside,
            _ => {}
        }
    }
    inside
}

/// Maximum number of label positions tried in one text: a text with more is no tag, and only costs time.
const LABELS: usize = 8;

/// Resolves a text with or without a label, as it is.
fn labeled(metrics: &[Metric], text: &str) -> Option<ResolvedTag> {
    // A label may hold anything, and so may a path: the first "/l:" after a known tag begins the label. This does not
    // apply inside a quoted label value of a scraped sample.
    for (at, _) in text.match_indices(LABEL).take(LABELS).filter(|(at, _)| !in_quotes(&text[..*at])) {
        if let Some((metric, instance)) = read_bare(metrics, &text[..at]) {
            return Some(ResolvedTag { metric, instance, label: Some(text[at + LABEL.len()..].to_string()) });
        }
    }
    read_bare(metrics, text).map(|(metric, instance)| ResolvedTag { metric, instance, label: None })
}

pub(super) fn known(metrics: &[Metric], text: &str) -> Option<ResolvedTag> {
    // W&B's files and its API put this before every tag of the system.
    labeled(metrics, text).or_else(|| labeled(metrics, text.strip_prefix("system.")?))
}

pub(super) fn find(metrics: &[Metric], text: &str) -> Result<ResolvedTag, TagError> {
    known(metrics, text).ok_or_else(|| {
        let shown = metrics.iter().filter(|metric| !metric.tag.is_empty());
        let begin: String = text.chars().take(200).collect();
        let nearest =
            shown.min_by_key(|m| strsim::levenshtein(&m.tag, &begin)).map(|m| m.tag.clone()).unwrap_or_default();
        TagError { tag: text.to_string(), nearest }
    })
}

/// Whether the text matches a pattern in which `*` matches any run of characters, including dots and slashes.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (p, t) = (pattern.as_bytes(), text.as_bytes());
    let (mut i, mut j, mut star) = (0, 0, None);
    while j < t.len() {
        if i < p.len() && p[i] == b'*' {
            star = Some((i, j));
            i += 1;
        } else if i < p.len() && p[i] == t[j] {
            i += 1;
            j += 1;
        } else if let Some((si, sj)) = star {
            i = si + 1;
            j = sj + 1;
            star = Some((si, sj + 1));
        } else {
            return false;
        }
    }
    p[i..].iter().all(|&b| b == b'*')
}

#[cfg(test)]
mod tests {
    use super::super::{Catalog, VOCABULARY};
    use super::*;

    fn catalog() -> Catalog {
        Catalog::new(VOCABULARY.iter().copied().flatten().copied())
    }

    #[test]
    fn awkward_instances_come_back() {
        let catalog = catalog();
        for (i, metric) in catalog.metrics.iter().enumerate() {
            let instances: &[&str] = match split(&metric.tag) {
                None => &[""],
                Some((.., true)) => crate::catalog::check::numbers(&metric.tag),
                Some((.., false)) if metric.tag.starts_with("kernel.") || metric.tag.ends_with("{labels}") => {
                    crate::catalog::check::instances(&metric.tag)
                }
                Some((.., false)) => &[
                    "/",
                    "/mnt/data.v2",
                    "/mnt/l:x/a b",
                    "eth0.100",
                    "average board temp (C)",
                    "nvme0n1",
                    "a{b=\"c.d/e\"}",
                ],
            };
            // Such text cannot be distinguished from a label if the text before it is itself a tag.
            let open = metric.tag.ends_with('}') || metric.tag.starts_with("ipu.{key}");
            for instance in instances.iter().filter(|x| !(open && x.contains("/l:"))) {
                let tag = fill(&metric.tag, instance);
                for text in [tag.clone(), format!("{tag}/l:node-1/rank0")] {
                    let found = catalog.find(&text).unwrap_or_else(|e| panic!("{e}"));
                    assert_eq!((usize::from(found.metric), found.instance.as_str()), (i, *instance), "{text}");
                    assert_eq!(found.label.is_some(), text != tag, "{text}");
                }
            }
        }
    }

    #[test]
    fn every_alias_finds_its_row() {
        let catalog = catalog();
        for (i, metric) in catalog.metrics.iter().enumerate() {
            for alias in &metric.aliases {
                let (text, instance) = match alias.split_once(" => ") {
                    Some((text, instance)) => (text.to_string(), instance),
                    None => (fill(alias, "3"), if split(alias).is_some() { "3" } else { "" }),
                };
                let found = catalog.find(&text).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!((usize::from(found.metric), found.instance.as_str()), (i, instance), "{text}");
            }
        }
    }

    #[test]
    fn a_label_is_looked_for_outside_quotes() {
        let catalog = catalog();
        let tag = r#"openmetrics.dcgm.temp{path="/l:\"/l:x",z="1"}"#;
        for (text, label) in [(tag.to_string(), None), (format!("{tag}/l:a/l:b"), Some("a/l:b".to_string()))] {
            let found = catalog.find(&text).expect("known");
            assert_eq!(format!("openmetrics.{}", found.instance), tag);
            assert_eq!(found.label, label);
        }
    }

    #[test]
    fn tags_as_uploaded_are_read_and_ours_that_begin_alike_stay_ours() {
        let catalog = catalog();
        for (text, tag) in [
            ("system.gpu.0.temp", "gpu.{i}.temp"),
            ("system.cpu", "cpu"),
            ("system.memory", "memory_percent"),
            ("system.disk./mnt/data.v2.usageGB/l:a", "disk.{path}.usageGB"),
            ("system.cpu_percent", "system.cpu_percent"),
            ("system.system.powerWatts", "system.powerWatts"),
        ] {
            let found = catalog.find(text).expect("known");
            assert_eq!(catalog.metrics[usize::from(found.metric)].tag, tag, "{text}");
        }
        assert!(catalog.find("system.system.no").is_err());
    }

    #[test]
    fn paths_with_backslashes_of_old_runs_are_the_paths_they_were() {
        let catalog = catalog();
        for (text, instance) in [
            (r"disk.\.usageGB", "/"),
            (r"system.disk.\.usagePercent/l:a", "/"),
            (r"disk.\mnt\data.v2.usageGB", "/mnt/data.v2"),
            (r"disk./mnt/odd\name.usageGB", r"/mnt/odd\name"),
            (r"disk.C:\.usageGB", r"C:\"),
            (r"disk.\\server\share.usageGB", r"\\server\share"),
        ] {
            assert_eq!(catalog.find(text).expect("known").instance, instance, "{text}");
        }
    }

    #[test]
    fn a_text_full_of_labels_is_looked_at_a_few_times() {
        let catalog = catalog();
        let unknown = |labels: usize| format!("nothing{}", "/l:x".repeat(labels));
        let reads = |text: &str| {
            READS.set(0);
            assert_eq!(catalog.known(text), None);
            READS.get()
        };
        let rows = reads("nothing");
        assert!(rows >= catalog.metrics.len() as u64);
        assert_eq!(reads(&unknown(LABELS)), rows * (LABELS as u64 + 1));
        assert_eq!(reads(&unknown(10 * LABELS)), reads(&unknown(LABELS)));
        assert_eq!(reads(&"system.".repeat(50)), 2 * rows);
    }

    #[test]
    fn a_ranks_series_has_its_label_behind_the_tag_and_its_name_on_the_chart() {
        let catalog = catalog();
        let series = |instance: &str| {
            let metric = catalog.position("cpu").expect("a row");
            crate::series::SeriesDef { metric, instance: instance.into() }
        };
        assert_eq!(
            (catalog.tag(&series("/l:rank_3")), catalog.label(&series("/l:rank_3"))),
            ("cpu/l:rank_3".into(), "rank 3".into())
        );
        assert_eq!(
            (catalog.tag(&series("/l:loader")), catalog.label(&series("/l:loader"))),
            ("cpu/l:loader".into(), "loader".into())
        );
        assert_eq!((catalog.tag(&series("")), catalog.label(&series(""))), ("cpu".into(), "CPU".into()));
        assert_eq!(catalog.find("cpu/l:rank_3").expect("known").of_rank().as_deref(), Some("/l:rank_3"));
        assert_eq!(catalog.find("cpu").expect("known").of_rank(), None);
        assert_eq!(catalog.find("gpu.0.temp/l:a").expect("known").of_rank(), None);
        let metric = &catalog.metrics[usize::from(series("").metric)];
        let labels = |instance: &'static str| crate::catalog::prometheus::labels(metric, instance);
        assert_eq!(labels("/l:rank_3"), [("rank".into(), "3".into())]);
        assert_eq!(labels("/l:loader"), [("rank".into(), "loader".into())]);
        assert_eq!(labels(""), []);
    }

    #[test]
    fn an_unknown_tag_names_the_nearest() {
        let error = catalog().find("memory_percnt").unwrap_err();
        assert_eq!(error.nearest, "memory_percent");
    }

    #[test]
    fn devices_of_mig_are_instances_of_a_gpus_rows_where_they_have_none_of_their_own() {
        use crate::catalog::MetricDef;
        use crate::unit::Unit;
        let mut catalog = catalog();
        for tag in ["gpu.{i.mig.j}.mine", "gpu.{i}.mine"] {
            catalog.metrics.push(Metric::from(&MetricDef::gauge(tag, Unit::Count)));
            catalog.metrics.rotate_right(1);
        }
        for (text, tag, instance) in [
            ("gpu.2.mig.13.memoryFree", Some("gpu.{i}.memoryFree"), "2.mig.13"),
            ("gpu.2.xcp.7.gpu", Some("gpu.{i}.gpu"), "2.xcp.7"),
            ("gpu.2.xgmi.7.linkReadBytes", Some("gpu.{i.xgmi.j}.linkReadBytes"), "2.xgmi.7"),
            ("gpu.2.ecc.pcie_bif.eccCorrected", Some("gpu.{block}.eccCorrected"), "2.ecc.pcie_bif"),
            ("gpu.process.0.temp", Some("gpu.process.{i}.temp"), "0"),
            ("gpu.2.mig.13.mine", Some("gpu.{i.mig.j}.mine"), "2.mig.13"),
            ("gpu.2.mine", Some("gpu.{i}.mine"), "2"),
            ("gpu.2.mig.temp", None, ""),
            ("gpu.2.gim.3.mine", None, ""),
            ("gpu.2.mig.3.mig.4.temp", None, ""),
            ("cpu.2.mig.3.cpu_percent", None, ""),
        ] {
            let found = catalog.find(text).ok();
            assert_eq!(found.as_ref().map(|f| catalog.metrics[usize::from(f.metric)].tag.as_str()), tag, "{text}");
            assert_eq!(found.map(|f| f.instance).unwrap_or_default(), instance);
        }
    }

    #[test]
    fn labels_are_told_apart() {
        let text = r#"{a="1",b="x,source=",c="say \"no\" \\n\n",d=""}"#;
        let expected = [("a", "1"), ("b", "x,source="), ("c", "say \"no\" \\n\n"), ("d", "")];
        assert_eq!(labels(text), expected.map(|(name, value)| (name, value.to_string())));
        for text in ["", "0", "{", "{a=\"", "{a=\"\\", "/mnt"] {
            assert_eq!(labels(text), [], "{text}");
        }
    }

    #[test]
    fn labels_bring_their_braces_and_may_be_missing() {
        use crate::catalog::MetricDef;
        use crate::unit::Unit;
        let row = |tag| Metric::from(&MetricDef::gauge(tag, Unit::Count));
        let mut catalog = catalog();
        let first = catalog.metrics.len() as u16;
        catalog.metrics.push(row("openmetrics.n.load1{labels}"));
        catalog.metrics.push(row("openmetrics.n.load15{labels}"));
        for (text, metric, instance, label) in [
            ("openmetrics.n.load1", first, "", None),
            ("openmetrics.n.load15", first + 1, "", None),
            ("openmetrics.n.load1{a=\"/l:}\",b=\"\"}", first, "{a=\"/l:}\",b=\"\"}", None),
            ("openmetrics.n.load1{a=\"1\"}/l:x", first, "{a=\"1\"}", Some("x")),
            ("openmetrics.n.load1/l:x", first, "", Some("x")),
        ] {
            let found = catalog.find(text).expect("known");
            assert_eq!(
                (found.metric, found.instance.as_str(), found.label.as_deref()),
                (metric, instance, label),
                "{text}"
            );
            let series = crate::series::SeriesDef { metric, instance: instance.into() };
            assert_eq!(catalog.tag(&series), text.split("/l:x").next().unwrap_or(""));
        }
        let other = catalog.find("openmetrics.n.load1.0").expect("known");
        assert_eq!(catalog.metrics[usize::from(other.metric)].tag, "openmetrics.{sample}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused_but_never_panics(text in "(system\\.)?(ipu|disk|gpu|openmetrics)?.{0,40}(/l:)?.{0,9}") {
            let catalog = catalog();
            if let Ok(found) = catalog.find(&text) {
                let metric = &catalog.metrics[usize::from(found.metric)];
                proptest::prop_assert!(split(&metric.tag).is_some() || found.instance.is_empty());
            }
        }

        #[test]
        fn any_path_comes_back(path in "/[a-z0-9./ {}\"'é%()-]{0,30}") {
            let catalog = catalog();
            let tag = format!("disk.{path}.usagePercent");
            let found = catalog.find(&tag).expect("known");
            let series = crate::series::SeriesDef { metric: found.metric, instance: found.instance };
            proptest::prop_assert_eq!(catalog.tag(&series), tag);
        }
    }

    #[test]
    fn a_star_stands_for_anything() {
        assert!(glob("disk.*.usageGB", "disk./mnt/data.v2.usageGB"));
        assert!(glob("*", ""));
        assert!(glob("a*b*c", "a--b--b-c"));
        assert!(!glob("gpu.*", "cpu.0"));
        assert!(!glob("", "a"));
    }
}
