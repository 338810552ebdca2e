//! Measures this machine, keeps its history, and sends it to hubs. An agent listens on no network: it is reached only
//! by the socket in its data folder. It evaluates no alert rules: its hubs do.

use super::jobs::Jobs;
use super::links::Links;
use super::{keep, machine, remote_writer, serve_unix, socket_of};
use crate::config::Config;
use crate::control::FolderSocket;
use crate::data::Data;
use crate::http::guard::Guard;
use crate::http::page::Site;
use crate::http::{App, Services, router};
use shared::embedded::EmbeddedPage;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// Collects and sends until `stop` becomes true. At the first connection to a hub `linked` gets the line to print.
pub async fn run(config: Config, data: Option<Data>, linked: oneshot::Sender<String>, stop: watch::Receiver<bool>) {
    let folder = data.as_ref().map(|data| data.path().to_path_buf());
    let control = data.as_ref().and_then(|data| socket_of(data.path(), FolderSocket::Control));
    let Some(machine::OwnMachine { live, archive, source }) = machine::open(&config, data) else { return };
    let mut jobs = Jobs::new(&config, Some(source), folder.as_deref());
    let links = Links::new(&config, &live, source, &jobs.runs);
    let remote = remote_writer(&config, &live, None);
    let work = machine::sampling(&config, &live, source, &[], Some(machine::others(&config)));
    jobs.follow(&config, &live, &stop);
    // It is reached only by users who may open its data folder.
    let asked = control.map(|control| {
        let services = Services {
            markers: jobs.markers,
            calls: jobs.calls,
            runs: jobs.runs,
            remote: remote.clone(),
            ..Services::new(live.clone())
        };
        let site = Site::new(config.base_path.clone(), EmbeddedPage::NONE);
        let app = App::new(services, Arc::new(Guard::new(&config)), site, stop.clone());
        serve_unix(Some(control), FolderSocket::Control, router(app), stop.clone())
    });
    let asked = async {
        if let Some(asked) = asked {
            asked.await;
        }
    };
    let during = async {
        tokio::join!(links.serve(Some(linked), stop), asked);
    };
    keep(live, Some(archive), remote, work, during).await;
}
