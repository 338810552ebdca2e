//! The page of `frontend/dist`, as found by `build.rs`; no page without that folder.

use shared::embedded::{EmbeddedFile, EmbeddedPage};

/// The page.
pub const PAGE: EmbeddedPage = EmbeddedPage { files: FILES, inline_scripts: INLINE_SCRIPTS };

include!(concat!(env!("OUT_DIR"), "/page.rs"));
