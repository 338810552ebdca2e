//! The elements of a panel and of a tile; what is in them is drawn by the board.

use super::board::Board;
use super::crosshair;
use super::tiles::TileView;
use crate::page::page;
use crate::store::plan::Panel;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

/// One chart.
#[component]
pub fn PanelCard(
    /// What to show.
    panel: Panel,
) -> impl IntoView {
    let page = page();
    let article = NodeRef::<html::Article>::new();
    let plot = NodeRef::<html::Div>::new();
    let Panel { id, title, wide } = panel;
    let (mounted, gone, moved) = (id.clone(), id.clone(), id.clone());
    article.on_load(move |element| Board::add(page, mounted.clone(), wide, element.unchecked_into()));
    on_cleanup(move || Board::remove(page, &gone));
    let on_move = move |event: web_sys::PointerEvent| {
        let Some(element) = plot.get_untracked() else { return };
        let rect = element.get_bounding_client_rect();
        let place = (f64::from(event.client_x()), f64::from(event.client_y()));
        crosshair::moved(page, &moved, (place.0 - rect.left(), place.1 - rect.top()), place, rect.width());
    };
    view! {
        <article
            node_ref=article
            class="chart"
            class:hero=wide
            data-panel=id
            data-window=move || page.view.with_untracked(|v| v.window.name)
            data-samples="0"
            data-state="empty"
        >
            <header>
                <h3>{title.clone()}</h3>
                <span class="u note"></span>
                <span class="sum">
                    <span class="age"></span>
                    <span class="figures narrow-off">
                        <i>"min"</i><span class="sum-min"></span>
                        <i>"mean"</i><span class="sum-mean"></span>
                        <i>"max"</i><span class="sum-max"></span>
                    </span>
                </span>
            </header>
            <div
                node_ref=plot
                class="plot"
                role="img"
                aria-label=title
                on:pointermove=on_move
                on:pointerleave=move |_| crosshair::left(page)
                on:click=move |_| page.toggle_frozen()
            >
                <canvas></canvas>
                <canvas></canvas>
            </div>
        </article>
    }
}

/// One number on top.
#[component]
pub fn TileCard(
    /// Of the catalogue's layout.
    id: String,
) -> impl IntoView {
    let page = page();
    let element = NodeRef::<html::Div>::new();
    let title = page
        .store
        .borrow()
        .catalog
        .layout
        .tiles
        .iter()
        .find(|t| t.id == id)
        .map_or_else(String::new, |t| t.title.clone());
    let gone = id.clone();
    element.on_load(move |element| {
        if let Some(tile) = TileView::new(id.clone(), &element) {
            Board::add_tile(page, tile);
        }
    });
    on_cleanup(move || page.board.borrow_mut().tiles.retain(|t| t.id != gone));
    view! {
        <div node_ref=element class="tile">
            <h2><span>{title}</span><span class="u corner"></span></h2>
            <div class="value"><span class="number">"–"</span>" "<span class="u symbol"></span></div>
            <div class="note"></div>
            <canvas></canvas>
        </div>
    }
}
