//! The share links of a team: view, author, and end of each.

use super::asked::Polled;
use super::form::{FieldInput, Form, FormDialog};
use super::frame::Card;
use crate::access::Access;
use crate::widgets::clock::{ago, clock};
use crate::widgets::list::List;
use crate::widgets::list::line::{Cell, Done, Line};
use crate::widgets::parts::{flag, text};
use leptos::prelude::*;
use shared::unit::rough_duration;
use shared::views::{MadeShare, Share, Shares, Span};

/// A form that makes a link to a view of the page.
pub fn new_link(path: String, query: String) -> Form {
    let times = vec![("7d", "7 days"), ("24h", "24 h"), ("30d", "30 days"), ("90d", "90 days")];
    let fields = vec![
        ("note", "Note", FieldInput::Text(String::new())),
        ("expires", "Expires after", FieldInput::Choice(times)),
    ];
    let said = "Anyone with the link sees these machines in this span, without an account and without names of \
        processes and people. If this page is live, the link shows live data.";
    Form::ask("share", "Share this view".into(), said, "POST", path)
        .with("Create link", fields)
        .writing(move |typed| {
            let mut body = typed.sent();
            body.push(("query", query.as_str().into()));
            Ok(body)
        })
        .showing::<MadeShare>(|made| made.url.reveal().into(), "Send this link.")
}

/// The page.
#[component]
pub fn LinksPage() -> impl IntoView {
    let access = expect_context::<Access>();
    let path = move || access.team_here().map(|team| format!("api/v1/shares?team={}", team.id));
    let shares = Polled::follow(access, path);
    let rows = Memo::new(move |_| shares.read(|told: &Shares| told.shares.iter().map(share).collect::<Vec<Line>>()));
    let form = RwSignal::new(None::<Form>);
    let end = move |(line, _, _): Done| {
        form.set(Some(Form::ask(
            "end-share",
            format!("Revoke the link {}?", line.name),
            "Pages that show it are closed within a second.",
            "DELETE",
            format!("api/v1/shares/{}", line.id),
        )));
    };
    view! {
        <Card
            title="Share links"
            note=text(|| "read only, one view each, without an account; create one in the menu Views")
            wrong=shares.wrong
        >
            <List
                id="shares"
                label="Table of share links"
                heads=&["view", "shows", "by", "note", ">opened", ">expires"]
                rows
                known=flag(move || shares.known())
                empty="There are no share links."
                act=Callback::new(end)
            />
        </Card>
        <FormDialog form done=Callback::new(move |_| shares.ask())/>
    }
}

fn share(share: &Share) -> Line {
    let machines = match share.sources.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    let when = match (share.span, share.window) {
        (Some(Span { from, to }), _) => format!("{} to {}", clock(from as i64), clock(to as i64)),
        (_, Some(window)) => format!("live, at most {}", rough_duration((window * 1_000.0) as i64)),
        _ => "live".into(),
    };
    let opened = match share.opened {
        Some(t) => format!("{} times, last {}", share.opens, ago(t)),
        None => "never".into(),
    };
    let name = if share.name.is_empty() { "a page".to_string() } else { share.name.clone() };
    let shows = if machines.is_empty() { when } else { format!("{machines}, {when}") };
    let cells = vec![
        Cell::Name(name.clone(), String::new()),
        Cell::Text(shows),
        Cell::Faint(share.by.clone()),
        Cell::Faint(share.note.clone()),
        Cell::Text(opened),
        Cell::Ends(Some(share.ends)),
    ];
    Line { id: share.id.clone(), name, cells, deeds: vec![("end", "Revoke…")] }
}
