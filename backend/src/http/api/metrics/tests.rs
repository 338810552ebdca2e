//! Pages of other endpoints' metrics: our page is valid for any input.

use super::SERIES_AT_ONCE;
use super::current::{Current, still};
use super::exposition::{Exposition, PIECE_BYTES};
use shared::catalog::Catalog;
use shared::catalog::prometheus::Names;
use shared::series::SeriesDef;
use std::collections::HashSet;
use std::sync::Arc;

/// The whole page.
fn written(catalog: &Catalog, current: &[Current], own: &str, open: bool) -> String {
    let mut page = Exposition::new(Arc::new(catalog.clone()), current.to_vec(), own, open);
    while page.expose() {}
    let mut text = String::new();
    loop {
        let (piece, more) = page.piece();
        assert!(piece.len() < PIECE_BYTES + 4_096, "{} bytes at once", piece.len());
        text.push_str(&piece);
        if !more {
            return text;
        }
    }
}

#[test]
fn a_long_page_is_made_piece_by_piece_so_that_it_ends_with_its_reader() {
    let catalog = collectors::catalog();
    let metric = catalog.position(shared::catalog::cpu::CORE_PERCENT.tag).expect("a row");
    let one = |n: usize| (Arc::<str>::from("x"), SeriesDef { metric, instance: n.to_string() }, n as f64);
    let current: Vec<Current> = (0..20_000).map(one).collect();
    let mut page = Exposition::new(Arc::new(catalog.clone()), current.clone(), "", false);
    assert!(page.expose() && page.seen == SERIES_AT_ONCE, "it looks at a part of them at a time");
    let text = written(&catalog, &current, "", false);
    assert!(text.len() > 3 * PIECE_BYTES, "{}", text.len());
    let samples = text.lines().filter(|line| line.starts_with("watchglass_cpu")).count();
    assert_eq!((samples, text.matches("# TYPE watchglass_cpu").count()), (20_000, 1));
}

#[test]
fn every_row_that_a_collector_names_has_a_name_of_its_own() {
    let catalog = collectors::catalog();
    let names = Names::new(&catalog);
    let mut seen = std::collections::HashMap::new();
    for (metric, row) in catalog.metrics.iter().enumerate() {
        let name = &names.family(metric as u16).expect("a row").name;
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
        if let Some(other) = seen.insert(name.clone(), &row.tag) {
            panic!("{} and {other} are both {name}", row.tag);
        }
    }
}

#[test]
fn a_slow_series_keeps_its_value_for_two_of_its_intervals() {
    let slow = [(0, 1.0), (15_000, 2.0)];
    assert_eq!(still(&slow, 45_000), Some(2.0));
    assert_eq!(still(&slow, 45_001), None);
    assert_eq!(still(&slow[..1], 1), None, "nobody knows when the next is due");
}

#[test]
fn a_family_stands_together_whoever_it_is_from() {
    let mut catalog = collectors::catalog();
    let sample = shared::catalog::Metric::from(&shared::catalog::openmetrics::SAMPLE);
    let first = catalog.metrics.len() as u16;
    for endpoint in ["a-b", "a_b"] {
        let mut metric = sample.clone();
        metric.tag = metric.tag.replace("{sample}", &format!("{endpoint}.load1{{labels}}"));
        catalog.metrics.push(metric);
    }
    let one = |host: &str, metric, v| (Arc::<str>::from(host), SeriesDef { metric, instance: String::new() }, v);
    let current = [one("x", first, 1.0), one("x", first + 1, 2.0), one("y", first, 3.0)];
    let text = written(&catalog, &current, "", false);
    assert_eq!(text.matches("# TYPE load1 gauge").count(), 1);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("load1")).collect();
    let expected = [("x", "a-b", 1), ("x", "a_b", 2), ("y", "a-b", 3)];
    let expected = expected.map(|(s, e, v)| format!("load1{{source=\"{s}\",endpoint=\"{e}\"}} {v}"));
    assert_eq!(lines, expected);
}

/// The page for the output of an endpoint, in one of the two forms.
fn scraped(page: &str, open: bool) -> String {
    let (mut out, mut catalog, mut current) = (collectors::Out::default(), collectors::catalog(), Vec::new());
    out.begin(std::time::Duration::ZERO);
    let Some(_) = collectors::openmetrics::reader("e")(page, false, &mut out) else { return String::new() };
    for (slot, def, instance) in out.news() {
        let row = shared::catalog::Metric::from(def);
        let metric = catalog.position(def.tag).unwrap_or_else(|| {
            catalog.metrics.push(row);
            catalog.metrics.len() as u16 - 1
        });
        if out.values()[slot].is_finite() {
            current.push((Arc::<str>::from("a \"host\""), SeriesDef { metric, instance }, out.values()[slot]));
        }
    }
    let own = match open {
        true => {
            "# HELP watchglass_self_ticks Ticks.\n# TYPE watchglass_self_ticks counter\nwatchglass_self_ticks_total 5\n"
        }
        false => {
            "# HELP watchglass_self_ticks_total Ticks.\n# TYPE watchglass_self_ticks_total counter\nwatchglass_self_ticks_total 5\n"
        }
    };
    written(&catalog, &current, own, open)
}

/// Checks both forms. OpenMetrics by its rules; in the text format each family occurs once, with its samples, and
/// every sample is a separate series.
fn is_valid(page: &str) -> Result<(), String> {
    let fault = |what: &str, text: &str| Err(format!("{what}\n--- of\n{page}\n--- in\n{text}"));
    let open = scraped(page, true);
    if let Err(reason) = collectors::openmetrics::check(&open)
        && !open.is_empty()
    {
        return fault(&reason, &open);
    }
    let text = scraped(page, false);
    let (mut seen, mut family) = (HashSet::new(), "");
    for line in text.lines() {
        match line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            Some((name, _)) if !seen.insert(name) => return fault(line, &text),
            Some((name, _)) => family = name,
            None if line.starts_with('#') || line.split(['{', ' ']).next() == Some(family) => {}
            None => return fault(line, &text),
        }
    }
    let left = collectors::openmetrics::reader("back")(&text, false, &mut collectors::Out::default());
    if left == Some(0) { Ok(()) } else { fault("samples that do not come back", &text) }
}

#[test]
fn whatever_a_page_says_ours_is_valid() {
    for page in [
        "x{a=\"1\",a=\"2\"} 1\n",
        "x{__name__=\"y\"} 1\n",
        "# TYPE x_total counter\nx_total -1\nx_total{a=\"1\"} 2\n",
        "# TYPE x_total counter\nx_total 1\n# TYPE x_created gauge\nx_created 1.5\n",
        "# TYPE x counter\nx 1\nx_total 2\n",
        "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum -1\nh_count 1\n",
        "x{source=\"1\",exported_source=\"2\",endpoint=\"3\"} 1\n",
        "watchglass_self_ticks 1\nwatchglass_self_ticks_total 7\nwatchglass_self_ticks_created 7\n",
        "watchglass_self_ticks_total -7\nwatchglass_self_unexposed_series 3\nwatchglass_gpu_energy_joules 2\n",
        "# HELP x \\ \"quoted\" \\n\nx{a=\"\\\\ \\\" \\n\"} 1\n{\"a b\",\"c d\"=\"e\"} 2\n",
    ] {
        is_valid(page).unwrap_or_else(|fault| panic!("{fault}"));
    }
    // Series that can be expressed are written, and the rest is counted.
    let page = "# TYPE x_total counter\nx_total -1\nwatchglass_self_ticks 1\nwatchglass_self_ticks_total 7\n";
    let (text, open) = (scraped(page, false), scraped(page, true));
    assert!(text.contains("\nx_total{source=\"a \\\"host\\\"\",endpoint=\"e\"} -1\n") && !open.contains("\nx_total{"));
    assert!(text.contains("\nwatchglass_self_unexposed_series 1\n"), "{text}");
    assert!(open.contains("\nwatchglass_self_unexposed_series 2\n"), "{open}");
    for text in [text, open] {
        assert!(text.contains("\nwatchglass_self_ticks_total 5\nwatchglass_self_ticks_total{source="), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn whatever_pages_say_ours_is_valid(
        lines in proptest::collection::vec(
            "# TYPE (x|y|x_total|y_total|watchglass_self_ticks_total) (counter|gauge|histogram|summary|untyped)\n\
             |(x|y|watchglass_self_ticks|watchglass_cpu_utilization_ratio)(_total|_created|_info|_bucket|_sum|_count|_total_total)?\
             (\\{((a|b|le|quantile|source|endpoint|exported_source|__name__|__x|\"c.d\")=\"[^\"\\\\\n]{0,3}\",){0,3}\\})? -?(1|0.5|NaN|[+]Inf)( [0-9])?\n",
            0..12,
        ),
    ) {
        let valid = is_valid(&lines.concat());
        proptest::prop_assert!(valid.is_ok(), "{}", valid.unwrap_err());
    }
}
