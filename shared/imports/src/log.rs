//! Reads W&B's transaction log, `run-*.wandb`: blocks of 32 KiB in LevelDB's format, after seven bytes of W&B's own.
//!
//! The file begins with `:W&B`, 0xBEE1 and a version. Then come chunks: seven bytes (CRC-32 of type and data, length,
//! type) and the data. A chunk never crosses a block. A record is one chunk (full), or a first chunk, middle ones and a
//! last one. Less than seven bytes at the end of a block are padding. After damage the reader searches for the next
//! chunk whose checksum is right, so that one bad byte costs one record.

use super::sums::Sums;
use super::{Damage, steps};
use std::io::{self, Read};

/// The bytes with which such a file begins.
pub const MAGIC: &[u8] = b":W&B\xe1\xbe";

/// Size of the file's header, and of the header of each chunk, in bytes.
const HEADER_BYTES: usize = 7;
const BLOCK_BYTES: usize = 32 * 1024;
/// Size in bytes of the longest record. A longer one holds no readings of a machine and is skipped.
const MAX_RECORD_BYTES: usize = 16 << 20;

const FULL_RECORD: u8 = 1;
const FIRST_RECORD: u8 = 2;
const MIDDLE_RECORD: u8 = 3;
const LAST_RECORD: u8 = 4;

/// The type and data of the chunk at a place in a block; None when its checksum is wrong. `sums` are the checksums of
/// the block, once they were computed.
fn chunk<'a>(block: &'a [u8], at: usize, sums: Option<&Sums>) -> Option<(u8, &'a [u8])> {
    steps::count(1);
    let head = block.get(at..at + HEADER_BYTES)?;
    let (kind, len) = (head[6], usize::from(u16::from_le_bytes([head[4], head[5]])));
    if !(FULL_RECORD..=LAST_RECORD).contains(&kind) {
        return None;
    }
    // The checksum covers the type, which is the last byte of the header, and the data after it.
    let (from, to) = (at + HEADER_BYTES - 1, at + HEADER_BYTES + len);
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

/// Where the next sound chunk of a block begins, from `from` on; the end of the block if there is none.
fn next_chunk(block: &[u8], from: usize, sums: &Sums) -> usize {
    (from..block.len()).find(|next| chunk(block, *next, Some(sums)).is_some()).unwrap_or(block.len())
}

/// Calls `each` with every sound record in order; `each` returns whether it understood the record. Returns the parts
/// that were skipped.
///
/// # Errors
/// Returns an error when the file cannot be read.
pub fn records(mut file: impl Read, mut each: impl FnMut(&[u8]) -> bool) -> io::Result<Vec<Damage>> {
    let mut damages = Vec::new();
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    let mut start = 0u64;
    // The record whose last chunk has not been read yet, and the offset of its first. After damage it is None, and the
    // rest of the damaged record is skipped.
    let mut open: Option<(u64, Vec<u8>)> = None;
    let mut torn = false;
    let mut take = |damages: &mut Vec<Damage>, at: u64, record: &[u8]| {
        if !each(record) {
            damages.push(Damage { at, bytes: record.len() as u64 });
        }
    };
    loop {
        block.clear();
        file.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            break;
        }
        let mut at = if start == 0 { HEADER_BYTES } else { 0 };
        let mut sums = None;
        while at + HEADER_BYTES <= block.len() {
            let Some((kind, data)) = chunk(&block, at, sums.as_ref()) else {
                // Zeros up to the end are space that was reserved and not used.
                if block[at..].iter().all(|b| *b == 0) {
                    break;
                }
                let next = next_chunk(&block, at + 1, sums.get_or_insert_with(|| Sums::from_block(&block)));
                damages.push(Damage { at: start + at as u64, bytes: (next - at) as u64 });
                (open, torn, at) = (None, true, next);
                continue;
            };
            let here = start + at as u64;
            match (kind, &mut open) {
                (FULL_RECORD, None) => take(&mut damages, here, data),
                (FIRST_RECORD, None) => open = Some((here, data.to_vec())),
                (MIDDLE_RECORD | LAST_RECORD, Some((_, record))) => {
                    if record.len() + data.len() <= MAX_RECORD_BYTES {
                        record.extend(data);
                    } else {
                        (open, torn) = (None, true);
                    }
                    if kind == LAST_RECORD
                        && let Some((begin, record)) = open.take()
                    {
                        take(&mut damages, begin, &record);
                    }
                }
                // This is the rest of a record whose first chunk was damaged, or which was too long.
                (MIDDLE_RECORD | LAST_RECORD, None) if torn => {}
                (MIDDLE_RECORD | LAST_RECORD, None) => {
                    damages.push(Damage { at: here, bytes: (HEADER_BYTES + data.len()) as u64 })
                }
                (_, Some((begin, record))) => {
                    // The open record has no end, because another one begins.
                    damages.push(Damage { at: *begin, bytes: record.len() as u64 });
                    open = (kind == FIRST_RECORD).then(|| (here, data.to_vec()));
                    if kind == FULL_RECORD {
                        take(&mut damages, here, data);
                    }
                }
                // A chunk of another type is never sound.
                (_, None) => {}
            }
            torn &= !matches!(kind, FULL_RECORD | FIRST_RECORD | LAST_RECORD);
            at += HEADER_BYTES + data.len();
        }
        let whole = block.len() == BLOCK_BYTES;
        if !whole && at < block.len() && block[at..].iter().any(|b| *b != 0) {
            damages.push(Damage { at: start + at as u64, bytes: (block.len() - at) as u64 });
        }
        start += block.len() as u64;
        if !whole {
            break;
        }
    }
    damages.extend(open.map(|(at, record)| Damage { at, bytes: record.len() as u64 }));
    Ok(damages)
}

/// Writes such files as W&B does, for tests.
#[cfg(test)]
pub mod tests {
    use super::*;

    /// The bytes of a file with these records.
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
                let room = BLOCK_BYTES - out.len() % BLOCK_BYTES;
                if room < HEADER_BYTES {
                    out.resize(out.len() + room, 0);
                    continue;
                }
                let fits = rest.len() <= room - HEADER_BYTES;
                let (data, after) = rest.split_at(rest.len().min(room - HEADER_BYTES));
                let kind = match (first, fits) {
                    (true, true) => FULL_RECORD,
                    (true, false) => FIRST_RECORD,
                    (false, false) => MIDDLE_RECORD,
                    (false, true) => LAST_RECORD,
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
        // Records are short, long, and longer than a block. One ends so that padding follows in its block.
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
        for cut in
            (HEADER_BYTES..bytes.len()).filter(|cut| cut % 997 == 0 || ends.iter().any(|end| end.abs_diff(*cut) < 9))
        {
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            let (found, damages) = read(&bytes[..cut]);
            assert_eq!(found, records[..whole], "cut at {cut}");
            // The zeros of a cut record with a single zero byte look like space that was not used.
            assert!(ends.contains(&cut) || !damages.is_empty() || cut - ends[whole] < HEADER_BYTES, "cut at {cut}");
        }
    }

    #[test]
    fn a_flipped_byte_costs_the_record_that_holds_it() {
        let records = some();
        let bytes = write(&records);
        let ends: Vec<usize> = (0..=records.len()).map(|n| write(&records[..n]).len()).collect();
        for at in (HEADER_BYTES..bytes.len()).filter(|at| at % 997 == 0 || ends.iter().any(|end| end.abs_diff(*at) < 8))
        {
            let mut bad = bytes.clone();
            bad[at] ^= 0x5a;
            let hit = ends.iter().filter(|end| **end <= at).count() - 1;
            let (found, damages) = read(&bad);
            let mut expected = records.clone();
            expected.remove(hit);
            if found != records {
                // The record that was hit is missing, and no record appears that was not written.
                assert_eq!(found, expected, "byte {at}");
                assert!(!damages.is_empty(), "byte {at}");
            }
        }
    }

    #[test]
    fn four_times_the_bytes_are_four_times_the_work_whatever_they_are() {
        let empty = write(&[Vec::new()])[HEADER_BYTES..].to_vec();
        // The patterns are headers with a wrong checksum, the same between sound chunks, and a single byte.
        for pattern in [&b"\x04\x3f"[..], &[&empty[..], b"\0\0\0\0\x04\x3f\x01"].concat(), b"\x01", b"\0"] {
            let work = |len: usize| {
                let fill = pattern.iter().copied().cycle().take(len).collect::<Vec<u8>>();
                let bytes = [MAGIC, b"\0", &fill].concat();
                steps::count_steps(|| drop(read(&bytes)))
            };
            let (once, four) = (work(BLOCK_BYTES), work(4 * BLOCK_BYTES));
            assert!(four <= 4 * once + once / 8 && once <= 5 * BLOCK_BYTES as u64, "{once} and {four} for {pattern:?}");
        }
    }
}
