//! What the page weighs.

use crate::table::Table;

/// Bytes of the page as a browser with brotli loads it.
pub fn measure(table: &mut Table) {
    let bytes = backend::http::page::weight();
    if bytes == 0 {
        table.missing("page, brotli", "200 KB", "this binary has no page: cargo xtask build");
        return;
    }
    table.at_most("page, brotli", bytes as f64 / 1000.0, "kB", 200.0, "200 KB", "", "all files of the page");
}
