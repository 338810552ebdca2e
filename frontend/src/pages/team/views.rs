//! The menu of saved views: it opens one, saves the shown view, marks a changed one, and creates share links.

use super::asked::Polled;
use super::form::{FieldInput, Form, FormDialog};
use super::links::new_link;
use crate::access::Access;
use crate::address::{self, View};
use crate::browser::window;
use crate::pages;
use crate::state::{LinkState, Page};
use crate::widgets::parts::{Each, If, flag, text};
use leptos::prelude::*;
use shared::role::Role;
use shared::views::{self, Reach, SavedView};

/// The saved part of a view: all except the team, the saved view, the share link, and the theme. The theme belongs to
/// the reader.
fn kept(view: &View) -> View {
    View { team: None, saved: None, share: None, theme: None, ..view.clone() }
}

/// The view of a query.
fn of_query(query: &str) -> View {
    let mut pairs = Vec::new();
    if let Ok(params) = web_sys::UrlSearchParams::new_with_str(query) {
        for name in shared::address::names() {
            pairs.extend(params.get_all(name).iter().filter_map(|v| Some((name.to_string(), v.as_string()?))));
        }
    }
    address::read(pairs).0
}

/// The menu; empty on a hub without a signed-in user, and for a recording.
#[component]
pub fn Views() -> impl IntoView {
    let (page, access) = (expect_context::<Page>(), expect_context::<Access>());
    let is_alone = move || !page.accounts.get() && !page.is_recorded() && page.state.get() == LinkState::Live;
    // Without accounts the menu is loaded at its first use, so that the page of one machine starts without it.
    let used = RwSignal::new(page.view.with_untracked(|v| v.saved.is_some()));
    view! {
        <If when=flag(move || is_alone() && !used.get())>
            <button class="btn" data-do="views" on:click=move |_| used.set(true)>"Views"</button>
        </If>
        <If when=flag(move || (is_alone() && used.get()) || (access.is_in() && access.team_here().is_some()))>
            {pages::views(())}
        </If>
    }
}

/// The menu of a signed-in user, or of a server without accounts.
pub fn part((): ()) -> AnyView {
    view! { <Menu/> }.into_any()
}

/// The saved views of a team, the open one, and the menu's actions; copies share the same signals.
#[derive(Clone, Copy)]
struct Saved {
    page: Page,
    access: Access,
    /// The menu is open.
    open: RwSignal<bool>,
    form: RwSignal<Option<Form>>,
    views: Polled<views::Views>,
    all: Memo<Vec<SavedView>>,
    /// The open view, as it was saved.
    present: Memo<Option<SavedView>>,
    /// Whether the shown view differs from the saved one.
    changed: Memo<bool>,
}

impl Saved {
    fn follow() -> Saved {
        let page = expect_context::<Page>();
        let access = expect_context::<Access>();
        let here = move || page.view.with(|v| v.saved.clone());
        // A click has loaded the menu where there is no team: on a server without accounts.
        let open = RwSignal::new(untrack(|| access.team_here().is_none() && here().is_none()));
        // The list is requested once, and then polled while it is open or one of its views is shown.
        let first = RwSignal::new(true);
        let wanted = Memo::new(move |_| first.get() || open.get() || here().is_some());
        let path = move || path_of(access);
        let views = Polled::<views::Views>::follow(access, move || wanted.get().then(path));
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
        Saved { page, access, open, form: RwSignal::new(None), views, all, present, changed }
    }

    fn team(self) -> String {
        team_of(self.access)
    }

    fn role(self) -> Role {
        self.access.team_here().map_or(Role::Viewer, |team| team.role)
    }

    /// The shown view, in the form that is saved.
    fn query(self) -> String {
        let page = self.page;
        untrack(|| page.view.with(|v| page.query(&kept(v)))).trim_start_matches('?').to_string()
    }

    fn go(self, view: &SavedView) {
        let theme = self.page.view.with_untracked(|v| v.theme);
        let wanted = View { saved: Some(view.id.clone()), theme, ..of_query(&view.query) };
        // The page reloads, so that nothing of the previous view stays. If the browser refuses, the user can follow the
        // address.
        let _ = window().location().assign(&self.page.query(&wanted));
    }

    /// Opens the form for the name of a new saved view.
    fn save_as(self) {
        self.open.set(false);
        let mine = ("mine", "only me");
        let reach = if self.role() >= Role::Member { vec![mine, ("team", "the whole team")] } else { vec![mine] };
        let mut fields = vec![("name", "Name", FieldInput::Text(String::new()))];
        // Without accounts a view is everybody's.
        if self.page.accounts.get_untracked() {
            fields.push(("scope", "For", FieldInput::Choice(reach)));
        }
        let said = "Saves the current state of the page under a name.";
        let query = self.query();
        let form = Form::ask("view", "Save this view".into(), said, "POST", path_of(self.access)).with("Save", fields);
        self.form.set(Some(form.writing(move |typed| match typed.value_of("name").is_empty() {
            true => Err("Enter a name for the view.".into()),
            false => Ok([typed.sent(), vec![("query", query.as_str().into())]].concat()),
        })));
    }

    /// Saves the shown view over the open one.
    fn save(self) {
        let Some(view) = self.present.get_untracked() else { return };
        let body = vec![("version", (view.version as f64).into()), ("query", self.query().into())];
        self.views.change("PUT", format!("api/v1/views/{}", view.id), body);
    }

    fn remove(self, view: &SavedView) {
        self.open.set(false);
        let title = format!("Remove the view {}?", view.name);
        let said = "Links to it keep working.";
        self.form.set(Some(Form::ask("remove-view", title, said, "DELETE", format!("api/v1/views/{}", view.id))));
    }

    /// Opens the form for a share link to the shown view.
    fn share(self) {
        self.open.set(false);
        self.form.set(Some(new_link(format!("api/v1/shares?team={}", self.team()), self.query())));
    }

    /// Makes a view the team's default for an address without parameters, or ends that.
    fn opens_first(self, view: &SavedView) {
        let id = if view.default { wasm_bindgen::JsValue::NULL } else { view.id.as_str().into() };
        self.views.change("PUT", format!("api/v1/teams/{}/default-view", self.team()), vec![("view", id)]);
    }
}

/// The path of the list of views: those of the team of the page; on a server without accounts all.
fn path_of(access: Access) -> String {
    match access.team_here() {
        Some(team) => format!("api/v1/views?team={}", team.id),
        None => "api/v1/views".into(),
    }
}

/// The id of the team of the page; empty without one.
fn team_of(access: Access) -> String {
    access.team_here().map(|team| team.id).unwrap_or_default()
}

/// The menu's button and its list.
#[component]
fn Menu() -> impl IntoView {
    let saved = Saved::follow();
    let Saved { page, open, form, views, all, present, changed, .. } = saved;
    // An address without parameters opens the team's default view.
    Effect::new(move || {
        if views.known() && std::mem::take(&mut *page.bare.write_value()) {
            let first = |view: &&SavedView| view.default && view.scope == Reach::Team;
            all.with(|all| all.iter().filter(first).take(1).for_each(|view| saved.go(view)));
        }
    });
    let keys = Signal::derive(move || {
        all.with(|all| {
            all.iter().map(|view| format!("{} {} {}", view.id, view.version, view.default)).collect::<Vec<_>>()
        })
    });
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
                            <button class="btn primary" data-do="save-view" on:click=move |_| saved.save()>"Save"</button>
                        </If>
                        <button class="btn" data-do="back-to-saved" on:click=move |_| {
                            present.with_untracked(|p| p.iter().for_each(|view| saved.go(view)));
                        }>"Reset to saved"</button>
                    </p>
                </If>
                <p class="wrong" role="alert">{views.wrong}</p>
                <ul><Each keys row=Callback::new(move |key| row(saved, key))/></ul>
                <p class="acts">
                    <button class="btn" data-do="save-as" on:click=move |_| saved.save_as()>"Save this view…"</button>
                    <If when=flag(move || saved.role() >= Role::Member)>
                        <button class="btn" data-do="share" on:click=move |_| saved.share()>"Share link…"</button>
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

/// The row of a view, which its `key` begins with.
fn row(saved: Saved, key: String) -> AnyView {
    let id = key.split(' ').next().unwrap_or_default();
    let Some(view) = saved.all.with_untracked(|all| all.iter().find(|view| view.id == id).cloned()) else {
        return ().into_any();
    };
    let own = StoredValue::new(view.clone());
    let current = {
        let id = view.id.clone();
        text(move || (saved.page.view.with(|v| v.saved.clone()).as_ref() == Some(&id)).to_string())
    };
    let whose = match view.scope {
        Reach::Mine => "mine",
        Reach::Team => "everybody's",
        Reach::Builtin => "built in",
    };
    let note = if view.default { format!("{whose}, default") } else { whose.to_string() };
    let may_first = view.scope != Reach::Mine && saved.access.team().is_some();
    view! {
        <li data-row=view.id.clone()>
            <button data-do="open-view" aria-current=current on:click=move |_| own.with_value(|view| saved.go(view))>
                <b class="source-name">{view.name.clone()}</b>" "<span class="u">{note}</span>
            </button>
            {may_first.then(|| view! {
                <button data-do="default" aria-pressed=view.default.to_string() title="Default view of this page"
                    on:click=move |_| saved.opens_first(&own.get_value())>"first"</button>
            })}
            {view.own.then(|| {
                let label = format!("Remove {}", view.name);
                view! { <button data-do="remove-view" aria-label=label on:click=move |_| saved.remove(&own.get_value())>"✕"</button> }
            })}
        </li>
    }
    .into_any()
}
