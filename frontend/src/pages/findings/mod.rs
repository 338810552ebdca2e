//! Findings, open and ended. [`follow`] polls them, [`say`] is the sentence that leads a page, and [`list`] the page of
//! all findings with the evidence of one. [`heard`] announces them to screen readers. [`dismiss`] marks one as wrong.
//! [`words`] has the texts.

mod dismiss;
mod evidence;
pub mod follow;
pub mod heard;
pub mod list;
pub mod one;
mod rules;
pub mod say;
pub mod words;

use super::fleet::bar::FleetBar;
use super::team::gate::Stripes;
use leptos::prelude::*;

/// The page of all findings, with its bar.
pub fn page((): ()) -> AnyView {
    view! { <FleetBar/> <Stripes/> <list::FindingsPage/> }.into_any()
}
