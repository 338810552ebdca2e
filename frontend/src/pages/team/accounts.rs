//! All accounts of a hub, for its admins.

use super::asked::Polled;
use super::form::{Form, FormDialog};
use super::frame::Card;
use crate::access::Access;
use crate::widgets::list::List;
use crate::widgets::list::line::{Cell, Done, Line};
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::people::{People, Person};
use shared::session::TeamRole;

/// The accounts: they are there once there are two.
#[component]
pub fn Accounts() -> impl IntoView {
    let access = expect_context::<Access>();
    let accounts = Polled::follow(access, move || access.is_hub_admin().then(|| "api/v1/accounts".into()));
    let form = RwSignal::new(None::<Form>);
    let rows = Memo::new(move |_| {
        let (own, teams) = (access.id(), access.has_teams());
        accounts.read(|told: &People| told.accounts.iter().map(|one| row(one, &own, teams)).collect::<Vec<Line>>())
    });
    let act = move |(line, deed, _): Done| {
        let path = format!("api/v1/accounts/{}", line.id);
        let ask = |title: String, said: &str, field: &'static str, to: bool| {
            Form::ask(deed, title, said, "PATCH", path.clone()).writing(move |_| Ok(vec![(field, to.into())]))
        };
        let name = &line.name;
        form.set(Some(match deed {
            "disable" => ask(
                format!("Disable {name}?"),
                "Their sessions and connections are closed, and their keys are revoked.",
                "disabled",
                true,
            ),
            "enable" => ask(format!("Enable {name}?"), "Their keys stay revoked.", "disabled", false),
            "promote" => ask(
                format!("Make {name} an admin of the hub?"),
                "They get all rights in every team, and manage accounts and teams.",
                "hub_admin",
                true,
            ),
            "demote" => ask(
                format!("Remove the hub admin role of {name}?"),
                "They keep their roles in teams.",
                "hub_admin",
                false,
            ),
            "delete" => Form::ask(
                "delete",
                format!("Remove the account {name}?"),
                "Their sessions are closed. Their keys, views and links are removed; the audit log keeps the name.",
                "DELETE",
                path,
            ),
            _ => Form::ask(
                "erase-account",
                format!("Erase {name}?"),
                "The account is removed, and its name in the audit log is replaced. This cannot be undone.",
                "POST",
                format!("{path}/erase"),
            ),
        }));
    };
    view! {
        <If when=flag(move || rows.with(Vec::len) > 1)>
            <Card title="Accounts of this hub" note=text(move || rows.with(Vec::len).to_string()) wrong=accounts.wrong>
                <List
                    id="accounts"
                    label="Table of accounts"
                    heads=&["name", "rights", ">created"]
                    rows
                    known=flag(move || accounts.known())
                    empty=""
                    act=Callback::new(act)
                />
            </Card>
        </If>
        <FormDialog form done=Callback::new(move |_| accounts.ask())/>
    }
}

fn row(account: &Person, own: &str, teams: bool) -> Line {
    let (id, name) = (account.id.clone(), account.name.clone());
    let (disabled, hub_admin) = (account.disabled, account.hub_admin);
    let in_team = |team: &TeamRole| match teams {
        true => format!("{} of {}", team.role, team.name),
        false => team.role.to_string(),
    };
    let may = match (disabled, hub_admin) {
        (true, _) => "disabled".to_string(),
        (false, true) => "everything, as hub admin".into(),
        (false, false) => account.teams.iter().map(in_team).collect::<Vec<String>>().join(", "),
    };
    let you = id == own;
    let deeds = match you {
        true => Vec::new(),
        false => vec![
            if disabled { ("enable", "Enable…") } else { ("disable", "Disable…") },
            if hub_admin { ("demote", "Remove hub admin…") } else { ("promote", "Make hub admin…") },
            ("delete", "Remove…"),
            ("erase-account", "Erase…"),
        ],
    };
    let made = Cell::Ago(Some(account.created), "–");
    let cells = vec![Cell::Name(name.clone(), if you { "you".into() } else { String::new() }), Cell::Text(may), made];
    Line { id, name, cells, deeds }
}
