//! Answers of NCCL about a hanging job: the ranks that the others wait for.

use crate::unit::number;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Maximum number of named ranks; further ones are counted.
pub const MAX_RANKS: usize = 8;

/// A rank, with its process and the address of its node if NCCL knows them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NcclRank {
    /// Its number in the communicator.
    pub rank: u32,
    /// PID of its process on its node, and the address of that node.
    pub process: Option<(u32, IpAddr)>,
}

/// State of the ranks that a communicator waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NcclLack {
    /// The ranks do not answer.
    Silent,
    /// The ranks have issued fewer operations than others.
    Behind {
        /// Operations that they have issued.
        issued: u64,
        /// Operations that the others have issued.
        of: u64,
    },
}

/// The ranks that the other ranks of a communicator wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NcclReport {
    /// Hash of the communicator, as in NCCL's log.
    pub communicator: u64,
    #[allow(missing_docs, reason = "see NcclLack")]
    pub lack: NcclLack,
    /// The ranks, ascending; at most [`MAX_RANKS`].
    pub ranks: Vec<NcclRank>,
    /// Ranks that are not named.
    pub further: u32,
}

/// Begin of the words of a report.
pub const WORDS_BEGIN: &str = "NCCL: ";

impl NcclReport {
    /// The same in words, as the end of a finding's sentence: `NCCL: rank 5 has issued 81,230 of 81,231 operations`.
    pub fn words(&self) -> String {
        let [first, rest @ ..] = &self.ranks[..] else { return String::new() };
        let are_many = !rest.is_empty() || self.further > 0;
        let numbers: Vec<String> = self.ranks.iter().take(MAX_RANKS).map(|one| one.rank.to_string()).collect();
        let further = if self.further > 0 { format!(" and {} more", self.further) } else { String::new() };
        let who = match (are_many, first.process) {
            (false, Some((pid, node))) => format!("rank {} (process {pid} on {node})", first.rank),
            (false, None) => format!("rank {}", first.rank),
            (true, _) => format!("ranks {}{further}", numbers.join(", ")),
        };
        let what = match (self.lack, are_many) {
            (NcclLack::Silent, false) => "does not answer".to_string(),
            (NcclLack::Silent, true) => "do not answer".to_string(),
            (NcclLack::Behind { issued, of }, _) => {
                let has = if are_many { "have" } else { "has" };
                format!("{has} issued {} of {} operations", number(issued as f64), number(of as f64))
            }
        };
        format!("{WORDS_BEGIN}{who} {what}, communicator {:016x}", self.communicator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_its_ranks_and_its_communicator() {
        let rank = |rank| NcclRank { rank, process: Some((4_711, IpAddr::from([10, 0, 0, 2]))) };
        let behind = NcclLack::Behind { issued: 81_230, of: 81_231 };
        let report = NcclReport { communicator: 0x27a0_79b8_28ff_1a75, lack: behind, ranks: vec![rank(5)], further: 0 };
        assert_eq!(
            report.words(),
            "NCCL: rank 5 (process 4711 on 10.0.0.2) has issued 81,230 of 81,231 operations, communicator 27a079b828ff1a75"
        );
        let many = NcclReport { lack: NcclLack::Silent, ranks: vec![rank(1), rank(2)], further: 3, ..report.clone() };
        assert_eq!(many.words(), "NCCL: ranks 1, 2 and 3 more do not answer, communicator 27a079b828ff1a75");
        assert_eq!(NcclReport { ranks: Vec::new(), ..report }.words(), "");
    }
}
