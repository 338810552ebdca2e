//! The dialog of the team pages: a form that is described as data, the hub's error, and a secret that is shown once.

use crate::access::Access;
use crate::browser::{self, window};
use crate::fetch::{Json, WrongShape};
use crate::widgets::modal::Modal;
use crate::widgets::parts::text;
use leptos::html;
use leptos::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use wasm_bindgen::JsValue;

/// Input of a field.
#[derive(Clone, Debug)]
pub enum FieldInput {
    /// A text, with its initial value.
    Text(String),
    /// A text of several lines, with its initial value.
    Lines(String),
    /// A password, with its value of `autocomplete`.
    Password(&'static str),
    /// One of several values with their words; the first is chosen.
    Choice(Vec<(&'static str, &'static str)>),
    /// One of several names; the first is chosen.
    Names(Vec<String>),
    /// Some of several values with their labels; the chosen ones are joined by commas. None is chosen at first.
    Ticks(Vec<(&'static str, &'static str)>),
}

/// A field: its name, the words above it, and how it is filled in.
pub type Field = (&'static str, &'static str, FieldInput);

/// The typed values, by the names of the fields.
#[derive(Clone, Debug, Default)]
pub struct Typed(Vec<(&'static str, String)>);

impl Typed {
    /// The value of a field, without the blanks around it.
    pub fn value_of(&self, name: &str) -> String {
        self.raw(name).trim().to_string()
    }

    /// The value of a field, as it was typed.
    pub fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The fields that are not empty, as they are sent.
    pub fn sent(&self) -> Vec<(&'static str, JsValue)> {
        let filled = self.0.iter().filter(|(_, value)| !value.trim().is_empty());
        filled.map(|(name, value)| (*name, JsValue::from(value.trim()))).collect()
    }
}

/// The request body for the typed values, or their error.
type Write = Arc<dyn Fn(&Typed) -> Result<Vec<(&'static str, JsValue)>, String> + Send + Sync>;

/// The common part of all responses to forms.
#[derive(Deserialize)]
struct Identified {
    /// Id of the created or changed object; empty where the response has none.
    #[serde(default)]
    id: String,
}

type ReadSecret = Arc<dyn Fn(&Json) -> Result<String, WrongShape> + Send + Sync>;

/// A form.
#[derive(Clone)]
pub struct Form {
    /// Its name, `data-form`.
    pub name: &'static str,
    /// Title of the dialog.
    pub title: String,
    /// Its effect, in a sentence or two.
    pub words: String,
    /// Its fields.
    pub fields: Vec<Field>,
    /// The label of its button.
    pub button: &'static str,
    /// HTTP method of the request.
    pub method: &'static str,
    /// Path of the request.
    pub path: String,
    /// Replaces the path where that depends on the typed values.
    at: Option<fn(&Typed) -> String>,
    /// The request body.
    pub write: Write,
    /// Reads the secret from the response, and its text. The secret is shown once.
    secret: Option<(ReadSecret, &'static str)>,
}

impl Form {
    /// A question with only a button.
    pub fn ask(name: &'static str, title: String, words: &str, method: &'static str, path: String) -> Self {
        let button = match method {
            "DELETE" => "Yes",
            _ => "Continue",
        };
        Form {
            name,
            title,
            words: words.into(),
            fields: Vec::new(),
            button,
            method,
            path,
            at: None,
            write: Arc::new(|typed| Ok(typed.sent())),
            secret: None,
        }
    }

    /// The same with fields.
    pub fn with(self, button: &'static str, fields: Vec<Field>) -> Self {
        Form { button, fields, ..self }
    }

    /// The same with a secret in the answer.
    pub fn showing<T: DeserializeOwned + 'static>(self, secret: fn(&T) -> String, words: &'static str) -> Self {
        let read: ReadSecret = Arc::new(move |body| body.read().map(|made| secret(&made)));
        Form { secret: Some((read, words)), ..self }
    }

    /// The same with a path that depends on the typed values.
    pub fn at(self, at: fn(&Typed) -> String) -> Self {
        Form { at: Some(at), ..self }
    }

    /// The same with a conversion of the typed values before they are sent.
    pub fn writing(
        self,
        write: impl Fn(&Typed) -> Result<Vec<(&'static str, JsValue)>, String> + Send + Sync + 'static,
    ) -> Self {
        Form { write: Arc::new(write), ..self }
    }
}

/// The words as a list of JSON.
pub fn words(list: &str) -> JsValue {
    list.split([',', ' ']).filter(|word| !word.is_empty()).map(JsValue::from).collect::<js_sys::Array>().into()
}

/// A link as it is given to others: the hub may not know its own address.
pub fn whole(link: &str) -> String {
    let location = window().location();
    let base = || location.origin().unwrap_or_default() + &location.pathname().unwrap_or_default();
    match link.trim_start_matches('/') {
        code if code.starts_with('#') => format!("{}{code}", base()),
        _ => link.to_string(),
    }
}

/// The dialog: it is open while there is a form. `done` is called with the response to an accepted one.
#[component]
pub fn FormDialog(
    /// Id of the element; a page has several dialogs.
    #[prop(default = "deed")]
    id: &'static str,
    /// The open form.
    form: RwSignal<Option<Form>>,
    /// Called with each answer.
    done: Callback<String>,
) -> impl IntoView {
    // The shown secret, and its text.
    let shown = RwSignal::new(None::<(String, &'static str)>);
    let close = move || {
        shown.set(None);
        form.set(None);
    };
    let title = Signal::derive(move || form.with(|form| form.as_ref().map(|form| form.title.clone())));
    let body = move || {
        let form_now = form.get()?;
        Some(match shown.get() {
            Some((secret, words)) => view! { <Once secret words close=Callback::new(move |()| close())/> }.into_any(),
            None => view! { <Fields form=form_now shown close=Callback::new(move |()| close()) done/> }.into_any(),
        })
    };
    view! { <Modal id title closed=Callback::new(move |()| close())>{body}</Modal> }
}

#[component]
fn Fields(
    form: Form,
    shown: RwSignal<Option<(String, &'static str)>>,
    close: Callback<()>,
    done: Callback<String>,
) -> impl IntoView {
    let access = expect_context::<Access>();
    let (wrong, busy) = (RwSignal::new(String::new()), RwSignal::new(false));
    let first = |entry: &FieldInput| match entry {
        FieldInput::Text(text) | FieldInput::Lines(text) => text.clone(),
        FieldInput::Choice(all) => all.first().map_or(String::new(), |(value, _)| (*value).to_string()),
        FieldInput::Names(all) => all.first().cloned().unwrap_or_default(),
        FieldInput::Password(_) | FieldInput::Ticks(_) => String::new(),
    };
    let typed = RwSignal::new(Typed(form.fields.iter().map(|(name, _, entry)| (*name, first(entry))).collect()));
    let (fields, name, words, button) = (form.fields.clone(), form.name, form.words.clone(), form.button);
    let form = StoredValue::new(form);
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let form = form.get_value();
        let body = match (form.write)(&typed.get_untracked()) {
            Ok(body) => body,
            Err(why) => return wrong.set(why),
        };
        busy.set(true);
        let secret = form.secret.clone();
        let path = form.at.map_or(form.path, |at| at(&typed.get_untracked()));
        access.ask(form.method, path, body, move |answer| {
            // The dialog may be closed by now.
            let _ = busy.try_set(false);
            let read = answer.read_by(|body| {
                let secret = secret.as_ref().map(|(read, words)| Ok((whole(&read(body)?), *words))).transpose()?;
                Ok((body.read::<Identified>()?.id, secret.filter(|(secret, _)| !secret.is_empty())))
            });
            match read {
                Ok((id, secret)) => {
                    done.run(id);
                    match secret {
                        Some(secret) => drop(shown.try_set(Some(secret))),
                        None => close.run(()),
                    }
                }
                Err(why) => drop(wrong.try_set(why)),
            }
        });
    };
    let field = move |(at, (name, label, entry)): (usize, Field)| view! { <Entered at name label entry typed/> };
    view! {
        <form class="body form" data-form=name on:submit=submit>
            <p>{words}</p>
            {fields.into_iter().enumerate().map(field).collect_view()}
            <p class="wrong" role="alert">{wrong}</p>
            <button class="btn primary" disabled=busy>{button}</button>
        </form>
    }
}

#[component]
fn Entered(
    at: usize,
    name: &'static str,
    label: &'static str,
    entry: FieldInput,
    typed: RwSignal<Typed>,
) -> impl IntoView {
    let put = move |value: String| {
        typed.update(|typed| {
            typed.0.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, present)| present.clone_from(&value));
        });
    };
    let input = NodeRef::<html::Input>::new();
    if at == 0 {
        input.on_load(|input| {
            browser::focus(&input);
            input.select();
        });
    }
    let plain = move |kind: &'static str, fill: &'static str, value: String| {
        view! {
            <label>
                <span>{label}</span>
                <input
                    node_ref=input
                    name=name
                    type=kind
                    autocomplete=fill
                    spellcheck="false"
                    value=value
                    on:input=move |event| put(event_target_value(&event))
                />
            </label>
        }
    };
    let choice = move |all: Vec<(String, String)>| {
        let options = all.into_iter().map(|(value, words)| view! { <option value=value>{words}</option> });
        view! {
            <label>
                <span>{label}</span>
                <select name=name on:change=move |event| put(event_target_value(&event))>{options.collect_view()}</select>
            </label>
        }
    };
    match entry {
        FieldInput::Text(value) => plain("text", "off", value).into_any(),
        FieldInput::Lines(value) => view! {
            <label>
                <span>{label}</span>
                <textarea name=name rows="3" spellcheck="false" prop:value=value
                    on:input=move |event| put(event_target_value(&event))></textarea>
            </label>
        }
        .into_any(),
        FieldInput::Password(fill) => plain("password", fill, String::new()).into_any(),
        FieldInput::Choice(all) => {
            choice(all.into_iter().map(|(value, words)| (value.into(), words.into())).collect()).into_any()
        }
        FieldInput::Names(all) => choice(all.into_iter().map(|name| (name.clone(), name)).collect()).into_any(),
        FieldInput::Ticks(all) => ticks(label, all, move |value, on| {
            let present = typed.with_untracked(|typed| typed.value_of(name));
            let mut chosen: Vec<&str> = present.split(',').filter(|v| !v.is_empty() && *v != value).collect();
            if on {
                chosen.push(value);
            }
            put(chosen.join(","));
        }),
    }
}

/// Boxes to tick: values, each with its words. `toggle` is given a value, and whether it is ticked now.
fn ticks(
    label: &'static str,
    all: Vec<(&'static str, &'static str)>,
    toggle: impl Fn(&'static str, bool) + Copy + 'static,
) -> AnyView {
    let tick = move |(value, words)| {
        view! {
            <label class="tick">
                <input type="checkbox" name=value on:change=move |event| toggle(value, event_target_checked(&event))/>
                <span>{words}</span>
            </label>
        }
    };
    view! {
        <fieldset>
            <legend>{label}</legend>
            {all.into_iter().map(tick).collect_view()}
        </fieldset>
    }
    .into_any()
}

/// A secret with a button that copies it.
#[component]
fn Once(secret: String, words: &'static str, close: Callback<()>) -> impl IntoView {
    let code = NodeRef::<html::Code>::new();
    let copied = RwSignal::new(false);
    let own = StoredValue::new(secret.clone());
    let copy = move |_| {
        if let Some(near) = code.get_untracked().and_then(|code| code.parent_element()) {
            copied.set(own.with_value(|own| browser::copy(own, &near)));
        }
    };
    view! {
        <div class="body once">
            <p>{words}" Copy it now: it is not shown again, and the hub keeps only its hash."</p>
            <div class="codeline">
                <code node_ref=code id="secret">{secret}</code>
                <button class="btn primary" data-do="copy" on:click=copy>
                    {text(move || if copied.get() { "Copied" } else { "Copy" })}
                </button>
            </div>
            <button class="btn" data-do="have" on:click=move |_| close.run(())>"Done"</button>
        </div>
    }
}
