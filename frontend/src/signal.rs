//! Values that views follow. A signal of Leptos brings its code for each type of value; here that is in its trigger, which
//! is of no type, and a value is a cell.

use leptos::prelude::*;
use std::cell::RefCell;

/// A value, and who follows it.
#[derive(Debug)]
pub struct Signal<T> {
    value: RefCell<T>,
    followers: ArcTrigger,
}

impl<T> Signal<T> {
    /// A value that nobody follows yet.
    pub fn new(value: T) -> Self {
        Signal { value: RefCell::new(value), followers: ArcTrigger::new() }
    }

    /// One that lives as long as the page: parts that stand once, and the families, of which there are few.
    pub fn kept(value: T) -> &'static Self {
        Box::leak(Box::new(Signal::new(value)))
    }

    /// Who asks follows it from now on.
    pub fn track(&self) {
        self.followers.track();
    }

    /// Reads it, and follows it.
    pub fn with<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        self.track();
        self.with_untracked(read)
    }

    /// Reads it as it is now.
    pub fn with_untracked<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.value.borrow())
    }

    /// Changes it; followers look again soon, not here.
    pub fn update(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value.borrow_mut());
        self.followers.notify();
    }

    /// Puts another in its place.
    pub fn set(&self, value: T) {
        self.update(|before| *before = value);
    }
}

impl<T: Clone> Signal<T> {
    /// A copy, and follows it.
    pub fn get(&self) -> T {
        self.with(T::clone)
    }

    /// A copy as it is now.
    pub fn get_untracked(&self) -> T {
        self.with_untracked(T::clone)
    }
}
