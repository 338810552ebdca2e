//! The pages, of which there is one so far, and the parts around it: [`overview`] with its [`sections`] and
//! [`processes`]; [`bar`] above, [`player`] below, [`banner`] over the page.

pub mod banner;
pub mod bar;
pub mod overview;
mod past;
pub mod player;
pub mod processes;
pub mod sections;
