//! Measures this machine, keeps its history, and sends it to hubs. An agent listens on no network: it has no page.

use super::links::Links;
use super::{keep, machine, remote_writer};
use crate::config::Config;
use crate::data::Data;
use tokio::sync::{oneshot, watch};

/// Collects and sends until `stop` becomes true. At the first link to a hub `linked` gets the line to print.
pub async fn run(config: Config, data: Option<Data>, linked: oneshot::Sender<String>, stop: watch::Receiver<bool>) {
    let Some(machine::OwnMachine { live, archive, source }) = machine::open(&config, data) else { return };
    let links = Links::new(&config, &live, source);
    let remote = remote_writer(&config, &live);
    let work = machine::sampling(&config, &live, source);
    keep(live, Some(archive), remote, work, links.serve(Some(linked), stop)).await;
}
