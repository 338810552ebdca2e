//! The mount table of this process: finds the device behind a path without accessing the path, because that may hang.

use crate::read::procfs::{fields, lines, number};
use std::path::{Path, PathBuf};

/// A device by its major and minor number.
pub(crate) type Number = (u64, u64);

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Device number. Major 0 means that the file system has no device of its own (btrfs, overlay, network).
    pub number: Number,
    /// Mount point.
    pub point: PathBuf,
    /// Mounted source: `/dev/vda1`, `overlay`, `server:/export`.
    pub source: String,
}

/// The mounts of a `mountinfo` text, in order.
pub(crate) fn parse(text: &[u8]) -> Vec<Mount> {
    lines(text).filter_map(parse_line).collect()
}

/// `36 35 98:0 /root /mnt/a rw,noatime master:1 - ext3 /dev/root rw`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut words = fields(line);
    let mut device = words.nth(2)?.split(|&b| b == b':');
    let number = (number(device.next()?)?, number(device.next()?)?);
    let point = PathBuf::from(unescape(words.nth(1)?));
    words.find(|word| *word == b"-")?;
    let source = unescape(words.nth(1)?);
    Some(Mount { number, point, source })
}

/// The mount of a path: the one with the longest mount point above it. Among several at one point it is the last, which
/// hides the others.
pub(crate) fn find_mount<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

/// Blanks and backslashes are escaped as three octal digits.
pub(crate) fn unescape(word: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| first == b'\\').and_then(|digits| {
            digits.iter().try_fold(0u8, |n, d| {
                let digit = d.checked_sub(b'0').filter(|d| *d < 8)?;
                n.checked_mul(8)?.checked_add(digit)
            })
        });
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
23 22 0:21 / /proc rw - proc proc rw
40 22 8:17 / /mnt/data.v2 rw,noatime master:1 - xfs /dev/sdb1 rw
41 22 0:50 / /mnt/my\\040disk\\134x rw - nfs4 server:/export\\040a rw
42 22 253:3 / /mnt/data.v2 rw - ext4 /dev/mapper/vg-lv rw
broken
";

    #[test]
    fn the_longest_and_last_mount_above_a_path_is_its_own() {
        let mounts = parse(TEXT.as_bytes());
        let number = |path: &str| find_mount(&mounts, Path::new(path)).map(|m| m.number);
        assert_eq!(mounts.len(), 5);
        assert_eq!(number("/"), Some((254, 1)));
        assert_eq!(number("/mnt/data.v2/set"), Some((253, 3)));
        assert_eq!(number("/mnt/data.v22"), Some((254, 1)));
        assert_eq!(number("/mnt/my disk\\x/a"), Some((0, 50)));
        assert_eq!(mounts[3].source, "server:/export a");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, word in "[\\\\0-9a-z]{0,20}") {
            parse(&text);
            unescape(word.as_bytes());
        }
    }
}
