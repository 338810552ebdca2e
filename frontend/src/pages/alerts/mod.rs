//! Alerts and their notifications. [`follow`] polls them, [`bell`] is in the bar of each page, and [`whole`] has all
//! parts: the alerts ([`list`], [`one`]), the [`rules`] with a [`draft`], the [`channels`] and the [`silences`].
//! [`series`] draws the watched series, and [`deeds`] has the actions. [`read`] parses the server's answers, and
//! [`words`] has the texts.

pub mod bell;
mod channels;
pub mod deeds;
mod draft;
pub mod follow;
mod list;
mod one;
mod rules;
mod series;
mod silences;
pub mod whole;
mod words;

use super::fleet::bar::FleetBar;
use super::team::gate::Stripes;
use leptos::prelude::*;

/// The page of alerts, with its bar.
pub fn page((): ()) -> AnyView {
    view! { <FleetBar/> <Stripes/> <whole::AlertsPage/> }.into_any()
}
