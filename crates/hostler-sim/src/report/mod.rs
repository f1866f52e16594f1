//! Comparison reports: one HTML file, or a table for the terminal.
//!
//! Not for measuring: the numbers come in ready. Plots are drawn by a script of our own, because
//! a report is mailed and opened on phones. Ten policies on the example make a page of 0.66 MB
//! (0.14 MB compressed), of which scripts and style are 44 kB; the plotly crate embeds 6.8 MB
//! (2.1 MB compressed) before the first number, and brings 49 crates and 45 s of building. The
//! price is a fixed set of plots, lines, bars, boxes and heat maps, described by [`chart`]; a new
//! kind is a function in `assets/` and a variant there.

mod advice;
mod changes;
pub mod chart;
mod compare;
pub mod data;
mod findings;
pub mod format;
mod groups;
mod growth;
pub mod html;
pub mod loads;
pub(crate) mod page;
pub(crate) mod reduce;
pub mod table;
#[cfg(test)]
mod tests;

pub use data::Report;
pub use findings::{findings, rejections};
pub use reduce::thin;

/// Writes a report as one self-contained HTML page.
pub fn render(report: &Report) -> String {
    html::document(&report.title, &page::body(report), &compare::charts(report))
}
