//! The page of `frontend/dist`, as `build.rs` found it. Without that folder there is none.

use shared::embedded::{EmbeddedFile, EmbeddedPage};

/// The page.
pub const PAGE: EmbeddedPage = EmbeddedPage { files: FILES, inline_scripts: INLINE_SCRIPTS };

include!(concat!(env!("OUT_DIR"), "/page.rs"));
