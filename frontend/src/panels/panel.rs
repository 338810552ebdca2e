//! The elements of a panel and of a tile; what is in them is drawn by the board.

use super::board::Board;
use super::picture::{CHOICES, Rows};
use super::tiles::TileView;
use crate::page::{Page, page};
use crate::store::plan::{HEAT, Panel};
use crate::widgets::{dom, live};
use leptos::prelude::on_cleanup;
use web_sys::Element;

// Pointers and keys on its plot are heard by the page, once for all plots.
const CARD: &str = "<article data-samples=0 data-state=empty>\
    <header>\
        <h3><button data-do=menu title='More with this chart (m)' aria-haspopup=dialog aria-expanded=false tabindex=-1></button></h3>\
        <span class='u note'></span>\
        <span class=sum>\
            <span class=age></span>\
            <span class='figures narrow-off'>\
                <i>min</i><span class=sum-min></span>\
                <i>mean</i><span class=sum-mean></span>\
                <i>max</i><span class=sum-max></span>\
            </span>\
        </span>\
    </header>\
    <div class=plot role=application aria-roledescription=chart tabindex=-1 aria-describedby=how>\
        <canvas></canvas>\
        <canvas></canvas>\
    </div>\
</article>";

/// One chart.
pub fn panel_card(panel: Panel) -> Element {
    let (page, card) = (page(), live::made(CARD));
    let Panel { id, title, wide } = panel;
    let heat = id.ends_with(HEAT);
    card.set_class_name(&["chart", if wide { " hero" } else { "" }, if heat { " heat" } else { "" }].concat());
    dom::set(&card, "data-panel", &id);
    dom::find(&card, "button").set_text_content(Some(&title));
    dom::set(&dom::find(&card, ".plot"), "aria-label", &title);
    if heat {
        choices(page, &dom::find(&card, ".note"));
    }
    let (article, gone) = (card.clone(), id.clone());
    live::then(move || Board::add(page, id, wide, article));
    on_cleanup(move || Board::remove(self::page(), &gone));
    card
}

/// How the rows of a heat map stand, after an element of its header; the page hears the buttons.
fn choices(page: Page, note: &Element) {
    let ramp = live::made("<span class='u ramp'><i></i></span>");
    let all = live::made("<span class=choices></span>");
    for (choice, name) in CHOICES {
        let button = dom::add(&all, "button", "", name);
        dom::set(&button, "data-do", "rows");
        dom::set(&button, "data-rows", choice);
        live::attribute(&button, "aria-pressed", move || {
            page.view.with(|v| Rows::read(&v.heat)).is(choice).to_string()
        });
    }
    live::attribute(&ramp, "data-values", move || page.view.with(|v| Rows::read(&v.heat)).values.to_string());
    // It stands in the header, and others may stand there.
    let _ = note.after_with_node_2(&ramp, &all);
}

const TILE: &str = "<div class=tile>\
    <h2><span></span><span class='u corner'></span></h2>\
    <div class=value><span class=number>–</span> <span class='u symbol'></span></div>\
    <div class=note></div>\
    <canvas aria-hidden=true></canvas>\
</div>";

/// One number on top, of the catalogue's layout.
pub fn tile_card(id: String) -> Element {
    let (page, card) = (page(), live::made(TILE));
    if let Some(tile) = page.store.borrow().catalog.layout.tiles.iter().find(|t| t.id == id) {
        dom::find(&card, "span").set_text_content(Some(&tile.title));
    }
    let (element, gone) = (card.clone(), id.clone());
    live::then(move || {
        if let Some(tile) = TileView::new(id, &element) {
            Board::add_tile(page, tile);
        }
    });
    on_cleanup(move || self::page().board.borrow_mut().tiles.retain(|t| t.id != gone));
    card
}
