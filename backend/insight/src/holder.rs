//! The job for which a scheduler reserved a GPU.

/// The job for which a GPU is reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Its id.
    pub job: String,
    /// Its user; empty if unknown.
    pub owner: String,
}
