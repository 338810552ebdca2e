//! The step of Slurm in which a process runs: `srun` starts the same command as several tasks, often on several
//! machines, and they are one run.

use shared::run::check_id;

/// Maximum length of the name of a cluster in the ID of a run, bytes.
const MAX_CLUSTER_BYTES: usize = 24;

/// A task of a step that has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// ID of the run of all tasks, such as `slurm-big-42-0`.
    pub run: String,
    /// Whether it is the first task, which begins the run; the others join it.
    pub is_first: bool,
}

impl Step {
    /// Reads an environment. None outside of a step, and in one with a single task. Scripts and interactive shells of a
    /// job are no tasks: their step has no number.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Step> {
        let number = |name| variable(name)?.parse::<u32>().ok();
        let (step, task) = (number("SLURM_STEP_ID")?, number("SLURM_PROCID")?);
        if number("SLURM_STEP_NUM_TASKS").or_else(|| number("SLURM_NTASKS"))? < 2 {
            return None;
        }
        let job = variable("SLURM_JOB_ID")?;
        let mut cluster = variable("SLURM_CLUSTER_NAME").unwrap_or_default();
        cluster.retain(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        cluster.truncate(MAX_CLUSTER_BYTES);
        let cluster = if cluster.is_empty() { cluster } else { format!("{cluster}-") };
        // A job that was requeued keeps its number.
        let restarts = number("SLURM_RESTART_COUNT").filter(|count| *count > 0);
        let again = restarts.map_or(String::new(), |count| format!("-r{count}"));
        let run = format!("slurm-{cluster}{job}-{step}{again}");
        check_id(&run).is_ok().then_some(Step { run, is_first: task == 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(variables: &[(&str, &str)]) -> Option<Step> {
        Step::from_variables(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| v.to_string()))
    }

    #[test]
    fn the_tasks_of_a_step_are_one_run_which_the_first_begins() {
        let task = |number: &'static str| {
            let all =
                [("SLURM_JOB_ID", "42"), ("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "16"), ("SLURM_PROCID", number)];
            step(&all).expect("a task")
        };
        assert_eq!(task("0"), Step { run: "slurm-42-0".into(), is_first: true });
        assert_eq!(task("15"), Step { run: "slurm-42-0".into(), is_first: false });
        let all = [
            ("SLURM_CLUSTER_NAME", "big ä"),
            ("SLURM_JOB_ID", "42"),
            ("SLURM_STEP_ID", "3"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_PROCID", "1"),
            ("SLURM_RESTART_COUNT", "2"),
        ];
        assert_eq!(step(&all).expect("a task").run, "slurm-big-42-3-r2");
    }

    #[test]
    fn a_single_task_and_a_batch_script_begin_runs_of_their_own() {
        let job = [("SLURM_JOB_ID", "42"), ("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")];
        assert_eq!(step(&job), None, "a script of the job");
        assert_eq!(step(&[&job[..], &[("SLURM_STEP_ID", "batch")]].concat()), None);
        let single = [("SLURM_JOB_ID", "42"), ("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "1"), ("SLURM_PROCID", "0")];
        assert_eq!(step(&single), None);
        // The step may have fewer tasks than the job.
        let of_step = [("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_STEP_ID", "1")];
        assert_eq!(step(&[&job[..], &of_step].concat()), None);
        let wild = [("SLURM_JOB_ID", "../x"), ("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "2"), ("SLURM_PROCID", "0")];
        assert_eq!(step(&wild), None);
    }
}
