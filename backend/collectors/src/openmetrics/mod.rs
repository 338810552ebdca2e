//! Endpoints that print Prometheus or OpenMetrics text: exporters, servers, schedulers.
//!
//! Each endpoint is a part with its own thread and limits. Its samples become catalog rows when they are first seen.
//! Read `page.rs` (lines to series), then `text.rs` and `key.rs` (the formats), `strict.rs` (the rules of OpenMetrics),
//! `fetch.rs` (fetching a page) and `dcgm.rs` (pages of GPUs).

pub(crate) mod dcgm;
mod fetch;
mod filter;
mod gpus;
mod histogram;
mod key;
mod known;
mod left;
mod page;
mod row;
mod strict;
mod strict_family;
mod text;

pub use filter::Filter;

use crate::{CollectError, Collector, OpenError, OpenErrorKind, Options, Out, Part, Roots};
use fetch::{FetchLimits, Fetcher};
use filter::Filters;
use page::{Page, PageCounts};
use shared::catalog::{MetricDef, Range};
use shared::unit::Unit;
use std::fmt;
use std::time::Duration;
use text::Bad;

/// Samples on a page.
pub static SAMPLES: MetricDef = MetricDef::gauge("monitor.scrape.{endpoint}.samples", Unit::Count)
    .title("Samples on a scraped page")
    .on("monitor.scrape", "{endpoint}")
    .range(Range::FromZero)
    .help("Samples that the endpoint returned, before filters. Counted at each scrape.");

/// Samples left out.
pub static DROPPED: MetricDef = MetricDef::counter("monitor.scrape.{endpoint}.dropped", Unit::Count)
    .title("Scraped samples dropped")
    .on("monitor.scrape.dropped", "{endpoint}")
    .help(
        "Samples dropped since the start: over the limit of series or labels, or invalid. Doctor shows the \
        reasons.",
    );

/// Scrapes that gave nothing.
pub static FAILED: MetricDef = MetricDef::counter("monitor.scrape.{endpoint}.failed", Unit::Count)
    .title("Failed scrapes")
    .on("monitor.scrape.failed", "{endpoint}")
    .help("Failed scrapes since the start: no response, an incomplete one, or one without metrics.");

/// Metrics of each endpoint.
pub static ROWS: &[&MetricDef] = &[&SAMPLES, &DROPPED, &FAILED];

/// Maximum number of series of an endpoint within a quarter of an hour, including quantiles of histograms.
pub const MAX_SERIES: usize = 10_000;

/// An endpoint of the configuration. Its debug form contains no header's value.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name in tags: letters, digits, `_` and `-`.
    pub name: String,
    /// Its address, http or https.
    pub url: String,
    /// Samples to keep; empty for all.
    pub filters: Vec<Filter>,
    /// Headers of the request; their values are secret.
    pub headers: Vec<(String, String)>,
    /// Interval of scrapes, if it is longer than the collector's.
    pub every: Option<Duration>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| (name, "***")).collect();
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("url", &self.shown_url())
            .field("filters", &self.filters)
            .field("headers", &headers)
            .field("every", &self.every)
            .finish()
    }
}

impl Endpoint {
    /// The address without parts that may be secret: user, password, query.
    pub fn shown_url(&self) -> String {
        let hidden = if self.url.contains('?') { "?***" } else { "" };
        format!("{}{hidden}", client::bare(&self.url))
    }

    /// Checks everything that can be checked without a request.
    ///
    /// # Errors
    /// The fault and a correction, as the rest of a sentence; it contains no header's value.
    pub fn check(&self) -> Result<(), String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(fits) {
            // The name is not repeated, because an address in its place may contain a password.
            return Err("the name of the endpoint is invalid; use letters, digits, _ and -".into());
        }
        fetch::address(&self.url)?;
        Filters::new(&self.filters)?;
        for (name, value) in &self.headers {
            let name_fits = client::http::HeaderName::from_bytes(name.as_bytes()).is_ok();
            if !name_fits || client::http::HeaderValue::from_str(value).is_err() {
                return Err(format!("the header {name:?} is invalid; use a name and one line of visible text"));
            }
        }
        Ok(())
    }
}

/// Opens one part per endpoint. No request is sent yet.
pub(crate) fn open(options: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    if options.endpoints.is_empty() {
        return Err(OpenError::absent(
            [],
            "no endpoint is configured",
            "watchglass --openmetrics NAME=http://HOST:PORT/metrics",
        ));
    }
    options.endpoints.iter().map(|endpoint| part(endpoint, options)).collect()
}

fn part(endpoint: &Endpoint, options: &Options) -> Result<Part, OpenError> {
    let shown = client::bare(&endpoint.url);
    let failed = |reason: String| OpenError {
        kind: OpenErrorKind::Failed,
        tried: vec![shown.clone()],
        reason: format!("{}: {reason}", endpoint.name),
        remedy: "correct the endpoint in the configuration".into(),
    };
    endpoint.check().map_err(failed)?;
    let uri = fetch::address(&endpoint.url).map_err(failed)?;
    let limits = FetchLimits::for_endpoint(client::is_local(&uri));
    let filters = Filters::new(&endpoint.filters).map_err(failed)?;
    let scraper = Scraper {
        page: Page::new(&endpoint.name, filters, options.gpu_numbers.clone(), MAX_SERIES).telling(
            options.others.clone(),
            client::is_local(&uri),
            endpoint.every.unwrap_or_default(),
        ),
        fetcher: Fetcher::new(uri, endpoint.headers.clone(), limits),
        name: endpoint.name.clone(),
        every: endpoint.every.unwrap_or_default(),
        last: None,
        dropped: 0,
        failed: 0,
    };
    Ok(Part { name: endpoint.name.clone(), tried: vec![shown], collector: Box::new(scraper) })
}

/// Parses pages from another source, as the bench does. Puts the values of an endpoint with this name; the second
/// argument is true for a page of OpenMetrics.
/// Returns the number of dropped samples; none if the text is no page.
pub fn reader(name: &str) -> impl FnMut(&str, bool, &mut Out) -> Option<usize> + use<> {
    let mut page = Page::new(name, Filters::default(), Default::default(), MAX_SERIES);
    move |text, open, out| page.read(text, open, out).ok().map(|counts| counts.left.count())
}

/// Checks that a page keeps the rules of OpenMetrics 1.0.
///
/// # Errors
/// The invalid line, and the fault.
pub fn check(page: &str) -> Result<(), String> {
    strict::check(page).map_err(|bad| match bad {
        Bad::Rule(line, fault) => format!("line {line} has {fault}"),
        Bad::Line(line) => format!("line {line} is not a sample"),
        Bad::Truncated => "it does not end with # EOF".into(),
    })
}

struct Scraper {
    fetcher: Fetcher,
    page: Page,
    name: String,
    every: Duration,
    /// Time of the last scrape, and its result, which is repeated between scrapes.
    last: Option<(Duration, Result<(), CollectError>)>,
    dropped: u64,
    failed: u64,
}

impl Collector for Scraper {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let now = out.at();
        match &self.last {
            // Ticks are not exact to the microsecond.
            Some((at, result)) if now.saturating_sub(*at) + Duration::from_millis(50) < self.every => result.clone(),
            _ => {
                let result = self.scrape(out);
                self.failed += u64::from(result.as_ref().is_err_and(|error| !error.partial));
                out.put(&DROPPED, self.name.as_str(), self.dropped as f64);
                out.put(&FAILED, self.name.as_str(), self.failed as f64);
                self.last = Some((now, result.clone()));
                result
            }
        }
    }
}

impl Scraper {
    fn scrape(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let told = |reason: &str| CollectError::failed(format!("{}: {reason}", self.name));
        let fetched = self.fetcher.fetch().map_err(|failure| told(&failure.0))?;
        let PageCounts { samples, left } =
            self.page.read(&fetched.text, fetched.open, out).map_err(|bad| match bad {
                Bad::Truncated => told("the page ends early, so it was ignored"),
                Bad::Line(line) => told(&format!("line {line} is not a sample, so the page was ignored")),
                Bad::Rule(line, fault) => {
                    if fetched.open {
                        // Most exporters also print the older format, in which an invalid sample does not affect the
                        // rest.
                        self.fetcher.ask_for_text();
                    }
                    told(&format!("line {line} has {fault}, so the page was ignored"))
                }
            })?;
        out.put(&SAMPLES, self.name.as_str(), samples as f64);
        self.dropped += left.count() as u64;
        if left.count() == 0 {
            return Ok(());
        }
        let reason = format!("{}: {} of {samples} samples were dropped: {left}", self.name, left.count());
        Err(CollectError::partial(reason))
    }
}

#[cfg(test)]
#[path = "scrape_tests.rs"]
mod tests;
