//! Runs as lanes over time: runs with one name and user share a lane.

use super::Listed;
use charts::order;

/// The key of a run's lane.
pub fn lane_of(run: &Listed) -> String {
    format!("{}\n{}", run.name, run.user)
}

/// Keys of the lanes with runs in a span: first those with a running job, then those that ended last.
pub fn lanes(runs: &[Listed], (from, to): (i64, i64)) -> Vec<String> {
    let mut known: Vec<(String, i64)> = Vec::new();
    for run in runs.iter().filter(|run| run.began < to && run.ended.unwrap_or(to) > from) {
        let (key, end) = (lane_of(run), run.ended.unwrap_or(i64::MAX));
        match known.iter_mut().find(|(lane, _)| *lane == key) {
            Some((_, last)) => *last = (*last).max(end),
            None => known.push((key, end)),
        }
    }
    order::sort_by_key(&mut known, |(_, last)| std::cmp::Reverse(*last));
    known.into_iter().map(|(lane, _)| lane).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Figures;
    use super::*;
    use shared::run::RunState;

    fn run(id: &str, name: &str, began: i64, ended: Option<i64>) -> Listed {
        Listed {
            id: id.into(),
            name: name.into(),
            project: String::new(),
            group: String::new(),
            job_type: String::new(),
            user: "amira".into(),
            state: RunState::Finished,
            sentence: String::new(),
            failure: None,
            began,
            ended,
            hosts: Vec::new(),
            program: String::new(),
            tags: Vec::new(),
            gpu_models: Vec::new(),
            ranks: 0,
            figures: Figures::default(),
            spark: Vec::new(),
        }
    }

    #[test]
    fn jobs_of_one_name_share_a_lane_and_those_that_run_come_first() {
        let runs = [
            run("d", "sft", 90, Some(95)),
            run("c", "eval", 50, None),
            run("b", "sft", 20, Some(40)),
            run("a", "old", 1, Some(9)),
        ];
        assert_eq!(lanes(&runs, (10, 100)), ["eval\namira", "sft\namira"]);
        assert_eq!(lanes(&runs, (0, 5)), ["old\namira"]);
    }
}
