//! The share links of a team: what each shows, who made it, and its end.

use super::asked::Polled;
use super::form::{Entry, Form, FormDialog};
use super::frame::Card;
use super::list::{Cell, Done, Line, List, clock};
use crate::access::Access;
use crate::fetch::Json;
use crate::widgets::parts::{flag, text};
use leptos::prelude::*;
use shared::unit::rough_duration;

/// A form that makes a link to a view of the page.
pub fn new_link(path: String, query: String) -> Form {
    let times = vec![("7d", "7 days"), ("24h", "24 h"), ("30d", "30 days"), ("90d", "90 days")];
    let fields = vec![("note", "Note", Entry::Text(String::new())), ("expires", "Expires after", Entry::Choice(times))];
    let said = "Anyone with the link sees these machines in this span, without an account and without names of \
        processes and people. If this page is live, the link shows live data.";
    Form::ask("share", "Share this view".into(), said, "POST", path)
        .with("Create link", fields)
        .writing(move |typed| {
            let mut body = typed.sent();
            body.push(("query", query.as_str().into()));
            Ok(body)
        })
        .showing("url", "Send this link.")
}

/// The page.
#[component]
pub fn LinksPage() -> impl IntoView {
    let access = expect_context::<Access>();
    let path = move || access.team_here().map(|team| format!("api/v1/shares?team={}", team.id));
    let shares = Polled::follow(access, path);
    let rows =
        Memo::new(move |_| shares.read(|body| body.get("shares").list().iter().map(share).collect::<Vec<Line>>()));
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

fn share(share: &Json) -> Line {
    let time = |of: &Json, name: &str| of.get(name).number().map(|t| t as i64);
    let machines: Vec<String> = share.get("sources").list().iter().map(Json::text).collect();
    let machines = match machines.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    let span = share.get("span");
    let when = match (time(&span, "from"), time(&span, "to"), share.get("window").number()) {
        (Some(from), Some(to), _) => format!("{} to {}", clock(from), clock(to)),
        (_, _, Some(window)) => format!("live, at most {}", rough_duration((window * 1_000.0) as i64)),
        _ => "live".into(),
    };
    let opens = share.get("opens").number().unwrap_or(0.0);
    let opened = match time(share, "opened") {
        Some(t) => format!("{opens} times, last {}", super::list::ago(t)),
        None => "never".into(),
    };
    let (id, name) = (share.get("id").text(), share.get("name").text());
    let name = if name.is_empty() { "a page".to_string() } else { name };
    let shows = if machines.is_empty() { when } else { format!("{machines}, {when}") };
    let cells = vec![
        Cell::Name(name.clone(), String::new()),
        Cell::Text(shows),
        Cell::Faint(share.get("by").text()),
        Cell::Faint(share.get("note").text()),
        Cell::Text(opened),
        Cell::Ends(time(share, "ends")),
    ];
    Line { id, name, cells, deeds: vec![("end", "Revoke…")] }
}
