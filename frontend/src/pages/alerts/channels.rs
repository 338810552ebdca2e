//! The notification channels with their last delivery, this browser, the sent notifications, and quiet hours.

use super::{bell, words};
use crate::access::Access;
use crate::pages::team::asked::Polled;
use crate::pages::team::form::{Field, FieldInput, Form, FormDialog, Typed};
use crate::state::Page;
use crate::widgets::clock::ago;
use crate::widgets::list::List;
use crate::widgets::list::line::{Cell, Line};
use crate::widgets::parts::{Each, If, flag, text};
use leptos::prelude::*;
use shared::alert::{self, Channel, Sent};
use shared::role::Role;
use viewer::alerts::{KINDS, delivery, kind, zoned};
use wasm_bindgen::JsValue;

/// Whether the user may create channels. Without accounts the server checks this itself.
fn may_change(access: Access) -> bool {
    access.session.with(Option::is_none) || access.team_here().is_some_and(|team| team.role >= Role::Admin)
}

/// The field of a kind: its words and how it is filled in. Secrets are never shown again.
fn field(of: &str, name: &'static str) -> Field {
    let secret = FieldInput::Password("off");
    let text = FieldInput::Text(String::new());
    let (label, entry) = match (of, name) {
        ("teams", "address") => ("Address of the workflow (https)", secret),
        ("webhook", "address") => ("Address that receives the message (https)", secret),
        ("ntfy", "address") => ("Address of the server, such as https://ntfy.sh", secret),
        (_, "address") => ("Address of the webhook (https)", secret),
        (_, "addresses") => ("Addresses, separated by commas", secret),
        (_, "to") => ("E-mail addresses, separated by commas; at most 20", text),
        ("telegram", "topic") => ("Chat", text),
        (_, "topic") => ("Topic", text),
        ("pagerduty", "secret") => ("Routing key", secret),
        ("telegram", "secret") => ("Bot token", secret),
        ("webhook", "secret") => ("Signing secret: whsec_ and 24 to 64 bytes in base64", secret),
        (_, "secret") => ("Token (optional)", secret),
        _ => ("Format", FieldInput::Choice(vec![("json", "JSON"), ("cloudevents", "CloudEvents")])),
    };
    (name, label, entry)
}

/// The request body for a form.
fn sent_of(
    of: &'static str,
    fields: &'static [&'static str],
    typed: &Typed,
) -> Result<Vec<(&'static str, JsValue)>, String> {
    let list = |text: &str| -> JsValue {
        let all = text.split([',', ' ']).map(str::trim).filter(|one| !one.is_empty());
        all.map(JsValue::from).collect::<js_sys::Array>().into()
    };
    if typed.value_of("name").is_empty() {
        return Err("Give the channel a name.".into());
    }
    let mut sent: Vec<(&'static str, JsValue)> = vec![("name", typed.value_of("name").into()), ("kind", of.into())];
    for name in fields {
        let value = typed.value_of(name);
        match (*name, value.is_empty()) {
            (_, true) => {}
            ("to" | "addresses", false) => sent.push((*name, list(&value))),
            _ => sent.push((*name, value.into())),
        }
    }
    sent.push(("is_default", (typed.value_of("default") != "no").into()));
    let (from, to) = (typed.value_of("quiet_from"), typed.value_of("quiet_to"));
    match (from.is_empty(), to.is_empty()) {
        (true, true) => {}
        (false, false) => {
            let hours = [("days", typed.value_of("days").into()), ("from", from.into()), ("to", to.into())];
            sent.push(("quiet", js_sys::Array::of1(&crate::fetch::Json::object(hours)).into()));
        }
        _ => return Err("Enter a start and an end of quiet hours, such as 22:00 and 07:00.".into()),
    }
    if !typed.value_of("zone").is_empty() {
        sent.push(("zone", typed.value_of("zone").into()));
    }
    Ok(sent)
}

/// The form of a channel: a new one of a kind, or a change of one that is there.
fn form_of(access: Access, of: &str, present: Option<&Channel>) -> Option<Form> {
    let (name, title, _, fields) = *kind(of)?;
    let quiet = present.and_then(|one| one.quiet.first().cloned()).unwrap_or_default();
    let text = |value: &str| FieldInput::Text(value.to_string());
    let own = fields.iter().map(|field_name| field(name, field_name));
    let yes = vec![("yes", "rules that name no channel"), ("no", "only rules that name it")];
    let no = yes.iter().rev().copied().collect();
    let defaults = if present.is_none_or(|one| one.is_default) { yes } else { no };
    let rest: [Field; 5] = [
        ("default", "Rules that use it", FieldInput::Choice(defaults)),
        ("quiet_from", "Quiet from, such as 22:00; empty for no quiet hours", text(&quiet.from)),
        ("quiet_to", "to, such as 07:00; critical alerts are sent at once", text(&quiet.to)),
        ("days", "on days, such as mon-fri; empty for every day", text(&quiet.days)),
        (
            "zone",
            "in the time zone, such as Europe/Berlin; empty for UTC",
            text(present.and_then(|one| one.zone.as_deref()).unwrap_or_default()),
        ),
    ];
    let first: Field = ("name", "Name", text(present.map_or("", |one| &one.name)));
    let all = [first].into_iter().chain(own).chain(rest).collect();
    let (method, path) = match present {
        Some(one) => ("PUT", words::of_id("api/v1/channels", &one.id)),
        None => ("POST", words::of_team(access, "api/v1/channels")),
    };
    let words = match present {
        Some(_) => "Secrets are not shown; leave a field empty to keep its secret.",
        None => "Secrets are encrypted and never shown again.",
    };
    Some(
        Form::ask("channel", format!("Notify by {title}"), words, method, path)
            .with("Save", all)
            .writing(move |typed: &Typed| sent_of(name, fields, typed)),
    )
}

/// The part of the page.
#[component]
pub fn Channels() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let form = RwSignal::new(None::<Form>);
    let asked = Polled::follow(access, move || Some(words::of_team(access, "api/v1/channels")));
    Effect::new(move || {
        page.alert_changes.track();
        asked.ask();
    });
    let channels = Memo::new(move |_| asked.read(|told: &alert::Channels| told.channels.clone()));
    let sent = Memo::new(move |_| asked.read(|told| told.sent.clone()));
    let keys = Signal::derive(move || channels.with(|all| all.iter().map(|one| one.id.clone()).collect::<Vec<_>>()));
    let row = Callback::new(move |id: String| view! { <ChannelRow id channels asked form/> }.into_any());
    let add = move |event| {
        form.set(form_of(access, &event_target_value(&event), None));
        // The same kind can be chosen again.
        if let Some(select) = crate::browser::by_id("add-channel") {
            use wasm_bindgen::JsCast;
            select.unchecked_into::<web_sys::HtmlSelectElement>().set_selected_index(0);
        }
    };
    let kinds = || KINDS.iter().map(|(name, title, ..)| view! { <option value=*name>{*title}</option> }).collect_view();
    let may = flag(move || may_change(access));
    let count = text(move || {
        sent.with(|sent| match sent.len() {
            0 if !asked.known() => String::new(),
            0 => "last 24 h, nothing".into(),
            1 => "last 24 h, 1 message".into(),
            n => format!("last 24 h, {n} messages"),
        })
    });
    let sent_rows = Signal::derive(move || sent.with(|all| all.iter().map(line).collect::<Vec<Line>>()));
    let quiet = move || {
        channels.with(|all| all.iter().flat_map(|one| one.quiet.iter().map(|hours| {
        let days = if hours.days.is_empty() { String::new() } else { format!(" ({})", hours.days) };
        let zone = one.zone.as_deref().unwrap_or("UTC").to_string();
        view! { <p class="below"><b>{one.name.clone()}</b>" waits from "{hours.from.clone()}" to "{hours.to.clone()}{days}", "{zone}"."</p> }
    })).collect_view())
    };
    view! {
        <div class="findings-body deliveries">
            <section class="panel flush" aria-label="Channels">
                <header>
                    <h2>"Channels"</h2>
                    <span class="end"><If when=may><select id="add-channel" class="btn" aria-label="Add a channel" on:change=add><option value="">"Add…"</option>{kinds()}</select></If></span>
                </header>
                <p class="wrong" role="alert">{asked.wrong}</p>
                <If when=flag(move || asked.known() && channels.with(Vec::is_empty))>
                    <p class="below pad">"Alerts are shown in this page only. Add a channel: Slack, e-mail, a webhook and others."</p>
                </If>
                <Each keys row/>
                <ThisBrowser/>
            </section>
            <section class="panel flush" aria-label="Sent">
                <header><h2>"Sent"</h2><span class="u">{count}</span></header>
                <List
                    id="sent"
                    label="Table of messages"
                    heads=&["time", "notification", "channel", "result"]
                    rows=sent_rows
                    known=flag(move || asked.known())
                    empty="Nothing has been sent."
                />
                <header class="quiet-head"><h2>"Quiet hours"</h2><span class="u">"critical alerts are sent at once; others are sent afterwards in one message"</span></header>
                <div class="quiet-hours">{quiet}
                    <If when=flag(move || asked.known() && channels.with(|all| all.iter().all(|one| one.quiet.is_empty())))>
                        <p class="below">"No channel has quiet hours. Edit a channel to set them."</p>
                    </If>
                    <p class="below u">"While a machine is lost, its other alerts are inhibited."</p>
                </div>
            </section>
        </div>
        <FormDialog form done=Callback::new(move |_| page.alert_changes.update(|n| *n += 1))/>
    }
}

/// A notice as a row.
fn line(one: &Sent) -> Line {
    let how = if one.words.is_empty() { one.state.clone() } else { one.words.clone() };
    let cells = vec![
        Cell::Text(words::clock(one.at * 1_000)),
        // The title is that of the notice, whose times are in UTC.
        Cell::Text(zoned(&one.title, one.at * 1_000, words::clock)),
        Cell::Text(one.channel.clone()),
        Cell::State(delivery(&one.state).1 == "●", how),
    ];
    Line { id: one.id.clone(), name: one.title.clone(), cells, deeds: Vec::new() }
}

#[component]
fn ChannelRow(
    id: String,
    channels: Memo<Vec<Channel>>,
    asked: Polled<alert::Channels>,
    form: RwSignal<Option<Form>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let own = StoredValue::new(id.clone());
    let one =
        Memo::new(move |_| channels.with(|all| all.iter().find(|one| own.with_value(|id| one.id == *id)).cloned()));
    let of = move |read: fn(&Channel) -> String| {
        text(move || {
            page.beat.track();
            one.with(|one| one.as_ref().map(read).unwrap_or_default())
        })
    };
    let (said, busy) = (RwSignal::new(String::new()), RwSignal::new(false));
    let test = move |_| {
        busy.set(true);
        said.set("Sending…".into());
        let path = format!("{}/test", words::of_id("api/v1/channels", &own.get_value()));
        access.ask("POST", path, Vec::new(), move |answer| {
            // The page may have gone.
            let _ = busy.try_set(false);
            let _ = said.try_set(answer.read::<alert::Tested>().map_or_else(|why| why, |tested| tested.sentence));
            asked.ask();
        });
    };
    let edit = move |_| {
        if let Some(one) = one.get_untracked() {
            form.set(form_of(access, &one.kind, Some(&one)));
        }
    };
    let remove = move |_| {
        let name = one.with_untracked(|one| one.as_ref().map(|one| one.name.clone()).unwrap_or_default());
        let words = "Rules that name it no longer send notifications to it. Queued notifications are dropped.";
        let path = super::words::of_id("api/v1/channels", &own.get_value());
        form.set(Some(Form::ask("remove-channel", format!("Remove {name}?"), words, "DELETE", path)));
    };
    let carried = |one: &Channel| {
        let d = &one.delivery;
        let lost = if d.lost == 0 { "none failed".to_string() } else { format!("{} failed", d.lost) };
        let waiting = match (d.waiting, d.oldest) {
            (0, _) => String::new(),
            (n, Some(oldest)) => format!("; {n} queued, the oldest from {}", words::clock(oldest * 1_000)),
            (n, None) => format!("; {n} queued"),
        };
        format!("{} sent in 7 days, {lost}{waiting}", d.sent)
    };
    let how = |one: &Channel| match (one.delivery.at, one.delivery.words.as_str()) {
        (_, "") => "nothing sent yet".to_string(),
        (Some(at), words) => format!("{}: {words}", ago(at)),
        (None, words) => words.to_string(),
    };
    view! {
        <div
            class="channel"
            data-channel=of(|one| one.name.clone())
            data-delivery=of(|one| if one.delivery.state == "none" { String::new() } else { one.delivery.state.clone() })
        >
            <span class="sign" aria-hidden="true">{of(|one| kind(&one.kind).map_or("", |kind| kind.2).into())}</span>
            <div>
                <b class="source-name">{of(|one| one.name.clone())}</b>" "
                <span class="u">{of(|one| format!("{} {}", kind(&one.kind).map_or(one.kind.as_str(), |kind| kind.1), one.target))}</span>
                <p class="below"><span class=of(|one| delivery(&one.delivery.state).0.into()) aria-hidden="true">{of(|one| delivery(&one.delivery.state).1.into())}</span>" "{of(how)}</p>
                <p class="below u">{of(carried)}</p>
                <p class="did" role="status">{said}</p>
            </div>
            <If when=flag(move || may_change(access))>
                <span class="deeds">
                    <button class="btn" data-do="test-channel" disabled=busy on:click=test>"Test"</button>
                    <button data-do="edit-channel" on:click=edit>"Edit…"</button>
                    <button data-do="remove-channel" on:click=remove>"Remove…"</button>
                </span>
            </If>
        </div>
    }
}

/// The notifications of this browser: allowed by a click, and switched off by another.
#[component]
fn ThisBrowser() -> impl IntoView {
    let state = RwSignal::new((bell::permission(), bell::is_quiet()));
    let look = move || {
        let _ = state.try_set((bell::permission(), bell::is_quiet()));
    };
    let words = text(move || {
        state.with(|(allowed, quiet)| match (allowed.as_str(), quiet) {
            ("granted", false) => "new alerts are shown while a page is open",
            ("granted", true) => "notifications are off",
            ("denied", _) => "the browser blocks notifications; allow them in its settings for this page",
            ("default", _) => "notifications are off",
            _ => "notifications need TLS, or localhost",
        })
    });
    let on = move || state.with(|(allowed, quiet)| allowed == "granted" && !quiet);
    let press = move |_| {
        let (allowed, quiet) = state.get_untracked();
        if allowed == "default" {
            bell::set_quiet(false);
            bell::ask(look);
        } else {
            bell::set_quiet(!quiet);
            look();
        }
    };
    let can = flag(move || state.with(|(allowed, _)| matches!(allowed.as_str(), "granted" | "default")));
    view! {
        <div class="channel" data-channel="browser" data-delivery=text(move || if on() { "ok" } else { "" })>
            <span class="sign" aria-hidden="true">"◯"</span>
            <div>
                <b class="source-name">"this browser"</b>
                <p class="below"><span class=text(move || if on() { "shape is-ok" } else { "shape is-unknown" }) aria-hidden="true">{text(move || if on() { "●" } else { "◌" })}</span>" "{words}</p>
                <p class="below u">"nothing leaves this network"</p>
            </div>
            <If when=can><span class="deeds"><button class="btn" data-do="browser" on:click=press>{text(move || if on() { "Switch off" } else { "Allow…" })}</button></span></If>
        </div>
    }
}
