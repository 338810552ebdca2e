//! The pages, and the parts around them: [`overview`] of one machine with its [`sections`] and [`processes`]; [`fleet`]
//! of all machines; [`runs`] of training jobs; [`findings`]; [`alerts`] with their notifications; [`notes`] of people;
//! [`team`] of a hub's people and machines; [`bar`] above, [`player`] below, [`banner`] over the page. [`poll`] polls
//! the server for them.
//! [`offers`] are their results in the search. The page of one machine is there from the start; the others are
//! [`parts`](crate::parts).

pub mod alerts;
pub mod banner;
pub mod bar;
pub mod cells;
pub mod findings;
pub mod fleet;
pub mod notes;
pub mod offers;
pub mod overview;
mod past;
pub mod player;
mod poll;
pub mod processes;
pub mod runs;
pub mod sections;
pub mod team;

use crate::address::Route;
use crate::parts::parts;
use crate::shortcuts::Action;
use leptos::prelude::Callback;

parts! {
    /// The sign-in, or the content of the dialog that requests the password again.
    gate(team::gate::Ask) = team::gate::page;
    /// The menu of saved views, for those who are signed in.
    views(()) = team::views::part;
    /// A page of people or machines of a hub.
    team(Route) = team::page;
    /// The page of all machines, or of some beside each other.
    fleet(Route) = fleet::page;
    /// The page of all training jobs, or of some.
    runs(Route) = runs::page;
    /// The page of alerts, rules and deliveries.
    alerts(()) = alerts::page;
    /// The page of findings.
    findings(()) = findings::page;
    /// The search, with training jobs and settings. It is given what carries out the action of a key.
    finder(Callback<Action>) = offers::finder;
    /// The dialog that writes a note.
    note_dialog(()) = notes::dialog;
}
