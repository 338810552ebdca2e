//! GPU time of all runs of a reader: by day, month, project, user or run.

use super::CostSettings;
use super::days::{DAY_MS, DayBudget, RunDay, days_of, part_of};
use super::edits::DeletedUse;
use super::measure::held_sums;
use super::registry::RunRegistry;
use super::sums::Sums;
use shared::answer::usage::{GpuTime, GpuTimeBy, GpuTimeRow};
use shared::date;
use shared::json::Number;
use shared::run::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::live::{Live, Reader};
use stream::names::HIDDEN;

/// Maximum number of rows of an answer.
const MAX_ROWS: usize = 10_000;

/// Maximum number of days of a deleted run.
const MAX_DELETED_DAYS: usize = 400;

/// The name of all deleted runs.
const DELETED: &str = "deleted runs";

/// A request for GPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuTimeSpan {
    /// The division.
    pub by: GpuTimeBy,
    /// First day, days since the Unix epoch.
    pub from: i64,
    /// Last day.
    pub to: i64,
    /// The users are hidden: all are one row.
    pub hides_users: bool,
}

impl RunRegistry {
    /// GPU time of the runs that a reader may see, at `now`, milliseconds since the Unix epoch. It may read the disk.
    pub fn gpu_time(&self, reader: &Reader, asked: GpuTimeSpan, now: i64) -> GpuTime {
        let span = (asked.from * DAY_MS, (asked.to + 1) * DAY_MS - 1);
        let sources = reader.sources();
        let mut budget = DayBudget::default();
        // A clipped run looks as if it went on, so whole runs are read, and those outside of the span left out.
        let all = self.seen(reader, (i64::MIN, i64::MAX));
        let in_span = all.filter(|run| run.began <= span.1 && run.ended.is_none_or(|ended| ended >= span.0));
        let days = in_span.map(|run| {
            let kept = self.kept.days(&run, |key| reader.scope().sees(key));
            let days = kept.unwrap_or_else(|| {
                self.days.between(reader.live(), &sources, &run, ((asked.from, asked.to), now), &mut budget)
            });
            (run, days)
        });
        let deleted = self.edits.now().uses_of_deleted(|key| reader.scope().sees(key));
        gpu_time(days, &deleted, asked, self.prices.as_ref())
    }

    /// The use of a run that has ended, for the usage of its team after its deletion. It may read the disk.
    pub fn use_of(&self, live: &Live, run: &Run) -> DeletedUse {
        let sources = live.store().sources();
        let kept = self.kept.days(run, |_| true);
        let mut days = kept.unwrap_or_else(|| days_of(live, &sources, run, live.clock.wall()));
        days.drain(..days.len().saturating_sub(MAX_DELETED_DAYS));
        DeletedUse { project: run.about.project.clone(), user: run.about.user.clone(), days }
    }
}

impl RunRegistry {
    /// GPU-hours of the runs that a reader may see between two times, milliseconds since the Unix epoch, from their
    /// records alone. The first time is the begin of a day, because deleted runs are known by days, and the last time
    /// is that of the clock.
    pub fn gpu_hours(&self, reader: &Reader, (from, now): (i64, i64)) -> f64 {
        let hours = |run: Arc<Run>| part_of(&run, (from, now), now).map_or(0.0, |part| held_sums(&part, now).held_s);
        let deleted = self.edits.now().uses_of_deleted(|key| reader.scope().sees(key));
        let days = deleted.iter().flat_map(|one| &one.days);
        let days = days.filter(|one| (from.div_euclid(DAY_MS)..=now.div_euclid(DAY_MS)).contains(&one.day));
        // The sum of nothing is minus zero.
        let of_deleted = days.fold(0.0, |sum, one| sum + one.sums.held_s);
        (self.seen(reader, (from, now)).map(hours).sum::<f64>() + of_deleted) / 3_600.0
    }
}

/// A month in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Month {
    /// As `2026-11`.
    pub name: String,
    /// Its start, milliseconds since the Unix epoch.
    pub began: i64,
}

impl Month {
    /// The month of a time, milliseconds since the Unix epoch.
    pub fn from_time(now: i64) -> Month {
        let day = now.div_euclid(DAY_MS);
        let (_, _, of_month) = date::civil(day);
        Month { name: written(day, GpuTimeBy::Month), began: (day - of_month + 1) * DAY_MS }
    }
}

/// Sums of one row.
#[derive(Default)]
struct GpuTimeSums {
    name: Option<String>,
    runs: BTreeSet<String>,
    held_s: f64,
    measured_s: f64,
    idle_s: f64,
    reserved_s: Option<f64>,
    kwh: Option<f64>,
    cost: Option<f64>,
    partial: bool,
}

impl GpuTimeSums {
    fn add(&mut self, id: &str, sums: &Sums, prices: Option<&CostSettings>) {
        self.runs.insert(id.into());
        self.held_s += sums.held_s;
        self.measured_s += sums.measured_s;
        self.idle_s += sums.idle_s;
        let kwh = sums.energy_kwh().filter(|_| !sums.assumed);
        let cost = prices.map(|prices| sums.cost(prices));
        let sum =
            |before: Option<f64>, more: Option<f64>| more.map_or(before, |more| Some(before.unwrap_or(0.0) + more));
        self.kwh = sum(self.kwh, kwh);
        self.cost = sum(self.cost, cost.flatten());
        self.reserved_s = sum(self.reserved_s, sums.reserved_s);
        // Energy and cost are those of the GPUs that were held.
        self.partial |= sums.gpus > 0 && (kwh.is_none() || cost == Some(None));
    }

    fn row(self, of: String) -> GpuTimeRow {
        let hours = |seconds: f64| Number(seconds / 3_600.0);
        GpuTimeRow {
            of,
            name: self.name,
            runs: self.runs.len() as u64,
            gpu_hours: hours(self.held_s),
            measured_gpu_hours: hours(self.measured_s),
            idle_gpu_hours: hours(self.idle_s),
            reserved_gpu_hours: self.reserved_s.map(hours),
            energy_kwh: self.kwh.map(Number),
            cost: self.cost.map(Number),
            partial: self.partial,
        }
    }
}

/// The day or month of a day.
fn written(day: i64, by: GpuTimeBy) -> String {
    let (year, month, of_month) = date::civil(day);
    match by {
        GpuTimeBy::Month => format!("{year:04}-{month:02}"),
        _ => format!("{year:04}-{month:02}-{of_month:02}"),
    }
}

/// Names of a run whose days are added.
struct RunNames<'a> {
    /// Its own ID, by which runs are counted.
    id: &'a str,
    /// The ID of its row; empty for deleted runs, which have one row.
    row: &'a str,
    name: Option<&'a String>,
    project: Option<&'a String>,
    user: Option<&'a String>,
}

/// Sums of all rows, and of the request.
struct AllSums<'a> {
    asked: GpuTimeSpan,
    prices: Option<&'a CostSettings>,
    rows: BTreeMap<String, GpuTimeSums>,
    total: GpuTimeSums,
}

impl AllSums<'_> {
    /// Adds the days of a run. Days outside of the request are ignored.
    fn add(&mut self, run: &RunNames<'_>, days: &[RunDay]) {
        let asked = self.asked;
        for RunDay { day, sums } in days.iter().filter(|one| (asked.from..=asked.to).contains(&one.day)) {
            let of = match asked.by {
                GpuTimeBy::Day | GpuTimeBy::Month => written(*day, asked.by),
                GpuTimeBy::Project => run.project.cloned().unwrap_or_default(),
                GpuTimeBy::User if asked.hides_users => HIDDEN.into(),
                GpuTimeBy::User => run.user.cloned().unwrap_or_default(),
                GpuTimeBy::Run => run.row.into(),
            };
            let row = self.rows.entry(of).or_default();
            row.add(run.id, sums, self.prices);
            row.name = run.name.filter(|_| asked.by == GpuTimeBy::Run).cloned();
            self.total.add(run.id, sums, self.prices);
        }
    }
}

/// GPU time of runs with their days, and of deleted runs. Days outside of the request are ignored.
pub fn gpu_time(
    runs: impl Iterator<Item = (impl AsRef<Run>, Vec<RunDay>)>,
    deleted: &[Arc<DeletedUse>],
    asked: GpuTimeSpan,
    prices: Option<&CostSettings>,
) -> GpuTime {
    // Without any price no cost is missing.
    let prices = prices.filter(|prices| !prices.is_empty());
    let mut all = AllSums { asked, prices, rows: BTreeMap::new(), total: GpuTimeSums::default() };
    for (run, days) in runs {
        let Run { id, about, .. } = run.as_ref();
        let (name, project, user) = (about.name.as_ref(), about.project.as_ref(), about.user.as_ref());
        all.add(&RunNames { id, row: id, name, project, user }, &days);
    }
    let name = DELETED.to_string();
    for (at, DeletedUse { project, user, days }) in deleted.iter().map(|one| &**one).enumerate() {
        // No run has an ID with a blank.
        let id = format!("deleted {at}");
        let (project, user) = (project.as_ref(), user.as_ref());
        all.add(&RunNames { id: &id, row: "", name: Some(&name), project, user }, days);
    }
    let AllSums { rows, total, .. } = all;
    let mut rows: Vec<GpuTimeRow> = rows.into_iter().map(|(of, sums)| sums.row(of)).collect();
    if !asked.by.is_of_time() {
        rows.sort_by(|a, b| b.gpu_hours.0.total_cmp(&a.gpu_hours.0));
    }
    let left_out = rows.len().saturating_sub(MAX_ROWS) as u64;
    rows.truncate(MAX_ROWS);
    GpuTime {
        by: asked.by,
        from: written(asked.from, GpuTimeBy::Day),
        to: written(asked.to, GpuTimeBy::Day),
        rows,
        total: total.row(String::new()),
        left_out,
        currency: prices.map(|prices| prices.currency.clone()),
        limit: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::About;

    fn run(id: &str, project: Option<&str>, user: &str) -> Arc<Run> {
        let about = About {
            project: project.map(String::from),
            user: Some(user.into()),
            name: Some(format!("name of {id}")),
            ..About::default()
        };
        Arc::new(Run { id: id.into(), about, ..Run::default() })
    }

    /// A day with one GPU of this model for these hours, half of them idle.
    fn day(day: i64, hours: f64, kwh: Option<f64>) -> RunDay {
        let seconds = hours * 3_600.0;
        let sums = Sums {
            gpus: 1,
            held_s: seconds,
            measured_s: seconds,
            idle_s: seconds / 2.0,
            joules: kwh.map(|kwh| kwh * 3.6e6),
            models: [("H100".to_string(), seconds)].into(),
            ..Sums::default()
        };
        RunDay { day, sums }
    }

    #[test]
    fn gpu_time_is_divided_by_each_word_and_no_hour_is_lost_or_counted_twice() {
        let all = || {
            [
                (run("a", Some("vision"), "ada"), vec![day(20_422, 2.0, Some(1.0)), day(20_423, 4.0, Some(2.0))]),
                (run("b", Some("text"), "ada"), vec![day(20_423, 8.0, None)]),
                (run("c", None, "bob"), vec![day(20_300, 100.0, None), day(20_440, 1.0, Some(0.5))]),
            ]
            .into_iter()
        };
        let prices = CostSettings { gpu_hour: [("H100".to_string(), 2.0)].into(), kwh: None, currency: "EUR".into() };
        let of =
            |by| gpu_time(all(), &[], GpuTimeSpan { by, from: 20_400, to: 20_450, hides_users: false }, Some(&prices));
        let rows =
            |by| -> Vec<(String, f64)> { of(by).rows.into_iter().map(|row| (row.of, row.gpu_hours.0)).collect() };
        let row = |of: &str, hours: f64| (of.to_string(), hours);
        assert_eq!(rows(GpuTimeBy::Day), [row("2025-11-30", 2.0), row("2025-12-01", 12.0), row("2025-12-18", 1.0)]);
        assert_eq!(rows(GpuTimeBy::Month), [row("2025-11", 2.0), row("2025-12", 13.0)]);
        assert_eq!(rows(GpuTimeBy::Project), [row("text", 8.0), row("vision", 6.0), row("", 1.0)]);
        assert_eq!(rows(GpuTimeBy::User), [row("ada", 14.0), row("bob", 1.0)]);
        let hidden = GpuTimeSpan { by: GpuTimeBy::User, from: 20_400, to: 20_450, hides_users: true };
        let one = gpu_time(all(), &[], hidden, Some(&prices)).rows;
        assert_eq!((one.len(), one[0].of.as_str(), one[0].gpu_hours.0), (1, "hidden", 15.0));
        assert_eq!(rows(GpuTimeBy::Run), [row("b", 8.0), row("a", 6.0), row("c", 1.0)]);
        for by in GpuTimeBy::ALL {
            let total = of(by).total;
            assert_eq!((total.runs, total.gpu_hours.0, total.idle_gpu_hours.0), (3, 15.0, 7.5), "{by:?}");
            assert_eq!((total.cost, total.energy_kwh), (Some(Number(30.0)), Some(Number(3.5))));
            assert!(total.partial, "the energy of one run is unknown");
        }
        let vision = of(GpuTimeBy::Project).rows.swap_remove(1);
        assert_eq!((vision.runs, vision.energy_kwh, vision.partial), (1, Some(Number(3.0)), false));
        assert_eq!(of(GpuTimeBy::Run).rows[0].name.as_deref(), Some("name of b"));
    }

    #[test]
    fn deleted_runs_count_on_for_their_day_project_and_user_without_their_names() {
        let kept = || [(run("a", Some("vision"), "ada"), vec![day(20_422, 2.0, Some(1.0))])].into_iter();
        let deleted = |user: &str, days: Vec<RunDay>| {
            Arc::new(DeletedUse { project: Some("vision".into()), user: Some(user.into()), days })
        };
        let deleted = [
            deleted("ada", vec![day(20_422, 4.0, Some(2.0)), day(20_300, 100.0, None)]),
            deleted("bob", vec![day(20_423, 8.0, Some(4.0))]),
        ];
        let of =
            |by| gpu_time(kept(), &deleted, GpuTimeSpan { by, from: 20_400, to: 20_450, hides_users: false }, None);
        let rows = |by| -> Vec<(String, u64, f64)> {
            of(by).rows.into_iter().map(|row| (row.of, row.runs, row.gpu_hours.0)).collect()
        };
        let row = |of: &str, runs: u64, hours: f64| (of.to_string(), runs, hours);
        assert_eq!(rows(GpuTimeBy::Day), [row("2025-11-30", 2, 6.0), row("2025-12-01", 1, 8.0)]);
        assert_eq!(rows(GpuTimeBy::Project), [row("vision", 3, 14.0)]);
        assert_eq!(rows(GpuTimeBy::User), [row("bob", 1, 8.0), row("ada", 2, 6.0)]);
        assert_eq!(rows(GpuTimeBy::Run), [row("", 2, 12.0), row("a", 1, 2.0)]);
        let by_run = of(GpuTimeBy::Run);
        assert_eq!((by_run.rows[0].name.as_deref(), by_run.total.runs), (Some("deleted runs"), 3));
        assert_eq!(by_run.total.energy_kwh, Some(Number(7.0)));
    }

    #[test]
    fn a_run_that_is_deleted_lowers_no_limit_of_its_team() {
        use super::super::edits::RunEdit;
        use shared::catalog::{Catalog, cpu};
        use shared::scope::Scope;
        use std::time::Duration;
        use stream::clock::Manual;
        use stream::store::{Limits, Store};
        let store = Store::new(
            Arc::new(Catalog::new(cpu::ROWS.iter().copied())),
            Limits { retention: 3_600_000, bytes: usize::MAX },
        );
        let now = 20_423 * DAY_MS + 3_600_000;
        let live = Live::new(store, Arc::new(Manual::at(now, Duration::ZERO)), 1, 3_600_000);
        let registry = RunRegistry::default();
        let used = DeletedUse { days: vec![day(20_421, 1.0, None), day(20_422, 4.0, None)], ..DeletedUse::default() };
        registry.edits.set(vec![RunEdit {
            run: "a".into(),
            machines: [("key".to_string(), None)].into(),
            deleted: Some(now),
            used: Some(Arc::new(used)),
            ..RunEdit::default()
        }]);
        let hours = |sees: &str, from: i64| {
            let reader = Reader::new(live.clone(), Scope::only([], [sees.to_string()]));
            registry.gpu_hours(&reader, (from * DAY_MS, now))
        };
        assert_eq!([hours("key", 20_421), hours("key", 20_422), hours("key", 20_423)], [5.0, 4.0, 0.0]);
        assert_eq!(hours("other", 20_421).to_bits(), 0.0_f64.to_bits(), "of another team");
        let asked = GpuTimeSpan { from: 20_400, to: 20_450, ..GpuTimeSpan::default() };
        let reader = Reader::new(live.clone(), Scope::All);
        assert_eq!(registry.gpu_time(&reader, asked, now).total.gpu_hours.0, 5.0);
        assert_eq!(registry.use_of(&live, &run("b", Some("text"), "ada")).project.as_deref(), Some("text"));
    }

    #[test]
    fn a_month_begins_on_its_first_day() {
        let month = |text: &str| Month::from_time(date::from_text(text).expect("a time"));
        let began = |text: &str| date::from_text(text).expect("a time");
        let november = Month { name: "2026-11".into(), began: began("2026-11-01 00:00:00") };
        assert_eq!(month("2026-11-30 23:59:59"), november);
        assert_eq!(month("2026-11-01 00:00:00"), november);
        assert_eq!(month("2026-12-01 00:00:00").name, "2026-12");
    }

    #[test]
    fn without_prices_there_is_no_cost_and_unknown_prices_are_no_zero() {
        let all = || [(run("a", None, "ada"), vec![day(1, 2.0, Some(1.0))])].into_iter();
        let asked = GpuTimeSpan { from: 0, to: 9, ..GpuTimeSpan::default() };
        let free = gpu_time(all(), &[], asked, None);
        assert_eq!((free.total.cost, free.total.partial, &free.currency), (None, false, &None));
        assert_eq!(gpu_time(all(), &[], asked, Some(&CostSettings::default())), free);
        let other = CostSettings { gpu_hour: [("L4".to_string(), 2.0)].into(), kwh: None, currency: "EUR".into() };
        let unknown = gpu_time(all(), &[], asked, Some(&other)).total;
        assert_eq!((unknown.cost, unknown.partial), (None, true));
    }
}
