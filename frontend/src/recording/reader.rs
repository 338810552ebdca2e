//! The worker that opens a file. It is started for each file and loads the module that opens files. It ends, and frees
//! all its memory, when the file is read or canceled.

use crate::browser::document;
use js_sys::Array;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{MessageEvent, Worker};

/// Messages of the worker.
pub enum Heard {
    /// This share is done, 0 to 1.
    Share(f64),
    /// The next messages, in the form in which a server sends them; none after the last.
    Messages(Vec<Vec<u8>>),
    /// The module could not be loaded.
    Away,
    /// The browser could not read the file.
    Unread,
    /// The file made the module stop.
    Stopped,
}

/// A worker with its file. It ends when this is dropped.
pub struct Reader {
    worker: Worker,
    _heard: Closure<dyn FnMut(MessageEvent)>,
    _failed: Closure<dyn FnMut()>,
}

impl Reader {
    /// Starts to open a file; `hear` is called with each message of the worker, never before this returns.
    pub fn start(file: &web_sys::File, hear: impl Fn(Heard) + Clone + 'static) -> Result<Self, JsValue> {
        let named = document().query_selector("meta[name=reader]")?.ok_or(JsValue::NULL)?;
        let worker = Worker::new(&named.get_attribute("content").unwrap_or_default())?;
        let failed = {
            let hear = hear.clone();
            Closure::<dyn FnMut()>::new(move || hear(Heard::Away))
        };
        let heard = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| hear(understood(&event.data())));
        worker.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        worker.set_onerror(Some(failed.as_ref().unchecked_ref()));
        worker.post_message(file)?;
        Ok(Reader { worker, _heard: heard, _failed: failed })
    }

    /// Asks for the next messages.
    pub fn go_on(&self) {
        // A null can always be posted.
        let _ = self.worker.post_message(&JsValue::NULL);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

fn understood(said: &JsValue) -> Heard {
    if let Some(share) = said.as_f64() {
        return Heard::Share(share);
    }
    match said.as_string().as_deref() {
        Some("away") => Heard::Away,
        Some("unread") => Heard::Unread,
        Some(_) => Heard::Stopped,
        None => {
            let list: &Array = said.unchecked_ref();
            Heard::Messages(list.iter().map(|message| js_sys::Uint8Array::new(&message).to_vec()).collect())
        }
    }
}
