//! Written data is read back, whatever happens to the disk.

mod compaction;
mod cost;
mod cut;
mod disk;
mod flips;
mod folder;
mod owner;
mod replay;
