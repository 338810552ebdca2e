//! The tooltip of the crosshair. Its place is set through the object model: the policy forbids style attributes.

use crate::page::{browser, page};
use charts::Hue;
use leptos::html;
use leptos::prelude::*;

fn hue_class(hue: Hue) -> String {
    match hue {
        Hue::Ink => "hue-ink".into(),
        Hue::Of(i) => format!("hue-{}{}", i % 8, if hue.dashed() { " dashed" } else { "" }),
    }
}

/// The tooltip.
#[component]
pub fn Tooltip() -> impl IntoView {
    let page = page();
    let element = NodeRef::<html::Div>::new();
    Effect::new(move |_| {
        let (Some(tip), Some(element)) = (page.tip.get(), element.get()) else { return };
        let (x, y) = tip.place;
        let rect = element.get_bounding_client_rect();
        let size = |v: Result<wasm_bindgen::JsValue, _>| v.ok().and_then(|v| v.as_f64()).unwrap_or(1000.0);
        let (width, height) = (size(browser().inner_width()), size(browser().inner_height()));
        let right = x + 14.0 + rect.width() > width - 8.0;
        let left = if right { (x - 14.0 - rect.width()).max(8.0) } else { x + 14.0 };
        let top = (y - rect.height() / 2.0).min(height - rect.height() - 8.0).max(52.0);
        let style = web_sys::HtmlElement::style(&element);
        // A length in pixels is never refused.
        let _ = style.set_property("left", &format!("{}px", left.round() as i32));
        let _ = style.set_property("top", &format!("{}px", top.round() as i32));
    });
    let rows = move || page.tip.with(|t| t.as_ref().map(|t| t.rows.clone()).unwrap_or_default());
    let rest = move || page.tip.with(|t| t.as_ref().map(|t| t.rest.clone())).unwrap_or_default();
    view! {
        <div class="tip" node_ref=element hidden=move || page.tip.with(Option::is_none)>
            <div class="when">
                <span>{move || page.tip.with(|t| t.as_ref().map(|t| t.when.clone()))}</span>
                <span class="u">{move || page.tip.with(|t| t.as_ref().map(|t| t.unit.clone()))}</span>
            </div>
            {move || {
                rows()
                    .into_iter()
                    .map(|row| {
                        view! {
                            <div class="row">
                                <svg viewBox="0 0 14 8" class=hue_class(row.hue)><path d="M0 4h14"/></svg>
                                <span>{row.name}</span>
                                <b>{row.value}</b>
                            </div>
                        }
                    })
                    .collect_view()
            }}
            <div class="rest" hidden=move || rest().is_empty()>{rest}</div>
        </div>
    }
}
