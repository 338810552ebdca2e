//! A fleet of two to four machines: their charts, in place of a map.

use super::table::shape;
use super::{Crowd, Filtered};
use crate::panels::fleet::lines::{HostLines, Newest};
use crate::state::Page;
use crate::store::fleet::hosts::Host;
use crate::store::fleet::words;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::prelude::*;
use shared::catalog::fleet::{self, FleetRow};

/// The rows of a machine with GPUs, and of one without.
static WITH_GPUS: [&FleetRow; 3] = [&fleet::GPU_BUSY, &fleet::GPU_POWER, &fleet::NETWORK_IN];
static WITHOUT: [&FleetRow; 3] = [&fleet::CPU, &fleet::MEMORY, &fleet::NETWORK_IN];

/// A card for each machine.
#[component]
pub fn Few() -> impl IntoView {
    let crowd = expect_context::<Crowd>();
    let page = expect_context::<Page>();
    let names = Memo::new(move |_| {
        let filter = page.view.with(|view| view.find.to_lowercase());
        let fits = |host: &&Host| host.fits(&filter);
        crowd.hosts.with(|hosts| hosts.iter().filter(fits).map(|host| host.entry.name.clone()).collect::<Vec<String>>())
    });
    view! {
        <div class="filtered"><Filtered/></div>
        <section class="few" aria-label="Machines">
            <If when=flag(move || names.with(Vec::is_empty))>
                <p class="below">"No machine fits. Take a word of the filter away."</p>
            </If>
            <Each keys=names row=Callback::new(|name: String| view! { <Card name/> }.into_any())/>
        </section>
    }
}

#[component]
fn Card(name: String) -> impl IntoView {
    let page = expect_context::<Page>();
    let crowd = expect_context::<Crowd>();
    let own = StoredValue::new(name);
    let state = crowd.text_of(own, |host, _| host.entry.state.as_str().to_string());
    let words = crowd.text_of(own, words::explained);
    let glyph = crowd.text_of(own, |host, _| shape(&host.entry.state).0.to_string());
    let class = crowd.text_of(own, |host, _| shape(&host.entry.state).1.to_string());
    let what = crowd.text_of(own, |host, _| match host.values.gpus.len() {
        0 => String::new(),
        n => words::count(n, "GPU", "GPUs"),
    });
    let rows = Memo::new(move |_| {
        let gpus = crowd.with(own, |host| host.values.gpus.len()).unwrap_or(0);
        (if gpus > 0 { WITH_GPUS } else { WITHOUT }).map(|row| row.id.to_string()).to_vec()
    });
    let name = own.get_value();
    let names = Signal::stored(vec![name.clone()]);
    let chart = move |id: String| {
        let Some(row) = WITH_GPUS.into_iter().chain(WITHOUT).find(|row| row.id == id) else { return ().into_any() };
        let newest: RwSignal<Newest> = RwSignal::new(Vec::new());
        let value = text(move || newest.with(|all| all.first().map_or(String::new(), |(_, value)| value.clone())));
        view! {
            <h3>{row.title}<b>{value}</b></h3>
            <div class="lines-plot"><HostLines row names newest/></div>
        }
        .into_any()
    };
    let link = page.address_of(None, std::slice::from_ref(&name));
    view! {
        <article class="panel" data-host=name.clone() data-state=state>
            <header>
                <span class=class aria-hidden="true">{glyph}</span>
                <h2><a class="source-name" href=link>{name.clone()}</a></h2>
                <span class="u">{what}</span>
                <span class="end u">{words}</span>
            </header>
            <Each keys=rows row=Callback::new(chart)/>
        </article>
    }
}
