//! Answers to questions of a hub's pages: the data that our own page would show, and nothing else. A hub also forwards
//! runs, markers and values that its users submit.

use jobs::runs::RunRegistry;
use jobs::submissions;
use shared::agent::{MAX_MESSAGE, Question};
use shared::output::{LinesPart, MAX_PART_BYTES};
use shared::processes::ProcessTable;
use shared::wire::SourceId;
use std::sync::Arc;
use stream::live::Live;

/// Bytes of a message besides the answer in it.
const ENVELOPE: usize = 64;

/// The answer to a question; empty if there is none. Process tables contain arguments only if the operator enabled that
/// at the start.
pub fn answer(live: &Live, source: SourceId, runs: &RunRegistry, what: Question) -> Vec<u8> {
    match what {
        Question::Processes { at } => {
            let processes = live.source(source).processes.clone();
            let table = match at {
                None => processes.newest(),
                Some(t) => processes.at(t).map(Arc::new),
            };
            fitting(table.map(|table| (*table).clone()).unwrap_or_default())
        }
        Question::Nccl { gpus } => {
            runs.nccl(live, source, &gpus).and_then(|report| serde_json::to_vec(&report).ok()).unwrap_or_default()
        }
        Question::Stacks { gpus } => {
            let asked = Some(runs.request_stacks(live, source, &gpus)).filter(|runs| !runs.is_empty());
            asked.and_then(|runs| serde_json::to_vec(&runs).ok()).unwrap_or_default()
        }
        Question::Doctor => {
            let (checks, _) = live.store().checks(source);
            serde_json::to_vec(&serde_json::json!({ "checks": *checks })).unwrap_or_default()
        }
        Question::Lines(asked) => {
            let part = match runs.logs.source() == Some(source) {
                true => runs.lines(live, &asked, MAX_PART_BYTES),
                false => LinesPart::default(),
            };
            serde_json::to_vec(&part).unwrap_or_default()
        }
        Question::Submission { shift, json } => submissions::answer(live, source, runs, (&json, shift)),
    }
}

/// A table in one message: if it is too long, its first rows, which are the busiest.
fn fitting(mut table: ProcessTable) -> Vec<u8> {
    loop {
        let bytes = postcard::to_stdvec(&table).unwrap_or_default();
        if bytes.len() + ENVELOPE <= MAX_MESSAGE {
            return bytes;
        }
        table.whole = false;
        table.rows.truncate(table.rows.len() * (MAX_MESSAGE - ENVELOPE) / bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::agent::{AgentMessage, encode};
    use shared::processes::Process;

    #[test]
    fn a_table_fits_one_message_and_the_busiest_stay() {
        let row = |pid| Process { pid, args: "x".repeat(1_024), ..Process::default() };
        let table = |rows: u32| ProcessTable { t: 1, total: rows, whole: true, rows: (0..rows).map(row).collect() };
        let told = |rows| {
            let bytes = fitting(table(rows));
            let message = encode(&AgentMessage::Answer { id: u32::MAX, bytes: bytes.clone() });
            assert!(message.len() <= MAX_MESSAGE);
            postcard::from_bytes::<ProcessTable>(&bytes).expect("a table")
        };
        assert_eq!(told(100), table(100));
        let much = told(5_000);
        assert!((450..512).contains(&much.rows.len()) && !much.whole && much.total == 5_000, "{}", much.rows.len());
        assert!(much.rows.iter().zip(0..).all(|(row, pid)| row.pid == pid));
    }
}
