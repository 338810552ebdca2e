//! Requests to the server that are no messages of the link: sessions and lists of a hub, as JSON that the browser itself
//! reads and writes.

use js_sys::{Array, Function, Object, Promise, Reflect};
use std::cell::Cell;
use std::rc::Rc;
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

    /// A value that came in a message.
    pub fn of(value: JsValue) -> Json {
        Json(value)
    }

    /// True or false, where it is one of them.
    pub fn maybe_bool(&self) -> Option<bool> {
        self.0.as_bool()
    }

    /// True for true alone.
    pub fn is_true(&self) -> bool {
        self.0.as_bool() == Some(true)
    }

    /// Whether there is no value.
    pub fn is_null(&self) -> bool {
        self.0.is_null() || self.0.is_undefined()
    }

    /// The values of a list; none where it is no list.
    pub fn list(&self) -> Vec<Json> {
        self.0.dyn_ref::<Array>().map(|list| list.iter().map(Json).collect()).unwrap_or_default()
    }

    /// Names and texts of an object, in its order.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let Some(object) = self.0.dyn_ref::<Object>() else { return Vec::new() };
        Object::keys(object)
            .iter()
            .filter_map(|key| key.as_string())
            .map(|key| (key.clone(), self.get(&key).text()))
            .collect()
    }

    /// An object of these fields.
    pub fn object<'a>(fields: impl IntoIterator<Item = (&'a str, JsValue)>) -> JsValue {
        let object = Object::new();
        for (name, value) in fields {
            // A new object takes any field.
            let _ = Reflect::set(&object, &name.into(), &value);
        }
        object.into()
    }
}

/// An answer: its status (0 when none came) and its body.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body; null where it is no JSON.
    pub body: Json,
}

impl Answer {
    /// True when what was asked for was done.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What is wrong, in one sentence.
    pub fn problem(&self) -> String {
        let said = self.body.get("error").text();
        match (said.is_empty(), self.status) {
            (false, _) => said,
            (true, 0) => "The server does not respond. Nothing was changed; try again.".into(),
            (true, status) => format!("The server returned {status} without a message; try again."),
        }
    }
}

/// Asks the server; `path` is relative to the page's address, without its query. `done` is called once.
pub fn ask(method: &str, path: &str, body: Option<JsValue>, done: impl FnOnce(Answer) + 'static) {
    // All below is compiled once, not for each caller: that is forty times.
    asked(method, path, body, Box::new(done));
}

fn asked(method: &str, path: &str, body: Option<JsValue>, done: Box<dyn FnOnce(Answer)>) {
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
    // Of the three ends one comes, and each may be called.
    let done = Rc::new(Cell::new(Some(done)));
    let end = move |status: u16, text: Option<String>| {
        let body = text.and_then(|text| js_sys::JSON::parse(&text).ok()).unwrap_or(JsValue::NULL);
        if let Some(done) = done.take() {
            done(Answer { status, body: Json(body) });
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
    then(&window.fetch_with_str_and_init(path, &init), &answered, &failed);
}

/// Calls one of two functions when a promise ends.
pub fn then(promise: &Promise, done: &JsValue, failed: &JsValue) {
    let method = Reflect::get(promise, &"then".into()).map(JsCast::unchecked_into::<Function>);
    // `then` of a promise never throws.
    let _ = method.and_then(|method| method.call2(promise, done, failed));
}
