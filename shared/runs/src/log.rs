//! W&B's transaction log, `run-*.wandb`: blocks of 32 KiB as LevelDB writes them, behind seven bytes of W&B's own.
//!
//! The file begins with `:W&B`, 0xBEE1 and a version. Then come chunks of seven bytes (CRC-32 of type and data, length,
//! type) and data; a chunk never crosses a block, and a record is one chunk (full) or a first, middle ones and a last.
//! Less than seven bytes at the end of a block are padding. Behind damage the reader looks for the next chunk whose
//! checksum holds, so that one bad byte costs one record.

use super::sums::Sums;
use super::{Damage, steps};
use std::io::{self, Read};

/// What such a file begins with.
pub const MAGIC: &[u8] = b":W&B\xe1\xbe";

/// Bytes ahead of the first chunk, version included; also those ahead of each chunk's data.
const HEAD: usize = 7;
const BLOCK: usize = 32 * 1024;
/// A longer record holds no reading of a machine: it is passed over.
const LONGEST: usize = 16 << 20;

const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// A chunk at a place in a block, when its checksum holds. `sums` are the block's, once they are worth their making.
fn chunk<'a>(block: &'a [u8], at: usize, sums: Option<&Sums>) -> Option<(u8, &'a [u8])> {
    steps::count(1);
    let head = block.get(at..at + HEAD)?;
    let (kind, len) = (head[6], usize::from(u16::from_le_bytes([head[4], head[5]])));
    if !(FULL..=LAST).contains(&kind) {
        return None;
    }
    // The checksum is of the kind, which is the last of the head, and the data behind it.
    let (from, to) = (at + HEAD - 1, at + HEAD + len);
    let summed = block.get(from..to)?;
    let crc = sums.map_or_else(|| sum(summed), |sums| sums.part(from, to));
    (crc.to_le_bytes() == head[..4]).then_some((kind, &summed[1..]))
}

fn sum(bytes: &[u8]) -> u32 {
    steps::count(bytes.len());
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Calls `each` with every sound record, in order; it answers whether it understood it. What was passed over comes back.
///
/// # Errors
/// The file could not be read.
pub fn records(mut file: impl Read, mut each: impl FnMut(&[u8]) -> bool) -> io::Result<Vec<Damage>> {
    let mut damages = Vec::new();
    let mut block = Vec::with_capacity(BLOCK);
    let mut start = 0u64;
    // The record whose last chunk has not come, and where it begins; none also behind damage, where its rest is passed over.
    let mut open: Option<(u64, Vec<u8>)> = None;
    let mut torn = false;
    let mut take = |damages: &mut Vec<Damage>, at: u64, record: &[u8]| {
        if !each(record) {
            damages.push(Damage { at, bytes: record.len() as u64 });
        }
    };
    loop {
        block.clear();
        file.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            break;
        }
        let mut at = if start == 0 { HEAD } else { 0 };
        let mut sums = None;
        while at + HEAD <= block.len() {
            let Some((kind, data)) = chunk(&block, at, sums.as_ref()) else {
                // Zeros up to the end are room that was made and not used.
                if block[at..].iter().all(|b| *b == 0) {
                    break;
                }
                let sums = Some(&*sums.get_or_insert_with(|| Sums::of(&block)));
                let next = (at + 1..block.len()).find(|next| chunk(&block, *next, sums).is_some());
                let next = next.unwrap_or(block.len());
                damages.push(Damage { at: start + at as u64, bytes: (next - at) as u64 });
                (open, torn, at) = (None, true, next);
                continue;
            };
            let here = start + at as u64;
            match (kind, &mut open) {
                (FULL, None) => take(&mut damages, here, data),
                (FIRST, None) => open = Some((here, data.to_vec())),
                (MIDDLE | LAST, Some((_, record))) => {
                    if record.len() + data.len() <= LONGEST {
                        record.extend(data);
                    } else {
                        (open, torn) = (None, true);
                    }
                    if kind == LAST
                        && let Some((begin, record)) = open.take()
                    {
                        take(&mut damages, begin, &record);
                    }
                }
                // The rest of a record whose begin was damaged or too long.
                (MIDDLE | LAST, None) if torn => {}
                (MIDDLE | LAST, None) => damages.push(Damage { at: here, bytes: (HEAD + data.len()) as u64 }),
                (_, Some((begin, record))) => {
                    // It has no end: another one begins.
                    damages.push(Damage { at: *begin, bytes: record.len() as u64 });
                    open = (kind == FIRST).then(|| (here, data.to_vec()));
                    if kind == FULL {
                        take(&mut damages, here, data);
                    }
                }
                // A checksum holds for no other kind.
                (_, None) => {}
            }
            torn &= !matches!(kind, FULL | FIRST | LAST);
            at += HEAD + data.len();
        }
        let whole = block.len() == BLOCK;
        if !whole && at < block.len() && block[at..].iter().any(|b| *b != 0) {
            damages.push(Damage { at: start + at as u64, bytes: (block.len() - at) as u64 });
        }
        start += block.len() as u64;
        if !whole {
            break;
        }
    }
    if let Some((at, record)) = open {
        damages.push(Damage { at, bytes: record.len() as u64 });
    }
    Ok(damages)
}

/// Writes such files, as W&B does.
#[cfg(test)]
pub mod tests {
    use super::*;

    /// A file of these records.
    pub fn write(records: &[Vec<u8>]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(0);
        let put = |out: &mut Vec<u8>, kind: u8, data: &[u8]| {
            let mut crc = flate2::Crc::new();
            crc.update(&[kind]);
            crc.update(data);
            out.extend(crc.sum().to_le_bytes());
            out.extend((data.len() as u16).to_le_bytes());
            out.push(kind);
            out.extend(data);
        };
        for record in records {
            let (mut rest, mut first) = (&record[..], true);
            loop {
                let room = BLOCK - out.len() % BLOCK;
                if room < HEAD {
                    out.resize(out.len() + room, 0);
                    continue;
                }
                let fits = rest.len() <= room - HEAD;
                let (data, after) = rest.split_at(rest.len().min(room - HEAD));
                let kind = match (first, fits) {
                    (true, true) => FULL,
                    (true, false) => FIRST,
                    (false, false) => MIDDLE,
                    (false, true) => LAST,
                };
                put(&mut out, kind, data);
                if fits {
                    break;
                }
                (rest, first) = (after, false);
            }
        }
        out
    }

    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<Damage>) {
        let mut found = Vec::new();
        let damages = records(bytes, |record| {
            found.push(record.to_vec());
            true
        })
        .expect("memory can be read");
        (found, damages)
    }

    fn some() -> Vec<Vec<u8>> {
        // Short, long and longer than a block; one that ends so that a block's padding follows.
        let lens = [10, 0, 400, 32_000, 330, 70_000, 5, 33_000, 12];
        lens.iter().enumerate().map(|(i, len)| (0..*len).map(|k| (k * 7 + i) as u8).collect()).collect()
    }

    #[test]
    fn records_come_back_across_blocks_and_padding() {
        for extra in 0..20 {
            let mut records = some();
            records.insert(2, vec![9; 31_900 + extra]);
            assert_eq!(read(&write(&records)), (records, Vec::new()), "{extra}");
        }
    }

    #[test]
    fn a_cut_file_gives_every_record_that_is_whole() {
        let records = some();
        let bytes = write(&records);
        let ends: Vec<usize> = (0..=records.len()).map(|n| write(&records[..n]).len()).collect();
        for cut in (HEAD..bytes.len()).filter(|cut| cut % 997 == 0 || ends.iter().any(|end| end.abs_diff(*cut) < 9)) {
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            let (found, damages) = read(&bytes[..cut]);
            assert_eq!(found, records[..whole], "cut at {cut}");
            // Zeros in a record of a single zero byte look like room that was not used.
            assert!(ends.contains(&cut) || !damages.is_empty() || cut - ends[whole] < HEAD, "cut at {cut}");
        }
    }

    #[test]
    fn a_flipped_byte_costs_the_record_that_holds_it() {
        let records = some();
        let bytes = write(&records);
        let ends: Vec<usize> = (0..=records.len()).map(|n| write(&records[..n]).len()).collect();
        for at in (HEAD..bytes.len()).filter(|at| at % 997 == 0 || ends.iter().any(|end| end.abs_diff(*at) < 8)) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x5a;
            let hit = ends.iter().filter(|end| **end <= at).count() - 1;
            let (found, damages) = read(&bad);
            let mut expected = records.clone();
            expected.remove(hit);
            if found != records {
                // What is not handed out is the record that was hit, and nothing is handed out that was not written.
                assert_eq!(found, expected, "byte {at}");
                assert!(!damages.is_empty(), "byte {at}");
            }
        }
    }

    #[test]
    fn four_times_the_bytes_are_four_times_the_work_whatever_they_are() {
        let empty = write(&[Vec::new()])[HEAD..].to_vec();
        // Heads of chunks with a wrong checksum everywhere; sound ones between them; nothing but one byte.
        for pattern in [&b"\x04\x3f"[..], &[&empty[..], b"\0\0\0\0\x04\x3f\x01"].concat(), b"\x01", b"\0"] {
            let work = |len: usize| {
                let fill = pattern.iter().copied().cycle().take(len).collect::<Vec<u8>>();
                let bytes = [MAGIC, b"\0", &fill].concat();
                steps::of(|| drop(read(&bytes)))
            };
            let (once, four) = (work(BLOCK), work(4 * BLOCK));
            assert!(four <= 4 * once + once / 8 && once <= 5 * BLOCK as u64, "{once} and {four} for {pattern:?}");
        }
    }
}
