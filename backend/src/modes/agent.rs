//! Measures this machine, keeps its history, and sends it to hubs. An agent listens on no network: who asks it comes through
//! the socket in its data folder.

use super::links::Links;
use super::{alert_book, follow_runs, keep, machine, remote_writer, serve_unix, socket_of};
use crate::config::Config;
use crate::control::FolderSocket;
use crate::data::Data;
use crate::http::guard::Guard;
use crate::http::page::Site;
use crate::http::{App, router};
use shared::embedded::EmbeddedPage;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// Collects and sends until `stop` becomes true. At the first link to a hub `linked` gets the line to print.
pub async fn run(config: Config, data: Option<Data>, linked: oneshot::Sender<String>, stop: watch::Receiver<bool>) {
    let folder = data.as_ref().map(|data| data.path().to_path_buf());
    let control = data.as_ref().and_then(|data| socket_of(data.path(), FolderSocket::Control));
    let Some(machine::OwnMachine { live, archive, source }) = machine::open(&config, data) else { return };
    let links = Links::new(&config, &live, source);
    let remote = remote_writer(&config, &live, None);
    let work = machine::sampling(&config, &live, source, &[]);
    let guard = Arc::new(Guard::new(&config));
    // It watches nothing: its hubs do.
    let alerts = alert_book(&config, &live, None, folder.as_deref());
    // Who administers it asks; it shows nobody a page.
    let site = Site::new(config.base_path.clone(), EmbeddedPage::NONE);
    let app = App::new(live.clone(), guard, site, stop.clone(), remote.clone(), None, alerts);
    if let Some(folder) = &folder {
        follow_runs(&config, &live, source, folder, (app.markers(), app.calls(), app.runs()), &stop);
    }
    let asked = serve_unix(control, FolderSocket::Control, router(app), stop.clone());
    let during = async {
        tokio::join!(links.serve(Some(linked), stop), asked);
    };
    keep(live, Some(archive), remote, work, during).await;
}
