//! Findings: problems of the machines that the crate `insight` detects in their samples. [`follow`] checks live data,
//! [`look_through`] stored data, and [`FindingRegistry`] holds the findings.
//!
//! They follow from the samples alone, so that a replay finds the same again. They are stored in a file beside the
//! history, which is read after a restart. Only the sentence of a hang may have more: the ranks that NCCL names.

mod answer;
mod changed;
mod feed;
mod follow;
mod hangs;
mod kept;
mod registry;
pub mod testing;

pub use answer::answer;
pub use changed::{Spans, changes};
pub use feed::look_through;
pub use follow::{Following, follow};
pub use hangs::{AskNccl, AskStacks, HangQuestions};
pub use kept::KeptFindings;
pub(crate) use registry::machines as named;
pub use registry::{FindingEntry, FindingRegistry, WantedFindings};

#[cfg(test)]
mod tests {
    #[test]
    fn a_rule_is_shown_by_share_links_or_named_here() {
        // Another job's process, or a job and its user, are the subject.
        const NOT_SHOWN: [&str; 2] = ["straggler.shared", "unused"];
        let rules = insight::Insight::default().rules();
        let undecided: Vec<&String> = rules
            .iter()
            .map(|state| &state.rule)
            .filter(|rule| shared::linked::shows_rule(rule) == NOT_SHOWN.contains(&rule.as_str()))
            .collect();
        assert!(rules.len() > 20 && undecided.is_empty(), "{undecided:?}");
    }
}
