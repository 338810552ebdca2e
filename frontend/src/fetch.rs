//! Requests to the server that are no messages of the link: sessions and lists of a hub, as JSON that the browser
//! itself reads and writes.

mod from_json;

pub use from_json::WrongShape;

use js_sys::{Array, Function, Object, Promise, Reflect};
use serde::de::DeserializeOwned;
use shared::session::Problem;
use std::cell::Cell;
use std::rc::Rc;
use viewer::address::with_share;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{Headers, RequestInit, Response};

/// A value of JSON.
#[derive(Clone, Debug)]
pub struct Json(JsValue);

impl PartialEq for Json {
    /// Whether both have the same text.
    fn eq(&self, other: &Json) -> bool {
        let text = |json: &Json| js_sys::JSON::stringify(&json.0).ok().and_then(|text| text.as_string());
        text(self) == text(other)
    }
}

impl Json {
    /// The value as a type that the server wrote.
    ///
    /// # Errors
    ///
    /// Fails for another shape. The browser's console then shows the field, because an empty list would not reveal that
    /// page and server have different versions.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, WrongShape> {
        from_json::from_json(self.0.clone()).inspect_err(log)
    }

    /// Reads each value of a list that is a field.
    ///
    /// # Errors
    ///
    /// Fails where it is no list, or `read` fails for one of its values.
    pub fn read_each<T>(
        &self,
        name: &str,
        read: impl Fn(&Json) -> Result<T, WrongShape>,
    ) -> Result<Vec<T>, WrongShape> {
        let list = self.get(name).0.dyn_into::<Array>().map_err(|_| WrongShape::new(name)).inspect_err(log)?;
        list.iter().map(|one| read(&Json(one))).collect()
    }

    /// A field of an object; one that is missing is null.
    pub fn get(&self, name: &str) -> Json {
        Json(Reflect::get(&self.0, &name.into()).unwrap_or(JsValue::NULL))
    }

    /// The text; empty where there is none.
    pub fn text(&self) -> String {
        self.0.as_string().unwrap_or_default()
    }

    /// The text, where there is one.
    pub fn maybe(&self) -> Option<String> {
        self.0.as_string()
    }

    /// The number, where there is one.
    pub fn number(&self) -> Option<f64> {
        self.0.as_f64()
    }

    /// A value from a message.
    pub fn from_value(value: JsValue) -> Json {
        Json(value)
    }

    /// An object of these fields.
    pub fn object<'a>(fields: impl IntoIterator<Item = (&'a str, JsValue)>) -> JsValue {
        let object = Object::new();
        for (name, value) in fields {
            // A new object accepts any field.
            let _ = Reflect::set(&object, &name.into(), &value);
        }
        object.into()
    }
}

#[cold]
fn log(error: &WrongShape) {
    web_sys::console::error_1(&error.to_string().into());
}

/// A response: its status (0 without a response) and its body.
#[derive(Clone, Debug)]
pub struct FetchAnswer {
    /// The status.
    pub status: u16,
    /// The body; null where it is no JSON.
    pub body: Json,
}

impl FetchAnswer {
    /// The body as a type that the server wrote.
    ///
    /// # Errors
    ///
    /// The error is a sentence: the server's error, or that the body has another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        self.read_by(Json::read)
    }

    /// The body as `read` makes something of it; see [`FetchAnswer::read`].
    ///
    /// # Errors
    ///
    /// See [`FetchAnswer::read`].
    pub fn read_by<T>(&self, read: impl FnOnce(&Json) -> Result<T, WrongShape>) -> Result<T, String> {
        if self.is_ok() { read(&self.body).map_err(|error| error.to_string()) } else { Err(self.problem()) }
    }

    /// True when the request succeeded.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The server's error body; the default where a proxy answered instead of the server.
    pub fn read_error(&self) -> Problem {
        from_json::from_json(self.body.0.clone()).unwrap_or_default()
    }

    /// The error, in one sentence.
    pub fn problem(&self) -> String {
        let said = self.read_error().error;
        match (said.is_empty(), self.status) {
            (false, _) => said,
            (true, 0) => "The server does not respond. Nothing was changed; try again.".into(),
            (true, status) => format!("The server returned {status} without a message; try again."),
        }
    }
}

/// Asks the server; `path` is relative to the page's address, without its query. `done` is called once.
pub fn ask(method: &str, path: &str, body: Option<JsValue>, done: impl FnOnce(FetchAnswer) + 'static) {
    // All below is compiled once, not for each caller: that is forty times.
    asked(method, path, body, Box::new(done));
}

fn asked(method: &str, path: &str, body: Option<JsValue>, done: Box<dyn FnOnce(FetchAnswer)>) {
    let read = move |status: u16, text: Option<String>| {
        let body = text.and_then(|text| js_sys::JSON::parse(&text).ok()).unwrap_or(JsValue::NULL);
        done(FetchAnswer { status, body: Json(body) });
    };
    sent(method, path, body, Box::new(read));
}

/// Requests a text; None where the server does not respond, or refuses. `done` is called once.
pub fn text(path: &str, done: impl FnOnce(Option<String>) + 'static) {
    let read = |status: u16, text: Option<String>| done(text.filter(|_| (200..300).contains(&status)));
    sent("GET", path, None, Box::new(read));
}

/// Sends a request. `done` gets the status of the response, 0 without one, and its text.
fn sent(method: &str, path: &str, body: Option<JsValue>, done: Box<dyn FnOnce(u16, Option<String>)>) {
    let init = RequestInit::new();
    init.set_method(method);
    if method != "GET" {
        let headers = Headers::new().ok();
        if let Some(headers) = headers {
            // The name and the value are valid.
            let _ = headers.set("Content-Type", "application/json");
            init.set_headers(&headers);
        }
        let text = js_sys::JSON::stringify(&body.unwrap_or_else(|| Json::object([]))).unwrap_or_else(|_| "{}".into());
        init.set_body(&text);
    }
    let Some(window) = web_sys::window() else { return };
    // Exactly one of the three callbacks ends the request, so they share `done`.
    let done = Rc::new(Cell::new(Some(done)));
    let end = move |status: u16, text: Option<String>| {
        if let Some(done) = done.take() {
            done(status, text);
        }
    };
    let (lost, read) = (end.clone(), end);
    let answered = Closure::once_into_js(move |answer: JsValue| {
        let Ok(answer) = answer.dyn_into::<Response>() else { return read(0, None) };
        let status = answer.status();
        let whole = read.clone();
        let text = Closure::once_into_js(move |text: JsValue| whole(status, text.as_string()));
        let broken = Closure::once_into_js(move |_: JsValue| read(status, None));
        if let Ok(promise) = answer.text() {
            then(&promise, &text, &broken);
        }
    });
    let failed = Closure::once_into_js(move |_: JsValue| lost(0, None));
    let query = window.location().search().unwrap_or_default();
    // A link changes nothing, so that only what is read is read as by it.
    let path = if method == "GET" { with_share(path, &query) } else { path.to_string() };
    then(&window.fetch_with_str_and_init(&path, &init), &answered, &failed);
}

/// Calls one of two functions when a promise ends.
pub fn then(promise: &Promise, done: &JsValue, failed: &JsValue) {
    let method = Reflect::get(promise, &"then".into()).map(JsCast::unchecked_into::<Function>);
    // `then` of a promise never throws.
    let _ = method.and_then(|method| method.call2(promise, done, failed));
}
