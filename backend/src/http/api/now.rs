//! `GET /api/v1/now`: the figures on top of the page of a machine, as texts. The page shows them until its own code has
//! arrived.

use super::named;
use super::params::Params;
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use axum::Json;
use axum::extract::State;
use shared::answer::series::{NowFigures, NowTile};
use shared::json::Seconds;
use shared::wire::{PROTOCOL, PageMessage, Received, Source, decode_server};
use std::sync::Arc;
use stream::live::{Outgoing, Viewer};
use viewer::store::{Store, plan};
use viewer::tile::Say;

/// `?source=` is the name of the machine. Without it, there are figures only where a single machine may be seen: of
/// several, the page shows an overview.
pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Json<NowFigures>, Refusal> {
    let sources = named(&app, &asker, &params).await?;
    let [source] = &sources[..] else { return Ok(Json(NowFigures::default())) };
    let source = source.clone();
    let viewer = Viewer::new(app.live.clone(), asker.scope.clone()).within(asker.bounds);
    let slot = app.answers.history.take()?;
    Ok(Json(slot.blocking(move || figures(viewer, &source)).await?))
}

/// Opens the stream as a page does, and says what the page would say after the newest ticks.
fn figures(mut viewer: Viewer, source: &Source) -> NowFigures {
    let mut store = Store::default();
    let opening = PageMessage::Open { protocol: PROTOCOL, window: 0, resume: None, sources: vec![source.key.clone()] };
    if viewer.receive(opening).is_err() {
        return NowFigures::default();
    }
    while let Some(Outgoing::Message(bytes)) = viewer.next_message() {
        match decode_server(&bytes) {
            Ok(Received::Control(message)) => drop(store.take(message)),
            Ok(Received::Ticks(source, frames)) => drop(store.ticks(source, &frames)),
            Ok(Received::Overview(..)) | Err(_) => {}
        }
    }
    let Some(source) = store.sources.get(&source.id) else { return NowFigures::default() };
    let shown = plan::plan(&store, Some(source), plan::Choice::default()).tiles;
    let Some(t) = source.last_t() else { return NowFigures { source: source.info.name.clone(), ..Default::default() } };
    let layout = &store.catalog.layout.tiles;
    let tiles = shown.iter().filter_map(|id| layout.iter().find(|tile| tile.id == *id)).map(|tile| {
        let say = Say { store: &store, source, tile, t };
        let figure = say.figure();
        NowTile {
            id: tile.id.clone(),
            title: tile.title.clone(),
            corner: say.corner(),
            note: say.lost().unwrap_or_else(|| say.note(figure.scale)),
            number: figure.number,
            symbol: figure.symbol,
        }
    });
    NowFigures { source: source.info.name.clone(), t: Some(Seconds(t)), tiles: tiles.collect() }
}
