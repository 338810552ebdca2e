//! The list of runs: sorted and grouped rows.

use super::columns::sort;
use super::words::{figure, percent};
use super::{Figures, Listed};
use crate::store::fleet::words::count;

/// The name of the group of a run.
fn group_of<'a>(run: &'a Listed, by: &str) -> &'a str {
    match by {
        "group" => &run.group,
        "type" => &run.job_type,
        "user" => &run.user,
        "failure" => run.failure_words(),
        _ => &run.project,
    }
}

/// The keys of rows in order: `=` and the name for a group, `:` and the id for a run.
pub fn keys(mut runs: Vec<Listed>, by: &str, order: &str, now: i64) -> Vec<String> {
    sort(&mut runs, order, now);
    if by == "none" {
        return runs.into_iter().map(|run| format!(":{}", run.id)).collect();
    }
    // Groups are in the order of their first runs.
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for run in &runs {
        let name = group_of(run, by);
        let at = groups.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            groups.push((name.to_string(), Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(format!(":{}", run.id));
    }
    groups.into_iter().flat_map(|(name, own)| std::iter::once(format!("={name}")).chain(own)).collect()
}

/// Summary of a group: its runs and their use of resources.
pub fn gist(runs: &[Listed], by: &str, name: &str) -> String {
    let own: Vec<&Listed> = runs.iter().filter(|run| group_of(run, by) == name).collect();
    let running = own.iter().filter(|run| run.ended.is_none()).count();
    let sum = |of: fn(&Figures) -> Option<f64>| own.iter().filter_map(|run| of(&run.figures)).reduce(|a, b| a + b);
    let (hours, idle) = (sum(|f| f.gpu_hours), sum(|f| Some(f.gpu_hours? * f.idle?)));
    let used = hours.map(|hours| format!("; {}", figure(Some(hours), "GPU-h"))).unwrap_or_default();
    let idle = idle.zip(hours.filter(|hours| *hours > 0.0)).map(|(idle, hours)| idle / hours);
    let idle = idle.map(|idle| format!(", {} of it idle", percent(Some(idle)))).unwrap_or_default();
    let running = if running > 0 { format!("{running} running, ") } else { String::new() };
    format!("{running}{}{used}{idle}", count(own.len(), "run", "runs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::failure::FailureClass;
    use shared::run::RunState;

    fn run(id: &str, project: &str, began: i64, hours: Option<f64>) -> Listed {
        Listed {
            id: id.into(),
            name: id.into(),
            project: project.into(),
            group: String::new(),
            job_type: String::new(),
            user: String::new(),
            state: if began > 2 { RunState::Running } else { RunState::Finished },
            sentence: String::new(),
            failure: None,
            began,
            ended: (began <= 2).then_some(began + 10),
            hosts: Vec::new(),
            program: String::new(),
            tags: Vec::new(),
            gpu_models: Vec::new(),
            ranks: 0,
            figures: Figures { gpu_hours: hours, idle: hours.map(|_| 0.5), ..Figures::default() },
            spark: Vec::new(),
        }
    }

    #[test]
    fn rows_are_sorted_and_grouped() {
        let all = || vec![run("a", "llm", 1, Some(2.0)), run("b", "", 2, None), run("c", "llm", 3, Some(6.0))];
        assert_eq!(keys(all(), "none", "", 100), [":c", ":b", ":a"], "the newest first");
        assert_eq!(keys(all(), "none", "-began", 100), [":a", ":b", ":c"]);
        assert_eq!(keys(all(), "none", "gpu_hours", 100), [":c", ":a", ":b"], "what is not known is last");
        assert_eq!(keys(all(), "", "name", 100), ["=llm", ":a", ":c", "=", ":b"]);
        let mut failed = all();
        (failed[0].failure, failed[1].failure) = (Some(FailureClass::DiskFull), Some(FailureClass::DiskFull));
        assert_eq!(keys(failed.clone(), "failure", "", 100), ["=", ":c", "=disk full", ":b", ":a"]);
        assert_eq!(gist(&failed, "failure", "disk full"), "2 runs; 2 GPU-h, 50 % of it idle");
        assert_eq!(gist(&all(), "", "llm"), "1 running, 2 runs; 8 GPU-h, 50 % of it idle");
        assert_eq!(gist(&all(), "", ""), "1 run");
    }
}
