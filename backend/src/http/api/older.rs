//! Samples of a query that are older than our own history, read back from the server of remote write: minima, maxima
//! and means over the query's steps. They are in the response's separate member `older`, which names their origin.

use crate::config::show_duration;
use crate::export::{Ask, Wanted, chosen, text};
use crate::http::App;
use crate::remote_write::{ReadBack, RemoteSeries, Summary, Window};
use shared::catalog::Catalog;
use shared::wire::{Source, SourceId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Reader;
use tokio::task::spawn_blocking;

/// The member `older` of a response: an object, or none if there is nothing to read back. The time depends on the
/// server, query by query. After a disconnect no further query is sent.
pub(in crate::http) async fn older(app: &Arc<App>, reader: &Reader, ask: &Ask) -> Option<String> {
    let remote = app.remote.clone().filter(|remote| remote.reads())?;
    let step = ask.step.filter(|_| !ask.rate)?;
    let turn = app.answers.questions_back.clone().acquire_owned().await.ok()?;
    let (own, question) = (reader.clone(), ask.clone());
    let (windows, mut turn) = spawn_blocking(move || (windows(&own, &question, step), turn)).await.ok()?;
    let windows = windows?;
    let mut series = Vec::new();
    for Older { own, back } in windows {
        let mut back = match back {
            Ok(back) => back,
            Err(reason) => return Some(failed(&reason)),
        };
        loop {
            // The permit moves into the task: it is released when the query is answered, even after a disconnect.
            let remote = remote.clone();
            let asking = spawn_blocking(move || (remote.ask(&mut back), back, turn));
            let (answer, rest, kept) = asking.await.ok()?;
            (back, turn) = (rest, kept);
            match answer {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => return Some(failed(&reason)),
            }
        }
        series.extend(own.iter().zip(back.end()).filter(|(_, steps)| !steps.is_empty()).map(|(o, s)| one(o, &s)));
    }
    let step = show_duration(Duration::from_millis(step.unsigned_abs()));
    (!series.is_empty())
        .then(|| format!("{{\"origin\":\"remote\",\"step\":\"{step}\",\"series\":[{}]}}", series.join(",")))
}

/// Time that a response waits for a machine that is read back. Later data is in the next response.
const RECALL_TIMEOUT: Duration = Duration::from_secs(20);

/// Reads back machines that a query names, that no hub holds any more and that have no data here.
pub(super) async fn recalled(app: &App, named: &[Arc<Source>]) {
    let Some(recall) = app.remote.as_ref().and_then(|remote| remote.recall()) else { return };
    let all = async {
        for source in named.iter().filter(|source| recall.lacks(source.id)) {
            recall.read(source.id).await;
        }
    };
    // Later requests get the rest.
    let _ = tokio::time::timeout(RECALL_TIMEOUT, all).await;
}

fn failed(reason: &str) -> String {
    format!("{{\"error\":{}}}", text::quoted(reason))
}

/// Requested windows of one source.
struct Older {
    own: Vec<Wanted>,
    back: Result<ReadBack, String>,
}

/// The windows to read back of each source; none if there are none.
fn windows(reader: &Reader, ask: &Ask, step: i64) -> Option<Vec<Older>> {
    let catalog = reader.catalog();
    let sources = reader.sources();
    // The query itself has refused patterns without a match. Here its span is no limit.
    let all = Ask { from: i64::MIN, to: i64::MAX, ..ask.clone() };
    let mut asked: BTreeMap<SourceId, Vec<Wanted>> = BTreeMap::new();
    for own in chosen(reader, &catalog, &sources, &all).ok()? {
        asked.entry(own.source).or_default().push(own);
    }
    let older = |own: Vec<Wanted>| {
        // Our own steps begin with the step of our first sample.
        let first = own.iter().map(|own| own.span.0).min()?.div_euclid(step) * step;
        let window = Window { from: ask.from, to: ask.to.min(first - 1), step };
        (window.to - window.from >= step).then(|| Older { back: read_back(&catalog, &own, window), own })
    };
    Some(asked.into_values().filter_map(older).collect())
}

fn read_back(catalog: &Catalog, own: &[Wanted], window: Window) -> Result<ReadBack, String> {
    let row = |own: &Wanted| usize::from(own.def.metric);
    let wanted: Vec<RemoteSeries> = own
        .iter()
        .map(|own| RemoteSeries { source: &own.host, metric: &catalog.metrics[row(own)], instance: &own.def.instance })
        .collect();
    ReadBack::new(&wanted, window)
}

fn one(own: &Wanted, steps: &[Summary]) -> String {
    let mut out = format!("{{\"tag\":{},\"source\":{},\"buckets\":[", text::quoted(&own.tag), text::quoted(&own.host));
    for (i, step) in steps.iter().enumerate() {
        out.push_str(if i == 0 { "{\"t\":" } else { ",{\"t\":" });
        text::seconds(&mut out, step.t);
        for (name, value) in [(",\"min\":", step.min), (",\"max\":", step.max), (",\"mean\":", step.mean)] {
            out.push_str(name);
            text::number(&mut out, value);
        }
        out.push('}');
    }
    out.push_str("]}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, RemoteWrite};
    use crate::http::Services;
    use crate::http::guard::Guard;
    use crate::http::page::Site;
    use crate::remote_write::RemoteWriter;
    use shared::catalog::cpu;
    use shared::embedded::EmbeddedPage;
    use shared::scope::Scope;
    use shared::series::SeriesDef;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use stream::clock::Manual;
    use stream::live::Live;
    use stream::store::{Limits, Store};

    /// A test server to read from: it reports each request, and answers on a signal.
    fn server() -> (String, Receiver<()>, SyncSender<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let ((asked, questions), (go, told)) = (sync_channel(100), sync_channel(100));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (mut from, mut to) = (BufReader::new(client.try_clone().expect("a socket")), client);
                let mut line = String::new();
                while from.read_line(&mut line).is_ok_and(|read| read > 0) {
                    if line == "\r\n" {
                        let body = "{\"data\":{\"result\":[]}}";
                        if asked.send(()).is_err() || told.recv().is_err() {
                            return;
                        }
                        // It also answers a client that has disconnected.
                        let _ = write!(to, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    }
                    line.clear();
                }
            }
        });
        (url, questions, go)
    }

    /// A server with one sample at `now`, and another server behind it.
    fn app(read_url: String, now: i64) -> Arc<App> {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 60_000, bytes: usize::MAX });
        let source = store.add_source("here".into(), 1_000, Vec::new());
        store.intern(source, SeriesDef { metric: 0, instance: String::new() }).expect("a row");
        store.append(source, now, false, &[1.0]).expect("a source");
        let live = Live::new(store, Arc::new(Manual::at(now, Duration::ZERO)), 1, 60_000);
        let settings = RemoteWrite {
            url: "http://127.0.0.1:9/".into(),
            read_url: Some(read_url),
            headers: Vec::new(),
            ..RemoteWrite::default()
        };
        let remote = RemoteWriter::start(&live, settings, None);
        let (_, stop) = tokio::sync::watch::channel(false);
        let services = Services { remote: Some(remote), ..Services::new(live) };
        App::new(services, Arc::new(Guard::new(&Config::default())), Site::new("/".into(), EmbeddedPage::NONE), stop)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn nothing_more_is_asked_for_a_caller_who_has_gone() {
        let ((url, questions, go), now) = (server(), 1_700_000_000_000);
        let app = app(url, now);
        let reader = Reader::new(app.live.clone(), Scope::All);
        let tags = vec![cpu::ROWS[0].tag.to_string()];
        let ask = Ask { tags, from: now - 3_600_000, to: now, step: Some(60_000), ..Ask::default() };
        // A connected client gets all queries: minima, maxima and means.
        (0..3).for_each(|_| go.send(()).expect("it listens"));
        assert_eq!(older(&app, &reader, &ask).await, None, "the server has nothing");
        (0..3).for_each(|_| questions.try_recv().expect("a question"));
        let (own, theirs, question) = (app.clone(), reader.clone(), ask.clone());
        let caller = tokio::spawn(async move { older(&own, &theirs, &question).await });
        let questions = spawn_blocking(move || {
            questions.recv().expect("the first question");
            questions
        });
        let questions = questions.await.expect("it is asked");
        caller.abort();
        assert!(caller.await.is_err(), "it has gone");
        assert_eq!(app.answers.questions_back.available_permits(), 1, "the question keeps its turn");
        (0..3).for_each(|_| go.send(()).expect("it listens"));
        // Both permits are free again once it is answered and no other query is sent.
        let _all = app.answers.questions_back.acquire_many(2).await.expect("never closed");
        assert!(questions.try_recv().is_err(), "a question for nobody");
    }
}
