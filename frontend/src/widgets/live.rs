//! Elements of fixed markup, and what in them follows the page's signals. A view of its own shape is a type of its own
//! to Leptos, and each brings two to ten kilobytes of code; markup is one text, an effect one type, a list another.

use super::dom;
use leptos::prelude::*;
use leptos::tachys::html::InertElement;
use leptos::tachys::renderer::dom::Dom;
use wasm_bindgen::prelude::*;
use web_sys::{Element, Event, Node};

/// An element of fixed markup: parsed once, then copied.
pub fn made(html: &'static str) -> Element {
    Dom::create_element_from_html(html.into())
}

/// A part that stands on the page once; `wire` is called with its element, the one of that selector, when it does.
pub fn standing(html: &'static str, selector: &'static str, wire: fn(&Element)) -> InertElement {
    then(move || {
        if let Some(body) = dom::document().body() {
            wire(&dom::find(&body, selector));
        }
    });
    InertElement::new(html)
}

/// Does it once, when what is being made stands on the page.
pub fn then(act: impl FnOnce() + 'static) {
    let mut act = Some(act);
    follow(move || {
        if let Some(act) = act.take() {
            untrack(act);
        }
    });
}

/// Does it soon, and again whenever what it read has changed.
pub fn follow(act: impl FnMut() + 'static) {
    again(Box::new(act));
}

fn again(mut act: Box<dyn FnMut()>) {
    Effect::new(move |_: Option<()>| act());
}

/// The text of an element follows what `words` reads.
pub fn text(place: &Element, words: impl Fn() -> String + 'static) {
    keep(place.clone(), "", Box::new(words));
}

/// An attribute of an element follows what `value` reads.
pub fn attribute(place: &Element, name: &'static str, value: impl Fn() -> String + 'static) {
    keep(place.clone(), name, Box::new(value));
}

fn keep(place: Element, name: &'static str, words: Box<dyn Fn() -> String>) {
    let mut before = None;
    follow(move || {
        let now = Some(words());
        if now != before {
            match name {
                "" => place.set_text_content(now.as_deref()),
                _ => dom::set(&place, name, now.as_deref().unwrap_or_default()),
            }
            before = now;
        }
    });
}

/// An element hears events of a kind for as long as it stands.
pub fn hear(element: &Element, kind: &str, act: impl FnMut(Event) + 'static) {
    let heard = Closure::<dyn FnMut(Event)>::new(act);
    // A listener is never refused.
    let _ = element.add_event_listener_with_callback(kind, heard.as_ref().unchecked_ref());
    StoredValue::new_local(heard);
}

/// Makes the element of one key.
type Make = Box<dyn FnOnce() -> Element>;

/// An element that is in the place of `slot` while `there` says so.
pub fn when(slot: &Element, there: impl Fn() -> bool + 'static, make: impl Fn() -> Element + Copy + 'static) {
    list(slot, Box::new(move || if there() { vec![(String::new(), Box::new(make))] } else { Vec::new() }));
}

/// The elements of a list that changes, in the place of `slot`; those whose key stays stay as they are.
pub fn each<T: 'static>(
    slot: &Element,
    all: impl Fn() -> Vec<T> + 'static,
    key: fn(&T) -> String,
    make: fn(T) -> Element,
) {
    let item = move |one: T| -> (String, Make) { (key(&one), Box::new(move || make(one))) };
    list(slot, Box::new(move || all().into_iter().map(item).collect()));
}

fn list(slot: &Element, all: Box<dyn Fn() -> Vec<(String, Make)>>) {
    let end = dom::document().create_comment("");
    // Where nodes stand on the page or are about to, another may stand.
    let _ = slot.replace_with_with_node_1(&end);
    let owner = Owner::current().expect("a list belongs to a part of the page");
    let mut shown: Vec<(String, Owner, Element)> = Vec::new();
    follow(move || {
        let mut before = std::mem::take(&mut shown);
        for (key, make) in all() {
            let known = before.iter().position(|one| one.0 == key);
            shown.push(match known {
                Some(i) => before.remove(i),
                None => {
                    let own = owner.child();
                    let element = untrack(|| own.with(make));
                    (key, own, element)
                }
            });
        }
        for (_, own, element) in before {
            own.cleanup();
            element.remove();
        }
        let Some(parent) = end.parent_node() else { return };
        let mut next: Node = end.clone().into();
        for (_, _, element) in shown.iter().rev() {
            if element.next_sibling().as_ref() != Some(&next) {
                let _ = parent.insert_before(element, Some(&next));
            }
            next = element.clone().into();
        }
    });
}
