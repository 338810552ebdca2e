//! The pages of people and machines of a hub: [`gate`] signs in, [`join`] adds machines, [`machines`] lists them, from
//! the hub's list ([`agents`]); [`members`] with [`teams`] and [`accounts`], [`keys`], [`links`], [`audit`], [`usage`]
//! and [`me`] share one [`frame`], one [`List`](crate::widgets::list::List) and one [`form`], with data that [`asked`]
//! polls; [`views`] is the menu of saved views.

pub mod accounts;
pub mod agents;
pub mod asked;
pub mod audit;
pub mod form;
pub mod frame;
pub mod gate;
pub mod join;
pub mod keys;
pub mod links;
pub mod machines;
pub mod me;
pub mod members;
pub mod teams;
pub mod usage;
pub mod views;
