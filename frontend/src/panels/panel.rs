//! The elements of a panel and of a tile. The board draws their content.

use super::board::Board;
use super::tiles::TileView;
use crate::shortcuts::{self, Action};
use crate::store::plan::{HEAT_SUFFIX, Panel};
use leptos::html;
use leptos::prelude::*;
use viewer::picture::{CHOICES, Rows};

/// One chart. The page listens for pointers and keys once for all plots.
#[component]
pub fn PanelCard(
    /// The chart as the plan describes it.
    panel: Panel,
    /// The content below the title: the menu of the chart.
    #[prop(into)]
    menu: ViewFn,
    /// The content below the plot.
    #[prop(into)]
    below: ViewFn,
) -> impl IntoView {
    let board = expect_context::<Board>();
    let page = board.page;
    let Panel { id, title, wide } = panel;
    let heat = id.ends_with(HEAT_SUFFIX);
    let article = NodeRef::<html::Article>::new();
    article.on_load({
        let id = id.clone();
        move |article| board.add(id, wide, article.into())
    });
    on_cleanup({
        let id = id.clone();
        move || board.remove(&id)
    });
    let stop = {
        let id = id.clone();
        move || if board.stop.with(|stop| stop.as_ref() == Some(&id)) { "0" } else { "-1" }
    };
    let expanded = {
        let id = id.clone();
        move || page.menu.with(|menu| menu.as_ref().is_some_and(|menu| menu.open && menu.chart == id)).to_string()
    };
    let toggle = {
        let id = id.clone();
        move |_| page.toggle_menu(&id)
    };
    let class = ["chart", if wide { " hero" } else { "" }, if heat { " heat" } else { "" }].concat();
    view! {
        <article node_ref=article class=class data-panel=id data-samples="0" data-state="empty">
            <header>
                <h3>
                    <button
                        data-do="menu"
                        title=shortcuts::title("More actions for this chart", &[Action::Menu])
                        aria-haspopup="dialog"
                        aria-expanded=expanded
                        tabindex=stop.clone()
                        on:click=toggle
                    >
                        {title.clone()}
                    </button>
                </h3>
                <span class="u note"></span>
                {heat.then(|| view! { <RowChoices/> })}
                {figures()}
            </header>
            {menu.run()}
            <div
                class="plot"
                role="group"
                aria-roledescription="chart"
                aria-label=title
                aria-describedby="how"
                tabindex=stop
            >
                <canvas></canvas>
                <canvas></canvas>
            </div>
            {below.run()}
        </article>
    }
}

/// The buttons that choose order and values of the rows of a heat map.
#[component]
fn RowChoices() -> impl IntoView {
    let page = expect_context::<Board>().page;
    let rows = Memo::new(move |_| page.view.with(|v| Rows::read(&v.heat)));
    let button = |(choice, name): (&'static str, &'static str)| {
        let choose = move |_| page.step(|v| v.heat = Rows::read(&v.heat).with(choice).write());
        let pressed = move || rows.with(|rows| rows.is(choice)).to_string();
        view! { <button data-do="rows" data-rows=choice aria-pressed=pressed on:click=choose>{name}</button> }
    };
    view! {
        <span class="u ramp" data-values=move || rows.with(|rows| rows.values).to_string()><i></i></span>
        <span class="choices">{CHOICES.into_iter().map(button).collect_view()}</span>
    }
}

/// One of the numbers on top, from the catalog's layout.
#[component]
pub fn TileCard(
    /// Id of the tile.
    id: String,
) -> impl IntoView {
    let board = expect_context::<Board>();
    let title = {
        let store = board.page.store.read_value();
        store.catalog.layout.tiles.iter().find(|t| t.id == id).map(|tile| tile.title.clone())
    };
    let tile = NodeRef::<html::Div>::new();
    tile.on_load({
        let id = id.clone();
        move |tile| {
            if let Some(tile) = TileView::new(id, &tile) {
                board.add_tile(tile);
            }
        }
    });
    on_cleanup(move || board.remove_tile(&id));
    view! {
        <div node_ref=tile class="tile">
            <h2><span>{title}</span><span class="u corner"></span></h2>
            <div class="value"><span class="number">"–"</span><span class="u symbol"></span></div>
            <div class="note"></div>
            <canvas aria-hidden="true"></canvas>
        </div>
    }
}

/// The age of the newest sample, and three figures of the span; the board fills them in.
fn figures() -> impl IntoView {
    view! {
        <span class="sum">
            <span class="age"></span>
            <span class="figures narrow-off">
                <i>"min"</i>
                <span class="sum-min"></span>
                <i>"mean"</i>
                <span class="sum-mean"></span>
                <i>"max"</i>
                <span class="sum-max"></span>
            </span>
        </span>
    }
}
