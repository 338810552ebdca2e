//! The teams of a hub, and the machines that each sees. With a single team there is only the button for a second one.

use super::asked::Polled;
use super::form::{FieldInput, Form, FormDialog, words};
use super::frame::Card;
use crate::access::Access;
use crate::widgets::list::List;
use crate::widgets::list::line::{Cell, Done, Line};
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::answer::series::SourceList;
use shared::role::Role;
use shared::team::{self, Team, TeamSource};

/// The form of another team.
pub fn new_team() -> Form {
    let said = "A team has its own members, keys and views, and access to the machines that you grant.";
    Form::ask("new-team", "New team".into(), said, "POST", "api/v1/teams".into())
        .with("Create", vec![("name", "Name", FieldInput::Text(String::new()))])
}

/// The machines that the team of the page sees, and all teams.
#[component]
pub fn Teams(
    /// The team of the page, as the hub reports it.
    team: Polled<Team>,
) -> impl IntoView {
    let access = expect_context::<Access>();
    let all = Polled::<team::Teams>::follow(access, move || access.team().map(|_| "api/v1/teams".into()));
    let machines = Polled::<SourceList>::follow(access, move || access.is_hub_admin().then(|| "api/v1/sources".into()));
    let form = RwSignal::new(None::<Form>);
    let seen = Memo::new(move |_| {
        let hub_admin = access.is_hub_admin();
        team.read(|team| team.sources.iter().map(|source| machine(source, hub_admin)).collect::<Vec<Line>>())
    });
    let teams = Memo::new(move |_| {
        let hub_admin = access.is_hub_admin();
        let own = |team: &&Team| hub_admin || team.role == Role::Admin;
        all.read(|told| told.teams.iter().filter(own).map(|team| row(team, hub_admin)).collect::<Vec<Line>>())
    });
    let here = move || untrack(|| access.team_here()).map(|team| team.name).unwrap_or_default();
    let let_see = move |()| {
        let known: Vec<String> = seen.with_untracked(|seen| seen.iter().map(|line| line.name.clone()).collect());
        let all =
            untrack(|| machines.read(|told| told.sources.iter().map(|source| source.name.clone()).collect::<Vec<_>>()));
        let left: Vec<String> = all.into_iter().filter(|name| !known.contains(name)).collect();
        let team = here();
        let title = format!("Grant {team} access to a machine");
        form.set(Some(grant_form(title, left, team)));
    };
    let take = move |(line, _, _): Done| {
        form.set(Some(revoke_form(here(), &line)));
    };
    let act = move |(line, deed, _): Done| {
        form.set(Some(if deed == "rename" { rename_form(&line) } else { remove_form(&line) }));
    };
    view! {
        <If when=flag(move || access.has_teams() && access.team().is_some())>
            <Machines team rows=seen grant=Callback::new(let_see) revoke=Callback::new(take)/>
            <Card
                title="Teams"
                note=text(move || teams.with(Vec::len).to_string())
                wrong=all.wrong
                end=move || view! {
                    <If when=flag(move || access.is_hub_admin())>
                        <button class="btn" data-do="new-team" on:click=move |_| form.set(Some(new_team()))>"Add a team…"</button>
                    </If>
                }
            >
                <List
                    id="teams"
                    label="Table of teams"
                    heads=&["team", "can invite"]
                    rows=teams
                    known=flag(move || all.known())
                    empty=""
                    act=Callback::new(act)
                />
            </Card>
        </If>
        <FormDialog form done=Callback::new(move |_| {
            team.ask();
            all.ask();
            machines.ask();
            // The session has the list of teams.
            access.request_session();
        })/>
    }
}

/// The machines that the team of the page sees.
#[component]
fn Machines(team: Polled<Team>, rows: Memo<Vec<Line>>, grant: Callback<()>, revoke: Callback<Done>) -> impl IntoView {
    let access = expect_context::<Access>();
    view! {
        <Card
            title="Machines of this team"
            note=text(move || rows.with(Vec::len).to_string())
            end=move || view! {
                <If when=flag(move || access.is_hub_admin())>
                    <button class="btn" data-do="grant" on:click=move |_| grant.run(())>"Grant a machine…"</button>
                </If>
            }
        >
            <List
                id="seen"
                label="Table of machines of the team"
                heads=&["machine", "access"]
                rows
                known=flag(move || team.known())
                empty="This team has no machines yet."
                act=revoke
            />
        </Card>
    }
}

/// The form that grants a team one of the machines that it does not see, or a text without one.
fn grant_form(title: String, machines: Vec<String>, team: String) -> Form {
    if machines.is_empty() {
        let said = "It has access to every machine of this hub.";
        return Form::ask("grant", title, said, "GET", "api/v1/teams".into());
    }
    let said = "Its members see the whole machine with its history. Other teams keep their access.";
    Form::ask("grant", title, said, "PUT", String::new())
        .with("Grant", vec![("source", "Machine", FieldInput::Names(machines))])
        .writing(move |_| Ok(vec![("add", words(&team))]))
        .at(|typed| format!("api/v1/sources/{}/grants", typed.value_of("source")))
}

/// The confirmation before a team loses its access to a machine.
fn revoke_form(team: String, machine: &Line) -> Form {
    Form::ask(
        "revoke-grant",
        format!("Revoke the access of {team} to {}?", machine.name),
        "Its members' open views of it are closed. Its history stays.",
        "PUT",
        format!("api/v1/sources/{}/grants", machine.id),
    )
    .writing(move |_| Ok(vec![("remove", words(&team))]))
}

/// The form of another name of a team.
fn rename_form(team: &Line) -> Form {
    let said = "Its members, keys and machines stay.";
    Form::ask("rename-team", format!("Rename {}", team.name), said, "PATCH", format!("api/v1/teams/{}", team.id))
        .with("Rename", vec![("name", "New name", FieldInput::Text(team.name.clone()))])
}

/// The form that removes a team.
fn remove_form(team: &Line) -> Form {
    Form::ask(
        "remove-team",
        format!("Remove the team {}?", team.name),
        "Its keys, views and links are removed, and open pages are closed. A team with machines cannot be removed.",
        "DELETE",
        format!("api/v1/teams/{}", team.id),
    )
    .with("Remove team", vec![("name", "Type its name to confirm", FieldInput::Text(String::new()))])
}

fn machine(source: &TeamSource, hub_admin: bool) -> Line {
    let (id, name, home) = (source.id.clone(), source.name.clone(), source.home);
    let why = if home { "joined this team" } else { "granted by a hub admin" };
    let deeds = if hub_admin && !home { vec![("revoke-grant", "Revoke…")] } else { Vec::new() };
    Line { id, name: name.clone(), cells: vec![Cell::Name(name, String::new()), Cell::Faint(why.into())], deeds }
}

fn row(team: &Team, hub_admin: bool) -> Line {
    let (id, name) = (team.id.clone(), team.name.clone());
    let who = if team.members_invite { "admins and members" } else { "admins" };
    let mut deeds = vec![("rename", "Rename…")];
    if hub_admin {
        deeds.push(("remove", "Remove…"));
    }
    Line { id, name: name.clone(), cells: vec![Cell::Name(name, String::new()), Cell::Faint(who.into())], deeds }
}
