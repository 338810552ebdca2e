//! The people of a team: roles, invitations, and the permissions of each role.

use super::accounts::Accounts;
use super::asked::Polled;
use super::form::{FieldInput, Form, FormDialog, words};
use super::frame::Card;
use super::teams::{Teams, new_team};
use crate::access::Access;
use crate::widgets::list::List;
use crate::widgets::list::line::{Cell, Done, Line};
use crate::widgets::parts::{If, flag, text};
use charts::order;
use leptos::prelude::*;
use shared::people::Made;
use shared::role::Role;
use shared::team::{Invite, Invites, MadeInvite, Member, Team};
use wasm_bindgen::JsValue;

const ROLES: [&str; 3] = ["viewer", "member", "admin"];

/// Permissions of a role, in a few words.
fn may(role: &str) -> &'static str {
    match role {
        "admin" => "everything in the team",
        "member" => "read, and write their own data",
        _ => "see",
    }
}

/// Table of permissions: the action, then viewer, member, admin, and the scope of an API key.
const RIGHTS: [[&str; 5]; 5] = [
    ["see machines and their history", "✓ yes", "✓ yes", "✓ yes", "data:read"],
    ["see arguments of processes", "– no", "✓ yes", "✓ yes", "– no"],
    ["save views, make share links", "own views", "own", "✓ yes", "views:write"],
    ["see usage", "– no", "✓ yes", "✓ yes", "data:read"],
    ["people, keys, machines, audit", "– no", "– no", "✓ yes", "team:admin"],
];

/// The page.
#[component]
pub fn MembersPage() -> impl IntoView {
    let access = expect_context::<Access>();
    let base = move || access.team_here().map(|team| format!("api/v1/teams/{}", team.id));
    let team = Polled::<Team>::follow(access, base);
    let admin = Memo::new(move |_| access.team().is_some());
    let open = move || team.read(|team| team.members_invite);
    let role = move || access.team_here().map_or(Role::Viewer, |team| team.role);
    let inviting = Memo::new(move |_| admin.get() || (open() && role() == Role::Member));
    let invites = Polled::<Invites>::follow(access, move || {
        base().filter(|_| inviting.get()).map(|path| format!("{path}/invites"))
    });
    let form = RwSignal::new(None::<Form>);
    let rows = Memo::new(move |_| {
        let (id, hub_admin) = (access.id(), access.is_hub_admin());
        let member = |member: &Member| person(member, &id, admin.get(), hub_admin);
        team.read(|team| team.members.iter().map(member).collect::<Vec<Line>>())
    });
    let invited = Memo::new(move |_| invites.read(|told| told.invites.iter().map(invitation).collect::<Vec<Line>>()));
    let count = text(move || {
        let waits = invited.with(Vec::len);
        let all = rows.with(Vec::len);
        if waits == 0 { all.to_string() } else { format!("{all}, and {waits} invited") }
    });
    let path = move |rest: String| untrack(base).unwrap_or_default() + &rest;
    let act = move |(line, deed, value): Done| match deed {
        "role" => {
            team.change("PUT", path(format!("/members/{}", line.id)), vec![("role", value.into())]);
        }
        "reset" => form.set(Some(reset_form(&line))),
        "logins" => {
            let present = untrack(|| team.read(|team| logins_of(&team.members, &line.id)));
            form.set(Some(logins_form(&line, present, path(format!("/members/{}", line.id)))));
        }
        _ => form.set(Some(remove_form(&line, path(format!("/members/{}", line.id))))),
    };
    let invite = move |_| form.set(Some(invite_form(untrack(role), path("/invites".into()))));
    let take_back =
        move |(line, _, _): Done| invites.change("DELETE", path(format!("/invites/{}", line.id)), Vec::new());
    let end = move || {
        view! {
            <If when=flag(move || admin.get())>
                <Switches team path=Signal::derive(move || path(String::new()))/>
            </If>
            // A single user has no use for a second team.
            <If when=flag(move || access.is_hub_admin() && !access.has_teams() && rows.with(Vec::len) > 1)>
                <button class="btn" data-do="new-team" on:click=move |_| form.set(Some(new_team()))>"Add a team…"</button>
            </If>
            <If when=flag(move || inviting.get())>
                <button class="btn primary" data-do="invite" on:click=invite>"Invite…"</button>
            </If>
        }
    };
    view! {
        <Card title="Members" note=count wrong=team.wrong end=end>
            <List
                id="members"
                label="Table of members"
                heads=&["name", "role", "rights", "user names", ">last seen"]
                rows
                known=flag(move || team.known())
                empty="There are no members except the hub admins."
                act=Callback::new(act)
            />
        </Card>
        <Invited invites rows=invited end=Callback::new(take_back)/>
        <Teams team/>
        <Accounts/>
        <Rights/>
        <FormDialog form done=Callback::new(move |_| {
            team.ask();
            invites.ask();
            // A second team may be there now.
            access.request_session();
        })/>
    }
}

/// The settings of the team at this path that are on or off.
#[component]
fn Switches(team: Polled<Team>, path: Signal<String>) -> impl IntoView {
    let set = move |name: &'static str| {
        Callback::new(move |on: bool| {
            team.change("PATCH", path.get_untracked(), vec![(name, JsValue::from(on))]);
        })
    };
    let invites = flag(move || team.read(|team| team.members_invite));
    let links = flag(move || team.read(|team| team.share_links));
    let names = flag(move || team.read(|team| team.user_names));
    view! {
        <Switch name="members_invite" title="Members can invite" on=invites set=set("members_invite")/>
        <Switch name="share_links" title="Share links" on=links set=set("share_links")/>
        <Switch name="user_names" title="Viewers see user names" on=names set=set("user_names")/>
    }
}

/// A setting that is on or off.
#[component]
fn Switch(name: &'static str, title: &'static str, on: Signal<bool>, set: Callback<bool>) -> impl IntoView {
    let change = move |event| set.run(event_target_checked(&event));
    view! {
        <label class="tick">
            <input type="checkbox" name=name prop:checked=on on:change=change/>
            <span>{title}</span>
        </label>
    }
}

/// The invitations that have not been used; nothing where there are none.
#[component]
fn Invited(invites: Polled<Invites>, rows: Memo<Vec<Line>>, end: Callback<Done>) -> impl IntoView {
    view! {
        <If when=flag(move || !rows.with(Vec::is_empty))>
            <Card title="Invited" wrong=invites.wrong>
                <List
                    id="invites"
                    label="Table of invitations"
                    heads=&["for", "role", "by", ">ends"]
                    rows
                    known=flag(|| true)
                    empty=""
                    act=end
                />
            </Card>
        </If>
    }
}

/// The form that creates a link for a member to set a new password.
fn reset_form(member: &Line) -> Form {
    Form::ask(
        "reset",
        format!("Reset the password of {}?", member.name),
        "This creates a link to set a new password, valid for 24 h. Their sessions end when they use it.",
        "POST",
        format!("api/v1/accounts/{}/reset", member.id),
    )
    .showing::<Made>(
        |made| made.code.as_ref().map_or(String::new(), |code| format!("#reset={}", code.reveal())),
        "Send this link.",
    )
}

/// The form of the logins of a member, with those of now.
fn logins_form(member: &Line, present: String, path: String) -> Form {
    let said = "User names on machines: their runs and processes belong to this person.";
    Form::ask("logins", format!("User names of {}", member.name), said, "PUT", path)
        .with("Save", vec![("logins", "User names, separated by spaces", FieldInput::Text(present))])
        .writing(|typed| Ok(vec![("logins", words(&typed.value_of("logins")))]))
}

/// The confirmation before a member is removed.
fn remove_form(member: &Line, path: String) -> Form {
    Form::ask(
        "remove",
        format!("Remove {}?", member.name),
        "Their sessions are closed. Their own views and links are removed; the audit log keeps their actions.",
        "DELETE",
        path,
    )
}

/// The form of an invitation by a user with the role `most`.
fn invite_form(most: Role, path: String) -> Form {
    // The most frequent role comes first.
    let roles = [Role::Member, Role::Viewer, Role::Admin].into_iter().filter(|role| *role <= most);
    let roles = roles.map(|role| (role.text(), role.text()));
    let fields = vec![
        ("role", "Role", FieldInput::Choice(roles.collect())),
        ("email", "E-mail address, as a note (nothing is sent)", FieldInput::Text(String::new())),
        ("expires", "Expires after", FieldInput::Choice(vec![("7d", "7 days"), ("24h", "24 h"), ("30d", "30 days")])),
    ];
    let words = "The link works once: it creates an account or adds an existing one.";
    Form::ask("invite-somebody", "Invite a person".into(), words, "POST", path)
        .with("Create link", fields)
        .showing::<MadeInvite>(|made| made.url.reveal().into(), "Send this link.")
}

/// The logins of a member that were set by hand, as they are typed.
fn logins_of(members: &[Member], id: &str) -> String {
    members.iter().find(|member| member.id == id).map(|member| member.logins.join(" ")).unwrap_or_default()
}

/// All logins of a member: those from a provider, and those set by hand.
fn logins(member: &Member) -> String {
    let mut all: Vec<String> = member.logins.iter().chain(&member.said).cloned().collect();
    order::sort(&mut all);
    all.dedup();
    if all.is_empty() { "–".into() } else { all.join(" ") }
}

fn person(member: &Member, own: &str, admin: bool, hub_admin: bool) -> Line {
    let (id, name, role) = (member.id.clone(), member.name.clone(), member.role.to_string());
    let you = id == own;
    let mut note: Vec<&str> = Vec::new();
    if you {
        note.push("you");
    }
    if member.disabled {
        note.push("disabled");
    }
    let deeds: &[(&str, &str)] = match (admin && !you, hub_admin) {
        (true, true) => &[("logins", "User names…"), ("reset", "Reset password…"), ("remove", "Remove…")],
        (true, false) => &[("logins", "User names…"), ("remove", "Remove…")],
        _ if admin => &[("logins", "User names…")],
        _ => &[],
    };
    let right = may(&role).to_string();
    let role = if admin { Cell::Choice("role", ROLES.to_vec(), role) } else { Cell::Text(role) };
    let seen = match admin {
        true => Cell::Ago(member.seen, "–"),
        false => Cell::Faint("–".into()),
    };
    let cells =
        vec![Cell::Name(name.clone(), note.join(", ")), role, Cell::Faint(right), Cell::Faint(logins(member)), seen];
    Line { id, name, cells, deeds: deeds.to_vec() }
}

fn invitation(invite: &Invite) -> Line {
    let whom = invite.email.clone().filter(|text| !text.is_empty());
    let name = whom.unwrap_or_else(|| "anyone with the link".into());
    let cells = vec![
        Cell::Name(name.clone(), String::new()),
        Cell::Text(invite.role.to_string()),
        Cell::Faint(invite.by.clone()),
        Cell::Ends(Some(invite.ends)),
    ];
    Line { id: invite.id.clone(), name, cells, deeds: vec![("take-back", "Revoke")] }
}

/// The permissions of each role.
#[component]
fn Rights() -> impl IntoView {
    let row = |[thing, rest @ ..]: [&'static str; 5]| {
        view! { <tr><th scope="row">{thing}</th>{rest.map(|word| view! { <td>{word}</td> }).into_iter().collect_view()}</tr> }
    };
    view! {
        <Card title="Rights" note=text(|| "they apply to the page, the command line and the API")>
            <div class="scroll" tabindex="0" role="region" aria-label="Table of rights">
                <table class="rows list" id="rights">
                    <thead>
                        <tr>
                            <th scope="col">"right"</th>
                            <th scope="col">"viewer"</th>
                            <th scope="col">"member"</th>
                            <th scope="col">"admin"</th>
                            <th scope="col">"key scope"</th>
                        </tr>
                    </thead>
                    <tbody>{RIGHTS.map(row).into_iter().collect_view()}</tbody>
                </table>
            </div>
        </Card>
    }
}
