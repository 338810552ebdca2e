//! The page inside the binary: files named by a hash of their content, compressed by brotli. Browsers accept brotli
//! from this machine and by TLS. For others a file is compressed by gzip once, on the first request.

use super::{App, error};
use axum::body::Body;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, Uri, header};
use axum::response::IntoResponse;
use flate2::Compression;
use flate2::read::GzEncoder;
use shared::embedded::{EmbeddedFile, EmbeddedPage};
use std::io::Read;
use std::sync::{Arc, OnceLock};

/// Base path of the page, and its files.
pub struct Site {
    /// `/`, or a path that a proxy does not strip, with slashes at both ends.
    pub base: String,
    /// The page; a program that was built without it has none.
    pub page: EmbeddedPage,
    /// Gzip of each file, made once on the first request.
    gzip: Vec<OnceLock<Bytes>>,
}

impl Site {
    /// A page below a path.
    pub fn new(base: String, page: EmbeddedPage) -> Self {
        Site { base, page, gzip: page.files.iter().map(|_| OnceLock::new()).collect() }
    }

    /// Gzip of a file, by its position. The first call takes a tenth of a second for the largest file.
    fn gzip(&self, at: usize) -> Bytes {
        let make = || {
            let (plain, mut packed) = (plain(&self.page.files[at]), Vec::new());
            GzEncoder::new(&plain[..], Compression::default()).read_to_end(&mut packed).expect("memory fails nobody");
            packed.into()
        };
        self.gzip[at].get_or_init(make).clone()
    }
}

/// A file without compression. Browsers load compressed files; this is for other programs, and takes some
/// milliseconds.
fn plain(file: &EmbeddedFile) -> Bytes {
    if file.brotli.is_empty() {
        return Bytes::from_static(file.identity);
    }
    let mut plain = Vec::with_capacity(file.size);
    let mut packed = brotli_decompressor::Decompressor::new(file.brotli, 64 << 10);
    packed.read_to_end(&mut plain).expect("the build has packed it");
    plain.into()
}

/// Placeholder of the page in a binary that was built without it.
const MISSING: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Watchglass</title>\
<h1>The page is not in this binary</h1>\
<p>It was built by <code>cargo build</code> alone. Build it with the page inside: <code>cargo xtask build</code>, \
or build and start it in one go: <code>cargo xtask run</code>.</p>\
<p>The data is here all the same: <a href=\"api/v1/sources\">api/v1/sources</a>, \
<a href=\"api/v1/catalog\">api/v1/catalog</a>, <a href=\"metrics\">metrics</a>.</p></html>";

/// Placeholder of the documentation in such a binary.
const NO_BOOK: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Watchglass documentation</title>\
<h1>The documentation is not in this binary</h1>\
<p>It was built by <code>cargo build</code> alone. Build it with the documentation inside: <code>cargo xtask build</code>. \
The same pages are files in the folder <code>docs</code> of the source.</p></html>";

/// The file of a path below the base. A folder maps to its `index.html`.
fn file_of(path: &str) -> String {
    match path {
        "" => "index.html".into(),
        folder if folder.ends_with('/') => format!("{folder}index.html"),
        file => file.into(),
    }
}

/// Serves a file: the page at `/`, the documentation below `/docs/`.
pub(super) async fn serve(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Response<Body> {
    let path = app.below_base(uri.path()).trim_start_matches('/');
    if path == "docs" {
        // Its links are relative to the folder, and so is this one: a proxy may have stripped a path.
        return (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "docs/")]).into_response();
    }
    let path = file_of(path);
    let Some((at, file)) = app.site.page.files.iter().enumerate().find(|(_, file)| file.path == path) else {
        let missing = match path.as_str() {
            "index.html" => Some(MISSING),
            "docs/index.html" => Some(NO_BOOK),
            _ => None,
        };
        if let Some(missing) = missing {
            return answer("text/html; charset=utf-8", "no-cache", None, Bytes::from_static(missing.as_bytes()));
        }
        return error(
            StatusCode::NOT_FOUND,
            format!("there is nothing at /{path}; the page is at /, the API below /api/v1/"),
        );
    };
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or("");
    let takes = |coding: &str| {
        accepted.split(',').any(|part| {
            let mut part = part.split(';').map(str::trim);
            part.next().is_some_and(|name| name.eq_ignore_ascii_case(coding)) && part.next() != Some("q=0")
        })
    };
    let cache = if file.immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let packed = !file.brotli.is_empty();
    if packed && takes("br") {
        return answer(file.mime, cache, Some("br"), Bytes::from_static(file.brotli));
    }
    let coding = (packed && takes("gzip")).then_some("gzip");
    let made = tokio::task::spawn_blocking(move || if coding.is_some() { app.site.gzip(at) } else { plain(file) });
    match made.await {
        Ok(body) => answer(file.mime, cache, coding, body),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, format!("/{path} could not be unpacked: {why}")),
    }
}

fn answer(mime: &str, cache: &str, coding: Option<&str>, body: Bytes) -> Response<Body> {
    let mut response = Response::builder()
        .header(header::CONTENT_TYPE, mime)
        .header(header::CACHE_CONTROL, cache)
        .header(header::VARY, "accept-encoding");
    if let Some(coding) = coding {
        response = response.header(header::CONTENT_ENCODING, coding);
    }
    response.body(Body::from(body)).expect("these headers are valid")
}
