//! What is wrong, and what was: [`follow`] asks for it again and again; [`say`] is the sentence that leads a page, [`list`] the
//! page of all of them with the evidence of one. [`heard`] tells screen readers. [`dismiss`] says of one
//! that it is wrong. [`words`] is how it is said.

mod dismiss;
mod evidence;
pub mod follow;
pub mod heard;
pub mod list;
pub mod one;
mod rules;
pub mod say;
pub mod words;
