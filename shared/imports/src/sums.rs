//! Computes the checksum of any part of a block in constant time. So the cost of a search for a chunk at every place is
//! at most linear in the block, even if the bytes resemble a chunk everywhere.

/// The polynomial of CRC-32, with its bits reflected.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// Checksums of a block: `before` has the checksum of all bytes before each place. `behind` has the factor by which a
/// number of further bytes changes a checksum.
pub struct Sums {
    before: Vec<u32>,
    behind: Vec<u32>,
}

/// The product of two polynomials; the highest bit is the coefficient of 1.
fn multiplied(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        if a >> bit & 1 == 1 {
            product ^= b;
        }
        b = shifted(b);
    }
    product
}

/// The polynomial multiplied by x.
fn shifted(a: u32) -> u32 {
    (a >> 1) ^ if a & 1 == 1 { POLYNOMIAL } else { 0 }
}

impl Sums {
    /// Computes the sums of a block.
    pub fn from_block(block: &[u8]) -> Sums {
        super::steps::count(block.len());
        let (mut crc, mut power) = (flate2::Crc::new(), 1 << 31);
        let (mut before, mut behind) = (vec![0], vec![power]);
        for byte in block {
            crc.update(&[*byte]);
            before.push(crc.sum());
            power = (0..8).fold(power, |power, _| shifted(power));
            behind.push(power);
        }
        Sums { before, behind }
    }

    /// The checksum of the bytes from `from` to before `to`.
    pub fn part(&self, from: usize, to: usize) -> u32 {
        super::steps::count(1);
        self.before[to] ^ multiplied(self.before[from], self.behind[to - from])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_the_sum_that_it_has_alone() {
        let block: Vec<u8> = (0..300u32).map(|i| ((i * i * 37) >> 3) as u8).collect();
        let sums = Sums::from_block(&block);
        for (from, to) in (0..=300).step_by(7).flat_map(|from| (from..=300).map(move |to| (from, to))) {
            let mut crc = flate2::Crc::new();
            crc.update(&block[from..to]);
            assert_eq!(sums.part(from, to), crc.sum(), "{from}..{to}");
        }
    }
}
