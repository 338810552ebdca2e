//! How the data folder stands, as its archive told last.

/// Counts of the data folder, for our own health.
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
    /// 1 when nothing is written.
    pub failing: u64,
    /// Places of the folder that were damaged at the start, or met when it was merged.
    pub damaged: u64,
    /// Bytes of logs that were skipped at the start.
    pub skipped_bytes: u64,
    /// Log files that ended in the middle of a record at the start.
    pub cut_logs: u64,
    /// Ticks that nothing held at the start, although later ones of their source were known.
    pub missing_ticks: u64,
    /// 1 when the run before was not ended in order.
    pub unclean: u64,
}
