//! Tests of pages: small pages of our own, the recordings, and pages damaged in every way.

use super::super::filter::Filter;
use super::*;
use crate::recordings;
use proptest::prelude::*;
use shared::catalog::gpu;
use std::time::Duration;

fn page(endpoint: &str) -> Page {
    Page::new(endpoint, Filters::default(), Arc::default(), 10_000)
}

/// Values and result of one page.
fn read(page: &mut Page, text: &str, open: bool) -> (Result<PageCounts, Bad>, Vec<(String, f64)>) {
    let mut out = Out::default();
    out.begin(Duration::ZERO);
    let result = page.read(text, open, &mut out);
    (result, out.present())
}

fn tags(text: &str) -> Vec<(String, f64)> {
    let (result, present) = read(&mut page("e"), text, false);
    result.expect("a page");
    present
}

/// Counts of a page without dropped samples.
fn whole(samples: usize) -> PageCounts {
    PageCounts { samples, left: Left::default() }
}

/// Number of samples, and number of dropped ones.
fn left(result: Result<PageCounts, Bad>) -> (usize, usize) {
    let counts = result.expect("a page");
    (counts.samples, counts.left.count())
}

fn is(present: &[(String, f64)], expected: &[(&str, f64)]) {
    let expected: Vec<_> = expected.iter().map(|(tag, v)| (tag.to_string(), *v)).collect();
    assert_eq!(present, expected);
}

const SERVING: &str = "\
# HELP llm:queue Requests that wait.
# TYPE llm:queue gauge
llm:queue{model=\"a/b\", node=\"n1\"} 3 1395066363000
# TYPE llm:wait_seconds histogram
llm:wait_seconds_bucket{le=\"0.1\",model=\"a/b\"} 10
llm:wait_seconds_bucket{le=\"1.0\",model=\"a/b\"} 10 # {id=\"1\"} 0.5
llm:wait_seconds_bucket{le=\"+Inf\",model=\"a/b\"} 10
llm:wait_seconds_sum{model=\"a/b\"} 0.75
llm:wait_seconds_count{model=\"a/b\"} 10
# TYPE rpc_seconds summary
rpc_seconds{quantile=\"0.5\"} 4.5e-3
rpc_seconds{quantile=\"0.9\"} NaN
rpc_seconds_sum 12
rpc_seconds_count 7
ledger_total 41
bare 2.5
odd{path=\"/l:\\\"x\\\\\"} -1
";

#[test]
fn every_kind_of_sample_becomes_its_series() {
    let mut page = page("e");
    let (result, first) = read(&mut page, SERVING, false);
    assert_eq!(result, Ok(whole(13)));
    let same = [
        ("openmetrics.e.bare", 2.5),
        ("openmetrics.e.ledger_total", 41.0),
        ("openmetrics.e.llm:queue{model=\"a/b\",node=\"n1\"}", 3.0),
        ("openmetrics.e.llm:wait_seconds_count{model=\"a/b\"}", 10.0),
        ("openmetrics.e.llm:wait_seconds_sum{model=\"a/b\"}", 0.75),
        ("openmetrics.e.odd{path=\"/l:\\\"x\\\\\"}", -1.0),
        ("openmetrics.e.rpc_seconds_count", 7.0),
        ("openmetrics.e.rpc_seconds_sum", 12.0),
        ("openmetrics.e.rpc_seconds{quantile=\"0.5\"}", 0.0045),
    ];
    is(&first, &same);
    // Ten more, all between 0.1 and 1.
    let later = SERVING.replace("le=\"1.0\",model=\"a/b\"} 10", "le=\"1.0\",model=\"a/b\"} 20");
    let later = later.replace("le=\"+Inf\",model=\"a/b\"} 10", "le=\"+Inf\",model=\"a/b\"} 20");
    let (_, second) = read(&mut page, &later, false);
    let quantiles: Vec<_> = second.iter().filter(|(tag, _)| tag.contains("llm:wait_seconds{")).cloned().collect();
    is(
        &quantiles.into_iter().map(|(tag, v)| (tag, (v * 1e9).round() / 1e9)).collect::<Vec<_>>(),
        &[
            ("openmetrics.e.llm:wait_seconds{model=\"a/b\",quantile=\"0.5\"}", 0.55),
            ("openmetrics.e.llm:wait_seconds{model=\"a/b\",quantile=\"0.9\"}", 0.91),
            ("openmetrics.e.llm:wait_seconds{model=\"a/b\",quantile=\"0.99\"}", 0.991),
        ],
    );
}

#[test]
fn rows_say_kind_unit_and_help_and_openmetrics_counters_are_not_lost() {
    let text = "# TYPE reads_bytes counter\n# UNIT reads_bytes bytes\n# HELP reads_bytes Read so far\n\
                reads_bytes_total 5\nreads_bytes_created 1.5\n# EOF";
    let mut page = page("e");
    let mut out = Out::default();
    out.begin(Duration::ZERO);
    page.read(text, true, &mut out).expect("a page");
    let rows: Vec<_> =
        out.slots().map(|(def, instance)| (def.tag, def.kind, def.unit, def.draw, def.help, instance)).collect();
    use shared::catalog::{Draw, Kind};
    use shared::unit::Unit;
    let tag = "openmetrics.e.reads_bytes_total{labels}";
    assert_eq!(rows[0], (tag, Kind::Counter, Unit::Bytes, Draw::Line, "Read so far.", String::new()));
    assert_eq!((rows[1].3, rows[1].1), (Draw::Hidden, Kind::Gauge));
}

#[test]
fn series_stay_themselves_when_lines_come_go_and_move() {
    let mut page = page("e");
    let mut out = Out::default();
    for (text, expected) in [
        ("a{i=\"1\"} 1\na{i=\"2\"} 2\nb 3\n", vec![("a{i=\"1\"}", 1.0), ("a{i=\"2\"}", 2.0), ("b", 3.0)]),
        ("b 30\na{i=\"2\"} 20\n", vec![("a{i=\"2\"}", 20.0), ("b", 30.0)]),
        (
            "a{i=\"10\"} 7\na{i=\"1\"} 8\nab 4\nb 9\n",
            vec![("a{i=\"1\"}", 8.0), ("a{i=\"10\"}", 7.0), ("ab", 4.0), ("b", 9.0)],
        ),
    ] {
        out.begin(Duration::ZERO);
        page.read(text, false, &mut out).expect("a page");
        let mut expected: Vec<_> = expected.into_iter().map(|(t, v)| (format!("openmetrics.e.{t}"), v)).collect();
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(out.present(), expected, "{text}");
    }
    assert_eq!(out.slots().count(), 5);
}

#[test]
fn beyond_the_limit_samples_are_dropped_and_counted_and_the_rest_stays() {
    let mut page = Page::new("e", Filters::default(), Arc::default(), 5);
    let text: String = (0..8).map(|i| format!("x{{i=\"{i}\"}} {i}\n")).collect();
    for _ in 0..3 {
        let (result, present) = read(&mut page, &text, false);
        assert_eq!(left(result), (8, 3));
        assert_eq!(present.len(), 5);
    }
    // A histogram has three series of its own.
    let mut page = Page::new("e", Filters::default(), Arc::default(), 5);
    let bucket = |h: &str| format!("{h}_bucket{{le=\"1\"}} 1\n{h}_bucket{{le=\"+Inf\"}} 1\n");
    let (result, _) = read(&mut page, &format!("{}{}a 1\nb 2\nc 3\n", bucket("h"), bucket("g")), false);
    assert_eq!(left(result), (7, 3));
}

/// Reads a page at this second.
fn at(page: &mut Page, out: &mut Out, second: u64, text: &str) -> (usize, usize) {
    out.begin(Duration::from_secs(second));
    left(page.read(text, false, out))
}

#[test]
fn labels_that_change_for_ever_are_stored_for_ever_and_take_no_more_room() {
    let mut page = Page::new("e", Filters::default(), Arc::default(), 100);
    let mut out = Out::default();
    for i in 0..1_000u64 {
        let text = format!("stays 1\njob{{id=\"{i}\"}} {i}\nt_bucket{{id=\"{}\",le=\"+Inf\"}} 1\n", i / 100);
        // A new job every 10 s: 90 within a quarter of an hour, and a new histogram with three quantiles every 1,000 s.
        assert_eq!(at(&mut page, &mut out, 10 * i, &text), (3, 0), "scrape {i}");
        assert!(
            out.present().iter().any(|(tag, v)| *tag == format!("openmetrics.e.job{{id=\"{i}\"}}") && *v == i as f64)
        );
        assert!(page.known.lines.len() <= 100 && out.values().len() <= 100 && page.known.histograms.len() <= 2);
    }
}

#[test]
fn more_labels_than_the_limit_within_a_quarter_of_an_hour_are_dropped_until_others_are_gone() {
    let mut page = Page::new("e", Filters::default(), Arc::default(), 100);
    let mut out = Out::default();
    let stored: Vec<u64> =
        (0..2_000).filter(|i| at(&mut page, &mut out, *i, &format!("job{{id=\"{i}\"}} 1\n")).1 == 0).collect();
    let expected: Vec<u64> = (0..100).chain(900..1_000).chain(1_800..1_900).collect();
    // Lines are evicted every 10 s.
    assert!(stored.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 20), "{stored:?}");
    assert_eq!(stored.len(), 300, "{stored:?}");
}

#[test]
fn names_that_change_for_ever_make_no_rows_for_ever_and_keep_their_tags() {
    let mut page = Page::new("e", Filters::default(), Arc::default(), 10_000);
    let mut out = Out::default();
    for i in 0..2_500u64 {
        assert_eq!(at(&mut page, &mut out, i, &format!("n{i}{{a=\"b\"}} {i}\n")), (1, 0));
        is(&out.present(), &[(&format!("openmetrics.e.n{i}{{a=\"b\"}}"), i as f64)]);
    }
    let rows: std::collections::HashSet<_> = out.slots().map(|(def, _)| def.tag).collect();
    assert!(rows.len() <= row::MAX_ROWS + 1, "{} rows", rows.len());
}

#[test]
fn what_cannot_be_kept_costs_itself_alone() {
    let long = "v".repeat(1_025);
    let many: String = (0..33).map(|i| format!("l{i}=\"\",")).collect();
    let text = format!(
        "a 1\nb{{l=\"{long}\"}} 2\nc{{{many}}} 3\n{}{{}} 4\nd{{x=\"1\",x=\"2\"}} 5\ne{{__name__=\"f\"}} 6\ng{{__x=\"\"}} 7\n\
         h {{count:1,sum:2,schema:0,zero_threshold:0,zero_count:1}}\na 8\n{{\"my.metric\",\"a.b\"=\"c\"}} 9\nz 10\n",
        "n".repeat(257)
    );
    let mut page = page("e");
    for _ in 0..2 {
        let (result, present) = read(&mut page, &text, false);
        is(
            &present,
            &[("openmetrics.e.a", 1.0), ("openmetrics.e.my_metric{a_b=\"c\"}", 9.0), ("openmetrics.e.z", 10.0)],
        );
        assert_eq!(
            result.expect("a page").left.to_string(),
            "1 with more than 32 labels (the first in line 3); 1 with a name of more than 256 bytes (the first in line 4); \
             1 with a label of more than 1024 bytes (the first in line 2); 3 with an invalid name or label (repeated, empty, \
             or beginning with `__`): correct the exporter (the first in line 5); 1 of a series that the page already \
             has: correct the exporter (the first in line 9); 1 that are native histograms: configure the exporter to \
             print classic buckets too (the first in line 8)"
        );
    }
    // Samples that no filter keeps do not count as dropped.
    let filters = Filters::new(&[Filter { name: "^e\\.[az]$".into(), labels: Vec::new() }]).expect("expressions");
    let mut page = Page::new("e", filters, Arc::default(), 10);
    let (result, present) = read(&mut page, &text, false);
    assert_eq!((left(result), present.len()), ((11, 1), 2), "the second a alone is left out");
}

#[test]
fn a_series_that_is_there_twice_counts_once_unless_it_says_when() {
    for (text, counts, value) in [
        ("a 1\na 2\n", (2, 1), 1.0),
        ("a NaN\na 2\n", (2, 1), f64::NAN),
        ("a 1 100\na 2 200\na 3 150\n", (3, 1), 2.0),
        ("a 1 100\na 2\n", (2, 1), 1.0),
        ("a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 2\n", (2, 1), 1.0),
        ("a{x_y=\"1\"} 1\n{\"a\",\"x.y\"=\"1\"} 2\n", (2, 1), 1.0),
    ] {
        let mut page = page("e");
        for _ in 0..2 {
            let (result, present) = read(&mut page, text, false);
            assert_eq!(left(result), counts, "{text}");
            assert_eq!(present.first().map(|(_, v)| *v), Some(value).filter(|v| v.is_finite()), "{text}");
        }
    }
}

#[test]
fn keys_beyond_their_bytes_are_dropped() {
    let mut page = page("e");
    let label = "v".repeat(1_000);
    let text: String = (0..9_000).map(|i| format!("a{{i=\"{i}\",l=\"{label}\"}} 1\n")).collect();
    let (result, present) = read(&mut page, &text, false);
    let counts = left(result);
    assert_eq!(counts.0 - counts.1, present.len());
    assert!((8_000..8_390).contains(&present.len()), "{}", present.len());
}

#[test]
fn the_rules_of_openmetrics_are_for_openmetrics() {
    let text = "# TYPE a counter\na_total -1\n# TYPE b gauge\nb 2\n# EOF\n";
    let (result, present) = read(&mut page("e"), text, true);
    assert_eq!((result, present.len()), (Err(Bad::Rule(2, "a counter below zero")), 0));
    let (result, present) = read(&mut page("e"), text, false);
    assert_eq!((result, present.len()), (Ok(whole(2)), 2));
    // In the text format it is an ordinary comment.
    assert_eq!(tags("a 1\n# EOF\nb 2\n").len(), 2);
}

#[test]
fn gpus_of_several_machines_are_told_apart() {
    let numbers = Arc::new(GpuNumbers::default());
    let mut page = Page::new("e", Filters::default(), numbers.clone(), 100);
    let line = |host: &str, gpu: u32, temp: u32| {
        format!("DCGM_FI_DEV_GPU_TEMP{{gpu=\"{gpu}\",device=\"nvidia{gpu}\",{host}}} {temp}\n")
    };
    let nodes = ["Hostname=\"node-a\"", "Hostname=\"node-b\"", "instance=\"node-c:9400\""];
    let text: String = nodes
        .iter()
        .enumerate()
        .flat_map(|(n, host)| [line(host, 0, 10 * n as u32), line(host, 1, 10 * n as u32 + 1)])
        .collect();
    let (_, present) = read(&mut page, &text, false);
    let temps: Vec<f64> = present.iter().map(|(_, v)| *v).collect();
    assert!(present.iter().enumerate().all(|(i, (tag, _))| *tag == format!("gpu.{i}.temp")), "{present:?}");
    assert_eq!(temps, [0.0, 1.0, 10.0, 11.0, 20.0, 21.0]);
    let hosts: Vec<String> = numbers
        .known()
        .into_iter()
        .map(|(_, labels)| labels.into_iter().find(|(name, _)| *name == "hostname").expect("its machine").1)
        .collect();
    assert_eq!(hosts, ["node-a", "node-a", "node-b", "node-b", "node-c:9400", "node-c:9400"]);
}

#[test]
fn filters_keep_what_they_match() {
    let keep =
        |name: &str, label: &str, regex: &str| Filter { name: name.into(), labels: vec![(label.into(), regex.into())] };
    let filters = Filters::new(&[keep("^e\\.a$", "i", "^1$")]).expect("expressions");
    let mut page = Page::new("e", filters, Arc::default(), 10);
    let (result, present) = read(&mut page, "a{i=\"1\"} 1\na{i=\"2\"} 2\na 3\nb{i=\"1\"} 4\n", false);
    assert_eq!(result, Ok(whole(4)));
    is(&present, &[("openmetrics.e.a{i=\"1\"}", 1.0)]);
}

const GPUS: &str = "\
# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu=\"0\", UUID=\"GPU-1\"} 41
DCGM_FI_DEV_GPU_TEMP{gpu=\"1\", UUID=\"GPU-2\"} 42
DCGM_FI_DEV_MEMORY_TEMP{gpu=\"0\", UUID=\"GPU-1\"} 9223372036854775794
DCGM_FI_PROF_SM_ACTIVE{gpu=\"1\", UUID=\"GPU-2\"} 0.25
DCGM_FI_DEV_XID_ERRORS{gpu=\"1\", UUID=\"GPU-2\"} 79
DCGM_FI_DEV_ROW_REMAP_PENDING{gpu=\"1\", UUID=\"GPU-2\"} 2147483634
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"1\", UUID=\"GPU-2\"} 0.5
";

#[test]
fn a_page_of_gpus_speaks_the_rows_of_gpus() {
    is(
        &tags(GPUS),
        &[
            ("gpu.0.temp", 41.0),
            ("gpu.1.grEngineActive", 50.0),
            ("gpu.1.lastXid", 79.0),
            ("gpu.1.smActive", 25.0),
            ("gpu.1.temp", 42.0),
        ],
    );
}

/// The 25 counters that the exporter has on by default, with names and units of DCGM 4.6, and those of 4.7 with the same
/// values.
const DEFAULTS: [(&str, &str, &str, f64); 25] = [
    ("DEV_SM_CLOCK 1980", "DEV_SM_CLOCK_HERTZ 1980000000", "smClock", 1980.0),
    ("DEV_MEM_CLOCK 2619", "DEV_MEMORY_CLOCK_HERTZ 2619000000", "memoryClock", 2619.0),
    ("DEV_MEMORY_TEMP 60", "DEV_MEMORY_TEMP_CELSIUS 60", "memoryTemp", 60.0),
    ("DEV_GPU_TEMP 50", "DEV_GPU_TEMP_CELSIUS 50", "temp", 50.0),
    ("DEV_POWER_USAGE 612.5", "DEV_BOARD_POWER_WATTS 612.5", "powerWatts", 612.5),
    ("DEV_TOTAL_ENERGY_CONSUMPTION 128996000", "DEV_GPU_ENERGY_JOULES_TOTAL 128996", "energyJoules", 128_996.0),
    ("DEV_PCIE_REPLAY_COUNTER 3", "DEV_PCIE_REPLAY_TOTAL 3", "pcieReplays", 3.0),
    ("DEV_GPU_UTIL 97", "DEV_GPU_UTIL_RATIO 0.97", "gpu", 97.0),
    ("DEV_MEM_COPY_UTIL 40", "DEV_MEMORY_UTIL_RATIO 0.4", "memory", 40.0),
    ("DEV_ENC_UTIL 1", "DEV_ENC_UTIL_RATIO 0.01", "encoderUtilization", 1.0),
    ("DEV_DEC_UTIL 2", "DEV_DEC_UTIL_RATIO 0.02", "decoderUtilization", 2.0),
    ("DEV_XID_ERRORS 0", "DEV_XID_ERROR 0", "lastXid", 0.0),
    ("DEV_FB_FREE 1024", "DEV_FB_FREE_BYTES 1073741824", "memoryFree", 1_073_741_824.0),
    ("DEV_FB_USED 80000", "DEV_FB_USED_BYTES 83886080000", "memoryUsed", 83_886_080_000.0),
    ("DEV_FB_RESERVED 512", "DEV_FB_RESERVED_BYTES 536870912", "memoryReserved", 536_870_912.0),
    ("DEV_NVLINK_BANDWIDTH_TOTAL 1000", "DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND 1024000000", "nvlinkBytes", 1.024e9),
    ("DEV_VGPU_LICENSE_STATUS 0", "DEV_VGPU_LICENSE_STATUS 0", "vgpuLicense", 0.0),
    ("DEV_UNCORRECTABLE_REMAPPED_ROWS 1", "DEV_ROW_REMAP_UNCORRECTABLE_TOTAL 1", "uncorrectedRemappedRows", 1.0),
    ("DEV_CORRECTABLE_REMAPPED_ROWS 2", "DEV_ROW_REMAP_CORRECTABLE_TOTAL 2", "correctedRemappedRows", 2.0),
    ("DEV_ROW_REMAP_FAILURE 0", "DEV_ROW_REMAP_FAILED 0", "rowRemapFailed", 0.0),
    ("PROF_GR_ENGINE_ACTIVE 0.5", "PROF_GR_ENGINE_UTIL_RATIO 0.5", "grEngineActive", 50.0),
    ("PROF_PIPE_TENSOR_ACTIVE 0.25", "PROF_TENSOR_UTIL_RATIO 0.25", "pipeTensorActive", 25.0),
    ("PROF_DRAM_ACTIVE 0.75", "PROF_DRAM_UTIL_RATIO 0.75", "dramActive", 75.0),
    ("PROF_PCIE_TX_BYTES 5e9", "PROF_PCIE_TX_BYTES 5e9", "pcieTxBytes", 5e9),
    ("PROF_PCIE_RX_BYTES 6e9", "PROF_PCIE_RX_BYTES 6e9", "pcieRxBytes", 6e9),
];

/// More counters that an operator may turn on.
const MORE: [(&str, &str, f64); 10] = [
    ("DEV_GPU_MAX_OP_TEMP 87", "maxOpTemp", 87.0),
    ("DEV_MEM_MAX_OP_TEMP 95", "memoryMaxOpTemp", 95.0),
    ("DEV_POWER_MGMT_LIMIT 700", "enforcedPowerLimitWatts", 700.0),
    ("DEV_FB_TOTAL 81559", "memoryTotalBytes", 85_520_809_984.0),
    ("DEV_CLOCK_THROTTLE_REASONS 4", "throttleReasons", 4.0),
    ("DEV_ECC_SBE_VOL_TOTAL 5", "correctedMemoryErrors", 5.0),
    ("DEV_ECC_DBE_VOL_TOTAL 1", "uncorrectedMemoryErrors", 1.0),
    ("DEV_GPU_RECOVERY_ACTION 1", "recoveryAction", 1.0),
    ("DEV_ROW_REMAP_PENDING 1", "rowRemapPending", 1.0),
    ("PROF_PIPE_FP16_ACTIVE 0.125", "pipeFp16Active", 12.5),
];

/// A line of DCGM's exporter, with these labels.
fn dcgm_line(sample: &str, labels: &str) -> String {
    let (name, value) = sample.split_once(' ').expect("a value");
    format!("DCGM_FI_{name}{{gpu=\"0\",UUID=\"GPU-1\"{labels}}} {value}\n")
}

#[test]
fn the_default_counters_are_read_under_their_old_and_their_new_names() {
    let lists: [Vec<&str>; 3] = [
        DEFAULTS.iter().map(|(old, ..)| *old).collect(),
        DEFAULTS.iter().map(|(_, new, ..)| *new).collect(),
        // An exporter that prints both counts no value twice.
        DEFAULTS.iter().flat_map(|(old, new, ..)| if old == new { vec![*old] } else { vec![*old, *new] }).collect(),
    ];
    let mut expected: Vec<_> = DEFAULTS.iter().map(|(_, _, tag, value)| (format!("gpu.0.{tag}"), *value)).collect();
    // 80,000 of 81,024 MiB.
    let share = gpu::MEMORY_ALLOCATED.rounded(98.736_176_935_229_07);
    expected.push(("gpu.0.memoryAllocated".into(), share));
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    for list in lists {
        let page: String = list.iter().map(|sample| dcgm_line(sample, "")).collect();
        assert_eq!(tags(&page), expected, "{page}");
    }
    let page: String = MORE.iter().map(|(sample, ..)| dcgm_line(sample, "")).collect();
    let mut expected: Vec<_> = MORE.iter().map(|(_, tag, value)| (format!("gpu.0.{tag}"), *value)).collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(tags(&page), expected);
}

#[test]
fn the_share_of_memory_is_dcgms_else_used_by_used_and_free() {
    let (used, free) = (dcgm_line("DEV_FB_USED 300", ""), dcgm_line("DEV_FB_FREE 100", ""));
    let share =
        |page: &str| tags(page).into_iter().find(|(tag, _)| tag == "gpu.0.memoryAllocated").map(|(_, value)| value);
    assert_eq!(share(&format!("{used}{free}")), Some(75.0));
    let printed = dcgm_line("DEV_FB_USED_PERCENT 0.5", "");
    assert_eq!(share(&format!("{used}{free}{printed}")), Some(50.0));
    assert_eq!((share(&used), share(&free)), (None, None));
    let none = [dcgm_line("DEV_FB_USED 0", ""), dcgm_line("DEV_FB_FREE 0", "")].concat();
    assert_eq!(share(&none), None);
    // Pods that print different values leave it unknown.
    let pods = [dcgm_line("DEV_FB_USED 1", ",pod=\"a\""), dcgm_line("DEV_FB_USED 2", ",pod=\"b\"")].concat();
    assert_eq!(share(&format!("{pods}{free}")), None);
    let mig =
        [("USED", 10), ("FREE", 30)].map(|(field, mib)| dcgm_line(&format!("DEV_FB_{field} {mib}"), ",GPU_I_ID=\"7\""));
    is(&tags(&mig.concat())[..1], &[("gpu.0.mig.7.memoryAllocated", 25.0)]);
}

#[test]
fn the_first_field_of_a_metric_counts_in_any_order() {
    let (slow, quick) = (dcgm_line("DEV_PCIE_TX_THROUGHPUT 7", ""), dcgm_line("PROF_PCIE_TX_BYTES 9000", ""));
    for page in [format!("{slow}{quick}"), format!("{quick}{slow}")] {
        is(&tags(&page), &[("gpu.0.pcieTxBytes", 9000.0)]);
    }
    is(&tags(&slow), &[("gpu.0.pcieTxBytes", 7168.0)]);
}

#[test]
fn gpus_of_each_host_belong_to_that_machine_under_their_own_numbers() {
    let others = Arc::new(OtherMachines::new(["node-a".to_string()], String::new()));
    let line = |label: &str, host: &str, gpu: u32, temp: u32| {
        let id = format!("{host}{gpu}");
        format!("DCGM_FI_DEV_GPU_TEMP{{gpu=\"{gpu}\",UUID=\"GPU-{id}\",{label}=\"{host}\"}} {temp}\n")
    };
    let nodes = |label: &str| {
        let rows = [("node-a.lab", 0, 40), ("node-b", 0, 50), ("node-b", 1, 51), ("node-c", 0, 60)];
        rows.map(|(host, gpu, temp)| line(label, host, gpu, temp)).concat()
    };
    let read = |page: &mut Page, text: &str| {
        let (result, present) = read(page, text, false);
        result.expect("a page");
        let of = |(host, machine): (String, inventory::OtherMachine)| {
            let values = machine.values.into_iter().map(|(def, instance, value)| (def.tag_of(&instance), value));
            (host, values.collect::<Vec<_>>())
        };
        (present, others.take().into_iter().map(of).collect::<Vec<_>>())
    };
    for label in ["Hostname", "hostname"] {
        let mut own = page("e").telling(Some(others.clone()), false, Duration::from_secs(30));
        let (here, there) = read(&mut own, &nodes(label));
        is(&here, &[("gpu.0.temp", 40.0)]);
        let temp = |gpu: u32, value: f64| (format!("gpu.{gpu}.temp"), value);
        let b = ("node-b".to_string(), vec![temp(0, 50.0), temp(1, 51.0)]);
        assert_eq!(there, [b, ("node-c".into(), vec![temp(0, 60.0)])], "{label}");
    }
    // An exporter on this machine that runs in a container has the container's name.
    let mut local = page("e").telling(Some(others.clone()), true, Duration::ZERO);
    let (here, there) = read(&mut local, &line("Hostname", "0a1b2c3d", 0, 45));
    is(&here, &[("gpu.0.temp", 45.0)]);
    assert!(there.is_empty());
}

#[test]
fn samples_of_hosts_over_the_limit_are_counted_with_the_reason() {
    let others = Arc::new(OtherMachines::new(["here".to_string()], String::new()));
    let mut page = page("e").telling(Some(others.clone()), false, Duration::ZERO);
    let line =
        |host: usize| format!("DCGM_FI_DEV_GPU_TEMP{{gpu=\"0\",UUID=\"GPU-{host}\",hostname=\"node-{host:03}\"}} 40\n");
    let (result, present) = read(&mut page, &(0..258).map(line).collect::<String>(), false);
    let left = result.expect("a page").left;
    assert_eq!((left.count(), others.take().len()), (2, 256));
    let said = left.to_string();
    assert!(said.contains("2 of hosts over the limit of 256") && said.contains("first in line 257"), "{said}");
    is(&present, &[]);
}

#[test]
fn a_gpu_that_a_driver_reports_is_not_counted_twice() {
    let numbers = Arc::new(GpuNumbers::default());
    let mut page = Page::new("e", Filters::default(), numbers.clone(), 100);
    let mut out = Out::default();
    out.begin(Duration::ZERO);
    page.read(GPUS, false, &mut out).expect("a page");
    assert_eq!(numbers.claim("GPU-1", 0), 0);
    out.begin(Duration::from_secs(1));
    page.read(GPUS, false, &mut out).expect("a page");
    let temps: Vec<_> =
        out.present().into_iter().filter(|(tag, _)| tag.contains("emp") || tag.contains("TEMP")).collect();
    is(&temps, &[("gpu.1.temp", 42.0), ("openmetrics.e.DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-1\",gpu=\"0\"}", 41.0)]);
}

#[test]
fn of_a_gpu_that_pods_share_the_devices_own_value_counts_or_none() {
    let row = |pod: &str, value: &str| format!("DCGM_FI_DEV_GPU_UTIL{{gpu=\"0\",UUID=\"GPU-1\"{pod}}} {value}\n");
    let (a, b, none) = (",pod=\"a\",container=\"x\"", ",pod=\"b\"", ",pod=\"\",namespace=\"\"");
    for (page, value) in [
        (row(a, "30"), Some(30.0)),
        (row(a, "30") + &row(b, "30"), Some(30.0)),
        (row(a, "30") + &row(b, "50"), None),
        (row(a, "30") + &row(b, "50") + &row(a, "30").replace("\"x\"", "\"y\""), None),
        (row(a, "30") + &row("", "80") + &row(b, "50"), Some(80.0)),
        (row(none, "80") + &row(a, "30") + &row(b, "50"), Some(80.0)),
        (row(&a.replace("pod", "exported_pod"), "30") + &row(b, "50"), None),
        (row(",vgpu=\"0\"", "30") + &row(",vgpu=\"1\"", "50"), None),
    ] {
        let found = tags(&page).into_iter().find(|(tag, _)| tag == "gpu.0.gpu").map(|(_, value)| value);
        assert_eq!(found, value, "{page}");
    }
    // Different values of pods stand under their labels.
    let of_pod = |pod: &str| format!("openmetrics.e.DCGM_FI_DEV_GPU_UTIL{{UUID=\"GPU-1\",gpu=\"0\",pod=\"{pod}\"}}");
    is(&tags(&(row(",pod=\"a\"", "30") + &row(b, "50"))), &[(&of_pod("a"), 30.0), (&of_pod("b"), 50.0)]);
    // Its MIG devices have values of their own.
    let mig = |id: u32, value: u32| row(&format!(",GPU_I_ID=\"{id}\",pod=\"p{id}\""), &value.to_string());
    is(&tags(&(mig(1, 10) + &mig(2, 20))), &[("gpu.0.mig.1.gpu", 10.0), ("gpu.0.mig.2.gpu", 20.0)]);
}

#[test]
fn what_is_no_page_puts_nothing_and_says_where() {
    for (text, bad) in [
        ("<html>\n", Bad::Line(1)),
        ("a 1\n\nb two\n", Bad::Line(3)),
        ("a 1\nb 2", Bad::Truncated),
        ("a 1\nb{x=\"\n", Bad::Line(2)),
    ] {
        let (result, present) = read(&mut page("e"), text, false);
        assert_eq!((result, present), (Err(bad), Vec::new()), "{text}");
    }
    assert_eq!(tags("  a\t1 \n\r\n\t\n# a comment\n"), [("openmetrics.e.a".to_string(), 1.0)]);
}

/// Checks that a page cut at any place puts nothing, or exactly the values of its complete lines.
fn survives_every_cut(text: &str, step: usize) {
    let mut whole = Out::default();
    whole.begin(Duration::ZERO);
    page("e").read(text, false, &mut whole).expect("a page");
    let whole: std::collections::HashMap<String, f64> = whole.present().into_iter().collect();
    for end in (0..text.len()).step_by(step).filter(|end| text.is_char_boundary(*end)) {
        let (result, present) = read(&mut page("e"), &text[..end], false);
        assert!(result.is_ok() || present.is_empty());
        assert_eq!(result.is_ok(), end == 0 || text[..end].ends_with('\n'), "cut at {end}");
        for (tag, v) in present {
            assert_eq!(whole.get(&tag), Some(&v), "cut at {end}: {tag}");
        }
        let (result, present) = read(&mut page("e"), &text[..end], true);
        assert!(result.is_err() && present.is_empty(), "OpenMetrics cut at {end}");
    }
}

#[test]
fn pages_of_our_own_survive_every_cut() {
    survives_every_cut(SERVING, 1);
    survives_every_cut(GPUS, 1);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_but_never_panics(
        pages in prop::collection::vec("([a-c_:]{1,2}(\\{[a-c]=\"[^\"\n]{0,3}\"\\})? -?[0-9]{1,3}\n|# TYPE [a-c]{1,2} (counter|histogram|x)\n|.{0,9}\n?){0,8}", 1..4),
        open in any::<bool>(),
    ) {
        let mut page = page("p");
        for text in &pages {
            let (result, present) = read(&mut page, text, open);
            prop_assert!(result.is_ok() || present.is_empty());
        }
    }
}

/// Recordings by name of their list, without the folder.
fn recording(name: &str) -> String {
    recordings::text(&format!("openmetrics/{name}"))
}

#[test]
fn recordings_of_dcgm_give_their_lists() {
    dcgm_gives_its_lists(&[
        "dcgm-exporter_t4_460",
        "dcgm-exporter_h100x8_no-help-lines",
        "dcgm-exporter_blank-sentinel",
    ]);
}

#[test]
#[ignore = "reads recordings that are not published; WATCHGLASS_RECORDINGS names their folder"]
fn with_recordings_parts_of_gpus_give_their_lists() {
    dcgm_gives_its_lists(&[
        "dcgm-exporter_mixed-rtx2000ada-a30mig_cut",
        "dcgm-exporter_h100-mig_cut",
        "dcgm-exporter_a100-mig_cut",
    ]);
}

fn dcgm_gives_its_lists(names: &[&str]) {
    for name in names {
        let text = recording(&format!("{name}.prom"));
        // The lists have what the pages print, not the share that follows from two of the values.
        let is_printed = |tag: &str| tag.starts_with("gpu.") && !tag.ends_with(".memoryAllocated");
        let gpus: Vec<_> = tags(&text).into_iter().filter(|(tag, _)| is_printed(tag)).collect();
        recordings::check(&format!("openmetrics_{name}"), &gpus);
        survives_every_cut(&text, 1);
    }
}

/// The flat form of samples in lists of other exporters: labels without quotes, and not all of them.
fn has(present: &[(String, f64)], name: &str, labels: &[(String, String)], value: f64) -> bool {
    present.iter().any(|(tag, v)| {
        let tag = tag.strip_prefix("openmetrics.e.").unwrap_or(tag);
        let (bare, rest) = tag.split_once('{').unwrap_or((tag, ""));
        let labeled = labels.iter().all(|(l, v)| rest.contains(&format!("{l}=\"{v}\"")));
        bare == name && labeled && (v - value).abs() <= 1e-9 * value.abs()
    })
}

fn flat(key: &str) -> (&str, Vec<(String, String)>) {
    let (name, labels) = key.split_once('{').unwrap_or((key, ""));
    let pairs = labels.trim_end_matches('}').split(',').filter_map(|pair| pair.split_once('='));
    (name, pairs.map(|(l, v)| (l.to_string(), v.to_string())).collect())
}

#[test]
fn recordings_of_servers_give_their_lists() {
    servers_give_their_lists(&[
        ("node_exporter_e2e-output", "node_exporter"),
        ("vllm_opt125m_abridged", "vllm_opt125m"),
        ("triton_1gpu_abridged", "triton_1gpu"),
    ]);
}

#[test]
#[ignore = "reads recordings that are not published; WATCHGLASS_RECORDINGS names their folder"]
fn with_recordings_another_server_gives_its_list() {
    servers_give_their_lists(&[("triton_4gpu_gpu-part", "triton_4gpu")]);
}

fn servers_give_their_lists(names: &[(&str, &str)]) {
    for (name, list) in names {
        let text = recording(&format!("{name}.prom"));
        let json = recordings::text(&format!("expected/openmetrics_{list}.json"));
        let json: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&json).expect("JSON");
        let (result, present) = read(&mut page("e"), &text, false);
        let counts = result.expect("a page");
        let mut compared = 0;
        for (key, wanted) in json.iter().filter(|(key, _)| !key.starts_with('_')) {
            let (sample, labels) = flat(key);
            let mut must = |labels: &[(String, String)], value: f64| {
                compared += 1;
                assert!(has(&present, sample, labels, value), "{name}: {key} {labels:?} = {value}");
            };
            match wanted {
                serde_json::Value::Number(n) => must(&labels, n.as_f64().expect("a number")),
                list => {
                    for entry in list.as_array().expect("a list") {
                        let given = entry["labels"].as_object().expect("labels");
                        let given: Vec<_> =
                            given.iter().map(|(l, v)| (l.clone(), v.as_str().expect("text").to_string())).collect();
                        must(&given, entry["value"].as_f64().expect("a number"));
                    }
                }
            }
        }
        assert!(compared >= 7, "{name}: {compared} values");
        if let Some(samples) = json.get("_samples") {
            assert_eq!(Some(counts.samples as u64), samples.as_u64());
            assert_eq!(counts.left, Left::default());
        }
        survives_every_cut(&text, if text.len() > 100_000 { 4_999 } else { 1 });
    }
}

#[test]
fn the_parser_data_of_prometheus_is_read() {
    // A negative sum of a histogram breaks the rules of OpenMetrics, but is valid in the text format.
    for (name, some, rule) in [
        (
            "prometheus-testdata_alltypes.5mfs.om.txt",
            "openmetrics.e.rpc_requests_total{service=\"uniform\"}",
            Some("a counter below zero"),
        ),
        (
            "prometheus-testdata_1histogram.om.txt",
            "openmetrics.e.golang_manual_histogram_seconds_count{address=\"0.0.0.0\",generation=\"20\",port=\"5001\"}",
            None,
        ),
    ] {
        let text = recording(name);
        let open = rule.is_none();
        let (result, present) = read(&mut page("e"), &text, open);
        let printed = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(result, Ok(whole(printed)));
        assert!(printed > 40, "{printed}");
        assert!(present.iter().any(|(tag, _)| tag == some), "{present:?}");
        if let Some(rule) = rule {
            let refused = format!("{:?}", read(&mut page("e"), &text, true).0);
            assert!(refused.contains(rule), "{refused}");
        }
        for end in (0..text.len() - 5).filter(|end| text.is_char_boundary(*end)) {
            assert!(read(&mut page("e"), &text[..end], true).0.is_err(), "cut at {end}");
        }
    }
}

#[test]
fn recordings_with_other_numbers_never_give_a_value_that_was_not_printed() {
    for name in ["dcgm-exporter_t4_460.prom", "vllm_opt125m_abridged.prom"] {
        let text = recording(name);
        for junk in ["x", "", "1e999", "-1", "0x10", "nan", "--5", "1_000", "9e18"] {
            let altered: String = text
                .lines()
                .map(|line| match line.rsplit_once(' ') {
                    Some((key, _)) if !line.starts_with('#') => format!("{key} {junk}\n"),
                    _ => format!("{line}\n"),
                })
                .collect();
            let (_, present) = read(&mut page("e"), &altered, false);
            // The share of memory in use follows from two values, which are equal here.
            let is_computed = |tag: &str, v: f64| tag.ends_with(".memoryAllocated") && v == 50.0;
            for (tag, v) in present.into_iter().filter(|(tag, v)| !is_computed(tag, *v)) {
                let printed = junk.parse::<f64>().ok().filter(|v| v.is_finite());
                assert!(
                    printed.is_some_and(
                        |p| [p, p / 1000.0, p * 1024.0, p * 1_024_000.0, p * 1048576.0, p * 100.0].contains(&v)
                    ),
                    "{junk}: {tag} = {v}"
                );
                assert!(!tag.starts_with("gpu.") || v >= 0.0 || tag.ends_with("temp"), "{junk}: {tag} = {v}");
            }
        }
    }
}

#[test]
fn pages_of_other_tools_are_read_whole() {
    for name in ["apple/macmon-serve_v0.8_README.prom", "trainium/neuron-monitor-prometheus_inf1_cut.prom"] {
        let text = recordings::text(name);
        let printed = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).count();
        let (result, present) = read(&mut page("e"), &text, false);
        assert_eq!(result, Ok(whole(printed)), "{name}");
        assert!(!present.is_empty(), "{name}");
        survives_every_cut(&text, 1);
    }
}
