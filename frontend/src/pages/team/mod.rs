//! The pages of people and machines of a hub: [`gate`] signs in, [`join`] adds machines, [`machines`] lists them, from the
//! hub's list ([`agents`]).

pub mod agents;
pub mod gate;
pub mod join;
pub mod machines;
