//! `book DOCS OUT` builds the book of the folder DOCS with mdBook, and writes into OUT the files that the program
//! serves at `/docs`.
//!
//! mdBook is used as a library, because its own program also compiles a web server and a file watcher. Three things are
//! ours:
//!
//! - links that leave DOCS become plain text, because the served book has no source files beside it ([`outside`]);
//! - the content security policy of the page allows no style attributes, so they become classes ([`strict`]);
//! - fonts, highlighting and themes of mdBook stay out of OUT, because our theme (`docs/theme`) does not use them.

mod outside;
mod strict;

use mdbook_driver::MDBook;
use mdbook_driver::config::Config;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Name prefixes of scripts and styles that our theme uses; a hash of their content follows.
const USED: [&str; 7] = ["book-frame", "book-style", "elasticlunr", "mark", "searcher", "searchindex", "toc"];

fn main() -> ExitCode {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [docs, out] = args.as_slice() else {
        eprintln!("usage: book DOCS OUT");
        return ExitCode::from(2);
    };
    match make(docs, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error:#}", docs.display());
            ExitCode::FAILURE
        }
    }
}

/// Builds the book into `out/.raw` and copies the served files from there into `out`.
fn make(docs: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    let (docs, out) = (docs.canonicalize()?, out.canonicalize()?);
    let raw = out.join(".raw");
    let mut config = Config::from_disk(docs.join("book.toml"))?;
    config.build.build_dir.clone_from(&raw);
    let mut book = MDBook::load_with_config(&docs, config)?;
    book.with_preprocessor(outside::Outside::new(&docs, &out));
    book.build()?;
    copy(&raw, &out, Path::new(""))?;
    fs::copy(docs.join("../static/icon.svg"), out.join("icon.svg"))?;
    fs::remove_dir_all(raw)?;
    Ok(())
}

/// Copies the served files below `raw/at`.
fn copy(raw: &Path, out: &Path, at: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(raw.join(at))? {
        let entry = entry?;
        let path = at.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(raw, out, &path)?;
            continue;
        }
        if !is_served(&path) {
            continue;
        }
        let target = out.join(&path);
        fs::create_dir_all(target.parent().unwrap_or(out))?;
        match path.extension().is_some_and(|end| end == "html") {
            true => fs::write(&target, strict::page(&fs::read_to_string(raw.join(&path))?))?,
            false => fs::copy(raw.join(&path), &target).map(|_| ())?,
        }
    }
    Ok(())
}

/// Whether a file of mdBook's output is served.
fn is_served(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match path.extension().and_then(|end| end.to_str()) {
        Some("txt") => name == "licenses.txt",
        Some("html") => name != "404.html",
        Some("js" | "css") => USED.iter().any(|used| name.strip_prefix(used).is_some_and(|rest| rest.starts_with('-'))),
        Some("png" | "svg" | "yml" | "toml" | "json") => !name.starts_with("favicon") && name != "book.toml",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_served;
    use std::path::Path;

    #[test]
    fn what_the_theme_does_not_use_stays_out() {
        for served in [
            "index.html",
            "use/runs.html",
            "toc-0123abcd.js",
            "theme/book-style-0123abcd.css",
            "reference/config.example.toml",
        ] {
            assert!(is_served(Path::new(served)), "{served}");
        }
        for left in [
            "404.html",
            "theme/book-style.css",
            "theme/index.hbs",
            "highlight-0123abcd.js",
            "css/chrome.css",
            "fonts/a.woff2",
            "favicon-1.svg",
            "book.toml",
            ".nojekyll",
        ] {
            assert!(!is_served(Path::new(left)), "{left}");
        }
    }
}
