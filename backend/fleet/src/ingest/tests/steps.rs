//! A clock that is set while nothing can be sent: only the timestamps show it.

use super::*;
use shared::agent::{FillPart, FillState, Offer};

/// The last tick that the hub had before the cut, and the newest one after it, which is at [`NOW`].
const BEFORE: u64 = 2_000_000_000;
const NEWEST: u64 = BEFORE + 10_000;

/// The true time of a tick, since [`NOW`].
fn at(seq: u64) -> i64 {
    (seq as i64 - NEWEST as i64) * 1_000
}

async fn linked(hub: &Hub, life: u64) -> Agent {
    let mut agent = hub.connect(KEY);
    let offers = vec![Offer { first: BEFORE, last: u64::MAX, from: NOW + at(BEFORE), to: i64::MAX }];
    let said = AgentHello { offers, life, seq: NEWEST, ..hello(1) };
    agent.send_message(&AgentMessage::Hello(Box::new(said))).await;
    assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
    agent.tell(0, 0, "a").await;
    agent.clock(0).await;
    agent
}

/// All samples are at their true time, although the clock was set while the link was cut. `sets` has the ticks before
/// which it was set, counted from [`BEFORE`] on, and the offset from there, milliseconds. Blocks have at most `most`
/// ticks.
async fn in_place(life: u64, sets: &[(u64, i64)], most: u64) {
    let hub = Hub::new();
    let mut agent = linked(&hub, life).await;
    agent.tick(BEFORE, at(BEFORE), &[BEFORE as f64]).await;
    agent.acknowledged(1).await;
    agent.cut().await;
    let mut agent = linked(&hub, life).await;
    agent.tick(NEWEST, 0, &[NEWEST as f64]).await;
    while let Some((id, first, last)) = agent.wanted().await {
        let mut seq = first;
        while seq <= last {
            let set = sets.iter().rev().find(|(n, _)| BEFORE + n <= seq);
            let next = sets.iter().map(|(n, _)| BEFORE + n).find(|next| *next > seq).unwrap_or(u64::MAX);
            let end = (next - 1).min(last).min(seq + most - 1);
            let off = set.map_or(0, |(_, off)| *off);
            let clock_step = set.is_some_and(|(n, _)| BEFORE + n == seq);
            agent.fill(&FillPart { clock_step, ..Agent::block(id, seq, end, at(seq) + off) }).await;
            seq = end + 1;
        }
        agent.fill_end(id, FillState::Whole).await;
    }
    let samples = hub.samples().remove(0).1;
    let wrong: Vec<_> = samples.iter().filter(|(t, value)| *t != at(*value as u64)).collect();
    assert_eq!((wrong.len(), wrong.first()), (0, None), "{sets:?} in blocks of {most}");
    assert_eq!(samples.len() as u64, NEWEST - BEFORE + 1);
    assert_eq!((hub.refused("time"), hub.refused("fill")), (0, 0));
}

const OFF: i64 = 3_607_000;

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_and_set_back_while_the_link_was_cut_moves_nothing() {
    // The requested range ends within the wrong timestamps, an hour before the newest, or it does not.
    for (from, to) in [(2_000, 2_075), (6_300, 6_500)] {
        for off in [-OFF, OFF, -40_000, 40_000] {
            in_place(BEFORE, &[(from, off), (to, 0)], 3_600).await;
        }
        in_place(BEFORE, &[(from, -OFF), (to, 0)], 50).await;
    }
    in_place(BEFORE, &[(500, -OFF), (700, -2 * OFF), (800, 0), (6_000, OFF), (6_050, 0)], 3_600).await;
}

#[tokio::test(start_paused = true)]
async fn so_it_does_where_the_agent_has_started_again_since() {
    for (from, to) in [(2_000, 2_075), (6_300, 6_500)] {
        for off in [-OFF, OFF] {
            in_place(NEWEST, &[(from, off), (to, 0)], 3_600).await;
        }
    }
}
