//! Pure drawing of a chart.
