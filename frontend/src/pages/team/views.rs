//! The menu of saved views: it opens one, saves what is shown, says that what is shown has changed since, and makes share
//! links.

use super::asked::Polled;
use super::form::{Entry, Form, FormDialog};
use super::links::new_link;
use crate::access::Access;
use crate::address::{self, View};
use crate::browser::window;
use crate::state::Page;
use crate::widgets::parts::{Each, If, flag, text};
use leptos::prelude::*;
use shared::role::Role;
use shared::views::{self, Reach, SavedView};

/// What of a view is saved: all but the team, the view and the link by which it was opened, and the theme, which is how a
/// person reads.
fn kept(view: &View) -> View {
    View { team: None, saved: None, share: None, theme: None, ..view.clone() }
}

/// The view of a query.
fn of_query(query: &str) -> View {
    let mut pairs = Vec::new();
    if let Ok(params) = web_sys::UrlSearchParams::new_with_str(query) {
        for name in address::NAMES {
            pairs.extend(params.get_all(name).iter().filter_map(|v| Some((name.to_string(), v.as_string()?))));
        }
    }
    address::read(pairs).0
}

/// The menu; nothing where nobody is signed in.
#[component]
pub fn Views() -> impl IntoView {
    let access = expect_context::<Access>();
    view! {
        <If when=flag(move || access.is_in() && access.team_here().is_some())>
            <Menu/>
        </If>
    }
}

#[component]
fn Menu() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let open = RwSignal::new(false);
    let here = move || page.view.with(|v| v.saved.clone());
    let team = move || access.team_here().map(|team| team.id).unwrap_or_default();
    // The list is asked for once, and then while it is open or a view of it is shown.
    let first = RwSignal::new(true);
    let wanted = Memo::new(move |_| first.get() || open.get() || here().is_some());
    let views =
        Polled::<views::Views>::follow(access, move || wanted.get().then(|| format!("api/v1/views?team={}", team())));
    Effect::new(move || {
        if views.known() {
            first.set(false);
        }
    });
    let all = Memo::new(move |_| views.read(|told| told.views.clone()));
    let present =
        Memo::new(move |_| all.with(|all| all.iter().find(|view| Some(&view.id) == here().as_ref()).cloned()));
    let changed = Memo::new(move |_| {
        present.with(|p| p.as_ref().is_some_and(|p| kept(&of_query(&p.query)) != page.view.with(kept)))
    });
    let form = RwSignal::new(None::<Form>);
    let role = move || access.team_here().map_or(Role::Viewer, |team| team.role);
    let query = move || untrack(|| page.view.with(|v| page.query(&kept(v)))).trim_start_matches('?').to_string();
    let go = move |view: &SavedView| {
        let theme = page.view.with_untracked(|v| v.theme);
        let wanted = View { saved: Some(view.id.clone()), theme, ..of_query(&view.query) };
        // It is loaded, so that nothing of the view before stays. A person can follow the address else.
        let _ = window().location().assign(&page.query(&wanted));
    };
    // An address that asks for nothing opens the view that the team has chosen.
    Effect::new(move || {
        if views.known() && std::mem::take(&mut *page.bare.write_value()) {
            all.with(|all| all.iter().filter(|view| view.default && view.scope == Reach::Team).take(1).for_each(go));
        }
    });
    let save_as = move |_| {
        open.set(false);
        let mine = ("mine", "only me");
        let reach = if role() >= Role::Member { vec![mine, ("team", "the whole team")] } else { vec![mine] };
        let fields = vec![("name", "Name", Entry::Text(String::new())), ("scope", "For", Entry::Choice(reach))];
        let (said, path) =
            ("Saves the current state of the page under a name.", format!("api/v1/views?team={}", team()));
        let query = query();
        form.set(Some(Form::ask("view", "Save this view".into(), said, "POST", path).with("Save", fields).writing(
            move |typed| match typed.of("name").is_empty() {
                true => Err("Enter a name for the view.".into()),
                false => Ok([typed.sent(), vec![("query", query.as_str().into())]].concat()),
            },
        )));
    };
    let save = move |_| {
        let Some(view) = present.get_untracked() else { return };
        let body = vec![("version", (view.version as f64).into()), ("query", query().into())];
        views.change("PUT", format!("api/v1/views/{}", view.id), body);
    };
    let remove = move |view: SavedView| {
        open.set(false);
        let title = format!("Remove the view {}?", view.name);
        let said = "Links to it keep working.";
        form.set(Some(Form::ask("remove-view", title, said, "DELETE", format!("api/v1/views/{}", view.id))));
    };
    let share = move |_| {
        open.set(false);
        form.set(Some(new_link(format!("api/v1/shares?team={}", team()), query())));
    };
    let opens_first = move |view: SavedView| {
        let id = if view.default { wasm_bindgen::JsValue::NULL } else { view.id.as_str().into() };
        views.change("PUT", format!("api/v1/teams/{}/default-view", team()), vec![("view", id)]);
    };
    let keys = Signal::derive(move || {
        all.with(|all| {
            all.iter().map(|view| format!("{} {} {}", view.id, view.version, view.default)).collect::<Vec<_>>()
        })
    });
    let row = move |key: String| {
        let id = key.split(' ').next().unwrap_or_default();
        let Some(view) = all.with_untracked(|all| all.iter().find(|view| view.id == id).cloned()) else {
            return ().into_any();
        };
        let own = StoredValue::new(view.clone());
        let current = {
            let id = view.id.clone();
            text(move || (here().as_ref() == Some(&id)).to_string())
        };
        let whose = match view.scope {
            Reach::Mine => "mine",
            Reach::Team => "everybody's",
            Reach::Builtin => "built in",
        };
        let note = if view.default { format!("{whose}, default") } else { whose.to_string() };
        let may_first = view.scope != Reach::Mine && access.team().is_some();
        view! {
            <li data-row=view.id.clone()>
                <button data-do="open-view" aria-current=current on:click=move |_| own.with_value(go)>
                    <b class="source-name">{view.name.clone()}</b>" "<span class="u">{note}</span>
                </button>
                {may_first.then(|| view! {
                    <button data-do="default" aria-pressed=view.default.to_string() title="Default view of this page"
                        on:click=move |_| opens_first(own.get_value())>"first"</button>
                })}
                {view.own.then(|| {
                    let label = format!("Remove {}", view.name);
                    view! { <button data-do="remove-view" aria-label=label on:click=move |_| remove(own.get_value())>"✕"</button> }
                })}
            </li>
        }
        .into_any()
    };
    let name = text(move || match present.with(|p| p.as_ref().map(|p| p.name.clone())) {
        Some(name) => name,
        None => "Views".into(),
    });
    view! {
        <If when=flag(move || views.known())>
        <details class="views" prop:open=open on:toggle=move |event| {
            use wasm_bindgen::JsCast;
            let details = event.target().and_then(|t| t.dyn_into::<web_sys::HtmlDetailsElement>().ok());
            open.set(details.is_some_and(|d| d.open()));
        }>
            <summary>
                {name}
                <If when=changed><span class="changed" role="img" aria-label="changed" title="changed since it was saved">"●"</span></If>
            </summary>
            <div>
                <If when=changed>
                    <p class="acts">
                        <If when=flag(move || present.with(|p| p.as_ref().is_some_and(|p| p.own)))>
                            <button class="btn primary" data-do="save-view" on:click=save>"Save"</button>
                        </If>
                        <button class="btn" data-do="back-to-saved" on:click=move |_| {
                            present.with_untracked(|p| p.iter().for_each(&go));
                        }>"Reset to saved"</button>
                    </p>
                </If>
                <p class="wrong" role="alert">{views.wrong}</p>
                <ul><Each keys row=Callback::new(row)/></ul>
                <p class="acts">
                    <button class="btn" data-do="save-as" on:click=save_as>"Save this view…"</button>
                    <If when=flag(move || role() >= Role::Member)>
                        <button class="btn" data-do="share" on:click=share>"Share link…"</button>
                    </If>
                </p>
            </div>
        </details>
        </If>
        <FormDialog form done=Callback::new(move |id: String| {
            if form.with_untracked(|form| form.as_ref().is_some_and(|form| form.name == "view")) && !id.is_empty() {
                page.change(|v| v.saved = Some(id));
            }
            views.ask();
        })/>
    }
}
