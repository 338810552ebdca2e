//! Who may say what on the socket of runs. It is open to other users of the machine where `[runs] socket_mode` says so.
//!
//! | message | the user of this program, root | another user |
//! |---|---|---|
//! | a process begins | yes | one of theirs, in a run that is theirs or new; 256 at once |
//! | a process ended | yes | in a run that is theirs or new |
//! | a marker, an alert | yes | of the machine, or of a run that is theirs |
//! | where output is kept | yes | no: the folder is this program's alone |

use super::output::ENDED;
use super::socket::{Message, SentBy};
use launch::process::{Stat, namespace};
use shared::run::{Begun, How, Over, Told};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most processes of runs of another user that are known at once.
const MAX_RUNNING: usize = 256;

/// How late a message may come, milliseconds.
const LATE_MS: i64 = 2_000;

/// So many runs are looked through for those that have no records any more.
const MANY: usize = 100_000;

/// The runs of this machine, and who has each: whoever began it.
pub(super) struct Owners {
    runs: HashMap<String, Option<String>>,
    /// Folder of the runs of which there may be no records any more.
    ended: PathBuf,
    /// What the user of this program is called, and root.
    trusted: [String; 2],
}

impl Owners {
    /// `data` is the data folder, `trusted` are the user of this program and root.
    pub fn new(data: &Path, trusted: [String; 2]) -> Owners {
        Owners { runs: HashMap::new(), ended: data.join(ENDED), trusted }
    }

    /// Takes a process of a run; of all, the first says whose it is.
    pub fn take(&mut self, begun: &Begun) {
        if !self.runs.contains_key(&begun.run) {
            self.runs.insert(begun.run.clone(), begun.about.user.clone());
        }
    }

    /// There may be many of which there are no records any more.
    pub fn are_many(&self) -> bool {
        self.runs.len() >= MANY
    }

    /// Forgets all.
    pub fn forget(&mut self) {
        self.runs.clear();
    }

    /// Whether a process that was found may belong to the run that its environment alone names.
    pub fn fits(&self, begun: &Begun) -> bool {
        let user = begun.about.user.as_ref();
        match self.runs.get(&begun.run) {
            None => true,
            Some(Some(owner)) => user == Some(owner),
            // It is told of by requests, which name no user.
            Some(None) => user.is_some_and(|user| self.trusted.contains(user)),
        }
    }

    /// Whether a message may be taken; `running` are the processes of runs that are known, of a user.
    ///
    /// # Errors
    /// A sentence for whoever sent it.
    pub fn check(&self, sender: &SentBy, message: &Message, running: impl FnOnce(&str) -> usize) -> Result<(), String> {
        let Some(user) = &sender.other else { return Ok(()) };
        let owner = |run: &str| self.runs.get(run).map(|owner| owner.as_ref() == Some(user));
        let has_ended = |run: &str| self.ended.join(format!("{run}.json")).exists();
        let own_or_new = |run: &str| match owner(run) {
            Some(true) => Ok(()),
            None if !has_ended(run) => Ok(()),
            _ => Err(format!("the run {run} is another user's; choose another id")),
        };
        let own = |run: &Option<String>| match run {
            Some(run) if owner(run) != Some(true) => Err(format!("no run {run} of yours is known on this machine")),
            _ => Ok(()),
        };
        match message {
            Message::Told(told) => match &**told {
                Told::Begin(begun) if is_of_another(begun, sender.uid) => {
                    Err(format!("the process {} is another user's", begun.pid))
                }
                Told::Begin(_) if running(user) >= MAX_RUNNING => {
                    Err(format!("{MAX_RUNNING} processes of your runs are known; further ones are left out"))
                }
                Told::Begin(begun) | Told::End(Over { begun, .. }) => own_or_new(&begun.run),
            },
            Message::Marker(marker) => own(&marker.run),
            Message::Alert(alert) => own(&alert.run),
            Message::Logs => Err("what jobs of other users print is not kept by this server".into()),
        }
    }
}

/// Whether there is a process of that number, which is not the one that is meant or not this user's. One that is gone may have
/// been. The numbers of another namespace say nothing here.
fn is_of_another(begun: &Begun, uid: Option<u32>) -> bool {
    let Some(stat) = Stat::of(begun.pid).filter(|_| begun.namespace == namespace()) else { return false };
    let owner = std::fs::metadata(format!("/proc/{}", begun.pid)).map(|process| process.uid());
    Some(stat.start) != begun.start || owner.is_ok_and(|owner| Some(owner) != uid)
}

/// Whether a process is in a job of Slurm, as the name of its control group says: `/system.slice/slurmstepd.scope/job_7/step_0`,
/// or `/slurm/uid_1000/job_7/step_0` of version 1.
fn is_in_job(pid: u32, job: &str) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().flat_map(|line| line.split('/')).any(|part| part.strip_prefix("job_") == Some(job))
}

/// What another user tells, without what only the kernel and schedulers can know: a place among ranks, GPUs, a pod, another
/// time than about now.
pub(super) fn without_claims(told: Told, now: i64) -> Told {
    let about_now = |t: i64| t.clamp(now - LATE_MS, now);
    let begun = |begun: Begun| {
        let slurm = begun.slurm.filter(|job| begun.namespace == namespace() && is_in_job(begun.pid, job));
        Begun { t: about_now(begun.t), rank: None, slurm, pod: None, told: false, ..begun }
    };
    match told {
        Told::Begin(one) => Told::Begin(begun(one)),
        Told::End(Over { begun: one, t, how }) => {
            Told::End(Over { begun: begun(one), t: about_now(t), how: How { claim: None, ..how } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markers::marker::NewMarker;
    use shared::alert::{AlertSeverity, CodeAlert};
    use shared::run::{About, Claim, Pod, Rank};

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
        let (bob, us) = (SentBy::of(Some("bob"), 1), SentBy::of(None, 0));
        let told = |told: Told| Message::Told(Box::new(told));
        let begin = |run: &str| told(Told::Begin(begun(run, "bob")));
        let end = |run: &str| told(Told::End(Over { begun: begun(run, "bob"), t: 1, how: How::default() }));
        let marker = |run: Option<&str>| {
            Message::Marker(Box::new(NewMarker { run: run.map(Into::into), ..NewMarker::default() }))
        };
        let allowed = [
            begin("of-bob"),
            begin("new"),
            end("of-bob"),
            end("new"),
            marker(None),
            marker(Some("of-bob")),
            alert(None),
            alert(Some("of-bob")),
        ];
        for message in &allowed {
            assert_eq!(owners.check(&bob, message, |_| 0), Ok(()), "{message:?}");
        }
        let mut refused = vec![marker(Some("new")), alert(Some("new")), Message::Logs];
        for run in ["of-ann", "of-root", "by-report"] {
            refused.extend([begin(run), end(run), marker(Some(run)), alert(Some(run))]);
        }
        for message in &refused {
            assert!(owners.check(&bob, message, |_| 0).is_err(), "{message:?}");
            assert_eq!(owners.check(&us, message, |_| MAX_RUNNING), Ok(()), "{message:?}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(ENDED)).expect("a folder");
        std::fs::write(folder.path().join(ENDED).join("old.json"), "{}").expect("written");
        let old = Owners::new(folder.path(), ["watchglass".into(), "root".into()]);
        assert!(old.check(&bob, &begin("old"), |_| 0).is_err() && old.check(&bob, &end("old"), |_| 0).is_err());
        assert_eq!(old.check(&bob, &begin("new"), |_| 0), Ok(()));
        assert!(owners.check(&bob, &begin("new"), |user| if user == "bob" { MAX_RUNNING } else { 0 }).is_err());
        assert_eq!(owners.check(&bob, &end("of-bob"), |_| MAX_RUNNING), Ok(()), "an end makes room");
    }

    #[test]
    fn another_user_claims_neither_gpus_nor_times_nor_the_word_of_a_scheduler() {
        let pod = Some(Pod { uid: "x".into(), container: None });
        let slurm = Some("7".into());
        let said = Begun { t: i64::MAX, rank: Some(Rank::default()), slurm, pod, told: true, ..begun("new", "bob") };
        let claim = Some(Claim { who: "slurm".into(), word: "PREEMPTED".into() });
        let how = How { exit: Some(3), claim, ..How::default() };
        let end = Told::End(Over { begun: said.clone(), t: 0, how });
        let plain = Begun { t: 1_000_000, ..begun("new", "bob") };
        assert_eq!(without_claims(Told::Begin(said), 1_000_000), Told::Begin(plain.clone()));
        let how = How { exit: Some(3), ..How::default() };
        assert_eq!(without_claims(end, 1_000_000), Told::End(Over { begun: plain, t: 998_000, how }));
    }

    #[test]
    fn a_process_of_somebody_else_is_in_no_run_of_another_user() {
        let own = std::process::id();
        let uid = std::fs::metadata("/proc/self").expect("this process").uid();
        let (start, namespace) = (Stat::of(own).map(|stat| stat.start), namespace());
        let ours = Begun { pid: own, start, namespace, ..begun("new", "bob") };
        let begin = |begun: &Begun| Message::Told(Box::new(Told::Begin(begun.clone())));
        let check = |begun: &Begun, uid| owners().check(&SentBy::of(Some("bob"), uid), &begin(begun), |_| 0);
        assert!(check(&ours, uid + 1).is_err());
        assert_eq!(check(&ours, uid), Ok(()));
        for start in [None, Some(1)] {
            assert!(check(&Begun { start, ..ours.clone() }, uid).is_err(), "its number is another's now");
        }
        assert_eq!(check(&Begun { pid: u32::MAX, ..ours.clone() }, uid + 1), Ok(()), "it has ended");
        assert_eq!(check(&Begun { namespace: None, ..ours }, uid + 1), Ok(()), "of a container");
        let fits = |run: &str, user: &str| owners().fits(&begun(run, user));
        assert!(fits("of-ann", "ann") && fits("new", "bob") && fits("by-report", "watchglass"));
        for run in ["of-ann", "of-root", "by-report"] {
            assert!(!fits(run, "bob"), "its environment names a run of another user: {run}");
        }
    }
}
