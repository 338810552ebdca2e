//! `POST` and `GET /api/v1/markers`, `GET /api/v1/kernels` and `GET /api/v1/cells`: markers of notebooks, and the
//! kernels and cells derived from them.

use super::answer::history_slot;
use super::submit::{Submitted, submit};
use super::{Params, named};
use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Caller, Refusal, json};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use jobs::markers::{self, cells_between};
use shared::answer::markers::{CellList, CellRow, KernelList, Marker, MarkerList, MarkersTaken};
use shared::linked::{self, LinkedObjects};
use shared::new_marker::{NewMarkers, kernel_id};
use shared::submission::{SubmissionBody, SubmissionResult};
use shared::wire::Source;
use std::sync::Arc;

/// Maximum number of markers, and of cell runs (the newest), in a response.
const MAX_MARKERS: usize = 10_000;
const MAX_CELLS: usize = 500;
/// Default span of a response without `from`, milliseconds.
const DEFAULT_SPAN_MS: i64 = 24 * 3_600_000;

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    asker: Asker,
    Extension(caller): Extension<Caller>,
    params: Params,
    Json(NewMarkers(new)): Json<NewMarkers>,
) -> Result<Response<Body>, Refusal> {
    // The run leads to the machine, so it has to be the run of all.
    let run = new.first().and_then(|first| first.run.clone());
    let run = run.filter(|run| new.iter().all(|marker| marker.run.as_ref() == Some(run)));
    let submitted = Submitted { body: SubmissionBody::Markers(new), what: "markers", run };
    let taken = match submit(&app, &asker, caller, &params, submitted).await? {
        SubmissionResult::Markers(taken) => taken,
        _ => MarkersTaken::default(),
    };
    Ok(json(StatusCode::OK, &taken))
}

/// The span of a query, and its kernel.
fn asked(app: &App, asker: &Asker, params: &Params) -> Result<((i64, i64), Option<String>), Refusal> {
    let now = app.live.clock.wall();
    let to = params.instant("to", now)?.unwrap_or(now);
    let from = params.instant("from", now)?.unwrap_or(to.saturating_sub(DEFAULT_SPAN_MS));
    if from > to {
        return Err(Refusal::bad("from is later than to"));
    }
    let kernel = params.last("kernel").map(kernel_id).transpose();
    let kernel = kernel.map_err(|why| Refusal::bad(format!("{why}; api/v1/kernels lists the known ones")))?;
    Ok((asker.within(now, from, to)?, kernel))
}

pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let (span, kernel) = asked(&app, &asker, &params)?;
    let kind = params.last("kind").map(str::to_string);
    let run = params.last("run").map(str::to_string);
    // Filters would tell what a link hides about markers.
    let is_other_run = |objects: &LinkedObjects| run.as_ref().is_some_and(|run| !objects.has_run(run));
    if asker.linked().is_some_and(|(objects, _)| kernel.is_some() || is_other_run(objects)) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "a link filters markers by its own run only"));
    }
    let sources = named(&app, &asker, &params).await?;
    let (slot, theirs) = (history_slot(&app, &asker)?, app.clone());
    let found = slot.blocking(move || {
        let fits = |marker: &Marker| {
            kernel.as_ref().is_none_or(|kernel| marker.kernel.as_ref() == Some(kernel))
                && run.as_ref().is_none_or(|run| marker.run.as_ref() == Some(run))
                && kind.as_ref().is_none_or(|kind| marker.kind == *kind)
        };
        let mut all = Vec::new();
        for source in &sources {
            let found = markers::between(&theirs.live, source.id, span, MAX_MARKERS, fits);
            let shown = found.into_iter().map(|(n, t, one)| (t, markers::json::marker(&source.name, n, t, one)));
            all.extend(shown);
            keep_newest(&mut all, MAX_MARKERS);
        }
        all.into_iter().map(|(_, marker)| marker).collect::<Vec<_>>()
    });
    let mut found = found.await?;
    if let Some((objects, _)) = asker.linked() {
        found = found.into_iter().filter_map(|marker| linked::marker(marker, objects)).collect();
    }
    Ok(json(StatusCode::OK, &MarkerList { markers: found, dropped: app.markers.dropped() }))
}

/// Keeps the newest rows in their order: all machines of a hub together would make an answer without a bound.
fn keep_newest<T>(rows: &mut Vec<(i64, T)>, most: usize) {
    let mut surplus = rows.len().saturating_sub(most);
    if surplus == 0 {
        return;
    }
    let mut times: Vec<i64> = rows.iter().map(|(t, _)| *t).collect();
    let (older, border, _) = times.select_nth_unstable(surplus - 1);
    let border = *border;
    // The first ones of those at the border go.
    surplus -= older.iter().filter(|t| **t < border).count();
    rows.retain(|(t, _)| {
        let goes = *t < border || (*t == border && surplus > 0);
        surplus -= usize::from(goes && *t == border);
        !goes
    });
}

pub(in crate::http) async fn kernels(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let (mut all, mut left_out) = (Vec::new(), 0);
    for source in named(&app, &asker, &params).await? {
        let (kernels, left) = markers::json::kernels(&app.live, &app.markers, &source);
        all.extend(kernels);
        left_out += left;
    }
    Ok(json(StatusCode::OK, &KernelList { kernels: all, left_out }))
}

pub(in crate::http) async fn cells(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let ((from, to), kernel) = asked(&app, &asker, &params)?;
    let sources = named(&app, &asker, &params).await?;
    let (slot, theirs) = (history_slot(&app, &asker)?, app.clone());
    let found = slot.blocking(move || {
        let of = |source: &Arc<Source>| {
            let cells = cells_between(&theirs.live, source.id, kernel.as_deref(), (from, to), MAX_CELLS);
            cells.iter().map(|cell| (cell.from, markers::json::cell(cell, &source.name))).collect::<Vec<_>>()
        };
        let mut all: Vec<(i64, CellRow)> = sources.iter().flat_map(of).collect();
        all.sort_by_key(|(from, _)| std::cmp::Reverse(*from));
        all.truncate(MAX_CELLS);
        all.into_iter().map(|(_, cell)| cell).collect::<Vec<_>>()
    });
    Ok(json(StatusCode::OK, &CellList { cells: found.await? }))
}

#[cfg(test)]
mod tests {
    use super::keep_newest;

    #[test]
    fn of_the_markers_of_many_machines_the_newest_are_listed() {
        let kept = |most| {
            let mut rows = vec![(3, 'a'), (5, 'b'), (1, 'c'), (3, 'd'), (3, 'e'), (9, 'f')];
            keep_newest(&mut rows, most);
            rows.into_iter().map(|(_, name)| name).collect::<String>()
        };
        let all = [9, 6, 5, 4, 3, 2, 1, 0].map(kept);
        assert_eq!(all, ["abcdef", "abcdef", "abdef", "bdef", "bef", "bf", "f", ""]);
    }
}
