//! The page of all machines: the sentence that leads, [`tiles`], the map or, of a few machines, their charts ([`few`]),
//! and the [`table`]. [`compare`] is the page of some machines on one chart each; [`bar`] is above both.

pub mod bar;
pub mod compare;
pub mod few;
pub mod table;
mod tiles;

use crate::address::{Route, Tab};
use crate::pages::findings::say::FindingSay;
use crate::pages::findings::words as told;
use crate::pages::runs::fleet::FleetLanes;
use crate::pages::runs::panel::Jobs;
use crate::pages::team::gate::Stripes;
use crate::panels::board::Board;
use crate::panels::fleet::map::{FleetMap, Shown, of_host};
use crate::state::{FEW_MACHINES, LinkState, Page};
use crate::store::fleet::hosts::{self, Host, Totals};
use crate::store::fleet::words::{self, Checked, Sentence};
use crate::widgets::clock::Zone;
use crate::widgets::list::filter::{Choice, options};
use crate::widgets::list::ticks::Ticks;
use crate::widgets::parts::{Each, If, flag, text};
use crate::widgets::tooltip::{Tip, TipRow};
use bar::FleetBar;
use charts::{Hue, axis};
use compare::ComparePage;
use few::Few;
use leptos::prelude::*;
use shared::finding::Finding;
use shared::unit::{duration, rough_duration};
use std::collections::HashMap;
use std::sync::Arc;
use table::Table;
use tiles::Tiles;

/// State shared by all parts of the page; copies share the same signals.
#[derive(Clone, Copy)]
pub struct Crowd {
    /// Machines in the order of their names.
    pub hosts: Memo<Arc<Vec<Host>>>,
    /// All of them together.
    pub totals: Memo<Totals>,
    /// Names of the machines that the user chose.
    pub chosen: Ticks,
}

impl Crowd {
    /// Follows the overview as long as the calling component exists.
    fn start(page: Page, jobs: Jobs) -> Self {
        let open = Memo::new(move |_| jobs.open());
        let hosts = Memo::new(move |_| {
            page.fleet.track();
            let store = page.store.read_value();
            let mut hosts = hosts::hosts(&store.index, &store.fleet.values());
            name_runs(&mut hosts, &open.get());
            Arc::new(hosts)
        });
        let totals = Memo::new(move |_| Totals::from_hosts(&hosts.get()));
        Effect::new(move || {
            page.fleet.track();
            let instant = totals.with(|totals| totals.instant(page.store.with_value(|store| store.fleet.t())));
            if instant.t > 0 {
                page.store.write_value().fleet.remember(instant);
            }
        });
        Crowd { hosts, totals, chosen: Ticks(page.ticked) }
    }
}

impl Crowd {
    /// Reads something of the machine of this name; None where there is none.
    pub fn with<T>(self, name: StoredValue<String>, read: impl FnOnce(&Host) -> T) -> Option<T> {
        self.hosts.with(|hosts| hosts.iter().find(|host| name.with_value(|name| host.entry.name == *name)).map(read))
    }

    /// A text about the machine of this name, at the server's time in ms since the epoch.
    pub fn text_of(self, name: StoredValue<String>, read: fn(&Host, i64) -> String) -> Signal<String> {
        let page = expect_context::<Page>();
        Signal::derive(move || {
            page.beat.track();
            self.with(name, |host| read(host, page.server_now())).unwrap_or_default()
        })
    }
}

/// Label with the newest run on a machine. A fleet is grouped and filtered by it, too.
const RUN: &str = "run";
/// Value of that label on a machine without a run, while other machines have one.
const NO_RUN: &str = "no runs";

/// Names the runs on machines. `open` are the names of those that have not ended and their machines, the newest first.
fn name_runs(hosts: &mut [Host], open: &[(String, Vec<String>)]) {
    let mut named: HashMap<&str, &str> = HashMap::new();
    for (run, on) in open {
        on.iter().for_each(|host| _ = named.entry(host).or_insert(run));
    }
    // A label that the machine has itself stays.
    for host in hosts.iter_mut().filter(|host| !named.is_empty() && host.label(RUN).is_none()) {
        let name = named.get(host.entry.name.as_str()).copied().unwrap_or(NO_RUN);
        host.entry.labels.push((RUN.into(), name.into()));
    }
}

/// The page of all machines, or of some beside each other, with its bar.
pub fn page(route: Route) -> AnyView {
    match route {
        Route::Compare => view! { <FleetBar/> <Stripes/> <ComparePage/> }.into_any(),
        _ => view! { <FleetBar/> <Stripes/> <FleetPage/> }.into_any(),
    }
}

/// The page of all machines.
#[component]
pub fn FleetPage() -> impl IntoView {
    let page = expect_context::<Page>();
    let jobs = Jobs::of_fleet(page);
    provide_context(jobs);
    let crowd = Crowd::start(page, jobs);
    provide_context(crowd);
    let hosts = move || crowd.hosts.with(|hosts| hosts.len());
    view! {
        <main id="page" class="fleet" data-hosts=text(move || hosts().to_string())>
            <If when=flag(move || hosts() == 0)>
                <Nobody/>
            </If>
            <If when=flag(move || hosts() > FEW_MACHINES)>
                <Tiles/>
            </If>
            <If when=flag(move || hosts() > 0)>
                <Say/>
            </If>
            <If when=flag(move || (1..=FEW_MACHINES).contains(&hosts()))>
                <Few/>
            </If>
            <If when=flag(move || hosts() > FEW_MACHINES)>
                <MapCard/>
            </If>
            <If when=flag(move || hosts() > 0)>
                <FleetLanes/>
            </If>
            <If when=flag(move || hosts() > FEW_MACHINES)>
                <Table/>
            </If>
            <Foot/>
        </main>
    }
}

/// The page before a machine is there.
#[component]
fn Nobody() -> impl IntoView {
    view! {
        <section class="empty">
            <h2>"No machine has joined yet"</h2>
            <p>"Run one line on a machine; it appears here a second later. "<a href="docs/team/agents.html" target="_blank">"How machines join"</a></p>
            <crate::pages::team::join::JoinHere/>
        </section>
    }
}

/// The sentence that leads the page.
#[component]
fn Say() -> impl IntoView {
    let page = expect_context::<Page>();
    let crowd = expect_context::<Crowd>();
    // A finding on a machine's devices ranks above a late machine.
    let found = Memo::new(move |_| page.leads());
    let said = Memo::new(move |_| {
        page.beat.track();
        let (totals, checked) = (crowd.totals.get(), page.checked());
        crowd.hosts.with(|hosts| words::sentence(hosts, &totals, checked, page.server_now()))
    });
    let calm = flag(move || said.with(|said| said.calm));
    let known = flag(move || page.checked() != Checked::Asked);
    let fires = flag(move || said.with(|said| said.fires));
    let shape = move || match (calm.get(), known.get()) {
        (false, _) => ("shape is-warn", "▲"),
        (true, true) => ("shape is-ok", "●"),
        (true, false) => ("shape is-unknown", "◌"),
    };
    let words = move |of: fn(&Sentence) -> &String| text(move || said.with(|said| of(said).clone()));
    let about = move || said.with(|said| said.about.clone());
    let lost = "state:lost";
    let troubled = flag(move || !calm.get() && about().is_none() && !fires.get());
    let is_found = flag(move || found.with(Option::is_some));
    let says = move || {
        view! {
            <section
                class=text(move || if calm.get() { "say calm" } else { "say" })
                data-calm=text(move || calm.get().to_string())
            >
                <span class=text(move || shape().0) aria-hidden="true">{text(move || shape().1)}</span>
                <div>
                    <p><b>{words(|s| &s.head)}</b>" "{words(|s| &s.rest)}</p>
                    <p class="below">{words(|s| &s.below)}</p>
                </div>
                <If when=flag(move || about().is_some())>
                    <a class="btn" href=text(move || page.address_of(None, &about().into_iter().collect::<Vec<_>>()))>
                        {text(move || format!("Open {}", about().unwrap_or_default()))}
                    </a>
                </If>
                <If when=fires>
                    <a class="btn" data-do="alerts" href=text(move || page.address_of_alerts(Tab::Alerts, ""))>"Open alerts"</a>
                </If>
                <If when=troubled>
                    <button class="btn" data-do="lost" on:click=move |_| page.step(|v| v.find = lost.into())>"Show lost machines"</button>
                </If>
            </section>
        }
    };
    view! {
        <If when=is_found><FindingSay lead=found/></If>
        <If when=flag(move || !is_found.get())>{says()}</If>
    }
}

/// The filter of the machines, the number of matches, and the link back to all; empty without a filter.
#[component]
fn Filtered() -> impl IntoView {
    let page = expect_context::<Page>();
    let crowd = expect_context::<Crowd>();
    let found = move || {
        let filter = page.view.with(|v| v.find.to_lowercase());
        let n = crowd.hosts.with(|hosts| hosts.iter().filter(|host| host.fits(&filter)).count());
        words::count(n, "host", "hosts")
    };
    view! {
        <If when=flag(move || page.view.with(|v| !v.find.is_empty()))>
            <button class="chip" data-do="all" aria-label=text(move || format!("{}: clear the filter", found())) on:click=move |_| page.step(|v| v.find.clear())>
                {text(move || page.view.with(|v| v.find.clone()))}" "<b>{text(found)}</b>" ✕"
            </button>
        </If>
    }
}

/// Value in the address for a map whose cells show values.
const VALUES: &str = "values";

/// The content of the map in words, and its age.
fn described(page: Page, crowd: Crowd) -> String {
    page.fleet.track();
    let every = page.store.with_value(|store| store.fleet.interval());
    let of = if crowd.totals.with(|t| t.gpus) == 0 { "processors" } else { "GPUs" };
    match page.state.get() {
        LinkState::Live if every > 0 => format!("utilization of {of}, every {}", duration(every)),
        LinkState::Live => String::new(),
        _ => {
            let t = page.store.with_value(|store| store.fleet.t());
            format!("at {}", axis::clock(t + crate::browser::offset(t), true))
        }
    }
}

/// The legend of the map's colors.
#[component]
fn Legend(
    /// Whether cells show how busy a device is.
    values: Signal<bool>,
) -> impl IntoView {
    view! {
        <span class="legend" aria-hidden="true">
            <If when=flag(move || !values.get())>
                <span><i class="l-low"></i>"below its peers"</span>
                <span><i class="l-as"></i>"busy"</span>
                <span><i class="l-high"></i>"above"</span>
                <span><i class="l-idle"></i>"idle"</span>
            </If>
            <If when=values>
                <span>"0 %"<i class="l-heat"></i>"100 %"</span>
            </If>
            <span><i class="l-wrong"></i>"finding"</span>
            <span><i class="l-late"></i>"late"</span>
            <span><i class="l-lost"></i>"lost"</span>
        </span>
    }
}

/// The map with its heading.
#[component]
fn MapCard() -> impl IntoView {
    let page = expect_context::<Page>();
    let crowd = expect_context::<Crowd>();
    let board = expect_context::<Board>();
    let labels = Memo::new(move |_| crowd.hosts.with(|hosts| hosts::labels(hosts)));
    let by = Memo::new(move |_| {
        let asked = page.view.with(|v| v.by.clone());
        labels.with(|labels| match asked.is_empty() {
            true => labels.iter().find(|l| *l == "rack").cloned().unwrap_or_default(),
            false => asked,
        })
    });
    let groups = Memo::new(move |_| Arc::new(crowd.hosts.with(|hosts| hosts::grouped(hosts, &by.get()))));
    let filter = Signal::derive(move || page.view.with(|v| v.find.clone()));
    let (here, spot) = (RwSignal::new(None), RwSignal::new((0.0, 0.0)));
    // The address has the same parameter as for the cells of heat maps.
    let values = flag(move || page.view.with(|v| v.heat.ends_with(VALUES)));
    let wrong = Memo::new(move |_| Arc::new(page.all_leading()));
    let said = Callback::new(move |host: Host| wrong.with(|wrong| said_of(&host, wrong)));
    let shown = Shown { hosts: crowd.hosts, groups, wrong, said, filter, values, chosen: crowd.chosen, here, spot };
    Effect::new(move || {
        let host = here.get().and_then(|name| crowd.hosts.with(|h| h.iter().find(|h| h.entry.name == name).cloned()));
        let wrong = host.as_ref().map(|host| said.run(host.clone())).unwrap_or_default();
        board.tip.set(host.map(|host| tip(&host, wrong, page.server_now(), spot.get())));
    });
    on_cleanup(move || board.tip.set(None));
    let heading = move || {
        let (hosts, gpus) = crowd.totals.with(|t| (t.hosts, t.gpus));
        let gpus = if gpus == 0 { String::new() } else { format!(", {}", words::count(gpus, "GPU", "GPUs")) };
        format!("{}{gpus}", words::count(hosts, "host", "hosts"))
    };
    let what = move || described(page, crowd);
    let groups_of = Signal::derive(move || {
        labels.get().into_iter().take(4).map(|label| (label.clone(), label)).collect::<Vec<_>>()
    });
    let what_cells = text(move || if values.get() { VALUES } else { "" });
    view! {
        <section class="panel mapcard" aria-label="Map">
            <header>
                <h2>{text(heading)}</h2>
                <span class="u">{text(what)}</span>
                <Filtered/>
                <span class="end">
                    <Legend values/>
                    <Choice
                        label="Metric of the map"
                        deed="cells"
                        options=options(&[("", "from its peers"), (VALUES, "value")])
                        is=what_cells
                        choose=Callback::new(move |show| page.step(|v| v.heat = show))
                    />
                    <If when=flag(move || labels.with(|l| !l.is_empty()))>
                        <Choice label="Group by" deed="by" options=groups_of is=by choose=Callback::new(move |name| page.step(|v| v.by = name))/>
                    </If>
                </span>
            </header>
            <FleetMap
                shown
                open=Callback::new(move |name: String| page.go_to(None, &[name]))
                say=Callback::new(move |text: String| board.said.set(text))
            />
            <p id="how-map" class="away">
                "Arrow keys move between machines, Enter opens one, Space selects it, C compares the selected ones."
            </p>
        </section>
    }
}

/// The findings of a machine, with the sentence of the worst: `warning: GPU 3 runs at …`; empty where nothing is.
fn said_of(host: &Host, wrong: &[Finding]) -> String {
    let mut own = of_host(host, wrong);
    let Some(first) = own.next() else { return String::new() };
    let (head, rest) = told::split_sentence(first);
    let more = match own.count() {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    format!("{}: {}{more}", first.severity.as_str(), format!("{head} {rest}").trim_end_matches([' ', '.']))
}

/// The tooltip of a machine.
fn tip(host: &Host, wrong: String, now: i64, place: (f64, f64)) -> Tip {
    let row = |name: &str, value: String| TipRow { hue: Hue::Ink, name: name.into(), value, then: String::new() };
    let known = hosts::COLUMNS.iter().filter(|(row, _)| host.values.value_of(row).is_finite());
    let mut rows: Vec<TipRow> = known.map(|(r, _)| row(r.title, table::number(r, host.values.value_of(r)))).collect();
    let odd = (0..).zip(host.cells()).filter(|(_, (_, apart))| apart.abs() > charts::map::MIN_DISTANCE);
    let odd: Vec<String> = odd
        .map(|(i, (busy, apart)): (usize, _)| {
            let side = if apart < 0.0 { "below" } else { "above" };
            format!("GPU {i} {busy:.0} %, {:.0} points {side} the others", apart.abs())
        })
        .take(4)
        .collect();
    rows.truncate(9);
    let labels: Vec<String> = host.entry.labels.iter().map(|(k, v)| format!("{k}:{v}")).collect();
    let rest = [wrong, words::explained(host, now)].into_iter().chain(odd).chain([labels.join(" ")]);
    let rest = rest.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
    Tip { when: host.entry.name.clone(), unit: String::new(), rows, rest, other: None, place, pinned: false }
}

/// The texts at the foot of the page.
#[component]
fn Foot() -> impl IntoView {
    let page = expect_context::<Page>();
    let words = Signal::derive(move || {
        page.fleet.track();
        let store = page.store.read_value();
        let Some(hello) = &store.hello else { return Vec::new() };
        let kept = format!("{} kept", rough_duration(hello.retention));
        let left = match store.fleet.left_out() {
            0 => None,
            n => Some(format!("{} have no cell: a map has 10,240", words::count(n as usize, "GPU", "GPUs"))),
        };
        [format!("Watchglass {}", hello.version), kept].into_iter().chain(left).collect::<Vec<String>>()
    });
    view! {
        <footer class="foot">
            <Each keys=words row=Callback::new(|word: String| view! { <span>{word}</span> }.into_any())/>
            <If when=flag(move || words.with(|words| !words.is_empty()))><Zone/></If>
        </footer>
    }
}
