//! CRC32C (Castagnoli, reflected polynomial 0x82f63b78, as in iSCSI and ext4): the checksum of everything on disk.

use std::sync::LazyLock;

/// Computed at first use: as constants they were four percent of the page.
static TABLES: LazyLock<[[u32; 256]; 8]> = LazyLock::new(tables);

fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let (mut crc, mut bit) = (i as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ (if crc & 1 == 1 { POLYNOMIAL } else { 0 });
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut t = 1;
    while t < 8 {
        let mut i = 0;
        while i < 256 {
            let before = tables[t - 1][i];
            tables[t][i] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            i += 1;
        }
        t += 1;
    }
    tables
}

/// The checksum of these bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    extend(0, bytes)
}

/// The checksum of bytes whose first part has the checksum `crc`, and that end with `bytes`.
pub fn extend(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: this processor has the instruction.
        return unsafe { by_instruction(crc, bytes) };
    }
    by_table(crc, bytes)
}

/// Uses the processor's instruction: six times as fast, and without 8 KiB of tables in the nearest cache.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn by_instruction(crc: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};
    let (eights, rest) = bytes.as_chunks::<8>();
    let crc = eights.iter().fold(u64::from(!crc), |crc, eight| _mm_crc32_u64(crc, u64::from_le_bytes(*eight)));
    !rest.iter().fold(crc as u32, |crc, byte| _mm_crc32_u8(crc, *byte))
}

fn by_table(crc: u32, bytes: &[u8]) -> u32 {
    let (mut crc, tables) = (!crc, &*TABLES);
    let (eights, rest) = bytes.as_chunks::<8>();
    for &[a, b, c, d, e, f, g, h] in eights {
        let low = crc ^ u32::from_le_bytes([a, b, c, d]);
        crc = tables[7][(low & 0xff) as usize]
            ^ tables[6][(low >> 8 & 0xff) as usize]
            ^ tables[5][(low >> 16 & 0xff) as usize]
            ^ tables[4][(low >> 24) as usize]
            ^ tables[3][usize::from(e)]
            ^ tables[2][usize::from(f)]
            ^ tables[1][usize::from(g)]
            ^ tables[0][usize::from(h)];
    }
    for byte in rest {
        crc = (crc >> 8) ^ tables[0][((crc ^ u32::from(*byte)) & 0xff) as usize];
    }
    !crc
}

/// The polynomial, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Corrects one wrong byte by the expected checksum. Returns false if the damage is not one byte; then nothing is
/// changed.
///
/// A checksum is linear: the effect of one wrong byte depends only on its error and its distance from the end. So
/// stepping the difference back byte by byte finds the position. Other damage passes for one wrong byte in one of 2^32
/// / (255 x length) cases. Use it only for a few thousand bytes whose content is checked as well, never for samples.
pub fn mend(bytes: &mut [u8], crc: u32) -> bool {
    let mut difference = crc32c(bytes) ^ crc;
    let mut found = None;
    for at in (0..bytes.len()).rev() {
        for _ in 0..8 {
            // The step that adds a bit, backwards: the polynomial's highest bit shows whether it was added.
            let (added, rest) = (difference >> 31, difference << 1);
            difference = if added == 1 { rest ^ (POLYNOMIAL << 1) | 1 } else { rest };
        }
        if (1..=255).contains(&difference) && found.replace((at, difference as u8)).is_some() {
            return false;
        }
    }
    if let Some((at, wrong)) = found {
        bytes[at] ^= wrong;
    }
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_hold() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
    }

    #[test]
    fn every_machine_finds_the_same() {
        let bytes: Vec<u8> = (0..200u32).map(|i| ((i * i * 37) >> 3) as u8).collect();
        for (from, to) in (0..20).flat_map(|from| (from..200).map(move |to| (from, to))) {
            assert_eq!(by_table(from as u32, &bytes[from..to]), extend(from as u32, &bytes[from..to]));
        }
    }

    #[test]
    fn one_wrong_byte_is_put_right_and_nothing_else_is_touched() {
        let bytes: Vec<u8> = (0..600u32).map(|i| ((i * i * 37) >> 3) as u8).collect();
        let crc = crc32c(&bytes);
        for at in 0..bytes.len() {
            for wrong in [1, 0x21, 0x80, 0xff] {
                let mut bad = bytes.clone();
                bad[at] ^= wrong;
                assert!(mend(&mut bad, crc) && bad == bytes, "byte {at}");
                bad[at] ^= wrong;
                bad[(at + 7) % 600] ^= 0x10;
                let before = bad.clone();
                assert!(!mend(&mut bad, crc) && bad == before, "bytes {at} and {}", (at + 7) % 600);
            }
        }
        assert!(!mend(&mut bytes.clone(), crc), "nothing is wrong");
        assert!(!mend(&mut [], 7));
    }

    #[test]
    fn parts_make_the_whole() {
        let bytes: Vec<u8> = (0..100).map(|i| (i * 37) as u8).collect();
        for cut in 0..=bytes.len() {
            assert_eq!(extend(crc32c(&bytes[..cut]), &bytes[cut..]), crc32c(&bytes));
        }
    }
}
