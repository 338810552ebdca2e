//! Links out of the book. On a forge they lead to a file. The served book has no such file, so the text stays without a
//! link. Pictures are copied.

use mdbook_driver::book::{Book, Chapter};
use mdbook_driver::errors::Result;
use mdbook_preprocessor::{Preprocessor, PreprocessorContext};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Rewrites the links of all chapters.
pub struct Outside {
    docs: PathBuf,
    out: PathBuf,
}

impl Outside {
    /// For a book in `docs` that is built into `out`. Both paths are absolute.
    pub fn new(docs: &Path, out: &Path) -> Self {
        Outside { docs: docs.into(), out: out.into() }
    }

    /// The text of a chapter at `path` below `docs`. A link may continue in the next line; code blocks have none.
    fn chapter(&self, path: &Path, text: &str) -> Result<String> {
        let (mut done, mut open, mut fenced) = (String::new(), String::new(), false);
        for line in text.split_inclusive('\n') {
            let fence = line.trim_start().starts_with("```");
            if fence && !fenced {
                done.push_str(&self.prose(path, &std::mem::take(&mut open))?);
            }
            match fence || fenced {
                true => done.push_str(line),
                false => open.push_str(line),
            }
            fenced ^= fence;
        }
        done.push_str(&self.prose(path, &open)?);
        Ok(done)
    }

    fn prose(&self, path: &Path, mut rest: &str) -> Result<String> {
        let mut done = String::new();
        while let Some(link) = Link::first(rest) {
            done.push_str(&rest[..link.begin]);
            match outside(path, link.target) {
                None => done.push_str(&rest[link.begin..link.end]),
                Some(file) if link.is_picture => {
                    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    fs::create_dir_all(self.out.join("pictures"))?;
                    fs::copy(self.docs.join("..").join(&file), self.out.join("pictures").join(&name))?;
                    let up = "../".repeat(path.components().count() - 1);
                    done.push_str(&format!("![{}]({up}pictures/{name})", link.text));
                }
                Some(file) => {
                    let place = file.display().to_string();
                    done.push_str(link.text);
                    if !place.ends_with(link.text.trim_matches('`')) {
                        done.push_str(&format!(" (`{place}`)"));
                    }
                }
            }
            rest = &rest[link.end..];
        }
        done.push_str(rest);
        Ok(done)
    }
}

impl Preprocessor for Outside {
    fn name(&self) -> &str {
        "outside"
    }

    fn run(&self, _: &PreprocessorContext, mut book: Book) -> Result<Book> {
        let mut failed = None;
        book.for_each_chapter_mut(|chapter: &mut Chapter| {
            let Some(path) = chapter.source_path.clone() else { return };
            match self.chapter(&path, &chapter.content) {
                Ok(text) => chapter.content = text,
                Err(error) => failed = Some(error.context(path.display().to_string())),
            }
        });
        failed.map_or(Ok(book), Err)
    }
}

/// A link `[text](target)` in a text, or a picture.
struct Link<'a> {
    begin: usize,
    end: usize,
    text: &'a str,
    target: &'a str,
    is_picture: bool,
}

impl<'a> Link<'a> {
    /// The first link of a text. Its own text contains no link.
    fn first(line: &'a str) -> Option<Self> {
        let middle = line.find("](")?;
        let open = line[..middle].rfind('[')?;
        let close = middle + line[middle..].find(')')?;
        let is_picture = line[..open].ends_with('!');
        Some(Link {
            begin: open - usize::from(is_picture),
            end: close + 1,
            text: &line[open + 1..middle],
            target: &line[middle + 2..close],
            is_picture,
        })
    }
}

/// The file, relative to the root of the project, of a chapter's link that leads out of the book.
fn outside(chapter: &Path, target: &str) -> Option<PathBuf> {
    let target = target.split('#').next().unwrap_or_default();
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut parts = vec!["docs".into()];
    parts.extend(chapter.parent()?.components().map(|part| part.as_os_str().to_owned()));
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_owned()),
            _ => {}
        }
    }
    (parts.first().is_none_or(|first| first != "docs")).then(|| parts.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::{Outside, outside};
    use std::path::{Path, PathBuf};

    #[test]
    fn a_link_to_a_source_file_becomes_words() {
        let outside = Outside::new(Path::new("/docs"), Path::new("/out"));
        let text = outside.chapter(
            Path::new("develop/architecture.md"),
            "See [`unit.rs`](../../shared/src/unit.rs), [the\npage](../../frontend/src/lib.rs#a) and [runs](../use/runs.md#b).\n```\n[x](../../y)\n```",
        );
        let expected =
            "See `unit.rs`, the\npage (`frontend/src/lib.rs`) and [runs](../use/runs.md#b).\n```\n[x](../../y)\n```";
        assert_eq!(text.expect("no picture"), expected);
    }

    #[test]
    fn only_paths_out_of_the_book_are_outside() {
        let chapter = Path::new("use/page.md");
        assert_eq!(outside(chapter, "../../README.md#x"), Some(PathBuf::from("README.md")));
        for inside in ["keys.md", "../start/install.md", "#here", "https://example.org/a"] {
            assert_eq!(outside(chapter, inside), None, "{inside}");
        }
    }
}
