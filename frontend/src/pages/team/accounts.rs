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
                format!("Keep {name} from signing in?"),
                "What they have open is closed at once, and their keys end.",
                "disabled",
                true,
            ),
            "enable" => ask(format!("Let {name} sign in again?"), "Their keys stay ended.", "disabled", false),
            "promote" => ask(
                format!("Make {name} an admin of the hub?"),
                "They may all in every team, and alone with the other admins of the hub change accounts and teams.",
                "hub_admin",
                true,
            ),
            "demote" => ask(format!("{name} is no admin of the hub any more?"), "Their roles in teams stay.", "hub_admin", false),
            "delete" => Form::ask(
                "delete",
                format!("Remove the account {name}?"),
                "What they have open is closed at once. Keys, views and links of their own go; the audit log keeps the name.",
                "DELETE",
                path,
            ),
            _ => Form::ask(
                "erase-account",
                format!("Erase {name}?"),
                "As when the account is removed, and another name stands in the audit log. Nothing brings the name back.",
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
                    heads=&["who", "may", ">made"]
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
        (true, _) => "may not sign in".to_string(),
        (false, true) => "all, as admin of the hub".into(),
        (false, false) => account.teams.iter().map(in_team).collect::<Vec<String>>().join(", "),
    };
    let you = id == own;
    let deeds = match you {
        true => Vec::new(),
        false => vec![
            if disabled { ("enable", "Enable…") } else { ("disable", "Disable…") },
            if hub_admin { ("demote", "No hub admin…") } else { ("promote", "Hub admin…") },
            ("delete", "Remove…"),
            ("erase-account", "Erase…"),
        ],
    };
    let made = Cell::Ago(Some(account.created), "–");
    let cells = vec![Cell::Name(name.clone(), if you { "you".into() } else { String::new() }), Cell::Text(may), made];
    Line { id, name, cells, deeds }
}
