//! Questions of pages to an agent, over an in-memory link.

use super::*;
use crate::ingest::NoAnswer;
use shared::agent::Question;
use shared::wire::{Check, CheckState};

fn names(table: Result<shared::processes::ProcessTable, NoAnswer>) -> Result<Vec<String>, NoAnswer> {
    Ok(table?.rows.into_iter().map(|row| row.name).collect())
}

#[tokio::test(start_paused = true)]
async fn all_who_ask_the_same_get_one_answer_and_it_holds_for_a_second() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    let (one, two) = (hub.ingest.clone(), hub.ingest.clone());
    let asked = [one, two].map(|ingest| tokio::spawn(async move { names(ingest.processes(0, None).await) }));
    let (id, what) = agent.asked().await;
    assert_eq!(what, Question::Processes { at: None });
    agent.answer(id, "python", 0).await;
    for asked in asked {
        assert_eq!(asked.await.expect("no panic"), Ok(vec!["python".to_owned()]));
    }
    assert_eq!(names(hub.ingest.processes(0, None).await), Ok(vec!["python".to_owned()]), "nobody is asked again");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let ingest = hub.ingest.clone();
    let later = tokio::spawn(async move { names(ingest.processes(0, None).await) });
    let (next, _) = agent.asked().await;
    assert_eq!(next, id + 1);
    // Late and unrequested answers are ignored.
    agent.answer(id, "old", 0).await;
    agent.answer(next, "new", 0).await;
    assert_eq!(later.await.expect("no panic"), Ok(vec!["new".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn different_questions_come_one_after_the_other() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    let ingest = hub.ingest.clone();
    let table = tokio::spawn(async move { names(ingest.processes(0, Some(NOW - 5_000)).await) });
    let (id, what) = agent.asked().await;
    assert_eq!(what, Question::Processes { at: Some(NOW - 5_000) });
    let ingest = hub.ingest.clone();
    let checks = tokio::spawn(async move { ingest.examine(0).await });
    agent.answer(id, "python", -5_000).await;
    assert_eq!(table.await.expect("no panic"), Ok(vec!["python".to_owned()]));
    let (id, what) = agent.asked().await;
    assert_eq!(what, Question::Doctor);
    let check = |id: &str| Check {
        id: id.into(),
        state: CheckState::Ok,
        tried: Vec::new(),
        found: "well".into(),
        reason: String::new(),
        remedy: String::new(),
    };
    let report = serde_json::json!({ "checks": [check("cpu"), check("g\u{1b}pu")] });
    agent.send_message(&AgentMessage::Answer { id, bytes: report.to_string().into_bytes() }).await;
    assert_eq!(checks.await.expect("no panic"), Ok(vec![check("cpu")]));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_answer_is_not_waited_for_and_ticks_go_on() {
    let hub = Hub::new();
    assert_eq!(names(hub.ingest.processes(0, None).await), Err(NoAnswer::Unlinked));
    let mut agent = hub.agent().await;
    let ingest = hub.ingest.clone();
    let asked = tokio::spawn(async move { names(ingest.processes(0, None).await) });
    let (id, _) = agent.asked().await;
    agent.tell(0, 0, "a").await;
    agent.tick(100, 0, &[1.0]).await;
    agent.acknowledged(1).await;
    assert_eq!(asked.await.expect("no panic"), Err(NoAnswer::Late));
    agent.answer(id, "late", 0).await;
    let ingest = hub.ingest.clone();
    let asked = tokio::spawn(async move { names(ingest.processes(0, None).await) });
    let (id, _) = agent.asked().await;
    agent.send_message(&AgentMessage::Answer { id, bytes: Vec::new() }).await;
    assert_eq!(asked.await.expect("no panic"), Err(NoAnswer::Nothing));
    agent.cut().await;
    assert_eq!(names(hub.ingest.processes(0, None).await), Err(NoAnswer::Unlinked));
}

#[tokio::test(start_paused = true)]
async fn stamps_of_a_table_move_with_those_of_the_ticks() {
    let hub = Hub::new();
    let mut agent = hub.agent().await;
    agent.clock(HOUR).await;
    let ingest = hub.ingest.clone();
    let asked = tokio::spawn(async move { ingest.processes(0, Some(NOW)).await });
    let (id, what) = agent.asked().await;
    assert_eq!(what, Question::Processes { at: Some(NOW + HOUR) }, "by the agent's own clock");
    agent.answer(id, "python", HOUR).await;
    assert_eq!(asked.await.expect("no panic").map(|table| table.t), Ok(NOW));
}
