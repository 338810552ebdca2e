//! Answers about the output of training jobs.

use crate::json::Seconds;
use crate::output::OutputStream;
use serde::{Deserialize, Serialize};

/// `GET /api/v1/runs/ID/logs?format=json`. With `format=jsonl` each line is a [`LogRow`] by itself, and after them come
/// [`LogGap`]s.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogList {
    /// Those of earlier times first.
    pub lines: Vec<LogRow>,
    /// Machines whose lines are missing.
    pub missing: Vec<LogMissing>,
}

/// A line that a process printed, or, if `lost` is set, lines that were not kept.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    /// When it ended.
    pub t: Seconds,
    /// Its number among the lines of its process, from 1.
    pub n: u64,
    /// Name of its machine.
    pub source: String,
    /// Number of its process.
    pub pid: u32,
    /// When that process began.
    pub began: Seconds,
    /// Its rank; left out if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Label of its process; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its output stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<OutputStream>,
    /// Its text, with escape sequences only for colors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// It was longer; left out if it was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Number of lines that were not kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

/// A machine whose lines are missing.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMissing {
    /// Its name.
    pub source: String,
    /// Reason, in a sentence.
    pub why: String,
}

/// The same, as a row of `format=jsonl`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogGap {
    /// Its name.
    pub source: String,
    /// Reason, in a sentence.
    pub missing: String,
}
