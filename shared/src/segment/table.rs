//! Rows and charts as lists of (key, text).
