//! What a query asks for that is older than our own history, read back from the server of remote write: minima, maxima
//! and means over the question's steps. It stands apart in the answer, under `older`, with where it is from.

use super::App;
use crate::config::show_duration;
use crate::export::{Ask, Wanted as Own, chosen, text};
use crate::remote::{Remote, Summary, Wanted, Window};
use shared::catalog::Catalog;
use shared::wire::SourceId;
use std::collections::BTreeMap;
use std::time::Duration;

/// The member `older` of an answer: an object, or none where nothing is to be read back. Blocks until the server has
/// answered.
pub(super) fn older(app: &App, ask: &Ask) -> Option<String> {
    let (remote, step) = (app.remote.as_ref().filter(|remote| remote.reads())?, ask.step?);
    if ask.rate {
        return None;
    }
    let (catalog, sources) = {
        let store = app.hub.store();
        (store.catalog().clone(), store.sources())
    };
    // What no row fits has been refused by the question itself; here its span is no bound.
    let all = Ask { from: i64::MIN, to: i64::MAX, ..ask.clone() };
    let mut asked: BTreeMap<SourceId, Vec<Own>> = BTreeMap::new();
    for own in chosen(&*app.hub, &catalog, &sources, &all).ok()? {
        asked.entry(own.source).or_default().push(own);
    }
    let mut series = Vec::new();
    for own in asked.values() {
        // Our own steps begin with the one in which our first sample lies.
        let first = own.iter().map(|own| own.span.0).min()?.div_euclid(step) * step;
        let window = Window { from: ask.from, to: ask.to.min(first - 1), step };
        if window.to - window.from < step {
            continue;
        }
        match read(remote, &catalog, own, window) {
            Ok(read) => {
                series.extend(own.iter().zip(read).filter(|(_, steps)| !steps.is_empty()).map(|(o, s)| one(o, &s)))
            }
            Err(reason) => return Some(format!("{{\"error\":{}}}", text::quoted(&reason))),
        }
    }
    let step = show_duration(Duration::from_millis(step.unsigned_abs()));
    (!series.is_empty())
        .then(|| format!("{{\"origin\":\"remote\",\"step\":\"{step}\",\"series\":[{}]}}", series.join(",")))
}

fn read<'a>(
    remote: &Remote,
    catalog: &'a Catalog,
    own: &'a [Own],
    window: Window,
) -> Result<Vec<Vec<Summary>>, String> {
    let row = |own: &Own| usize::from(own.def.metric);
    let wanted =
        |own: &'a Own| Wanted { source: &own.host, metric: &catalog.metrics[row(own)], instance: &own.def.instance };
    remote.read(&own.iter().map(wanted).collect::<Vec<Wanted>>(), window)
}

fn one(own: &Own, steps: &[Summary]) -> String {
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
