//! Prometheus: its files of rules as ours, as far as they plainly say the same ([`import`]), and our built-in rules as a file of
//! its ([`export`]).

mod export;
mod import;
mod names;
mod promql;
mod translate;
mod yaml;

pub use export::export;
pub use import::{Imported, NotImported, import};

#[cfg(test)]
fn catalog() -> shared::catalog::Catalog {
    shared::catalog::Catalog::new(shared::catalog::VOCABULARY.iter().copied().flatten().copied())
}
