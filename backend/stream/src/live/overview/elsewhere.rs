//! The newest values of a source that another hub holds, as received from that hub.

use super::values::CellValues;
use crate::live::Live;
use shared::catalog::fleet::{Aggregate, Grain, rows};
use shared::connection_state::ConnectionState;
use shared::wire::Source;
use std::collections::BTreeMap;

/// The newest values of a source that another hub holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellsElsewhere {
    /// By row of [`Grain::Sources`]; NaN is absent.
    pub whole: Vec<f64>,
    /// By row of [`Grain::Gpus`], for each GPU by its name.
    pub gpus: BTreeMap<String, Vec<f64>>,
}

impl CellsElsewhere {
    /// Its cells of a grain.
    fn series_of(&self, grain: Grain) -> Vec<(&str, &[f64])> {
        match grain {
            Grain::Sources => vec![("", &self.whole)],
            Grain::Gpus => self.gpus.iter().map(|(name, values)| (name.as_str(), &values[..])).collect(),
        }
    }
}

impl CellValues {
    /// Applies the values of a source received from another hub.
    pub(super) fn look_elsewhere(
        &mut self,
        live: &Live,
        source: &Source,
        grain: Grain,
        cells: &mut super::cells::Cells,
    ) {
        let theirs = live.cells_elsewhere(source.id).unwrap_or_default();
        let (connection_state, _) = live.source(source.id).connection_state();
        let ticks = matches!(connection_state, ConnectionState::Live | ConnectionState::Filling { .. });
        let rows = rows(grain);
        let parts = theirs.series_of(grain);
        let known = self.elsewhere.entry(source.id).or_default();
        known.retain(|name, cell| {
            let stays = parts.iter().any(|(part, _)| part == name);
            if !stays {
                cells.let_go(*cell);
            }
            stays
        });
        for (name, values) in parts {
            let Some(cell) = cells.cell_of(source.id, name) else { continue };
            known.insert(name.to_string(), cell);
            let first = cell * rows.len();
            self.all.resize(self.all.len().max(first + rows.len()), f64::NAN);
            for (at, row) in rows.iter().enumerate() {
                self.all[first + at] = match row.aggregate {
                    Aggregate::ConnectionState => f64::from(connection_state.code()),
                    _ if !ticks => f64::NAN,
                    _ => values.get(at).copied().unwrap_or(f64::NAN),
                };
            }
        }
    }
}
