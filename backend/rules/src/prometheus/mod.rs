//! Prometheus: import of rule files where an exact equivalent exists ([`import`]), and export of the built-in rules
//! ([`export`]). Dashboards for Grafana, which read the same names ([`dashboards`]).

mod dashboards;
mod export;
mod import;
mod names;
mod promql;
mod translate;
mod yaml;

pub use dashboards::dashboards;
pub use export::export;
pub use import::{Imported, NotImported, import};

#[cfg(test)]
fn catalog() -> shared::catalog::Catalog {
    shared::catalog::Catalog::new(shared::catalog::VOCABULARY.iter().copied().flatten().copied())
}
