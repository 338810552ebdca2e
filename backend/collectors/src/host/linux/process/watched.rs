//! PIDs of the watched processes, for collectors that report the users of a device.

use super::tree::Tree;
use crate::Roots;
use std::collections::HashSet;

/// The watched processes with all their descendants.
pub(crate) struct Watched(Option<Tree>);

impl Watched {
    /// Nothing is read if no process is watched.
    pub fn new(roots: &Roots, pids: &[u32]) -> Self {
        Watched((!pids.is_empty()).then(|| Tree::new(roots.proc.clone(), pids)))
    }

    /// PIDs of the living ones.
    pub fn pids(&mut self) -> HashSet<u32> {
        let Some(tree) = &mut self.0 else { return HashSet::new() };
        tree.refresh();
        tree.members.iter().filter(|(_, member)| !member.stat.ended).map(|(pid, _)| *pid).collect()
    }
}
