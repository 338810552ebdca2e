//! Rule files are translated where an exact equivalent exists; other rules are refused by name.

use super::*;
use crate::prometheus::catalog;

/// A file with one rule.
fn import_alert(expr: &str, hold: &str) -> Imported {
    let text = format!(
        "groups:\n- name: a\n  rules:\n  - alert: A\n    expr: '{}'\n    for: {hold}\n",
        expr.replace('\'', "''")
    );
    import(&text, &catalog())
}

fn when(expr: &str) -> String {
    let all = import_alert(expr, "5m");
    match all.rules.first() {
        Some((rule, _)) => rule.when.clone(),
        None => format!("REFUSED {}", all.refused[0].why),
    }
}

#[test]
fn host_rules_say_the_same_here() {
    for (expr, ours) in [
        (
            "(node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes) * 100 < 10",
            "memory.working_set_percent > 90 % for 5m",
        ),
        ("(rate(node_vmstat_pgmajfault[5m]) > 1000)", "rate(memory.major_faults, 5m) > 1000 /s for 5m"),
        (
            "(node_filesystem_size_bytes - node_filesystem_free_bytes) / (node_filesystem_size_bytes - node_filesystem_free_bytes + node_filesystem_avail_bytes) > 0.9",
            "disk.*.usagePercent > 90 % for 5m",
        ),
        (
            "avg by (instance, device) (rate(node_disk_io_time_seconds_total[5m])) > 0.80",
            "mean(disk.*.busy_percent, 5m) > 80 % for 5m",
        ),
        (
            "avg by (instance) (rate(node_cpu_seconds_total{mode=\"iowait\"}[5m])) > .10",
            "mean(system.cpu_iowait_percent, 5m) > 10 % for 5m",
        ),
        (
            "avg by(instance) (rate(node_cpu_seconds_total{mode=\"steal\"}[5m])) * 100 > 10",
            "mean(system.cpu_steal_percent, 5m) > 10 % for 5m",
        ),
        (
            "predict_linear(node_filesystem_avail_bytes{mountpoint=\"/data\"}[3h], 24 * 3600) <= 0 and \
             node_filesystem_avail_bytes > 0",
            "disk./data.usagePercent reaches 100 % within 1d",
        ),
        ("rate(node_disk_io_time_seconds_total[5m]) > 0.80", "mean(disk.*.busy_percent, 5m) > 80 % for 5m"),
        (
            "sum by (instance) (rate(node_disk_read_bytes_total[5m])) / 1024 / 1024 > 50",
            "REFUSED `sum` of a group is not translated; supported are avg, min and max",
        ),
        (
            "rate(node_disk_read_bytes_total{device=\"nvme0n1\"}[5m]) / 1024 / 1024 > 50",
            "rate(disk.nvme0n1.in, 5m) > 52428800 B/s for 5m",
        ),
        (
            "(1 - (node_memory_SwapFree_bytes / node_memory_SwapTotal_bytes)) * 100 > 80",
            "swap.used_percent > 80 % for 5m",
        ),
        ("increase(node_vmstat_oom_kill[1m]) > 0", "increase(memory.oom_kills, 1m) > 0 for 5m"),
        (
            "rate(node_pressure_memory_stalled_seconds_total[5m]) > 0.1 * on (instance) group_left (nodename) node_uname_info",
            "REFUSED it compares two values; here a value is compared with a number",
        ),
        (
            "(rate(node_pressure_memory_stalled_seconds_total[5m]) > 0.1) * on (instance) group_left (nodename) node_uname_info{nodename=~\".+\"}",
            "mean(pressure.memory.full_percent, 5m) > 10 % for 5m",
        ),
        ("up{job=\"node\"} == 0", "source lost for 5m"),
        ("time() - node_boot_time_seconds < 600", "system.uptime < 600 s for 5m"),
        ("node_time_seconds - node_boot_time_seconds < 600", "system.uptime < 600 s for 5m"),
        ("85 < node_load1", "system.load1 > 85 for 5m"),
        (
            "node_memory_MemAvailable_bytes < 2 * 1024 ^ 3 and rate(node_vmstat_pgmajfault[1m]) > 100",
            "proc.memory.availableMB < 2048 MiB and rate(memory.major_faults, 1m) > 100 /s for 5m",
        ),
    ] {
        assert_eq!(when(expr), ours, "{expr}");
    }
}

#[test]
fn gpu_rules_say_the_same_here() {
    for (expr, ours) in [
        ("DCGM_FI_DEV_GPU_TEMP > 85", "gpu.*.temp > 85 °C for 5m"),
        ("DCGM_FI_DEV_GPU_TEMP{gpu=\"3\"} > 85", "gpu.3.temp > 85 °C for 5m"),
        ("DCGM_FI_DEV_GPU_TEMP{device=\"nvidia3\"} > 85", "gpu.3.temp > 85 °C for 5m"),
        ("DCGM_FI_DEV_GPU_UTIL < 5", "gpu.*.gpu < 5 % for 5m"),
        ("avg by (Hostname) (DCGM_FI_DEV_GPU_UTIL) < 50", "mean over source of gpu.*.gpu < 50 % for 5m"),
        ("avg by (gpu) (DCGM_FI_DEV_GPU_UTIL) < 50", "gpu.*.gpu < 50 % for 5m"),
        ("DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_TOTAL * 100 > 95", "gpu.*.memoryAllocated > 95 % for 5m"),
        ("avg by (Hostname, gpu) (DCGM_FI_DEV_GPU_UTIL) < 50", "gpu.*.gpu < 50 % for 5m"),
        ("DCGM_FI_DEV_FB_USED > 70000", "gpu.*.memoryAllocatedBytes > 73400320000 B for 5m"),
        ("avg_over_time(DCGM_FI_PROF_SM_ACTIVE[10m]) < 0.2", "mean(gpu.*.smActive, 10m) < 20 % for 5m"),
        ("increase(DCGM_FI_DEV_ECC_DBE_VOL_DEV[10m]) > 0", "increase(gpu.*.uncorrectedMemoryErrors, 10m) > 0 for 5m"),
        ("DCGM_FI_DEV_SM_CLOCK < 1000", "gpu.*.smClock < 1000 MHz for 5m"),
        ("DCGM_FI_DEV_GPU_TEMP_CELSIUS > 85", "gpu.*.temp > 85 °C for 5m"),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO < 0.05", "gpu.*.gpu < 5 % for 5m"),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ < 1e9", "gpu.*.smClock < 1000 MHz for 5m"),
        ("DCGM_FI_DEV_FB_USED_BYTES / DCGM_FI_DEV_FB_CAPACITY_BYTES > 0.95", "gpu.*.memoryAllocated > 95 % for 5m"),
        ("DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL > 0", "gpu.*.uncorrectedRemappedRows > 0 for 5m"),
        ("absent(DCGM_FI_DEV_GPU_UTIL{Hostname=\"n1\",gpu=\"0\"})", "gpu.0.gpu missing for 5m"),
        ("absent_over_time(DCGM_FI_DEV_GPU_UTIL{Hostname=\"n1\",gpu=\"0\"}[10m])", "gpu.0.gpu missing for 15m"),
    ] {
        assert_eq!(when(expr), ours, "{expr}");
    }
}

#[test]
fn our_own_names_and_scraped_ones_are_known() {
    for (expr, ours) in [
        ("watchglass_gpu_temperature_celsius{gpu=\"0\"} > 85", "gpu.0.temp > 85 °C for 5m"),
        ("watchglass_gpu_utilization_ratio < 0.5", "gpu.*.gpu < 50 % for 5m"),
        (
            "watchglass_gpu_memory_used_bytes / watchglass_gpu_memory_total_bytes > 0.97",
            "gpu.*.memoryAllocated > 97 % for 5m",
        ),
        ("rate(watchglass_network_receive_bytes_total[1m]) > 1e9", "rate(network.recv, 1m) > 1000000000 B/s for 5m"),
        (
            "predict_linear(watchglass_filesystem_used_ratio[1h], 8*3600) >= 1",
            "disk.*.usagePercent reaches 100 % within 8h",
        ),
        ("vllm:num_requests_waiting{job=\"vllm\"} > 10", "openmetrics.vllm.vllm:num_requests_waiting > 10 for 5m"),
        ("watchglass_no_such > 1", "REFUSED there is no metric watchglass_no_such"),
    ] {
        assert_eq!(when(expr), ours, "{expr}");
    }
}

#[test]
fn what_does_not_say_quite_the_same_is_refused_with_the_nearest_rule() {
    let idle = "avg by (instance) (rate(node_cpu_seconds_total{mode=\"idle\"}[2m]))";
    let rows = [
        (&*format!("100 - ({idle} * 100) > 80"), "I/O wait", "mean(system.cpu_percent, 2m) > 80 % for 5m"),
        (&format!("{idle} < 0.2"), "I/O wait", "mean(system.cpu_percent, 2m) > 80 % for 5m"),
        (
            "avg by (instance) (rate(node_cpu_seconds_total{mode=\"user\"}[5m])) > .8",
            "niced",
            "mean(system.cpu_user_percent, 5m) > 80 % for 5m",
        ),
        (
            "avg by (instance) (rate(node_cpu_seconds_total{mode=\"system\"}[5m])) > .8",
            "interrupts",
            "mean(system.cpu_system_percent, 5m) > 80 % for 5m",
        ),
        (
            "avg by(instance) (irate(node_cpu_seconds_total{mode=\"steal\"}[5m])) * 100 > 10",
            "two newest scrapes",
            "system.cpu_steal_percent > 10 % for 5m",
        ),
        (
            "irate(node_vmstat_pgmajfault[5m]) > 10",
            "two newest scrapes",
            "rate(memory.major_faults, 5m) > 10 /s for 5m",
        ),
        (
            "(node_filesystem_avail_bytes{fstype!~\"^(fuse.*|tmpfs)\"} * 100) / node_filesystem_size_bytes < 10",
            "reserved for root",
            "disk.*.usagePercent > 90 % for 5m",
        ),
        (
            "node_filesystem_avail_bytes{mountpoint=\"/\"} / node_filesystem_size_bytes{mountpoint=\"/\"} < .10",
            "reserved for root",
            "disk./.usagePercent > 90 % for 5m",
        ),
        (
            "1 - node_filesystem_free_bytes / node_filesystem_size_bytes > .90",
            "reserved for root",
            "disk.*.usagePercent > 90 % for 5m",
        ),
        (
            "(node_filesystem_size_bytes - node_filesystem_avail_bytes) / node_filesystem_size_bytes > .90",
            "reserved for root",
            "disk.*.usagePercent > 90 % for 5m",
        ),
        (
            "predict_linear(node_filesystem_free_bytes[1h], 4 * 3600) < 0",
            "reserved for root",
            "disk.*.usagePercent reaches 100 % within 4h",
        ),
        ("node_hwmon_temp_celsius > 75", "each sensor", "cpu.avg_temp > 75 °C for 5m"),
        (
            "DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) * 100 > 95",
            "reserved by the driver",
            "gpu.*.memoryAllocated > 95 % for 5m",
        ),
        (
            "DCGM_FI_DEV_FB_FREE / DCGM_FI_DEV_FB_TOTAL < 0.05",
            "reserved by the driver",
            "gpu.*.memoryAllocated > 95 % for 5m",
        ),
        ("DCGM_FI_DEV_FB_USED_PERCENT > 0.95", "reserved by the driver", "gpu.*.memoryAllocated > 95 % for 5m"),
        (
            "increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[10m]) > 0",
            "caches",
            "increase(gpu.*.uncorrectedMemoryErrors, 10m) > 0 for 5m",
        ),
        ("absent(DCGM_FI_DEV_GPU_UTIL)", "no machine has", "gpu.*.gpu missing for 5m"),
        ("up{job=\"vllm\"} == 0", "a program of a machine", "source lost for 5m"),
    ];
    for (expr, why, nearest) in rows {
        let said = when(expr);
        let end = format!("the nearest rule here is `{nearest}`");
        assert!(said.starts_with("REFUSED") && said.contains(why) && said.ends_with(&end), "{expr}: {said}");
    }
}

#[test]
fn what_is_not_plainly_ours_is_refused_by_name() {
    for (expr, why) in [
        ("node_load1 / count without (cpu, mode) (node_cpu_seconds_total{mode=\"idle\"}) > 2", "`count without`"),
        (
            "node_filesystem_files_free / node_filesystem_files < 0.1",
            "the catalog has no share of node_filesystem_files_free",
        ),
        ("node_systemd_unit_state{state=\"failed\"} == 1", "is not a known metric"),
        ("node_load1", "it has no comparison"),
        ("a{job=\"x\"} > 1 or b{job=\"x\"} > 1", "write two rules"),
        ("histogram_quantile(0.9, rate(x{job=\"a\"}[5m])) > 1", "is translated only for one metric"),
        ("rate(node_cpu_seconds_total[5m]) > 1", "is translated with mode=\"idle\""),
        ("avg by (gpu) (rate(node_cpu_seconds_total{mode=\"idle\"}[5m])) > 1", "avg by (instance)"),
        ("rate(node_network_receive_bytes_total{device!~\"lo|docker.*\"}[5m]) > 1", "must be one value"),
        ("node_load1 offset 5m > 1", "`offset`"),
        ("node_disk_io_time_seconds_total > 5", "write `rate` of it"),
        ("stddev_over_time(node_load1[5m]) > 5", "the function `stddev_over_time`"),
        ("predict_linear(node_filesystem_avail_bytes[1h], 864000) < 0", "1 min to 7 d"),
        ("node_load1 * 0 > 5", "cancel the value out"),
        ("rate(node_load1[5m]) > 5", "REFUSED"),
        // Cases with groups, labels and counters that cannot be translated.
        (
            "avg by (instance, cpu) (rate(node_cpu_seconds_total{mode=\"iowait\"}[5m])) > .1",
            "groups by cpu are not translated",
        ),
        ("avg by (team) (node_load1) > 1", "groups by team"),
        ("rate(node_cpu_seconds_total{mode=\"iowait\",cpu=\"0\"}[5m]) > 1", "the label cpu"),
        ("DCGM_FI_DEV_GPU_TEMP{modelName=\"H100\"} > 80", "the label modelName"),
        ("node_memory_MemAvailable_bytes / ignoring (job) node_memory_MemTotal_bytes < .1", "`ignoring`"),
        ("node_vmstat_oom_kill > 0", "since the start of the machine"),
        ("node_network_receive_bytes_total{device=\"eth0\"} > 1e12", "since the start of the machine"),
        (
            "node_memory_MemAvailable_bytes{instance=\"a\"} / node_memory_MemTotal_bytes{instance=\"b\"} < .1",
            "select different series",
        ),
    ] {
        let said = when(expr);
        assert!(said.starts_with("REFUSED") && said.contains(why), "{expr}: {said}");
    }
}

const FILE: &str = r#"
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
spec:
  groups:
    - name: host
      rules:
        - record: job:load:avg
          expr: avg by (job) (node_load1)
        - alert: HostDown
          expr: up{instance=~"node-.*:9100|gpu-1:9100"} == 0
          labels: {severity: critical}
          annotations:
            summary: Host down (instance {{ $labels.instance }})
            description: "VALUE = {{ $value | humanize }}\n LABELS = {{ $labels }}"
            runbook_url: https://wiki.example.org/down
        - alert: HostDown
          expr: node_load1{team="ml"} > 9
          for: 2m
          keep_firing_for: 10m
          annotations:
            summary: 'Load {{ printf "%.1f" $value }} on {{ $labels.instance }} {x}'
            runbook_url: http://insecure.example.org
        - alert: Odd
          expr: quantile(0.5, node_load1) > 1
"#;

#[test]
fn a_file_becomes_toml_and_a_list_of_what_is_not_in_it() {
    let all = import(FILE, &catalog());
    assert_eq!(
        all.toml(),
        "\
# `up` is the state of a Prometheus target; here it is the state of the machine's agent.
# a machine is lost after a minute without data.
# the description uses a template function and was left out.
[[rules]]
name = \"HostDown\"
severity = \"critical\"
when = \"source lost for 1m\"
on = { \"source\" = \"node-*,gpu-1\" }
title = \"Host down (instance {source})\"
link = \"https://wiki.example.org/down\"

[[rules]]
name = \"HostDown 2\"
severity = \"warning\"
when = \"system.load1 > 9 for 2m, until <= 9 for 10m\"
on = { \"team\" = \"ml\" }
title = \"Load {value} on {source} {{x}\"
"
    );
    let lines = all.refusals("rules.yml");
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("rules.yml:8: a recording rule"), "{lines:?}");
    assert!(lines[1].starts_with("rules.yml:24: Odd: `quantile`"), "{lines:?}");
    for (rule, _) in &all.rules {
        assert!(check(rule, &catalog()).is_ok());
    }
}

#[test]
fn a_file_that_is_none_is_refused_as_a_whole() {
    for (text, line, why) in [
        ("", 1, "no `groups`"),
        ("groups: []", 1, "no `groups`"),
        ("a: [", 1, "not valid YAML"),
        ("[1]", 1, "no `groups`"),
    ] {
        let all = import(text, &catalog());
        assert!(all.rules.is_empty() && all.refused.len() == 1, "{text}");
        assert!(all.refused[0].line >= line && all.refused[0].why.contains(why), "{text}: {:?}", all.refused);
    }
}

#[test]
fn a_file_of_very_many_groups_and_rules_is_read_up_to_a_bound() {
    let rule = |name: &str| format!("  - alert: {name}\n    expr: 'node_load1 > 4'\n");
    let groups = |name: &dyn Fn(usize) -> String| -> String {
        let group = |n: usize| format!("- name: g{n}\n  rules:\n{}", rule(&name(n)));
        format!("groups:\n{}", (0..12_000).map(group).collect::<String>())
    };
    for text in [groups(&|_| "Same".into()), groups(&|n| format!("Other{n}"))] {
        let all = import(&text, &catalog());
        assert_eq!((all.rules.len(), all.refused.len()), (10_000, 1));
        assert!(all.refused[0].why.contains("more than 10000 rules"), "{:?}", all.refused);
        let names: std::collections::BTreeSet<&str> = all.rules.iter().map(|(rule, _)| rule.name.as_str()).collect();
        assert_eq!(names.len(), 10_000, "each has a name of its own");
    }
    let empty: String = (0..100_000).map(|n| format!("- name: g{n}\n  rules: []\n")).collect();
    assert_eq!(import(&format!("groups:\n{empty}"), &catalog()), Imported::default());
}
