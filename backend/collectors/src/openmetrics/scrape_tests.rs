//! Tests of endpoints as parts that are read in every tick, as by the sampler.

use super::fetch::tests::Server;
use super::*;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

fn endpoint(url: &str) -> Endpoint {
    Endpoint { name: "e".into(), url: url.into(), filters: Vec::new(), headers: Vec::new(), every: None }
}

fn opened(endpoints: Vec<Endpoint>) -> Result<Vec<Part>, OpenError> {
    open(&Options { endpoints, ..Options::default() }, &Roots::default())
}

struct Ticker {
    parts: Vec<Part>,
    out: Out,
    second: u64,
}

impl Ticker {
    fn new(endpoint: Endpoint) -> Self {
        Ticker { parts: opened(vec![endpoint]).expect("an endpoint"), out: Out::default(), second: 0 }
    }

    /// Values of one tick without our own metrics, and its result.
    fn tick(&mut self) -> (Result<(), CollectError>, Vec<(String, f64)>) {
        self.second += 1;
        self.out.begin(Duration::from_secs(self.second));
        let result = self.parts[0].collector.collect(&mut self.out);
        (result, self.out.present().into_iter().filter(|(tag, _)| !tag.starts_with("monitor.")).collect())
    }

    fn own(&self, name: &str) -> Option<f64> {
        let tag = format!("monitor.scrape.e.{name}");
        self.out.present().into_iter().find(|(t, _)| *t == tag).map(|(_, v)| v)
    }
}

/// Answers each scrape with the next of these; repeats the last one.
fn server(answers: &'static [(&'static str, &'static str)]) -> Server {
    let next = AtomicUsize::new(0);
    Server::new(move |_, to| {
        let (status, body) = answers[next.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1)];
        write!(to, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    })
}

#[test]
fn a_failure_leaves_a_gap_and_the_next_page_is_taken() {
    let server =
        server(&[("200 OK", "a 1\n"), ("500 x", ""), ("200 OK", "a 2\nb"), ("200 OK", "<p>\n"), ("200 OK", "a 3\n")]);
    let mut ticker = Ticker::new(endpoint(&server.url));
    let a = |v: f64| vec![("openmetrics.e.a".to_string(), v)];
    assert_eq!(ticker.tick(), (Ok(()), a(1.0)));
    for part in ["e: it returned 500", "e: the page ends early", "e: line 1 is not a sample"] {
        let (result, present) = ticker.tick();
        assert_eq!(present, []);
        assert_eq!(ticker.own("samples"), None);
        let error = result.expect_err(part);
        assert!(error.reason.starts_with(part) && !error.partial, "{}", error.reason);
    }
    assert_eq!(ticker.tick(), (Ok(()), a(3.0)));
    assert_eq!([ticker.own("samples"), ticker.own("failed"), ticker.own("dropped")], [Some(1.0), Some(3.0), Some(0.0)]);
}

#[test]
fn too_many_series_are_dropped_counted_and_said() {
    let page: String = (0..MAX_SERIES + 7).map(|i| format!("x{{i=\"{i}\"}} {i}\n")).collect();
    let server = Server::fixed("200 OK", page);
    let mut ticker = Ticker::new(endpoint(&server.url));
    for tick in 1..=2 {
        let (result, present) = ticker.tick();
        let error = result.expect_err("too many");
        assert!(
            error.partial && error.reason.contains("7 of 10007 samples were dropped: 7 over the limit"),
            "{}",
            error.reason
        );
        assert_eq!(present.len(), MAX_SERIES);
        assert_eq!(ticker.own("dropped"), Some(7.0 * f64::from(tick)));
    }
}

#[test]
fn an_endpoint_whose_openmetrics_is_none_is_asked_for_the_text_format() {
    let server = Server::new(|head, to| {
        let open = head.to_ascii_lowercase().contains("application/openmetrics-text");
        let kind = if open { "application/openmetrics-text; version=1.0.0" } else { "text/plain; version=0.0.4" };
        let body = "# TYPE a counter\na 1\n# EOF\n";
        write!(to, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    });
    let mut ticker = Ticker::new(endpoint(&server.url));
    let (result, present) = ticker.tick();
    let error = result.expect_err("no OpenMetrics");
    let said = "e: line 3 has a name that another family above has or claims, so the page was ignored";
    assert_eq!((error.reason.as_str(), error.partial, present.len()), (said, false, 0));
    assert_eq!(ticker.tick(), (Ok(()), vec![("openmetrics.e.a".to_string(), 1.0)]));
}

#[test]
fn a_slower_pace_is_kept_and_says_the_same_in_between() {
    let server = server(&[("500 x", ""), ("200 OK", "a 1\n")]);
    let mut ticker = Ticker::new(Endpoint { every: Some(Duration::from_secs(3)), ..endpoint(&server.url) });
    let asked: Vec<(bool, usize)> = (0..7).map(|_| ticker.tick()).map(|(r, p)| (r.is_ok(), p.len())).collect();
    assert_eq!(asked, [(false, 0), (false, 0), (false, 0), (true, 1), (true, 0), (true, 0), (true, 1)]);
    assert_eq!(server.seen.lock().len(), 3);
}

#[test]
fn endpoints_do_not_disturb_each_other() {
    let fine = Server::fixed("200 OK", "a 1\n");
    let silent = Server::new(|_, _| {
        std::thread::park();
        Ok(())
    });
    let named = |name: &str, url: &str| Endpoint { name: name.into(), ..endpoint(url) };
    let parts = opened(vec![named("silent", &silent.url), named("fine", &fine.url)]).expect("two endpoints");
    assert_eq!(
        parts.iter().map(|p| (p.name.as_str(), p.tried.clone())).collect::<Vec<_>>(),
        [("silent", vec![silent.url.clone()]), ("fine", vec![fine.url.clone()])]
    );
    let (tell, done) = std::sync::mpsc::sync_channel(2);
    for mut part in parts {
        let tell = tell.clone();
        std::thread::spawn(move || {
            let mut out = Out::default();
            out.begin(Duration::ZERO);
            let _ = tell.send(part.collector.collect(&mut out).is_ok());
        });
    }
    assert_eq!(done.recv(), Ok(true), "the endpoint that answers waits for the one that does not");
}

#[test]
fn what_cannot_work_is_refused_and_tells_no_secret() {
    assert_eq!(opened(Vec::new()).map(|p| p.len()).expect_err("none").kind, OpenErrorKind::Absent);
    let good = endpoint("http://127.0.0.1:1/metrics");
    let header = |name: &str, value: &str| vec![(name.to_string(), value.to_string())];
    let filter = vec![Filter { name: "a(".into(), labels: Vec::new() }];
    assert_eq!(good.check(), Ok(()));
    for (bad, part) in [
        (Endpoint { name: "a.b".into(), ..good.clone() }, "name of the endpoint is invalid"),
        (Endpoint { name: String::new(), ..good.clone() }, "name of the endpoint is invalid"),
        (Endpoint { url: "127.0.0.1:1".into(), ..good.clone() }, "write it like"),
        (Endpoint { filters: filter, ..good.clone() }, "not a regular expression"),
        (Endpoint { headers: header("a b", "secret"), ..good.clone() }, "the header \"a b\""),
        (Endpoint { headers: header("a", "secret\nx"), ..good.clone() }, "the header \"a\""),
    ] {
        let error = bad.check().expect_err(part);
        assert!(error.contains(part) && !error.contains("secret"), "{error}");
        let error = opened(vec![bad]).map(|p| p.len()).expect_err(part);
        assert_eq!(error.kind, OpenErrorKind::Failed);
    }
    let debug = format!("{:?}", Endpoint { headers: header("authorization", "secret"), ..good });
    assert!(debug.contains("authorization") && !debug.contains("secret"), "{debug}");
}
