//! Permissions of senders on the socket of runs. Other users of the machine may use it if `[runs] socket_mode` allows
//! that.
//!
//! | message | the user of this program, root | another user |
//! |---|---|---|
//! | a process begins | yes | one of theirs; 256 at once |
//! | a process ended | yes | yes |
//! | a marker, an alert, values | yes | of the machine, or of a run that is theirs |
//! | ID of a new run | yes | yes |
//! | location of the output, stacks in it | yes | no: the folder is this program's alone |
//!
//! A run belongs to the user who began it. Another user who reports the same ID has a run of their own, under another
//! ID.

use super::other_id;
use super::output::ENDED;
use super::socket::{Message, SentBy};
use launch::process::{Stat, namespace};
use serde::Deserialize;
use shared::run::{Begun, How, Over, Told};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of running processes in the runs of another user.
const MAX_RUNNING: usize = 256;

/// Maximum delay of a message, milliseconds.
const LATE_MS: i64 = 2_000;

/// Maximum delay of another user's spooled report, milliseconds: runs are given up after that.
const KEPT_MS: i64 = 12 * 3_600_000;

/// Number of known runs from which on those without records are dropped.
const MAX_UNRECORDED: usize = 100_000;

/// The owner of each run of this machine: the user who began it.
pub(super) struct Owners {
    runs: HashMap<String, Option<String>>,
    /// Folder of ended runs, whose records may be gone.
    ended: PathBuf,
    /// Names of the user of this program, and of root.
    trusted: [String; 2],
}

/// The part that is read of an ended run's summary.
#[derive(Deserialize)]
struct Ended {
    run: EndedRun,
}

#[derive(Deserialize)]
struct EndedRun {
    #[serde(default)]
    user: Option<String>,
}

impl Owners {
    /// `data` is the data folder; `trusted` are the user of this program and root.
    pub fn new(data: &Path, trusted: [String; 2]) -> Owners {
        Owners { runs: HashMap::new(), ended: data.join(ENDED), trusted }
    }

    /// Adds a process of a run; the first process decides the owner.
    pub fn take(&mut self, begun: &Begun) {
        if !self.runs.contains_key(&begun.run) {
            self.runs.insert(begun.run.clone(), begun.about.user.clone());
        }
    }

    /// Whether the list is so long that many of its runs may have no records any more.
    pub fn are_many(&self) -> bool {
        self.runs.len() >= MAX_UNRECORDED
    }

    /// Removes all runs.
    pub fn forget(&mut self) {
        self.runs.clear();
    }

    /// The owner of a run, if it is known. The inner None is a run reported by request, which has no user.
    fn owner(&self, run: &str) -> Option<Option<String>> {
        if let Some(owner) = self.runs.get(run) {
            return Some(owner.clone());
        }
        let ended = std::fs::read(self.ended.join(format!("{run}.json"))).ok()?;
        Some(serde_json::from_slice::<Ended>(&ended).ok()?.run.user)
    }

    /// Whether a run has a user as its owner.
    pub fn is_somebodys(&self, run: &str) -> bool {
        self.owner(run).flatten().is_some()
    }

    /// Whether a user's process may belong to a run merely because it names that run.
    pub fn fits(&self, run: &str, user: Option<&str>) -> bool {
        match self.owner(run) {
            None => true,
            Some(Some(owner)) => user == Some(&owner),
            Some(None) => user.is_some_and(|user| self.trusted.iter().any(|trusted| trusted == user)),
        }
    }

    /// The ID of a user's run: another one if the run of that ID has another owner.
    pub fn id(&self, run: &str, user: Option<&str>) -> String {
        match self.fits(run, user) {
            true => run.into(),
            false => other_id(run, user.unwrap_or_default()),
        }
    }

    /// The ID for a new run of a user who requested this one at `now`, milliseconds since the Unix epoch: another one if a
    /// run of the same user has it. For a run of another user, [`Owners::id`] decides when it begins.
    pub fn new_id(&self, run: &str, user: &str, now: i64) -> String {
        let own = self.id(run, Some(user));
        let is_free = self.owner(&own).is_none();
        if is_free { run.into() } else { other_id(run, &format!("{user} {now}")) }
    }

    /// Whether a message is permitted; `running` returns the number of known processes in a user's runs.
    ///
    /// # Errors
    /// A sentence for the sender.
    pub fn check(&self, sender: &SentBy, message: &Message, running: impl FnOnce(&str) -> usize) -> Result<(), String> {
        if !sender.is_other {
            return Ok(());
        }
        let user = &sender.user;
        let own = |run: &Option<String>| match run {
            Some(run) if self.owner(&self.id(run, Some(user))) != Some(Some(user.clone())) => {
                Err(format!("you have no run {run} on this machine"))
            }
            _ => Ok(()),
        };
        match message {
            Message::Told(told) => match &**told {
                Told::Begin(begun) if is_of_another(begun, sender.from.uid) => {
                    Err(format!("the process {} belongs to another user", begun.pid))
                }
                Told::Begin(_) if running(user) >= MAX_RUNNING => Err(format!(
                    "the limit of {MAX_RUNNING} processes in your runs is reached; further processes are ignored"
                )),
                Told::Begin(_) | Told::End(_) => Ok(()),
            },
            Message::Marker(marker) => own(&marker.run),
            Message::Alert(alert) => own(&alert.run),
            Message::Values(values) => own(&values.run),
            Message::NewId(_) => Ok(()),
            Message::Logs(_) | Message::Stacks(_) => {
                Err("this server does not record the output of other users' jobs".into())
            }
        }
    }
}

/// Whether the PID belongs to another process or another user. A process that has gone may have been the right one.
/// PIDs of another namespace cannot be checked.
fn is_of_another(begun: &Begun, uid: Option<u32>) -> bool {
    let Some(stat) = Stat::read(begun.pid).filter(|_| begun.namespace == namespace()) else { return false };
    let owner = std::fs::metadata(format!("/proc/{}", begun.pid)).map(|process| process.uid());
    Some(stat.start) != begun.start || owner.is_ok_and(|owner| Some(owner) != uid)
}

/// Whether a process is in a Slurm job, by the name of its control group:
/// `/system.slice/slurmstepd.scope/job_7/step_0`, or `/slurm/uid_1000/job_7/step_0` of version 1.
pub(super) fn is_in_job(pid: u32, job: &str) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().flat_map(|line| line.split('/')).any(|part| part.strip_prefix("job_") == Some(job))
}

/// A report of another user, without the facts that only the kernel and schedulers can know: rank, GPUs and pod. Its
/// time is limited to about now. The end of a job may be reported late, with its own times.
pub(super) fn without_claims(told: Told, now: i64) -> Told {
    let begun = |begun: Begun, late: i64| {
        let slurm = begun.slurm.filter(|job| begun.namespace == namespace() && is_in_job(begun.pid, job));
        // A job that the kernel does not confirm has nothing reserved.
        let reserved = begun.reserved.filter(|_| slurm.is_some());
        Begun { t: begun.t.clamp(now - late, now), rank: None, slurm, reserved, pod: None, told: false, ..begun }
    };
    match told {
        Told::Begin(one) => Told::Begin(begun(one, LATE_MS)),
        Told::End(Over { begun: one, t, how }) => {
            // The run may have taken longer than the accepted delay, so its start keeps its distance.
            let begun = Begun { t: one.t.min(now), ..begun(one, LATE_MS) };
            Told::End(Over { begun, t: t.clamp(now - KEPT_MS, now), how: How { claim: None, ..how } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::alert::{AlertSeverity, CodeAlert};
    use shared::new_marker::NewMarker;
    use shared::run::{About, Claim, Pod, Rank, Reserved};

    fn begun(run: &str, user: &str) -> Begun {
        Begun { run: run.into(), about: About { user: Some(user.into()), ..About::default() }, ..Begun::default() }
    }

    fn owners() -> Owners {
        let mut owners = Owners::new(Path::new("/no/such/folder"), ["watchglass".into(), "root".into()]);
        for (run, user) in [("of-ann", "ann"), ("of-bob", "bob"), ("of-root", "root")] {
            owners.take(&begun(run, user));
        }
        owners.take(&Begun { run: "by-report".into(), ..Begun::default() });
        owners.take(&begun("of-ann", "bob"));
        owners
    }

    fn alert(run: Option<&str>) -> Message {
        Message::Alert(Box::new(CodeAlert {
            title: "x".into(),
            text: String::new(),
            severity: AlertSeverity::Warning,
            wait: None,
            run: run.map(Into::into),
            id: None,
            source: None,
            t: None,
        }))
    }

    #[test]
    fn another_user_speaks_for_jobs_of_their_own_alone() {
        let owners = owners();
        let (bob, us) = (SentBy::new(Some("bob"), 1), SentBy::new(None, 0));
        let told = |told: Told| Message::Told(Box::new(told));
        let begin = |run: &str| told(Told::Begin(begun(run, "bob")));
        let end = |run: &str| told(Told::End(Over { begun: begun(run, "bob"), t: 1, how: How::default() }));
        let marker = |run: Option<&str>| {
            Message::Marker(Box::new(NewMarker { run: run.map(Into::into), ..NewMarker::default() }))
        };
        let mut allowed = vec![marker(None), marker(Some("of-bob")), alert(None), alert(Some("of-bob"))];
        let mut refused = vec![marker(Some("new")), alert(Some("new")), Message::Logs("new".into())];
        for run in ["of-ann", "of-root", "by-report"] {
            refused.extend([marker(Some(run)), alert(Some(run))]);
        }
        for run in ["of-bob", "new", "of-ann", "of-root", "by-report"] {
            allowed.extend([begin(run), end(run)]);
        }
        for message in &allowed {
            assert_eq!(owners.check(&bob, message, |_| 0), Ok(()), "{message:?}");
        }
        for message in &refused {
            assert!(owners.check(&bob, message, |_| 0).is_err(), "{message:?}");
            assert_eq!(owners.check(&us, message, |_| MAX_RUNNING), Ok(()), "{message:?}");
        }
        assert!(owners.check(&bob, &begin("new"), |user| if user == "bob" { MAX_RUNNING } else { 0 }).is_err());
        assert_eq!(owners.check(&bob, &end("of-bob"), |_| MAX_RUNNING), Ok(()), "an end makes room");
    }

    #[test]
    fn an_id_that_a_user_has_used_gets_another_one_and_that_of_another_user_stays() {
        let owners = owners();
        assert_eq!(owners.new_id("new", "bob", 5), "new");
        let again = owners.new_id("of-bob", "bob", 5);
        assert!(again.starts_with("of-bob-") && again != owners.new_id("of-bob", "bob", 6), "{again}");
        assert_eq!(owners.new_id("of-ann", "bob", 5), "of-ann", "it gets the ID of this user when it begins");
        assert!(shared::run::check_id(&owners.new_id(&"x".repeat(64), "bob", 5)).is_ok());
    }

    #[test]
    fn who_calls_a_run_as_somebody_else_does_has_one_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let ended = folder.path().join(ENDED);
        std::fs::create_dir(&ended).expect("a folder");
        let run = shared::run::Run { id: "old".into(), about: begun("old", "ann").about, ..Default::default() };
        let summary = crate::runs::RunSummary { run, ..Default::default() };
        std::fs::write(ended.join("old.json"), serde_json::to_vec(&summary).expect("JSON")).expect("written");
        let mut owners = Owners { ended, ..owners() };
        let id = |owners: &Owners, run: &str, user: &str| owners.id(run, Some(user));
        for (run, user) in [("of-ann", "ann"), ("old", "ann"), ("new", "bob"), ("by-report", "root")] {
            assert_eq!(id(&owners, run, user), run, "{user}");
        }
        let mut others = Vec::new();
        for (run, user) in
            [("of-ann", "bob"), ("of-ann", "root"), ("of-root", "bob"), ("old", "bob"), ("by-report", "bob")]
        {
            let other = id(&owners, run, user);
            assert!(other.starts_with(run) && other != run && shared::run::check_id(&other).is_ok(), "{other}");
            assert_eq!(id(&owners, run, user), other, "always the same");
            others.push(other);
        }
        others.sort();
        others.dedup();
        assert_eq!(others.len(), 5);
        let long = "x".repeat(shared::run::MAX_ID_BYTES);
        owners.take(&begun(&long, "ann"));
        assert_eq!(shared::run::check_id(&id(&owners, &long, "bob")), Ok(()));
        // From then on the run is theirs, also for markers and alerts.
        owners.take(&begun(&id(&owners, "of-ann", "bob"), "bob"));
        assert_eq!(owners.check(&SentBy::new(Some("bob"), 1), &alert(Some("of-ann")), |_| 0), Ok(()));
        assert!(owners.is_somebodys("of-ann") && owners.is_somebodys("old"));
        assert!(!owners.is_somebodys("new") && !owners.is_somebodys("by-report"));
    }

    #[test]
    fn another_user_claims_neither_gpus_nor_times_nor_the_word_of_a_scheduler() {
        let pod = Some(Pod { uid: "x".into(), container: None });
        let slurm = Some("7".into());
        let reserved = Some(Reserved { gpus: vec![0, 1], ..Reserved::default() });
        let rank = Some(Rank::default());
        let said = Begun { t: i64::MAX, rank, slurm, reserved, pod, told: true, ..begun("new", "bob") };
        let claim = Some(Claim { who: "slurm".into(), word: "PREEMPTED".into() });
        let how = How { exit: Some(3), claim, ..How::default() };
        const NOW: i64 = 1_000_000_000;
        let end = |t| Told::End(Over { begun: said.clone(), t, how: how.clone() });
        let plain = Begun { t: NOW, ..begun("new", "bob") };
        assert_eq!(without_claims(Told::Begin(said.clone()), NOW), Told::Begin(plain.clone()));
        let early = Told::Begin(Begun { t: 0, ..said.clone() });
        assert_eq!(without_claims(early, NOW), Told::Begin(Begun { t: NOW - LATE_MS, ..plain.clone() }));
        let how = How { exit: Some(3), ..How::default() };
        // The end of a job may be reported late, when no server was reachable.
        for (t, late) in [(NOW + 1, NOW), (NOW - 3_600_000, NOW - 3_600_000), (0, NOW - KEPT_MS)] {
            assert_eq!(
                without_claims(end(t), NOW),
                Told::End(Over { begun: plain.clone(), t: late, how: how.clone() })
            );
        }
    }

    #[test]
    fn a_process_of_somebody_else_is_in_no_run_of_another_user() {
        let own = std::process::id();
        let uid = std::fs::metadata("/proc/self").expect("this process").uid();
        let (start, namespace) = (Stat::read(own).map(|stat| stat.start), namespace());
        let ours = Begun { pid: own, start, namespace, ..begun("new", "bob") };
        let begin = |begun: &Begun| Message::Told(Box::new(Told::Begin(begun.clone())));
        let check = |begun: &Begun, uid| owners().check(&SentBy::new(Some("bob"), uid), &begin(begun), |_| 0);
        assert!(check(&ours, uid + 1).is_err());
        assert_eq!(check(&ours, uid), Ok(()));
        for start in [None, Some(1)] {
            assert!(check(&Begun { start, ..ours.clone() }, uid).is_err(), "its number is another's now");
        }
        assert_eq!(check(&Begun { pid: u32::MAX, ..ours.clone() }, uid + 1), Ok(()), "it has ended");
        assert_eq!(check(&Begun { namespace: None, ..ours }, uid + 1), Ok(()), "of a container");
        let fits = |run: &str, user: &str| owners().fits(run, Some(user));
        assert!(fits("of-ann", "ann") && fits("new", "bob") && fits("by-report", "watchglass"));
        for run in ["of-ann", "of-root", "by-report"] {
            assert!(!fits(run, "bob"), "its environment names a run of another user: {run}");
        }
    }
}
