//! A file in memory that reports read progress.

use std::io::{self, BufRead, Read};

/// Bytes between two reports.
const STEP_BYTES: usize = 1 << 20;

/// The rest of the file.
pub struct Told<'a> {
    rest: &'a [u8],
    all: usize,
    /// Size of the rest, in bytes, at which the next report is due.
    next: usize,
    tell: &'a mut dyn FnMut(f64),
}

impl<'a> Told<'a> {
    /// `tell` receives the share that was read, 0 to 1.
    pub fn new(file: &'a [u8], tell: &'a mut dyn FnMut(f64)) -> Self {
        Told { rest: file, all: file.len(), next: file.len().saturating_sub(STEP_BYTES), tell }
    }
}

impl Read for Told<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.rest[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Told<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.rest)
    }

    fn consume(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
        if self.rest.len() < self.next {
            self.next = self.rest.len().saturating_sub(STEP_BYTES);
            (self.tell)(1.0 - self.rest.len() as f64 / self.all.max(1) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_file_and_says_how_far_it_was_read() {
        let file: Vec<u8> = (0..5 * STEP_BYTES / 2).map(|i| if i % 70 == 69 { b'\n' } else { b'a' }).collect();
        let (mut shares, mut read) = (Vec::new(), Vec::new());
        let mut tell = |share: f64| shares.push(share);
        let mut told = Told::new(&file, &mut tell);
        while told.read_until(b'\n', &mut read).expect("memory") > 0 {}
        assert_eq!(read, file);
        assert_eq!(shares.len(), 2);
        assert!((0.39..0.41).contains(&shares[0]) && (0.79..0.81).contains(&shares[1]), "{shares:?}");
    }
}
