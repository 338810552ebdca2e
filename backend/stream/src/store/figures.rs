//! State of the data folder, as last reported by its archive.

/// Figures of the data folder, for the server's own metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Segments on disk.
    pub segments: u64,
    /// Their bytes.
    pub segment_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Writes that were not logged since the start.
    pub unlogged: u64,
    /// Milliseconds since the oldest write that a power cut would lose; 0: none.
    pub unsynced_ms: u64,
    /// 1 while writes fail.
    pub failing: u64,
    /// Places of the folder found damaged at the start or during a merge.
    pub damaged: u64,
    /// Bytes of logs that were skipped at the start.
    pub skipped_bytes: u64,
    /// Log files that ended in the middle of a record at the start.
    pub cut_logs: u64,
    /// Ticks missing at the start, although later ones of their source were known.
    pub missing_ticks: u64,
    /// 1 if the previous run did not end in order.
    pub unclean: u64,
}
