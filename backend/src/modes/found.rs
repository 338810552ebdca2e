//! Enters the machines that endpoints of a hub tell of among its sources.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use team::accounts::Accounts;
use tokio::sync::watch;

/// Time until the next try after the database refused.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Enters the machines that endpoints tell of until `stop` becomes true, and notices sources that another hub of the same
/// database changes. It is to be aborted.
pub(super) async fn follow_sources(live: Arc<Live>, accounts: Accounts, stop: watch::Receiver<bool>) {
    tokio::join!(accounts.look_for_others(), enter_found(live, accounts.clone(), stop));
}

/// Enters each machine that is told of, until `stop` becomes true. Nobody sees it before.
async fn enter_found(live: Arc<Live>, accounts: Accounts, mut stop: watch::Receiver<bool>) {
    let (mut found, mut entered) = (live.found(), BTreeSet::new());
    loop {
        let now = found.borrow_and_update().clone();
        let mut why = None;
        for machine in now.iter().filter(|machine| !entered.contains(&machine.source)).collect::<Vec<_>>() {
            let key = live.store().source(machine.source).map(|(source, _)| source.key.clone());
            let Some(key) = key else { continue };
            match accounts.found_machine(&key, &machine.host).await {
                Ok(()) => drop(entered.insert(machine.source)),
                Err(denied) => why = Some(denied),
            }
        }
        if let Some(why) = &why {
            tracing::warn!("machines of endpoints cannot be entered among the hub's sources: {why}. It is tried again");
        }
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            _ = found.changed() => {}
            () = tokio::time::sleep(RETRY_INTERVAL), if why.is_some() => {}
        }
    }
}
