//! Several hubs that are one: they share a database and a sample store, and know of one another over NATS.
//!
//! `bus.rs` is what they say to one another.

mod bus;

pub use bus::{Bus, BusCounts, BusError, BusMessage, BusSubscription, MAX_BUS_MESSAGE};

use ring::rand::{SecureRandom, SystemRandom};

/// A new id of a hub: 16 hexadecimal digits. It is of the process, not of the data folder: a folder that was copied is no
/// second hub of one id, and what a hub that starts again held before is void once another asks for it.
pub fn new_hub_id() -> String {
    let mut bytes = [0; 8];
    // Without the system's generator there would be no TLS either.
    let _ = SystemRandom::new().fill(&mut bytes);
    format!("{:016x}", u64::from_le_bytes(bytes))
}
