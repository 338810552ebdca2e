//! The end of a job according to Slurm: `scontrol show job ID`, by an absolute path, run a few times, only after an
//! end. If that no longer knows the job, the `sacct` beside it is run.

use shared::date;
use shared::run::{Claim, How};
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::local_time::offset;

/// Default path.
pub const SCONTROL: &str = "/usr/bin/scontrol";

/// Delays of the queries to a scheduler after an end: it takes time to record how a job ended.
pub(super) const QUERY_DELAYS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];

/// Maximum run time of a tool.
const DEADLINE: Duration = Duration::from_secs(10);

/// Maximum difference between the clocks of Slurm's machines, milliseconds.
const MAX_APART: i64 = 10 * 60_000;

/// Maximum difference between these clocks where the lives of a requeued job are told apart, milliseconds. It is smaller,
/// because the next life may begin minutes after the last one has ended.
const MAX_LIVES_APART: i64 = 60_000;

/// Runs a tool to its end, by path and arguments, and returns its output; None if it prints nothing in time.
pub type RunTool = fn(&Path, &[&str], Duration) -> Option<String>;

/// Slurm's tools, and the function that runs them.
#[derive(Clone)]
pub(super) struct Slurm {
    /// `scontrol`; `sacct` is beside it.
    pub scontrol: PathBuf,
    /// Runs either tool.
    pub run: RunTool,
}

/// Polls Slurm until it reports the end of the job of this process, or until the last attempt. The process began at
/// `began`, milliseconds since the Unix epoch: a job that had ended by then only has the same number.
pub(super) async fn asked(slurm: Slurm, job: String, began: i64, how: How) -> Option<How> {
    let claim = claim(slurm, job, began).await?;
    Some(How { claim: Some(claim), ..how })
}

async fn claim(Slurm { scontrol, run }: Slurm, job: String, began: i64) -> Option<Claim> {
    let before = local_time(began - MAX_APART);
    for pause in QUERY_DELAYS {
        tokio::time::sleep(pause).await;
        let (scontrol, asked) = (scontrol.clone(), job.clone());
        let ask = move || run(&scontrol, &["show", "job", &asked], DEADLINE);
        match tokio::task::spawn_blocking(ask).await.ok()?.as_deref().and_then(|printed| shown(printed, &job)) {
            Some(said) if said.is_of_before(&before) => return None,
            Some(JobReport { word, .. }) if is_final(&word) => return Some(Claim { who: "slurm".into(), word }),
            // It is still running, according to Slurm, or waits to run again.
            Some(_) => {}
            // Slurm forgets a job minutes after its end.
            None => break,
        }
    }
    let sacct = scontrol.with_file_name("sacct");
    if !is_there(&sacct) {
        return None;
    }
    let asked = job.clone();
    let ask = move || run(&sacct, &["-n", "-X", "-D", "-P", "-o", "JobIDRaw,State,Start,End", "-j", &asked], DEADLINE);
    let printed = tokio::task::spawn_blocking(ask).await.ok()??;
    let said = kept(&printed, &job, &local_time(began + MAX_LIVES_APART))?;
    let is_own = is_final(&said.word) && !said.is_of_before(&local_time(began - MAX_LIVES_APART));
    is_own.then(|| Claim { who: "slurm".into(), word: said.word })
}

/// Slurm's report of a job.
#[derive(Debug, PartialEq, Eq)]
struct JobReport {
    /// Its state.
    word: String,
    /// Its end, local time as `2026-11-27T10:00:00`; None if it has not ended, or if that is not reported.
    ended: Option<String>,
}

impl JobReport {
    fn is_of_before(&self, began: &str) -> bool {
        is_final(&self.word) && self.ended.as_deref().is_some_and(|ended| ended < began)
    }
}

/// Whether Slurm is installed.
pub(super) fn is_there(scontrol: &Path) -> bool {
    scontrol.is_absolute() && scontrol.is_file()
}

/// Parses `scontrol show job` for a job. For the last task of an array it shows all tasks, because that one has the
/// array's number.
fn shown(printed: &str, job: &str) -> Option<JobReport> {
    let (mut is_own, mut word, mut ended) = (false, None, None);
    for pair in printed.split_ascii_whitespace() {
        match pair.split_once('=') {
            Some(("JobId", id)) => is_own = id == job,
            Some(("JobState", state)) if is_own => word = is_word(state),
            Some(("EndTime", time)) if is_own => ended = is_time(time),
            _ => {}
        }
    }
    Some(JobReport { word: word?, ended })
}

/// Parses `sacct`, whose lines have the ID, the state, as `CANCELLED by 1000`, the start and the end. A job that was
/// preempted or requeued has a line for each of its lives, and a number may be reused: the last one that had started by
/// then counts. A job that waits to run again has no start.
fn kept(printed: &str, job: &str, by: &str) -> Option<JobReport> {
    let rows = printed.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let of = |row: Vec<&str>| match row[..] {
        [id, state, started, ended, ..] if id == job => {
            let started = is_time(started).filter(|started| started.as_str() <= by)?;
            let word = is_word(state.split_ascii_whitespace().next()?.trim_end_matches('+'))?;
            Some((started, JobReport { word, ended: is_time(ended) }))
        }
        _ => None,
    };
    rows.filter_map(of).max_by(|(a, _), (b, _)| a.cmp(b)).map(|(_, report)| report)
}

fn is_time(text: &str) -> Option<String> {
    let fits = text.len() == 19 && text.bytes().all(|byte| byte.is_ascii_digit() || b"-:T".contains(&byte));
    fits.then(|| text.into())
}

/// A time, milliseconds since the Unix epoch, in Slurm's format.
fn local_time(t: i64) -> String {
    date::text(t + offset(t)).replace(' ', "T")
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
        let word = |said: Option<JobReport>| said.map(|said| said.word);
        assert_eq!(word(shown(printed, "42")).as_deref(), Some("PREEMPTED"));
        assert_eq!(word(shown(printed, "4")), None);
        assert_eq!(word(shown("slurm_load_jobs error: Invalid job id specified", "42")), None);
        assert_eq!(word(shown("JobId=42 JobState=a;b", "42")), None);
        let cancelled = "42|CANCELLED by 1000|2026-11-27T09:00:00|2026-11-27T10:00:00\n";
        assert_eq!(word(kept(cancelled, "42", "2026-11-27T09:01:00")).as_deref(), Some("CANCELLED"));
        assert_eq!(["", "slurmdbd: down"].map(|printed| kept(printed, "42", "2026-11-27T09:01:00")), [None, None]);
        assert!(is_final("TIMEOUT") && !is_final("COMPLETING"));
    }

    #[test]
    fn what_is_said_of_other_tasks_and_of_older_jobs_is_not_of_this_one() {
        let task = |id: u32, task: u32, state: &str| {
            format!(
                "JobId={id} ArrayJobId=36 ArrayTaskId={task} JobName=sweep\n   JobState={state} Reason=None\n   EndTime=2026-11-27T10:0{task}:00\n\n"
            )
        };
        let array = task(38, 2, "PREEMPTED") + &task(37, 1, "TIMEOUT") + &task(36, 3, "FAILED");
        for (job, state, ended) in [("36", "FAILED", "3"), ("37", "TIMEOUT", "1"), ("38", "PREEMPTED", "2")] {
            let said = shown(&array, job).expect(job);
            assert_eq!((said.word.as_str(), said.ended), (state, Some(format!("2026-11-27T10:0{ended}:00"))));
        }
        let rows = "38|PREEMPTED|2026-11-27T09:00:00|2026-11-27T10:02:00\n\
                    36|COMPLETED|2023-12-31T00:00:00|2024-01-01T00:00:00\n\
                    36|FAILED|2026-11-27T09:00:00|2026-11-27T10:03:00\n";
        let said = kept(rows, "36", "2026-11-27T09:05:00").expect("the newest");
        assert_eq!(said.word, "FAILED");
        assert!(!said.is_of_before("2026-11-27T09:00:00") && said.is_of_before("2026-11-27T10:04:00"));
        let goes_on = shown("JobId=1 JobState=RUNNING EndTime=2020-01-01T00:00:00", "1").expect("it is shown");
        assert!(!goes_on.is_of_before("2026-11-27T10:04:00"), "that is when it is to end");
        assert_eq!(shown("JobId=1 JobState=FAILED EndTime=Unknown", "1").expect("it is shown").ended, None);
        assert_eq!(local_time(0).len(), 19);
    }

    #[test]
    fn each_life_of_a_requeued_job_has_its_own_end() {
        let rows = "7|PREEMPTED|2026-11-27T09:00:00|2026-11-27T10:00:00\n\
                    7|NODE_FAIL|2026-11-27T10:02:30|2026-11-27T11:00:00\n\
                    7|RUNNING|2026-11-27T11:05:00|Unknown\n";
        let word = |rows: &str, by: &str| kept(rows, "7", by).map(|said| said.word);
        assert_eq!(word(rows, "2026-11-27T09:01:00").as_deref(), Some("PREEMPTED"));
        assert_eq!(word(rows, "2026-11-27T10:03:30").as_deref(), Some("NODE_FAIL"));
        assert_eq!(
            word(rows, "2026-11-27T11:06:00").as_deref(),
            Some("RUNNING"),
            "the end of another life is not its end"
        );
        let waits = "7|PREEMPTED|2026-11-27T09:00:00|2026-11-27T10:00:00\n7|PENDING|Unknown|Unknown\n";
        assert_eq!(word(waits, "2026-11-27T09:01:00").as_deref(), Some("PREEMPTED"));
        assert_eq!(word("7|CANCELLED|None|2026-11-27T10:00:00\n", "2026-11-27T09:01:00"), None, "it never ran");
        // The accounting may not have the line of the new life yet.
        let late = kept(waits, "7", "2026-11-27T10:04:00").expect("the old life");
        assert!(late.is_of_before("2026-11-27T10:02:00"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_waits_to_run_again_was_preempted_by_the_accounting() {
        let folder = tempfile::tempdir().expect("a folder");
        let scontrol = folder.path().join("scontrol");
        std::fs::write(folder.path().join("sacct"), "").expect("a file");
        let run: RunTool = |path, words, _| match path.file_name()?.to_str()? {
            "scontrol" => Some("JobId=7 JobState=PENDING Requeue=1 Restarts=1 EndTime=Unknown".into()),
            _ => {
                let all = ["-n", "-X", "-D", "-P", "-o", "JobIDRaw,State,Start,End", "-j", "7"];
                let (started, ended) = (local_time(1_000_000_000_000), local_time(1_000_003_600_000));
                (words == all).then(|| format!("7|PREEMPTED|{started}|{ended}\n7|PENDING|Unknown|Unknown\n"))
            }
        };
        let slurm = Slurm { scontrol, run };
        let how = asked(slurm.clone(), "7".into(), 1_000_000_030_000, How::default()).await.expect("its end");
        assert_eq!(how.claim.expect("a word").word, "PREEMPTED");
        let next = asked(slurm, "7".into(), 1_000_003_800_000, How::default()).await;
        assert_eq!(next, None, "the next life has another end");
    }
}
