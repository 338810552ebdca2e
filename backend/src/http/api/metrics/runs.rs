//! Assignment of GPUs to runs for Prometheus: information rows, to be joined by the labels `source` and `gpu`, and
//! `run`.

use crate::export::openmetrics::escape;
use crate::http::App;
use crate::http::admit::Asker;
use crate::http::names::HiddenNames;
use shared::run::Run;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use stream::live::Reader;

/// Maximum number of runs with rows, the newest first.
const MAX_RUNS: usize = 10_000;

pub(super) const RUN_INFO: &str = "A training job that has not ended.";
pub(super) const RANK_RUN: &str = "The run of a rank.";
pub(super) const GPU_RUN: &str = "The run and the rank that hold a GPU.";

/// The rows of the runs that have not ended, without the users whose names are hidden.
pub(super) fn rows(app: &App, asker: &Asker, reader: &Reader, text: &mut String) {
    let names = HiddenNames::from_asker(app, asker);
    let shown = |mut run: Arc<Run>| {
        if names.as_ref().is_some_and(|names| names.hides_run(&run)) {
            Arc::make_mut(&mut run).about.user = None;
        }
        run
    };
    written(&app.runs.open(&app.live, &reader.sources()).take(MAX_RUNS).map(shown).collect::<Vec<_>>(), text);
}

fn written(open: &[Arc<Run>], text: &mut String) {
    if open.is_empty() {
        return;
    }
    let _ = write!(text, "# HELP watchglass_run_info {RUN_INFO}\n# TYPE watchglass_run_info gauge\n");
    for run in open {
        let _ = write!(text, "watchglass_run_info{{run=\"{}\",state=\"{}\"", escape(&run.id, true), run.state.name());
        let about = &run.about;
        let names = [
            ("name", &about.name),
            ("project", &about.project),
            ("group", &about.group),
            ("job_type", &about.job_type),
            ("user", &about.user),
        ];
        for (label, value) in names.into_iter().filter_map(|(label, value)| Some((label, value.as_ref()?))) {
            let _ = write!(text, ",{label}=\"{}\"", escape(value, true));
        }
        text.push_str("} 1\n");
    }
    let mut head = format!("# HELP watchglass_rank_run {RANK_RUN}\n# TYPE watchglass_rank_run gauge\n");
    // If two ranks on a machine have one name, the second has a series of another name.
    let mut named = BTreeSet::new();
    for run in open {
        for process in run.processes.iter().filter(|process| process.ended.is_none()) {
            let Some(rank) = &process.rank else { continue };
            let name = process.label.clone().unwrap_or_else(|| rank.rank.to_string());
            if named.insert((&process.source, name.clone())) {
                text.push_str(&std::mem::take(&mut head));
                let [source, rank, id] = [&process.source, &name, &run.id].map(|text| escape(text, true));
                let _ = writeln!(text, "watchglass_rank_run{{source=\"{source}\",rank=\"{rank}\",run=\"{id}\"}} 1");
            }
        }
    }
    let mut head = format!("# HELP watchglass_gpu_run {GPU_RUN}\n# TYPE watchglass_gpu_run gauge\n");
    // Several processes may have one rank, such as workers that inherit its environment.
    let mut held = BTreeSet::new();
    for run in open {
        for process in run.processes.iter().filter(|process| process.ended.is_none()) {
            // GPUs that are only assumed to be held get no row.
            let Some(rank) = process.rank.as_ref().filter(|rank| !rank.assumed) else { continue };
            for gpu in &rank.gpus {
                if !held.insert((&process.source, *gpu, &run.id, rank.rank)) {
                    continue;
                }
                text.push_str(&std::mem::take(&mut head));
                let (source, id) = (escape(&process.source, true), escape(&run.id, true));
                let _ = write!(text, "watchglass_gpu_run{{source=\"{source}\",gpu=\"{gpu}\",run=\"{id}\"");
                let _ = writeln!(text, ",rank=\"{}\"}} 1", rank.rank);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::{Rank, RunProcess};

    #[test]
    fn a_gpu_is_joined_with_the_run_that_is_known_to_hold_it() {
        let process = |pid: u32, rank| RunProcess { source: "n1".into(), pid, rank, ..RunProcess::default() };
        let rank = |n: u32, assumed| Some(Rank { rank: n, gpus: vec![n + 4], assumed, ..Rank::default() });
        let processes = vec![process(1, None), process(2, rank(0, false)), process(3, rank(1, true))];
        let run = Run { id: "a".into(), processes, ..Run::default() };
        let mut text = String::new();
        written(&[Arc::new(run)], &mut text);
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let info = "watchglass_run_info{run=\"a\",state=\"running\"} 1";
        let ranks = ["0", "1"].map(|n| format!("watchglass_rank_run{{source=\"n1\",rank=\"{n}\",run=\"a\"}} 1"));
        assert_eq!(
            rows,
            [info, &ranks[0], &ranks[1], "watchglass_gpu_run{source=\"n1\",gpu=\"4\",run=\"a\",rank=\"0\"} 1"]
        );
        let twice = vec![process(2, rank(0, false)), process(5, rank(0, false))];
        text.clear();
        written(&[Arc::new(Run { id: "a".into(), processes: twice, ..Run::default() })], &mut text);
        assert_eq!(text.lines().filter(|line| line.starts_with("watchglass_gpu_run{")).count(), 1, "{text}");
        text.clear();
        written(&[], &mut text);
        assert_eq!(text, "");
    }
}
