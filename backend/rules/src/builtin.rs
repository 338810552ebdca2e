//! Built-in rules. Each can be switched off by its id, with `_` for `-`, in `[rules_builtin]`.

use shared::alert::{AlertSeverity, Origin, Rule};
use std::collections::BTreeMap;

use AlertSeverity::{Critical, Info, Warning};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Id, as `run-crashed`.
    pub id: &'static str,
    /// Display name.
    pub name: &'static str,
    #[allow(missing_docs, reason = "see AlertSeverity")]
    pub severity: AlertSeverity,
    /// Condition, see [`shared::rule`].
    pub when: &'static str,
    /// Recommended action; may be empty.
    pub note: &'static str,
}

/// Id of the rule to which alerts from code belong.
pub const FROM_CODE: &str = "from-code";

const fn row(
    id: &'static str,
    name: &'static str,
    severity: AlertSeverity,
    when: &'static str,
    note: &'static str,
) -> BuiltIn {
    BuiltIn { id, name, severity, when, note }
}

/// Faults of a GPU are left to findings, which know the normal values of each card and job.
pub const TABLE: &[BuiltIn] = &[
    row(
        "run-crashed",
        "run crashed",
        Critical,
        "run crashed",
        "The page of the run has its last output and the charts of its machines.",
    ),
    row("run-finished", "run finished", Info, "run finished", ""),
    row(
        "run-unreachable",
        "run unreachable",
        Warning,
        "run unreachable, lost",
        "Its machine does not report; the run itself may continue.",
    ),
    row("run-ended", "run preempted or ended", Info, "run preempted, ended", ""),
    row("finding-critical", "critical finding", Critical, "finding critical, !host_lost", ""),
    row("finding-warning", "warning finding", Warning, "finding warning, !host_lost, !idle, !unused for 2m", ""),
    row(
        "idle",
        "GPU held idle",
        Info,
        "finding idle, unused for 30m",
        "GPUs are reserved or their memory is allocated, and nothing runs: check whether the job is still needed.",
    ),
    row(
        "oom-kill",
        "killed for memory",
        Critical,
        "memory.oom_kills increases",
        "The kernel killed a process because memory was short.",
    ),
    row(
        "machine-lost",
        "machine lost",
        Warning,
        "source lost for 60s",
        "Check that it is on and that its network works.",
    ),
    row(
        "clock-ahead",
        "clock ahead",
        Warning,
        "system.clock_skew > 5 s for 5m, until < 2 s for 2m",
        "Synchronize its clock with chrony or systemd-timesyncd.",
    ),
    row(
        "clock-behind",
        "clock behind",
        Warning,
        "system.clock_skew < -5 s for 5m, until > -2 s for 2m",
        "Synchronize its clock with chrony or systemd-timesyncd.",
    ),
    row("disk-filling", "disk filling", Warning, "disk.*.usagePercent reaches 100 % within 8h", ""),
    row("disk-full", "disk nearly full", Critical, "disk.*.usagePercent > 95 % for 2m, until < 92 % for 1m", ""),
    row("disk-busy", "disk busy", Info, "disk.*.busy_percent > 95 % for 15m, until < 80 % for 3m", ""),
    row(
        "memory-full",
        "memory full",
        Critical,
        "memory_percent > 97 % and pressure.memory.full_percent > 10 % for 5m, until < 95 % for 1m",
        "Processes wait for memory; the kernel may kill one soon.",
    ),
    row(
        "swapping",
        "waiting for swap",
        Warning,
        "pressure.io.full_percent > 20 % and change(swap.used, 5m) > 0 B for 5m, until < 10 % for 2m",
        "",
    ),
    row(
        "cpu-steal",
        "CPU stolen",
        Info,
        "system.cpu_steal_percent > 10 % for 10m, until < 5 % for 2m",
        "Other guests of the host use its CPU time.",
    ),
    row("io-wait", "waiting for disks", Info, "system.cpu_iowait_percent > 25 % for 10m, until < 15 % for 2m", ""),
    row(
        "path-silent",
        "path does not answer",
        Warning,
        "disk.*.usagePercent missing for 5m",
        "The file system hangs; often it is NFS.",
    ),
    row(
        "collector-failed",
        "collector failed",
        Info,
        "collector failed for 10m",
        "`watchglass doctor` on that machine shows the cause.",
    ),
    row("endpoint-failed", "endpoint not scraped", Warning, "monitor.scrape.*.samples missing for 5m", ""),
    row(
        "history-failed",
        "history cannot be written",
        Critical,
        "history failed",
        "Check whether the disk of the data folder is full or read-only.",
    ),
    row("hub-behind", "hub behind", Warning, "hub behind", ""),
    row(
        "gpu-hours-nearly",
        "GPU-hours nearly used up",
        Warning,
        "gpu hours above 85 %",
        "The page Usage shows who used them.",
    ),
    row(
        "gpu-hours-used",
        "GPU-hours used up",
        Warning,
        "gpu hours above 100 %",
        "Jobs continue. An admin of the team can raise its limit with watchglass team set.",
    ),
    row(FROM_CODE, "from code", Warning, "alert from code", ""),
];

/// The built-in rules without those set to false in `switches`; its keys are ids with `_` or `-`. Rules with a tag that
/// the catalog lacks are included: [`crate::Engine::set_rules`] reports them.
pub fn rules(switches: &BTreeMap<String, bool>) -> Vec<Rule> {
    TABLE
        .iter()
        .map(|row| {
            let enabled =
                switches.get(row.id).or_else(|| switches.get(&row.id.replace('-', "_"))).copied().unwrap_or(true);
            Rule {
                id: row.id.into(),
                name: row.name.into(),
                severity: row.severity,
                when: row.when.into(),
                note: (!row.note.is_empty()).then(|| row.note.into()),
                resolved: true,
                quiet: true,
                enabled,
                origin: Origin::BuiltIn,
                ..Rule::default()
            }
        })
        .collect()
}

/// Whether a key of `[rules_builtin]` names a rule.
pub fn is_known(key: &str) -> bool {
    TABLE.iter().any(|row| row.id == key || row.id.replace('-', "_") == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::catalog::{Catalog, MetricDef, VOCABULARY, link};
    use shared::rule::{Condition, check};
    use shared::unit::Unit;

    #[test]
    fn each_row_is_a_rule_and_has_hysteresis() {
        // Rows that collectors define, which this crate does not depend on.
        static DISK: MetricDef = MetricDef::gauge("disk.{dev}.busy_percent", Unit::Percent);
        static SCRAPED: MetricDef = MetricDef::gauge("monitor.scrape.{endpoint}.samples", Unit::Count);
        let more = [&DISK, &SCRAPED].into_iter().chain(link::ROWS.iter().copied());
        let catalog = Catalog::new(VOCABULARY.iter().copied().flatten().copied().chain(more));
        let rules = rules(&BTreeMap::from([("io_wait".to_string(), false)]));
        for rule in &rules {
            let condition = check(rule, &catalog).unwrap_or_else(|why| panic!("{}: {why}", rule.id));
            if let Condition::Threshold(t) = &condition {
                let until = t.until.unwrap_or_else(|| panic!("{} has no hysteresis", rule.id));
                assert_ne!(until.limit, t.first.limit, "{}", rule.id);
            }
            assert!(is_known(&rule.id) && is_known(&rule.id.replace('-', "_")));
            assert_eq!(rule.enabled, rule.id != "io-wait");
        }
        let mut ids: Vec<_> = rules.iter().map(|r| &r.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), TABLE.len());
    }
}
