//! History on disk: a write-ahead log of ticks, and sealed segments that are made of it.
