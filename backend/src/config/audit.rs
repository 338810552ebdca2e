//! `[audit]`: retention of the audit log of a hub, and its additional file.

use settings::length::retention;
use settings::{table, value};
use std::path::PathBuf;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

table! {
    /// `[audit]`: the audit log of a hub.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AuditSettings {
        /// File to which each row is appended as a line of JSON, readable by its owner only; it may be moved away at
        /// any time
        file: Option<PathBuf> = None, text(value::absolute), like "\"/var/log/watchglass/audit.jsonl\"";
        /// Retention of rows in the database, 1d to 3650d
        keep: Duration = 400 * DAY, text(kept);
    }
}

fn kept(text: &str) -> Result<Duration, String> {
    match retention(text)? {
        kept if kept < DAY => Err("write at least 1d".into()),
        kept => Ok(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| AuditSettings::TABLE.read_text(text);
        assert_eq!(read("").expect("nothing"), AuditSettings::default());
        let own = read("file = \"/var/log/watchglass/audit.jsonl\"\nkeep = \"30d\"").expect("a table");
        assert_eq!(own.keep, Duration::from_secs(30 * 86_400));
        assert_eq!(
            AuditSettings::TABLE.read_text(&AuditSettings::TABLE.print(&own).to_string()).expect("a table"),
            own
        );
        for (wrong, said) in [
            ("keep = \"1h\"", "at least 1d"),
            ("keep = \"soon\"", "keep: "),
            ("file = \"audit\"", "from / on"),
            ("files = \"/a\"", "did you mean file?"),
        ] {
            let error = read(wrong).expect_err(wrong).to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
