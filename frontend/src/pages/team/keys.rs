//! The keys of a team: API keys, keys of service accounts, and join keys of machines.

use super::asked::Polled;
use super::form::{FieldInput, Form, FormDialog, words};
use super::frame::Card;
use crate::access::Access;
use crate::widgets::list::List;
use crate::widgets::list::line::{Cell, Done, Line};
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;
use shared::people::{Keys, MadeKey, ServiceKey};
use shared::role::{KeyScope, Role};
use shared::session::{Join, Joins};
use shared::team::{Service, Services};

/// Purpose of a scope.
fn means(scope: KeyScope) -> &'static str {
    match scope {
        KeyScope::DataRead => "data:read, read samples, runs and views",
        KeyScope::MetricsRead => "metrics:read, /metrics for Prometheus",
        KeyScope::RunsWrite => "runs:write, report runs and markers",
        KeyScope::ViewsWrite => "views:write, save views",
        KeyScope::AlertsWrite => "alerts:write, manage rules and silences",
        KeyScope::AuditRead => "audit:read, read the audit log",
        KeyScope::TeamAdmin => "team:admin, manage members, keys and machines",
        KeyScope::HubAdmin => "hub:admin, manage the whole hub",
        KeyScope::AgentJoin | KeyScope::AgentWrite => scope.text(),
    }
}

/// The fields of a new key, with the choices of a user with this role.
pub fn fields(role: Role, hub_admin: bool) -> Vec<super::form::Field> {
    let may = |scope: &&KeyScope| match scope.least_role() {
        Some(least) => role >= least,
        None => hub_admin && **scope == KeyScope::HubAdmin,
    };
    let scopes = KeyScope::ALL.iter().filter(may).map(|scope| (scope.text(), means(*scope))).collect();
    let times = vec![("90d", "90 days"), ("30d", "30 days"), ("400d", "400 days")];
    vec![
        ("name", "Name", FieldInput::Text(String::new())),
        ("scopes", "Scopes", FieldInput::Ticks(scopes)),
        ("expires", "Expires after", FieldInput::Choice(times)),
    ]
}

/// A form that makes a key.
pub fn new_key(title: String, path: String, role: Role, hub_admin: bool) -> Form {
    let said = "It cannot exceed its owner's current rights.";
    Form::ask("key", title, said, "POST", path)
        .with("Create key", fields(role, hub_admin))
        .writing(|typed| {
            let (name, scopes) = (typed.value_of("name"), typed.value_of("scopes"));
            if name.is_empty() {
                return Err("Enter a name; the list of keys shows it.".into());
            }
            if scopes.is_empty() {
                return Err("Select at least one scope.".into());
            }
            Ok(vec![("name", name.into()), ("scopes", words(&scopes)), ("expires", typed.value_of("expires").into())])
        })
        .showing::<MadeKey>(|made| made.key.reveal().into(), "Copy it to the program that uses it.")
}

/// The row of a key.
pub fn key_row(key: &ServiceKey) -> Line {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.text()).collect();
    let (id, name) = (key.id.clone(), key.name.clone());
    let cells = vec![
        Cell::Name(name.clone(), key.service.clone().unwrap_or_default()),
        Cell::Text(scopes.join(", ")),
        Cell::Faint(id.clone()),
        Cell::Ago(Some(key.made), "–"),
        Cell::Ago(key.used, "never"),
        Cell::Ends(key.ends),
    ];
    Line { id, name, cells, deeds: vec![("end", "Revoke…")] }
}

/// The headings of keys.
pub const KEY_HEADS: &[&str] = &["name", "may", "id", ">created", ">last used", ">expires"];

/// The page.
#[component]
pub fn KeysPage() -> impl IntoView {
    let access = expect_context::<Access>();
    let base = move |rest: &str| access.team().map(|team| format!("api/v1/teams/{}{rest}", team.id));
    let services = Polled::<Services>::follow(access, move || base("/services"));
    let keys = Polled::<Keys>::follow(access, move || base("/keys"));
    let joins = Polled::<Joins>::follow(access, move || base("/join"));
    let key_rows = Memo::new(move |_| keys.read(|told| told.keys.iter().map(key_row).collect::<Vec<Line>>()));
    let form = RwSignal::new(None::<Form>);
    let role = move || access.team_here().map_or(Role::Viewer, |team| team.role);
    let path = move |rest: String| untrack(|| base(&rest)).unwrap_or_default();
    let of_key = move |(line, _, _): Done| {
        let at = untrack(|| place_of(keys, services, &line.id));
        form.set(Some(Form::ask(
            "end-key",
            format!("Revoke the key {}?", line.name),
            "Requests of its program are rejected at once.",
            "DELETE",
            path(at),
        )));
    };
    let of_service = move |(line, deed, _): Done| match deed {
        "new-key" => {
            let to = path(format!("/services/{}/keys", line.id));
            // A key of a service has at most the role of the service, and never the rights of the hub.
            let own = untrack(|| {
                services.read(|told| told.services.iter().find(|one| one.id == line.id).map(|one| one.role))
            });
            form.set(Some(new_key(format!("A key of {}", line.name), to, own.unwrap_or(Role::Viewer), false)));
        }
        "disable" | "enable" => {
            let off = deed == "disable";
            services.change("PATCH", path(format!("/services/{}", line.id)), vec![("disabled", off.into())]);
        }
        _ => form.set(Some(Form::ask(
            "remove-service",
            format!("Remove {} and its keys?", line.name),
            "Requests of its programs are rejected at once.",
            "DELETE",
            path(format!("/services/{}", line.id)),
        ))),
    };
    let new_service = move |()| {
        form.set(Some(service_form(untrack(role), path("/services".into()))));
    };
    let new_own =
        move |_| form.set(Some(new_key("New key".into(), path("/keys".into()), untrack(role), access.is_hub_admin())));
    let end_join = move |(line, _, _): Done| joins.change("DELETE", path(format!("/join/{}", line.id)), Vec::new());
    view! {
        <If when=flag(move || access.team().is_none())>
            <p class="say calm">"Only an admin can create keys."</p>
        </If>
        <If when=flag(move || access.team().is_some())>
            <Card
                title="Keys"
                note=text(|| "for programs that read or write data")
                wrong=keys.wrong
                end=move || view! { <button class="btn primary" data-do="new-key" on:click=new_own>"New key…"</button> }
            >
                <List
                    id="keys"
                    label="Table of keys"
                    heads=KEY_HEADS
                    rows=key_rows
                    known=flag(move || keys.known())
                    empty="There are no keys."
                    act=Callback::new(of_key)
                />
            </Card>
            <ServiceAccounts services add=Callback::new(new_service) act=Callback::new(of_service)/>
            <JoinKeys joins end=Callback::new(end_join)/>
            <FormDialog form done=Callback::new(move |_| {
                keys.ask();
                services.ask();
            })/>
        </If>
    }
}

/// The accounts of programs.
#[component]
fn ServiceAccounts(services: Polled<Services>, add: Callback<()>, act: Callback<Done>) -> impl IntoView {
    let rows = Memo::new(move |_| services.read(|told| told.services.iter().map(service).collect::<Vec<Line>>()));
    view! {
        <Card
            title="Service accounts"
            note=text(|| "for programs with several keys")
            wrong=services.wrong
            end=move || view! { <button class="btn" data-do="new-service" on:click=move |_| add.run(())>"New…"</button> }
        >
            <List
                id="services"
                label="Table of service accounts"
                heads=&["name", "role", "state", ">keys", ">created"]
                rows
                known=flag(move || services.known())
                empty="There are no service accounts."
                act
            />
        </Card>
    }
}

/// The join keys of machines.
#[component]
fn JoinKeys(joins: Polled<Joins>, end: Callback<Done>) -> impl IntoView {
    let rows = Memo::new(move |_| joins.read(|told| told.joins.iter().map(join).collect::<Vec<Line>>()));
    view! {
        <Card title="Join keys" note=text(|| "they only let machines join") wrong=joins.wrong>
            <List
                id="joins"
                label="Table of join keys"
                heads=&["for", "joined", "asks", ">created", ">expires"]
                rows
                known=flag(move || joins.known())
                empty="There are no valid join keys. Add machines to create one."
                act=end
            />
        </Card>
    }
}

/// The form of a service account, created by a user with the role `most`.
fn service_form(most: Role, path: String) -> Form {
    let roles = Role::ALL.iter().filter(|role| **role <= most).map(|role| (role.text(), role.text())).collect();
    let fields = vec![
        ("name", "Name, such as ci or grafana", FieldInput::Text(String::new())),
        ("role", "Role", FieldInput::Choice(roles)),
    ];
    let said = "A service account has keys but no password, and stays when people leave.";
    Form::ask("service", "New service account".into(), said, "POST", path).with("Create", fields)
}

/// Path that revokes a key: below its service, or below the team.
fn place_of(keys: Polled<Keys>, services: Polled<Services>, id: &str) -> String {
    let name = keys.read(|told| told.keys.iter().find(|key| key.id == id).and_then(|key| key.service.clone()));
    let service = name.and_then(|name| {
        services.read(|told| told.services.iter().find(|service| service.name == name).map(|one| one.id.clone()))
    });
    match service {
        Some(service) => format!("/services/{service}/keys/{id}"),
        None => format!("/keys/{id}"),
    }
}

fn service(service: &Service) -> Line {
    let (name, off) = (service.name.clone(), service.disabled);
    let state =
        if off { Cell::State(false, "its keys are disabled".into()) } else { Cell::State(true, "in use".into()) };
    let cells = vec![
        Cell::Name(name.clone(), String::new()),
        Cell::Text(service.role.to_string()),
        state,
        Cell::Number(service.keys.to_string()),
        Cell::Ago(Some(service.made), "–"),
    ];
    let turn = if off { ("enable", "Enable") } else { ("disable", "Disable") };
    let deeds = vec![("new-key", "New key…"), turn, ("remove", "Remove…")];
    Line { id: service.id.clone(), name, cells, deeds }
}

fn join(join: &Join) -> Line {
    let labels: Vec<String> = join.labels.iter().map(|(k, v)| format!("{k}:{v}")).collect();
    let name = if labels.is_empty() { "any machine".to_string() } else { labels.join(" ") };
    let joined = match join.left {
        Some(left) => format!("{} of {}", join.used, join.used.saturating_add(left)),
        None => join.used.to_string(),
    };
    let asks = [(join.approve, "approve each"), (join.by_name, "by name"), (join.ephemeral, "for an hour")];
    let asks: Vec<&str> = asks.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect();
    let cells = vec![
        Cell::Name(name.clone(), join.name.clone()),
        Cell::Text(joined),
        Cell::Faint(asks.join(", ")),
        Cell::Ago(Some(join.made), "–"),
        Cell::Ends(join.ends),
    ];
    Line { id: join.id.clone(), name, cells, deeds: vec![("end", "Revoke")] }
}
