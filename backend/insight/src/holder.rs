//! The job or the pod for which a scheduler reserved a GPU.

/// The holder of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A run, by its id, and its user; empty if unknown.
    Run { id: String, owner: String },
    /// A pod of Kubernetes, as `namespace/name`.
    Pod(String),
}

impl Holder {
    /// Its user; empty if unknown.
    pub fn user(&self) -> &str {
        match self {
            Holder::Run { owner, .. } => owner,
            Holder::Pod(_) => "",
        }
    }

    /// Its words in a sentence.
    pub fn words(&self) -> String {
        match self {
            Holder::Run { id, owner } if owner.is_empty() => format!("run {id}"),
            Holder::Run { id, owner } => format!("run {id} of {owner}"),
            Holder::Pod(pod) => format!("pod {pod}"),
        }
    }
}
