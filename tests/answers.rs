//! Answers of the API have the types of `shared`: a server's answer can be read by them, and writing it again gives the
//! same JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared::answer::fleet::{FleetColumns, UplinkList};
use shared::answer::logs::LogList;
use shared::answer::markers::{CellList, KernelList, MarkerList};
use shared::answer::runs::{ListedRun, RunList, RunReport};
use shared::answer::series::{ChangedList, CheckList, MetricList, ProcessList, QueryAnswer, SeriesList, SourceList};
use shared::finding::Findings;
use watchglass_tests::server::Server;
use watchglass_tests::waiting::until;

/// An answer that was read and written again by its type; an error when it cannot be read.
fn written<T: DeserializeOwned + Serialize>(answer: &str) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_str::<T>(answer)?)
}

type Written = fn(&str) -> Result<Value, serde_json::Error>;

#[track_caller]
fn is_the_same(what: &str, answer: &str, written: Written) {
    let before: Value = serde_json::from_str(answer).unwrap_or_else(|error| panic!("{what}: {error}: {answer}"));
    let after = written(answer).unwrap_or_else(|error| panic!("{what}: {error}: {answer}"));
    assert_eq!(after, before, "{what}");
}

/// An answer that a server wrote before these types existed, recorded in `tests/fixtures/answers`.
macro_rules! recorded {
    ($($name:literal $of:ty),*) => {
        [$(($name, include_str!(concat!("fixtures/answers/", $name, ".json")), written::<$of> as Written)),*]
    };
}

#[test]
fn a_recorded_answer_is_read_and_written_again_as_it_was() {
    let all = recorded!(
        "runs" RunList, "runs_sums" RunList, "run_failed" ListedRun, "run_open" ListedRun, "run_of_gpus" ListedRun,
        "report" RunReport, "logs" LogList, "markers" MarkerList, "kernels" KernelList, "cells" CellList,
        "findings" Findings, "changed" ChangedList, "catalog" MetricList, "sources" SourceList, "series" SeriesList,
        "processes" ProcessList, "doctor" CheckList, "fleet" FleetColumns, "query" QueryAnswer,
        "query_step" QueryAnswer, "uplink" UplinkList
    );
    for (name, answer, written) in all {
        is_the_same(name, answer, written);
    }
}

#[test]
fn what_a_server_answers_is_what_these_types_write() {
    let server = Server::start(["demo", "--gpus", "2", "--retention", "10m", "--fail", "hang"]);
    until("a finding", || server.get("/api/v1/findings", &[]).body.contains("hang.spin").then_some(()));
    let all: [(&str, Written); 14] = [
        ("runs?sums=true", written::<RunList>),
        ("markers", written::<MarkerList>),
        ("kernels", written::<KernelList>),
        ("cells", written::<CellList>),
        ("findings", written::<Findings>),
        ("changed?from=-5m", written::<ChangedList>),
        ("catalog", written::<MetricList>),
        ("sources", written::<SourceList>),
        ("series", written::<SeriesList>),
        ("doctor", written::<CheckList>),
        ("fleet?row=gpu&from=-5m", written::<FleetColumns>),
        ("query?tag=gpu.*&from=-5m", written::<QueryAnswer>),
        ("query?tag=network.*&from=-5m&step=20s&fn=rate", written::<QueryAnswer>),
        ("uplink", written::<UplinkList>),
    ];
    for (path, written) in all {
        let answer = server.get(&format!("/api/v1/{path}"), &[]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        is_the_same(path, &answer.body, written);
    }
    let answer = server.get("/api/v1/findings", &[]).body;
    let told: Findings = serde_json::from_str(&answer).expect("findings");
    for finding in &told.findings {
        let template = finding.sentence_template.as_deref().expect("an answer has a template");
        assert!(template.contains("{since}") && !template.contains("UTC"), "{template}");
        assert_eq!(finding.sentence, finding.sentence_utc(), "a program prints it as it is");
        assert!(!finding.sentence.contains("{since}"), "{}", finding.sentence);
    }
}

/// The page reads the fields of a type in order, by the names that serde derives. An alias is one more name, and all
/// fields after it would be read as their neighbors.
#[test]
fn no_type_that_the_page_reads_has_an_alias() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/src");
    let (mut folders, mut files) = (vec![folder], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a text");
            let found = text.lines().find(|line| line.contains("#[serde(") && line.contains("alias"));
            assert_eq!(found, None, "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 40, "{files} files");
}
