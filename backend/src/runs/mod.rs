//! Runs: what `watchglass run` tells of the jobs of this machine becomes records of it, and the records of all machines make
//! the list of runs.
//!
//! A run ends when its launcher says how, or when the kernel says that its process is gone. Silence is no end.

mod fold;
#[cfg(target_os = "linux")]
mod pidfd;
#[cfg(unix)]
mod socket;
#[cfg(unix)]
mod track;
#[cfg(unix)]
mod untold;

pub use fold::list;
#[cfg(unix)]
pub use socket::RunSocket;
#[cfg(unix)]
pub use track::follow;
#[cfg(unix)]
pub use untold::FOLDER as UNTOLD;
