//! The elements of a panel and of a tile; what is in them is drawn by the board.

use super::board::Board;
use super::picture::{CHOICES, Rows};
use super::tiles::TileView;
use crate::page::page;
use crate::store::plan::{HEAT, Panel};
use crate::widgets::live::words;
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
    let Panel { id, title, wide } = panel;
    let heat = id.ends_with(HEAT);
    let (mounted, gone) = (id.clone(), id.clone());
    article.on_load(move |element| Board::add(page, mounted.clone(), wide, element.unchecked_into()));
    on_cleanup(move || Board::remove(page, &gone));
    view! {
        <article
            node_ref=article
            class="chart"
            class:hero=wide
            class:heat=heat
            data-panel=id
            data-samples="0"
            data-state="empty"
        >
            <header>
                <h3><button data-do="menu" title="More with this chart (m)" aria-haspopup="dialog" aria-expanded="false" tabindex="-1">{title.clone()}</button></h3>
                <span class="u note"></span>
                {heat.then(choices)}
                <span class="sum">
                    <span class="age"></span>
                    <span class="figures narrow-off">
                        <i>"min"</i><span class="sum-min"></span>
                        <i>"mean"</i><span class="sum-mean"></span>
                        <i>"max"</i><span class="sum-max"></span>
                    </span>
                </span>
            </header>
            // Pointers and keys on it are heard by the page, once for all plots.
            <div class="plot" role="application" aria-roledescription="chart" tabindex="-1" aria-label=title aria-describedby="how">
                <canvas></canvas>
                <canvas></canvas>
            </div>
        </article>
    }
}

/// How the rows of a heat map stand; the page hears the buttons.
fn choices() -> impl IntoView {
    let page = page();
    let buttons = CHOICES.map(|(choice, name)| {
        let pressed = words(move || page.view.with(|v| Rows::read(&v.heat)).is(choice).to_string());
        view! { <button data-do="rows" data-rows=choice aria-pressed=pressed>{name}</button> }
    });
    view! {
        <span class="u ramp" data-values=words(move || page.view.with(|v| Rows::read(&v.heat)).values.to_string())><i></i></span>
        <span class="choices">{buttons.collect_view()}</span>
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
            <canvas aria-hidden="true"></canvas>
        </div>
    }
}
