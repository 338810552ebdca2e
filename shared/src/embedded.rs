//! The files of the page, as embedded in the program that serves them.

/// A file of the page.
#[derive(Debug)]
pub struct EmbeddedFile {
    /// Path relative to the page.
    pub path: &'static str,
    /// Content type.
    pub mime: &'static str,
    /// Whether its name holds a hash of its content, so that it never changes.
    pub immutable: bool,
    /// Size before compression, in bytes.
    pub size: usize,
    /// The file as it is; empty if brotli makes it smaller.
    pub identity: &'static [u8],
    /// The file compressed by brotli; empty if that makes it no smaller.
    pub brotli: &'static [u8],
}

/// The page, as the crate that embeds it passes it to the server.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedPage {
    /// All files; empty in a program that was built without the page.
    pub files: &'static [EmbeddedFile],
    /// Sources of the page's inline scripts for the content security policy.
    pub inline_scripts: &'static [&'static str],
}

impl EmbeddedPage {
    /// No page.
    pub const NONE: EmbeddedPage = EmbeddedPage { files: &[], inline_scripts: &[] };
}
