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
    /// The script that loads the parts.
    pub loader: String,
    /// The parts: their names in that script, and their content.
    pub parts: Vec<(String, Vec<u8>)>,
}

/// Places in the scripts of `xtask/bindgen` that name the module, the script of wasm-bindgen, and the script that loads the
/// parts. The object with the imports of the module has the last name, too, and keeps it: the module calls it so.
const WASM_IN_SCRIPT: &str = "page_bg.wasm";
const SCRIPT_IN_LOADER: &str = "from \"./page.js\"";
const LOADER_IN_SCRIPT: &str = "from \"./page_parts.js\"";
/// The script that loads the file of the small modules, and the text in it that the name of this file replaces.
const SHARED_SCRIPT: &str = "shared-parts.js";
const SHARED_PLACE: &str = "shared.bin";
/// A module that parts share and that has fewer bytes is small.
const SMALL_BYTES: usize = 48 * 1024;

/// Writes the page into the folder `dist`, and returns the text of its index.html.
pub fn bundle(module: &Module, dist: &Path) -> Result<String, String> {
    let frontend = paths::root().join("frontend");
    let html = paths::read(&frontend.join("index.html"))?;
    let trunk = paths::read(&frontend.join("Trunk.toml"))?;
    let loader = loader(&trunk)?;
    let scripts = scripts(module, dist)?;
    let Scripts { script, parts, wasm } = &scripts;

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
            Some("rust") => Ok(loader.replace("{base}", "./").replace("{js}", script).replace("{wasm}", wasm)),
            _ => Err(format!("xtask/src/bundle.rs does not know {tag}")),
        }
    })?;
    // The browser fetches all three while it reads the rest, but no part.
    let early = format!(
        "<link rel=\"modulepreload\" href=\"./{script}\" crossorigin=\"anonymous\">\
         <link rel=\"modulepreload\" href=\"./{parts}\" crossorigin=\"anonymous\">\
         <link rel=\"preload\" href=\"./{wasm}\" crossorigin=\"anonymous\" as=\"fetch\" type=\"application/wasm\"></head>"
    );
    replaced(&html, "</head>", &early)
}

/// Names of the page's scripts and of its module in `dist`.
struct Scripts {
    script: String,
    parts: String,
    wasm: String,
}

/// Writes the scripts, the module and its parts. The two scripts name each other, so both are named by all of the
/// content.
fn scripts(module: &Module, dist: &Path) -> Result<Scripts, String> {
    let put = |name: &str, content: &[u8]| std::fs::write(dist.join(name), content).map_err(|e| format!("{name}: {e}"));
    let loader = parts(module, &put)?;
    let mut hasher = DefaultHasher::new();
    [module.script.as_bytes(), loader.as_bytes(), &module.wasm].iter().for_each(|content| hasher.write(content));
    let name = format!("page-{:016x}", hasher.finish());
    let named =
        Scripts { script: format!("{name}.js"), parts: format!("{name}_parts.js"), wasm: format!("{name}_bg.wasm") };
    let script = module.script.replace(WASM_IN_SCRIPT, &named.wasm);
    let script = replaced(&script, LOADER_IN_SCRIPT, &format!("from \"./{}\"", named.parts))?;
    let loader = replaced(&loader, SCRIPT_IN_LOADER, &format!("from \"./{}\"", named.script))?;
    put(&named.script, script.as_bytes())?;
    put(&named.parts, loader.as_bytes())?;
    put(&named.wasm, &module.wasm)?;
    Ok(named)
}

/// Writes a file of the page: its name, and its content.
type Put<'a> = dyn Fn(&str, &[u8]) -> Result<(), String> + 'a;

/// Writes the parts, and returns the script that loads them. They are named by their content: a part that has not
/// changed stays in the caches of browsers. The small modules that parts share are one file, because some parts need forty
/// of them.
fn parts(module: &Module, put: &Put) -> Result<String, String> {
    let mut loader = module.loader.clone();
    let mut shared = Vec::new();
    for (part, content) in &module.parts {
        if part.starts_with("chunk_") && content.len() < SMALL_BYTES {
            let (from, to) = (shared.len(), shared.len() + content.len());
            let fetched = format!("fetch(new URL(\"./{part}.wasm\", import.meta.url))");
            loader = replaced(&loader, &fetched, &format!("shared({from}, {to})"))?;
            shared.extend_from_slice(content);
            continue;
        }
        let name = name_of(&part.replace("split_", "part-").replace("chunk_", "part-shared-"), "wasm", content);
        loader = replaced(&loader, &format!("./{part}.wasm"), &format!("./{name}"))?;
        put(&name, content)?;
    }
    let name = name_of("part-shared", "bin", &shared);
    put(&name, &shared)?;
    let script = paths::read(&paths::root().join("frontend").join(SHARED_SCRIPT))?;
    Ok(loader + &replaced(&script, SHARED_PLACE, &name)?)
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
    use super::{Module, SMALL_BYTES, attribute, linked, loader, name_of, parts};
    use std::cell::RefCell;
    use std::collections::BTreeMap;

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

    #[test]
    fn small_shared_modules_are_one_file_and_each_other_part_has_its_own() {
        let fetched = |name: &str| format!("fetch(new URL(\"./{name}.wasm\", import.meta.url))\n");
        let names = ["chunk_1", "chunk_2", "chunk_3", "split_team"];
        let contents = [vec![1; 10], vec![2; SMALL_BYTES], vec![3; 20], vec![4; 30]];
        let module = Module {
            script: String::new(),
            wasm: Vec::new(),
            loader: names.iter().map(|name| fetched(name)).collect(),
            parts: names.iter().map(|name| (*name).to_owned()).zip(contents.clone()).collect(),
        };
        let files = RefCell::new(BTreeMap::new());
        let put = |name: &str, content: &[u8]| {
            files.borrow_mut().insert(name.to_owned(), content.to_vec());
            Ok(())
        };
        let script = parts(&module, &put).expect("it is put together");
        let of = |stem: &str, kind: &str, content: &[u8]| name_of(stem, kind, content);
        let expected = [
            (of("part-shared-2", "wasm", &contents[1]), contents[1].clone()),
            (of("part-team", "wasm", &contents[3]), contents[3].clone()),
            (
                of("part-shared", "bin", &[&contents[0][..], &contents[2]].concat()),
                [&contents[0][..], &contents[2]].concat(),
            ),
        ];
        assert_eq!(*files.borrow(), BTreeMap::from(expected.clone()));
        assert!(script.contains("shared(0, 10)\n") && script.contains("shared(10, 30)\n"), "{script}");
        assert!(expected.iter().all(|(name, _)| script.contains(name.as_str())), "{script}");
        let other = Module { loader: String::new(), ..module };
        assert!(parts(&other, &put).is_err(), "a part that the script does not load");
    }
}
