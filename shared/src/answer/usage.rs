//! Answer about the GPU time of training jobs, and its form as CSV.

use crate::csv::cell;
use crate::json::Number;
use serde::{Deserialize, Serialize};

/// Division of the GPU time.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuTimeBy {
    /// Each day in UTC.
    #[default]
    Day,
    /// Each month in UTC.
    Month,
    /// Each project.
    Project,
    /// Each user.
    User,
    /// Each run.
    Run,
}

impl GpuTimeBy {
    /// All divisions.
    pub const ALL: [GpuTimeBy; 5] =
        [GpuTimeBy::Day, GpuTimeBy::Month, GpuTimeBy::Project, GpuTimeBy::User, GpuTimeBy::Run];

    /// Its word in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            GpuTimeBy::Day => "day",
            GpuTimeBy::Month => "month",
            GpuTimeBy::Project => "project",
            GpuTimeBy::User => "user",
            GpuTimeBy::Run => "run",
        }
    }

    /// Whether its rows are spans of time, in order.
    pub fn is_of_time(self) -> bool {
        matches!(self, GpuTimeBy::Day | GpuTimeBy::Month)
    }
}

impl std::str::FromStr for GpuTimeBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = GpuTimeBy::ALL.into_iter().find(|by| by.as_str() == text);
        known.ok_or_else(|| format!("is day, month, project, user or run, not {text:?}"))
    }
}

/// `GET /api/v1/usage/runs`: GPU time of training jobs. Filters: `?team=`, `from=` and `to=` (days), `by=day`, `month`,
/// `project`, `user` or `run`; `format=csv` for tables.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuTime {
    /// The division.
    pub by: GpuTimeBy,
    /// First day in UTC, `2026-11-22`.
    pub from: String,
    /// Last day in UTC.
    pub to: String,
    /// Days or months in order; others by their GPU-hours, largest first.
    pub rows: Vec<GpuTimeRow>,
    /// The sums of all rows, also of those that are left out.
    pub total: GpuTimeRow,
    /// Rows that are left out because there are too many.
    pub left_out: u64,
    /// Currency of the costs; null without prices.
    pub currency: Option<String>,
    /// The limit of the team; null without one, and for several teams.
    pub limit: Option<GpuHoursLimit>,
}

/// Limit of a team's GPU-hours in a month. Jobs continue above it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuHoursLimit {
    /// The present month in UTC, `2026-11`.
    pub month: String,
    /// GPU-hours used in it so far.
    pub used: Number,
    /// The limit, GPU-hours.
    pub limit: u64,
}

/// GPU time of one day, month, project, user or run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuTimeRow {
    /// The day `2026-11-22`, the month `2026-11`, the project, the user, or the ID of the run; empty for runs without
    /// one, for deleted runs, and for the total.
    pub of: String,
    /// Name of the run, or `deleted runs`; null otherwise, and if it has none.
    pub name: Option<String>,
    /// Runs that held a GPU, or for which a scheduler reserved one. A run counts on each of its days.
    pub runs: u64,
    /// GPUs that were held, times the hours for which they were held. A GPU that two runs hold counts for both.
    pub gpu_hours: Number,
    /// GPU-hours of these with a known utilization.
    pub measured_gpu_hours: Number,
    /// GPU-hours of the measured ones below 5 % utilization.
    pub idle_gpu_hours: Number,
    /// GPU-hours that schedulers reserved, used or not; null if no reservation is known.
    pub reserved_gpu_hours: Option<Number>,
    /// Energy of the GPUs, kWh; null if it is unknown for all of them.
    pub energy_kwh: Option<Number>,
    /// Cost of the GPU-hours and the energy; null without prices.
    pub cost: Option<Number>,
    /// Energy or cost of a part of the GPU-hours is unknown, so these sums are too low.
    pub partial: bool,
}

/// Decimals of numbers in the table: 3.6 GPU-seconds, and a watt-hour.
const DECIMALS: usize = 3;

/// The rows as a CSV table, with a header line. Unknown values are empty.
pub fn gpu_time_csv(usage: &GpuTime) -> String {
    let number = |value: Number| format!("{:.DECIMALS$}", value.0);
    let known = |value: Option<Number>| value.map_or(String::new(), number);
    let mut text = format!(
        "{},name,runs,gpu_hours,measured_gpu_hours,idle_gpu_hours,reserved_gpu_hours,energy_kwh,cost,currency,partial\n",
        usage.by.as_str()
    );
    for row in &usage.rows {
        let currency = row.cost.and(usage.currency.as_deref()).unwrap_or_default();
        let cells = [
            cell(&row.of),
            cell(row.name.as_deref().unwrap_or_default()),
            row.runs.to_string(),
            number(row.gpu_hours),
            number(row.measured_gpu_hours),
            number(row.idle_gpu_hours),
            known(row.reserved_gpu_hours),
            known(row.energy_kwh),
            known(row.cost),
            cell(currency),
            row.partial.to_string(),
        ];
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_empty_and_no_name_is_a_formula() {
        let row = GpuTimeRow {
            of: "=vision, 2".into(),
            runs: 2,
            gpu_hours: Number(12.5),
            measured_gpu_hours: Number(12.0),
            idle_gpu_hours: Number(0.25),
            reserved_gpu_hours: Some(Number(16.0)),
            cost: Some(Number(31.25)),
            partial: true,
            ..GpuTimeRow::default()
        };
        let usage =
            GpuTime { by: GpuTimeBy::Project, rows: vec![row], currency: Some("EUR".into()), ..GpuTime::default() };
        assert_eq!(
            gpu_time_csv(&usage),
            "project,name,runs,gpu_hours,measured_gpu_hours,idle_gpu_hours,reserved_gpu_hours,energy_kwh,cost,currency,partial\n\
             \"'=vision, 2\",,2,12.500,12.000,0.250,16.000,,31.250,EUR,true\n"
        );
    }

    #[test]
    fn each_division_is_read_by_its_word() {
        for by in GpuTimeBy::ALL {
            assert_eq!(by.as_str().parse(), Ok(by));
            assert_eq!(serde_json::to_value(by).expect("a word"), by.as_str());
        }
        assert!("week".parse::<GpuTimeBy>().is_err_and(|why| why.contains("\"week\"")));
    }
}
