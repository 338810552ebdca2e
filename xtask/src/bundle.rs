//! Assembles the files of the page: those that `frontend/index.html` marks with `data-trunk`, the loader of
//! `frontend/Trunk.toml`, and names with a hash of the content. Trunk reads the same two files, so `trunk serve` shows
//! the same page. Compiling trunk for this one step took longer than the page itself.

use crate::paths;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::Path;

/// Output of the compiler and wasm-bindgen for the page.
pub struct Module {
    /// The script that wasm-bindgen wrote, and the wasm file that it names.
    pub script: String,
    pub wasm: Vec<u8>,
}

/// Name of the wasm file in the script of wasm-bindgen.
const WASM_IN_SCRIPT: &str = "page_bg.wasm";

/// Writes the page into the folder `dist`, and returns the text of its index.html.
pub fn bundle(module: &Module, dist: &Path) -> Result<String, String> {
    let frontend = paths::root().join("frontend");
    let html = paths::read(&frontend.join("index.html"))?;
    let trunk = paths::read(&frontend.join("Trunk.toml"))?;
    let loader = loader(&trunk)?;
    let mut hasher = DefaultHasher::new();
    hasher.write(module.script.as_bytes());
    hasher.write(&module.wasm);
    let name = format!("page-{:016x}", hasher.finish());
    let (script, wasm) = (format!("{name}.js"), format!("{name}_bg.wasm"));
    paths::write(&dist.join(&script), &module.script.replace(WASM_IN_SCRIPT, &wasm))?;
    std::fs::write(dist.join(&wasm), &module.wasm).map_err(|e| format!("{wasm}: {e}"))?;

    let html = linked(&html, |tag| {
        let href = || attribute(tag, "href").map(|href| frontend.join(href)).ok_or(format!("{tag} names no file"));
        match attribute(tag, "rel") {
            Some("icon") => Ok(format!("<link rel=\"icon\" href=\"./{}\">", hashed(&href()?, dist)?)),
            Some("css") => Ok(format!("<link rel=\"stylesheet\" href=\"./{}\">", hashed(&href()?, dist)?)),
            Some("copy-dir") => {
                let folder = href()?;
                paths::copy(&folder, &dist.join(folder.file_name().unwrap_or_default()))?;
                Ok(String::new())
            }
            Some("rust") => Ok(loader.replace("{base}", "./").replace("{js}", &script).replace("{wasm}", &wasm)),
            _ => Err(format!("xtask/src/bundle.rs does not know {tag}")),
        }
    })?;
    // The browser fetches both while it reads the rest.
    let early = format!(
        "<link rel=\"modulepreload\" href=\"./{script}\" crossorigin=\"anonymous\">\
         <link rel=\"preload\" href=\"./{wasm}\" crossorigin=\"anonymous\" as=\"fetch\" type=\"application/wasm\"></head>"
    );
    replaced(&html, "</head>", &early)
}

/// Replaces a placeholder in a text; an error when it is missing.
pub fn replaced(text: &str, place: &str, with: &str) -> Result<String, String> {
    if text.contains(place) { Ok(text.replace(place, with)) } else { Err(format!("nothing names {place}")) }
}

/// The name of a file with a hash of its content: `style-0123456789abcdef.css`.
pub fn name_of(stem: &str, kind: &str, content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(content);
    format!("{stem}-{:016x}.{kind}", hasher.finish())
}

/// Copies a file into `dist`, and returns its name there.
fn hashed(file: &Path, dist: &Path) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    let content = std::fs::read(file).map_err(failed)?;
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let name = name_of(&part(file.file_stem()), &part(file.extension()), &content);
    std::fs::write(dist.join(&name), content).map_err(failed)?;
    Ok(name)
}

/// The text with each `<link data-trunk ...>` replaced by the result of `put`.
fn linked(html: &str, mut put: impl FnMut(&str) -> Result<String, String>) -> Result<String, String> {
    let (mut text, mut rest) = (String::new(), html);
    while let Some(at) = rest.find("<link data-trunk ") {
        let length = rest[at..].find('>').ok_or("a <link data-trunk does not end")? + 1;
        text += &rest[..at];
        text += &put(&rest[at..at + length])?;
        rest = &rest[at + length..];
    }
    Ok(text + rest)
}

/// The value of an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

/// The loader in Trunk.toml, between its triple quotation marks.
fn loader(trunk: &str) -> Result<&str, String> {
    let text = trunk.split_once("pattern_script = \"\"\"\n").and_then(|(_, rest)| rest.split_once("\"\"\""));
    text.map(|(loader, _)| loader).ok_or_else(|| "frontend/Trunk.toml has no pattern_script".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{attribute, linked, loader, name_of};

    #[test]
    fn marked_links_are_replaced_and_others_stay() {
        let html = "<link rel=\"a\"><link data-trunk rel=\"css\" href=\"x.css\"><p>";
        let put = |tag: &str| Ok(format!("[{}]", attribute(tag, "href").unwrap_or("none")));
        assert_eq!(linked(html, put).as_deref(), Ok("<link rel=\"a\">[x.css]<p>"));
        assert!(linked("<link data-trunk rel=", put).is_err());
    }

    #[test]
    fn the_loader_is_that_of_trunk() {
        let path = crate::paths::root().join("frontend/Trunk.toml");
        let text = crate::paths::read(&path).expect("it is there");
        let loader = loader(&text).expect("it has one");
        assert!(loader.starts_with("<script") && loader.ends_with("</script>"), "{loader}");
        assert!(["{base}", "{js}", "{wasm}"].iter().all(|place| loader.contains(place)), "{loader}");
    }

    #[test]
    fn a_name_changes_with_the_content() {
        assert_ne!(name_of("a", "js", b"1"), name_of("a", "js", b"2"));
        assert_eq!(name_of("a", "js", b"1").len(), "a-0123456789abcdef.js".len());
    }
}
