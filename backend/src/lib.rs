//! The server of Watchglass. Read it along the pipe: [`sampler`] calls the collectors on the second, [`store`] keeps
//! the ticks, [`live`] hands them to readers, [`http`] is the door and the paths behind it. [`config`] is everything
//! that a user may choose; [`clock`] is the only place that reads a clock.

pub mod clock;
pub mod live;
pub mod store;
