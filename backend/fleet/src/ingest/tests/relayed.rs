//! A machine that another hub of the cluster holds and relays.

use super::*;
use shared::agent::{FillState, Offer};

#[tokio::test(start_paused = true)]
async fn what_the_holder_lacks_still_is_asked_for_again_until_it_has_it() {
    let hub = Hub::new();
    let (ingest, arrival) = (hub.ingest.clone(), Arrival { relayed: true, ..arrival(KEY) });
    let mut holder = Agent::over(|socket| async move {
        ingest.relay(arrival, socket, std::pin::pin!(std::future::pending())).await;
    });
    // It has held the machine for a moment. It has the newest tick and an old one, but none between them.
    let offers = vec![Offer { first: 900, last: u64::MAX, from: NOW - 100_000, to: i64::MAX }];
    holder.send_message(&AgentMessage::Hello(Box::new(AgentHello { offers, seq: 1_000, ..hello(1) }))).await;
    assert!(matches!(holder.receive_message().await, HubMessage::Welcome(_)));
    holder.tell(0, 0, "a").await;
    holder.tick(1_000, 0, &[1_000.0]).await;
    for _ in 0..3 {
        let (id, first, last) = holder.wanted().await.expect("ticks are lacking");
        assert_eq!((first, last), (900, 999));
        holder.fill_end(id, FillState::Gone).await;
        // The hub has processed that once it answers.
        holder.clock(0).await;
        hub.clock.pass(Duration::from_secs(9));
        assert_eq!(holder.wanted_soon().await, None, "it is let be for a while");
        hub.clock.pass(Duration::from_secs(1));
    }
    let (id, first, last) = holder.wanted().await.expect("ticks are lacking");
    holder.fill(&Agent::block(id, first, last, -100_000)).await;
    holder.fill_end(id, FillState::Whole).await;
    assert_eq!(holder.wanted().await, None);
    let covered = {
        let store = hub.live.store();
        store.coverage(store.named(KEY).expect("it is known"))
    };
    assert_eq!(covered, [(900, 1_000)]);
    assert_eq!(hub.samples().remove(0).1.len(), 101);
}
