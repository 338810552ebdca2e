//! `[audit]`: how long a hub keeps who did what, and where it writes it down besides.

use super::value;
use serde::Deserialize;
use settings::FileTable;
use std::path::PathBuf;
use std::time::Duration;
use toml::Table;

/// How long rows are kept unless it is said, and at least.
const KEPT: Duration = Duration::from_secs(400 * 86_400);
const LEAST: Duration = Duration::from_secs(86_400);

/// `[audit]`: the audit log of a hub.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawAudit")]
pub struct AuditSettings {
    /// A file that each row is written to as a line of JSON, besides the database.
    pub file: Option<PathBuf>,
    /// How long rows stay in the database, at least a day.
    pub keep: Duration,
}

impl Default for AuditSettings {
    fn default() -> Self {
        AuditSettings { file: None, keep: KEPT }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAudit {
    file: Option<PathBuf>,
    keep: Option<String>,
}

impl TryFrom<RawAudit> for AuditSettings {
    type Error = String;

    fn try_from(raw: RawAudit) -> Result<Self, String> {
        if raw.file.as_ref().is_some_and(|file| !file.is_absolute()) {
            return Err("audit.file: write the whole path, from / on".into());
        }
        let keep = raw.keep.as_deref().map(value::retention).transpose().map_err(|why| format!("audit.keep: {why}"))?;
        match keep.unwrap_or(KEPT) {
            keep if keep < LEAST => Err("audit.keep: write at least 1d".into()),
            keep => Ok(AuditSettings { file: raw.file, keep }),
        }
    }
}

impl FileTable for AuditSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        (
            "file",
            "A file that each row is written to as a line of JSON, for its owner alone; it may be moved away at any time",
        ),
        ("keep", "How long rows stay in the database, 1d to 3650d; 400d unless it is written"),
    ];

    fn print(&self) -> Table {
        let file = self.file.as_ref().map(|file| ("file".to_string(), file.display().to_string().into()));
        let keep = ("keep".to_string(), format!("{}s", self.keep.as_secs()).into());
        file.into_iter().chain([keep]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| toml::from_str::<AuditSettings>(text);
        assert_eq!(read("").expect("nothing"), AuditSettings::default());
        let own = read("file = \"/var/log/watchglass/audit.jsonl\"\nkeep = \"30d\"").expect("a table");
        assert_eq!(own.keep, Duration::from_secs(30 * 86_400));
        assert_eq!(toml::from_str::<AuditSettings>(&own.print().to_string()).expect("a table"), own);
        for (wrong, said) in [
            ("keep = \"1h\"", "at least 1d"),
            ("keep = \"soon\"", "audit.keep"),
            ("file = \"audit\"", "from / on"),
            ("files = \"/a\"", "unknown field"),
        ] {
            let error = read(wrong).expect_err(wrong).to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
