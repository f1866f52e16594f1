//! Comparison reports: one HTML file, or a table for the terminal.
//!
//! Not for measuring: the numbers come in ready. Plots are drawn by a small script of our own
//! (`assets/`), because a report is mailed and opened on phones. Measured for ten policies:
//! The price is a fixed set of plots (lines, bars, heat maps), described by [`chart`].

pub mod chart;
mod compare;
pub mod data;
mod findings;
pub mod format;
pub mod html;
mod page;
mod reduce;
pub mod table;
#[cfg(test)]
mod tests;

pub use data::Report;
pub use findings::findings;
pub use reduce::thin;

/// Writes a report as one self-contained HTML page.
pub fn render(report: &Report) -> String {
    html::document(&report.title, &page::body(report), &compare::charts(report))
}
