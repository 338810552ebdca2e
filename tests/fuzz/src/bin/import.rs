//! Opens a file of arbitrary bytes after the header of each kind of file. Also embeds any record in a valid W&B file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shared::catalog::Catalog;
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(collectors::catalog);

const WANDB: &[u8] = b":W&B\xe1\xbe\x00";
const BEGINNINGS: [&[u8]; 4] = [b"", WANDB, b"{\"system.cpu\":", b"time,source,tag,value\n"];

/// Frames a record as W&B does, with a correct checksum. Without it no fuzzer would get past the frame.
fn framed(record: &[u8]) -> Vec<u8> {
    let record = &record[..record.len().min(30_000)];
    let mut crc = flate2::Crc::new();
    crc.update(&[1]);
    crc.update(record);
    let head = [&crc.sum().to_le_bytes()[..], &(record.len() as u16).to_le_bytes(), &[1]].concat();
    [WANDB, &head, record].concat()
}

fuzz_target!(|input: (u8, &[u8])| {
    let file = match BEGINNINGS.get(usize::from(input.0)) {
        Some(beginning) => [*beginning, input.1].concat(),
        None => framed(input.1),
    };
    // An error is a sentence. Other files are read up to the first damage.
    let _ = imports::from_bytes(&file, "any", CATALOG.clone());
});
