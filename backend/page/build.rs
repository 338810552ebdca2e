//! Puts the built page (frontend/dist) into a table: each file as brotli, or uncompressed if that saves nothing, and
//! the hashes of the page's inline scripts for the content security policy. Without frontend/dist the table is empty,
//! and the server answers with a page with the build instructions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let frontend = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../../frontend");
    let dist = frontend.join("dist");
    let page = dist.join("index.html");
    // A path that does not exist would run this script at every build: watch its parent then.
    let watched = if page.is_file() { &dist } else { &frontend };
    print_line(&format!("cargo::rerun-if-changed={}", watched.display()))?;
    print_line("cargo::rerun-if-changed=build.rs")?;

    let mut files = Vec::new();
    let mut hashes = Vec::new();
    if page.is_file() {
        list(&dist, &mut files)?;
        hashes = inline_scripts(&fs::read_to_string(&page)?).map(hash).collect();
    }
    // Quality 11 takes many seconds to save 15 % of the bytes: worth it for releases.
    print_line("cargo::rerun-if-env-changed=WATCHGLASS_PACK")?;
    let quality = if std::env::var("WATCHGLASS_PACK").is_ok_and(|pack| pack == "best") { 11 } else { 5 };
    let mut table = String::from("static FILES: &[EmbeddedFile] = &[\n");
    let mut kept = Vec::new();
    for path in &files {
        let bytes = fs::read(path)?;
        let id = hex::encode(Sha256::digest(&bytes));
        let copies = Copies { out: &out, bytes: &bytes, id: &id[..32], kept: &mut kept };
        table.push_str(&row(path, &dist, quality, copies)?);
    }
    let _ = writeln!(
        table,
        "];\n/// Browsers hash the text of each script.\nstatic INLINE_SCRIPTS: &[&str] = &{hashes:?};"
    );
    fs::write(out.join("page.rs"), table)?;
    forget_others(&out, &kept)
}

/// One row of the table, as Rust source.
fn row(path: &Path, dist: &Path, quality: u32, mut copies: Copies<'_>) -> io::Result<String> {
    let name = path.strip_prefix(dist).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
    let brotli = copies.keep(&format!("br{quality}"), |bytes| {
        let mut packed = Vec::new();
        let params = brotli::enc::BrotliEncoderParams { quality: quality as i32, lgwin: 22, ..Default::default() };
        brotli::BrotliCompress(&mut &bytes[..], &mut packed, &params)?;
        Ok(packed)
    })?;
    // The uncompressed and the gzip form are made from the brotli, so the file is stored only once.
    let packed = fs::metadata(&brotli)?.len() > 0;
    let identity = match packed {
        true => copies.keep("none", |_| Ok(Vec::new()))?,
        false => copies.keep("id", |bytes| Ok(bytes.to_vec()))?,
    };
    let size = copies.bytes.len();
    Ok(format!(
        "    EmbeddedFile {{ path: {name:?}, mime: {:?}, immutable: {}, size: {size}, identity: include_bytes!({identity:?}), \
         brotli: include_bytes!({brotli:?}) }},\n",
        mime(&name),
        has_hash(&name),
    ))
}

/// The forms of one file, stored by content in OUT_DIR, so that an unchanged file is not compressed again.
struct Copies<'a> {
    out: &'a Path,
    bytes: &'a [u8],
    id: &'a str,
    kept: &'a mut Vec<PathBuf>,
}

impl Copies<'_> {
    /// The path of one form; a form that saves nothing is an empty file, and is not offered.
    fn keep(&mut self, form: &str, make: impl FnOnce(&[u8]) -> io::Result<Vec<u8>>) -> io::Result<PathBuf> {
        let path = self.out.join(format!("page-{}.{form}", self.id));
        if !path.is_file() {
            let mut made = make(self.bytes)?;
            if form != "id" && made.len() >= self.bytes.len() {
                made.clear();
            }
            fs::write(&path, made)?;
        }
        self.kept.push(path.clone());
        Ok(path)
    }
}

/// Removes the forms of files that the page no longer has.
fn forget_others(out: &Path, kept: &[PathBuf]) -> io::Result<()> {
    for entry in fs::read_dir(out)? {
        let path = entry?.path();
        let ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("page-"));
        if ours && !kept.contains(&path) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// All files below a folder, sorted; names with a leading dot, such as trunk's working folder, are skipped.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !hidden {
            list(&path, files)?;
        } else if path.is_file() && !hidden {
            files.push(path);
        }
    }
    Ok(())
}

/// The texts of all script elements without a `src`, exactly as a browser hashes them.
fn inline_scripts(html: &str) -> impl Iterator<Item = &str> {
    html.split("<script").skip(1).filter_map(|rest| {
        let (attributes, rest) = rest.split_once('>')?;
        let (text, _) = rest.split_once("</script")?;
        (!attributes.contains("src=")).then_some(text)
    })
}

/// A script's hash as a CSP source expression. Browsers turn CRLF into LF before they hash.
fn hash(script: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(script.replace("\r\n", "\n"))))
}

/// Whether the name holds a hash of the content, so that it may be cached for ever: trunk's
/// (`page-0123456789abcdef_bg.wasm`), or mdBook's of eight digits (`docs/toc-01234567.js`).
fn has_hash(name: &str) -> bool {
    let is_of_book = name.starts_with("docs/") && (name.ends_with(".js") || name.ends_with(".css"));
    // A hash of trunk with leading zeros is written without them.
    let lengths = if is_of_book { 8..=8 } else { 12..=16 };
    name.split(['-', '_', '.']).any(|word| lengths.contains(&word.len()) && word.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn mime(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" | "webmanifest" => "application/json",
        "woff2" => "font/woff2",
        "txt" | "toml" | "yml" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn variable(name: &str) -> io::Result<String> {
    std::env::var(name).map_err(|_| io::Error::other(format!("cargo sets {name} for build scripts")))
}

/// Sends a line to cargo, which reads the standard output of build scripts.
fn print_line(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}
