//! The module that opens files. It is loaded with the first file. Each file gets an instance of its own, whose memory
//! is freed with the instance.

use crate::browser::{document, window};
use js_sys::{ArrayBuffer, Object, Promise, Reflect, Uint8Array, WebAssembly};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// The functions of an instance of the module. Each throws when the file makes the module stop.
    pub type Reader;
    #[wasm_bindgen(method, getter)]
    fn memory(this: &Reader) -> WebAssembly::Memory;
    #[wasm_bindgen(method, catch)]
    fn room(this: &Reader, bytes: u32) -> Result<u32, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn open(this: &Reader, name: u32) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn next(this: &Reader) -> Result<u32, JsValue>;
    #[wasm_bindgen(method)]
    fn length(this: &Reader) -> u32;
}

/// Starts to load a new instance; the promise may fail.
pub fn load() -> Result<Promise, JsValue> {
    let named = document().query_selector("meta[name=reader]")?.ok_or(JsValue::NULL)?;
    let address = named.get_attribute("content").unwrap_or_default();
    Ok(WebAssembly::instantiate_streaming(&window().fetch_with_str(&address), &Object::new()).unchecked_into())
}

/// The instance in the result of the promise.
pub fn loaded(came: &JsValue) -> Result<Reader, JsValue> {
    let get = |of: &JsValue, name: &str| Reflect::get(of, &name.into());
    Ok(get(&get(came, "instance")?, "exports")?.unchecked_into())
}

impl Reader {
    /// Gives a file to the instance, which then has messages for [`take`](Self::take).
    pub fn give(&self, file: &ArrayBuffer, name: &str) -> Result<(), JsValue> {
        let (file, name) = (Uint8Array::new(file), Uint8Array::from(name.as_bytes()));
        let at = self.room(file.length() + name.length())?;
        let room = self.bytes(at, file.length() + name.length());
        room.set(&file, 0);
        room.set(&name, file.length());
        self.open(name.length())
    }

    /// The next message, in the form in which a server sends it; empty after the last.
    pub fn take(&self) -> Result<Vec<u8>, JsValue> {
        Ok(match self.next()? {
            0 => Vec::new(),
            at => self.bytes(at, self.length()).to_vec(),
        })
    }

    /// A view of the instance's memory. It is made for each call, because the memory moves when it grows.
    fn bytes(&self, at: u32, length: u32) -> Uint8Array {
        Uint8Array::new_with_byte_offset_and_length(&self.memory().buffer(), at, length)
    }
}
