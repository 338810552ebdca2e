//! Texts, sections and lists in a segment.

use crate::varint::{put, take, take_slice};

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend(text.as_bytes());
}

pub(super) fn take_text(bytes: &mut &[u8]) -> Option<String> {
    String::from_utf8(take_section(bytes)?.to_vec()).ok()
}

pub(super) fn put_list<T>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = T> + Clone,
    mut put_item: impl FnMut(&mut Vec<u8>, T),
) {
    put(out, items.clone().count() as u64);
    items.for_each(|item| put_item(out, item));
}

pub(super) fn take_list<T>(bytes: &mut &[u8], mut take_item: impl FnMut(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    // The count is trusted only as far as elements follow: no memory is allocated ahead of them.
    (0..take(bytes)?).map(|_| take_item(bytes)).collect()
}

pub(super) fn put_section(out: &mut Vec<u8>, section: &[u8]) {
    put(out, section.len() as u64);
    out.extend(section);
}

pub(super) fn take_section<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take(bytes)?).ok()?;
    take_slice(bytes, len)
}
