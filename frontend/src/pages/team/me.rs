//! The account of the signed-in user: password, sessions, keys, and sign-out.

use super::asked::Polled;
use super::form::{FieldInput, Form, FormDialog};
use super::frame::Card;
use super::keys::{KEY_HEADS, key_row, new_key};
use crate::access::Access;
use crate::widgets::list::List;
use crate::widgets::list::line::{Cell, Done, Line};
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::me::{Me, OwnIdentities, OwnIdentity, OwnSession, OwnSessions};
use shared::people::Keys;
use shared::role::Role;
use shared::session::TeamRole;
use viewer::team::browser_of;

/// The page.
#[component]
pub fn MePage() -> impl IntoView {
    let access = expect_context::<Access>();
    let own = move |rest: &str| access.is_in().then(|| format!("api/v1/me{rest}"));
    let me = Polled::<Me>::follow(access, move || own(""));
    let sessions = Polled::<OwnSessions>::follow(access, move || own("/sessions"));
    let keys = Polled::<Keys>::follow(access, move || own("/keys"));
    let identities = Polled::<OwnIdentities>::follow(access, move || own("/identities"));
    let form = RwSignal::new(None::<Form>);
    view! {
        <Account me form/>
        <SignIns identities form/>
        <If when=flag(move || me.known())>
            <Notifications me/>
        </If>
        <Sessions sessions/>
        <OwnKeys keys form/>
        <FormDialog form done=Callback::new(move |_| {
            me.ask();
            sessions.ask();
            keys.ask();
            identities.ask();
            // A user who left a team, or removed the account, sees another page.
            access.request_session();
        })/>
    }
}

/// The user: name, roles, and the actions on the account.
#[component]
fn Account(me: Polled<Me>, form: RwSignal<Option<Form>>) -> impl IntoView {
    let access = expect_context::<Access>();
    let name = move || me.read(|me| me.name.clone());
    let facts = text(move || {
        me.read(|me| {
            let several = me.teams.len() > 1;
            let role = |team: &TeamRole| match several {
                true => format!("{} of {}", team.role, team.name),
                false => team.role.to_string(),
            };
            let hub = me.hub_admin.then(|| "admin of this hub".to_string());
            let email = me.email.clone().filter(|email| !email.is_empty());
            hub.into_iter().chain(me.teams.iter().map(role)).chain(email).collect::<Vec<_>>().join(", ")
        })
    });
    let has_password = move || me.read(|me| me.password);
    let password = move |_| form.set(Some(password_form(!untrack(has_password))));
    let email = move |_| {
        let present = untrack(|| me.read(|me| me.email.clone().unwrap_or_default()));
        form.set(Some(email_form(present)));
    };
    let leave = move |_| {
        let Some(team) = untrack(|| access.team_here()) else { return };
        form.set(Some(leave_form(&team, &access.id())));
    };
    view! {
        <Card title="Your account" note=facts wrong=me.wrong>
            <div class="acts">
                <b class="source-name">{text(name)}</b>
                <If when=flag(move || has_password() || (me.known() && access.takes_passwords()))>
                    <button class="btn" data-do="password" on:click=password>
                        {text(move || if has_password() { "Change password…" } else { "Set password…" })}
                    </button>
                </If>
                <button class="btn" data-do="email" on:click=email>"E-mail…"</button>
                <a class="btn" data-do="export" href="api/v1/me/export" download="me.json">"Download my data"</a>
                <If when=flag(move || access.has_teams())>
                    <button class="btn" data-do="leave" on:click=leave>"Leave this team…"</button>
                </If>
                <button class="btn" data-do="erase" on:click=move |_| form.set(Some(erase_form(untrack(name))))>
                    "Remove my account…"
                </button>
            </div>
        </Card>
    }
}

/// The user's sign-in methods, and a button for each that can be added.
#[component]
fn SignIns(identities: Polled<OwnIdentities>, form: RwSignal<Option<Form>>) -> impl IntoView {
    let access = expect_context::<Access>();
    let rows = Memo::new(move |_| {
        identities.read(|told| {
            let all = &told.identities;
            all.iter().map(|one| identity(one, all.len() > 1)).collect::<Vec<Line>>()
        })
    });
    let add_button = move |name: String| {
        let (words, own) = (format!("Add {}", access.title_of(&name)), name.clone());
        let go = move |_| access.go(own.clone(), "link", Callback::new(move |why| access.problem.set(why)));
        view! { <button class="btn" data-link=name on:click=go>{words}</button> }
    };
    // The providers are known after the first request of the session.
    let add = move || view! { {move || access.providers().into_iter().map(add_button).collect_view()} };
    let end = move |(line, _, _): Done| {
        form.set(Some(Form::ask(
            "end-identity",
            format!("Remove the sign-in with {}?", line.name),
            "You can still sign in with the other methods in this list. Your other sessions end.",
            "DELETE",
            format!("api/v1/me/identities/{}", line.id),
        )));
    };
    view! {
        <Card
            title="Sign-in methods"
            note=text(|| "each of them signs in to this account")
            wrong=access.problem
            end=add
        >
            <List
                id="identities"
                label="Table of sign-in methods"
                heads=&["by", "of", "as"]
                rows
                known=flag(move || identities.known())
                empty="None: an admin can create a reset link."
                act=Callback::new(end)
            />
        </Card>
    }
}

/// The settings of notifications about the user's own runs.
#[component]
fn Notifications(me: Polled<Me>) -> impl IntoView {
    let tell = move |name: &'static str, words: &'static str, of: fn(&Me) -> bool| {
        let set = move |on: bool| me.change("PATCH", "api/v1/me".into(), vec![(name, on.into())]);
        let is_on = flag(move || me.read(of));
        view! {
            <label class="tick">
                <input type="checkbox" name=name prop:checked=is_on on:change=move |event| set(event_target_checked(&event))/>
                <span>{words}</span>
            </label>
        }
    };
    view! {
        <Card title="Notifications" note=text(|| "in this page, and by e-mail if your address is verified")>
            <div class="acts">
                {tell("tell_finished", "My runs finished", |me| me.tell_finished)}
                {tell("tell_crashed", "My runs crashed", |me| me.tell_crashed)}
            </div>
        </Card>
    }
}

/// The sessions of the user; each but the present one can be ended.
#[component]
fn Sessions(sessions: Polled<OwnSessions>) -> impl IntoView {
    let rows = Memo::new(move |_| sessions.read(|told| told.sessions.iter().map(session).collect::<Vec<Line>>()));
    let end =
        move |(line, _, _): Done| sessions.change("DELETE", format!("api/v1/me/sessions/{}", line.id), Vec::new());
    view! {
        <Card title="Sessions" wrong=sessions.wrong>
            <List
                id="sessions"
                label="Table of sessions"
                heads=&["with", "from", "by", ">since", ">last used", ">ends"]
                rows
                known=flag(move || sessions.known())
                empty="There are no sessions."
                act=Callback::new(end)
            />
        </Card>
    }
}

/// The user's own API keys.
#[component]
fn OwnKeys(keys: Polled<Keys>, form: RwSignal<Option<Form>>) -> impl IntoView {
    let access = expect_context::<Access>();
    let rows = Memo::new(move |_| keys.read(|told| told.keys.iter().map(key_row).collect::<Vec<Line>>()));
    let role = move || access.team_here().map_or(Role::Viewer, |team| team.role);
    let add = move |_| {
        let title = "New key".to_string();
        form.set(Some(new_key(title, "api/v1/me/keys".into(), untrack(role), access.is_hub_admin())));
    };
    let end = move |(line, _, _): Done| {
        form.set(Some(Form::ask(
            "end-key",
            format!("Revoke the key {}?", line.name),
            "Requests of its program are rejected at once.",
            "DELETE",
            format!("api/v1/me/keys/{}", line.id),
        )));
    };
    view! {
        <Card
            title="Your keys"
            note=text(|| "for your own programs; they end with your account")
            wrong=keys.wrong
            end=move || view! { <button class="btn" data-do="new-key" on:click=add>"New key…"</button> }
        >
            <List
                id="own-keys"
                label="Table of your keys"
                heads=KEY_HEADS
                rows
                known=flag(move || keys.known())
                empty="There are no keys."
                act=Callback::new(end)
            />
        </Card>
    }
}

/// The form of another password, or of the `first` one.
fn password_form(first: bool) -> Form {
    let old = (!first).then_some(("old", "Current password", FieldInput::Password("current-password")));
    let new = [
        ("new", "New password, at least 12 characters", FieldInput::Password("new-password")),
        ("same", "Repeat password", FieldInput::Password("new-password")),
    ];
    let said = match first {
        true => "You can then also sign in with it. Your other sessions end.",
        false => "Your other sessions end.",
    };
    let title = if first { "Set a password" } else { "Change password" };
    Form::ask("password", title.into(), said, "PUT", "api/v1/me/password".into())
        .with(if first { "Set password" } else { "Change password" }, old.into_iter().chain(new).collect())
        .writing(move |typed| match (typed.raw("new"), typed.raw("same")) {
            (new, same) if new != same => Err("The two passwords differ; enter them again.".into()),
            (new, _) if first => Ok(vec![("new", new.into())]),
            (new, _) => Ok(vec![("old", typed.raw("old").into()), ("new", new.into())]),
        })
}

/// The form of the e-mail address, with the one of now.
fn email_form(present: String) -> Form {
    Form::ask("email", "Your e-mail".into(), "Leave it empty to remove it.", "PATCH", "api/v1/me".into())
        .with("Save", vec![("email", "E-mail", FieldInput::Text(present))])
        .writing(|typed| Ok(vec![("email", typed.value_of("email").into())]))
}

/// The confirmation before a user, by id, leaves a team.
fn leave_form(team: &TeamRole, id: &str) -> Form {
    Form::ask(
        "leave",
        format!("Leave {}?", team.name),
        "Your views and links in it are removed. An admin can invite you again.",
        "DELETE",
        format!("api/v1/teams/{}/members/{id}", team.id),
    )
}

/// The form that removes the account with this name.
fn erase_form(name: String) -> Form {
    Form::ask(
        "erase",
        "Remove your account?".into(),
        "Your name is removed everywhere, and so are your keys, views and links. This cannot be undone.",
        "DELETE",
        "api/v1/me".into(),
    )
    .with("Remove account", vec![("name", "Type your name to confirm", FieldInput::Text(String::new()))])
    .writing(move |typed| match typed.value_of("name") == name {
        true => Ok(Vec::new()),
        false => Err(format!("Type {name} to remove your account.")),
    })
}

/// A sign-in method; the last one cannot be removed.
fn identity(identity: &OwnIdentity, several: bool) -> Line {
    let name = match (identity.kind.as_str(), &identity.title) {
        ("password", _) => "password".to_string(),
        ("proxy", _) => "the proxy".into(),
        (_, Some(title)) => title.clone(),
        // It is no provider of this hub any longer.
        _ => "another provider".into(),
    };
    let of = if identity.issuer == identity.kind { "this hub".to_string() } else { identity.issuer.clone() };
    let cells = vec![Cell::Name(name.clone(), String::new()), Cell::Text(of), Cell::Faint(identity.subject.clone())];
    let deeds = if several { vec![("end", "Remove…")] } else { Vec::new() };
    Line { id: identity.id.clone(), name, cells, deeds }
}

fn session(session: &OwnSession) -> Line {
    let current = session.current;
    let name = browser_of(session.agent.as_deref().unwrap_or_default());
    let name = if name.is_empty() { "a browser".to_string() } else { name };
    let cells = vec![
        Cell::Name(name.clone(), if current { "this one".into() } else { String::new() }),
        Cell::Text(session.network.clone()),
        Cell::Faint(session.kind.clone()),
        Cell::Ago(Some(session.made), "–"),
        Cell::Ago(Some(session.seen), "–"),
        Cell::Ends(Some(session.ends)),
    ];
    let deeds = if current { Vec::new() } else { vec![("end", "Sign out")] };
    Line { id: session.id.clone(), name, cells, deeds }
}
