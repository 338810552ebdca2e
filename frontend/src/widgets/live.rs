//! Reactive parts of views as few types. A closure in a view brings a type of view of its own into the page, one to four
//! kilobytes of code; boxed they are all one.

use leptos::prelude::*;

/// A text, or the value of an attribute, that follows what it reads.
pub type Words = Box<dyn Fn() -> String + Send>;
/// A view that comes and goes.
pub type Part = Box<dyn Fn() -> Option<AnyView> + Send>;
/// A view that is made once for its key.
type Item = (String, Box<dyn FnOnce() -> AnyView + Send>);

/// A text, or the value of an attribute, that follows what it reads.
pub fn words(text: impl Fn() -> String + Send + 'static) -> Words {
    Box::new(text)
}

/// A view that is there while `there` says so.
pub fn when(there: impl Fn() -> bool + Send + Sync + 'static, view: impl Fn() -> AnyView + Send + 'static) -> Part {
    part(Box::new(there), Box::new(view))
}

fn part(there: Box<dyn Fn() -> bool + Send + Sync>, view: Box<dyn Fn() -> AnyView + Send>) -> Part {
    let there = Memo::new(move |_| there());
    Box::new(move || there.get().then(&view))
}

/// The views of a list that changes; those whose key stays stay as they are.
pub fn each<T: Send + 'static>(
    list: impl Fn() -> Vec<T> + Send + Sync + 'static,
    key: fn(&T) -> String,
    view: fn(T) -> AnyView,
) -> AnyView {
    let item = move |one: T| -> Item { (key(&one), Box::new(move || view(one))) };
    items(Box::new(move || list().into_iter().map(item).collect()))
}

fn items(list: Box<dyn Fn() -> Vec<Item> + Send + Sync>) -> AnyView {
    view! { <For each=list key=|item| item.0.clone() children=|item| (item.1)()/> }.into_any()
}
