//! `[runs]`: how training jobs are followed.

use super::team::FileTable;
use serde::Deserialize;
use std::path::PathBuf;
use toml::Table;

/// `[runs]`: how training jobs are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawRuns")]
pub struct RunsSettings {
    /// The tool that says how a job of Slurm ended; None: where Slurm's packages put it.
    pub scontrol: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRuns {
    scontrol: Option<PathBuf>,
}

impl TryFrom<RawRuns> for RunsSettings {
    type Error = String;

    fn try_from(raw: RawRuns) -> Result<Self, String> {
        if raw.scontrol.as_ref().is_some_and(|file| !file.is_absolute()) {
            return Err("runs.scontrol: write the whole path, from / on".into());
        }
        Ok(RunsSettings { scontrol: raw.scontrol })
    }
}

impl FileTable for RunsSettings {
    const KEYS: &'static [(&'static str, &'static str)] =
        &[("scontrol", "Slurm's tool, which is asked how a job ended; /usr/bin/scontrol unless it is written")];

    fn print(&self) -> Table {
        let tool = self.scontrol.as_ref().map(|file| ("scontrol".to_string(), file.display().to_string().into()));
        tool.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| toml::from_str::<RunsSettings>(text);
        assert_eq!(read("").expect("nothing"), RunsSettings::default());
        let own = read("scontrol = \"/opt/slurm/bin/scontrol\"").expect("a table");
        assert_eq!(toml::from_str::<RunsSettings>(&own.print().to_string()).expect("a table"), own);
        assert!(read("scontrol = \"scontrol\"").expect_err("relative").to_string().contains("from / on"));
    }
}
