//! What Slurm says of the end of a job: `scontrol show job ID`, by an absolute path, asked a few times after an end alone; and
//! where that does not know the job any more, `sacct` beside it.

use shared::run::{Claim, How};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where it is unless the configuration says so.
pub const SCONTROL: &str = "/usr/bin/scontrol";

/// When a scheduler is asked, after an end: it takes its time to say how a job ended.
pub(super) const TRIES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];

/// How long it may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Asks until Slurm says how the job of a process that ended so did, or until it was asked often enough.
pub(super) async fn asked(scontrol: PathBuf, job: String, how: How) -> Option<How> {
    let claim = claim(scontrol, job).await?;
    Some(How { claim: Some(claim), ..how })
}

async fn claim(scontrol: PathBuf, job: String) -> Option<Claim> {
    for pause in TRIES {
        tokio::time::sleep(pause).await;
        let (scontrol, job) = (scontrol.clone(), job.clone());
        let ask = move || collectors::printed(&scontrol, &["show", "job", &job], DEADLINE);
        match tokio::task::spawn_blocking(ask).await.ok()?.as_deref().map(state) {
            Some(Some(word)) if is_final(&word) => return Some(Claim { who: "slurm".into(), word }),
            // It goes on, as far as Slurm knows.
            Some(Some(_)) => {}
            // It forgets a job minutes after its end.
            Some(None) | None => break,
        }
    }
    let sacct = scontrol.with_file_name("sacct");
    if !is_there(&sacct) {
        return None;
    }
    let ask = move || collectors::printed(&sacct, &["-n", "-X", "-P", "-o", "State", "-j", &job], DEADLINE);
    let word = tokio::task::spawn_blocking(ask).await.ok()?.as_deref().and_then(kept_state)?;
    is_final(&word).then(|| Claim { who: "slurm".into(), word })
}

/// Whether there is a Slurm to be asked.
pub(super) fn is_there(scontrol: &Path) -> bool {
    scontrol.is_absolute() && scontrol.is_file()
}

/// The word behind `JobState=`.
fn state(printed: &str) -> Option<String> {
    is_word(printed.split_ascii_whitespace().find_map(|pair| pair.strip_prefix("JobState="))?)
}

/// The state in `sacct`'s line of a job, as `CANCELLED by 1000`.
fn kept_state(printed: &str) -> Option<String> {
    is_word(printed.split_ascii_whitespace().next()?.trim_end_matches('+'))
}

fn is_word(word: &str) -> Option<String> {
    (word.len() <= 32 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')).then(|| word.into())
}

fn is_final(word: &str) -> bool {
    !matches!(word, "RUNNING" | "COMPLETING" | "PENDING" | "CONFIGURING" | "SUSPENDED" | "STAGE_OUT" | "SIGNALING")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_job_is_read() {
        let printed =
            "JobId=42 JobName=train\n   UserId=x(1000)\n   JobState=PREEMPTED Reason=None Dependency=(null)\n";
        assert_eq!(state(printed).as_deref(), Some("PREEMPTED"));
        assert_eq!(state("slurm_load_jobs error: Invalid job id specified"), None);
        assert_eq!(state("JobState=a;b"), None);
        assert_eq!(kept_state("CANCELLED by 1000\n").as_deref(), Some("CANCELLED"));
        assert_eq!((kept_state(""), kept_state("slurmdbd: down")), (None, None));
        assert!(is_final("TIMEOUT") && !is_final("COMPLETING"));
    }
}
