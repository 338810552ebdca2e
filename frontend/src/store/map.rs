//! A map as a sorted list. What the page keeps by key is at most some hundreds of things, and what comes has the largest
//! key: a tree finds no sooner, and brings five kilobytes of code for each type.

use std::borrow::Borrow;
use std::ops::{Deref, Index, RangeToInclusive};

/// Pairs of key and value in the order of their keys.
#[derive(Debug)]
pub struct Map<K, V>(Vec<(K, V)>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Map(Vec::new())
    }
}

impl<K: Ord, V> Map<K, V> {
    /// Where a key stands, or belongs.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|(k, _)| k.borrow().cmp(key))
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|i| &self.0[i].1)
    }

    /// The value of a key.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.place(key).ok().map(|i| &mut self.0[i].1)
    }

    /// The value of a key, which is made where there is none.
    pub fn or(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        let i = self.place(&key).unwrap_or_else(|i| {
            self.0.insert(i, (key, new()));
            i
        });
        &mut self.0[i].1
    }

    /// Puts a value in the place of what was there.
    pub fn insert(&mut self, key: K, value: V) {
        match self.place(&key) {
            Ok(i) => self.0[i].1 = value,
            Err(i) => self.0.insert(i, (key, value)),
        }
    }

    /// Keeps what `keep` says of.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        self.0.retain(|(k, v)| keep(k, v));
    }

    /// The pairs up to a key.
    pub fn range(&self, keys: RangeToInclusive<K>) -> &[(K, V)] {
        &self.0[..self.0.partition_point(|(k, _)| *k <= keys.end)]
    }

    /// The values.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.0.iter().map(|(_, v)| v)
    }

    /// The values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, v)| v)
    }

    /// Lets all go.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K, V> Deref for Map<K, V> {
    type Target = [(K, V)];
    fn deref(&self) -> &[(K, V)] {
        &self.0
    }
}

impl<K: Ord, V> Index<&K> for Map<K, V> {
    type Output = V;
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("a key that is there")
    }
}

impl<K, V> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Ord, V> Extend<(K, V)> for Map<K, V> {
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, pairs: T) {
        pairs.into_iter().for_each(|(k, v)| self.insert(k, v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_stand_in_the_order_of_their_keys_and_a_key_stands_once() {
        let mut map = Map::default();
        map.extend([(3, "c"), (1, "a"), (2, "b"), (3, "d")]);
        assert_eq!(map.values().copied().collect::<String>(), "abd");
        *map.or(2, || "x") = "e";
        map.or(5, || "f");
        assert_eq!((map.get(&2), map.get(&4), map.get(&5), map.len()), (Some(&"e"), None, Some(&"f"), 4));
        assert_eq!(map.range(..=2), [(1, "a"), (2, "e")]);
        map.retain(|k, _| k % 2 == 1);
        assert_eq!(map.into_iter().map(|(k, _)| k).collect::<Vec<i32>>(), [1, 3, 5]);
    }
}
