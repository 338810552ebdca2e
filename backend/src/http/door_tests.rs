//! Rules of the door, one by one.
