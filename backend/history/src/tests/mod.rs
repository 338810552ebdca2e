//! What is written comes back, whatever happens to the disk.

mod cost;
mod cut;
mod disk;
mod flips;
mod folder;
mod merge;
mod owner;
mod replay;
