//! What happened, as values: histories, plots, summaries, receipts, and how they are written as text and HTML.

pub mod comparison;
pub mod counters;
pub mod gradient_norms;
pub mod held;
pub mod history;
pub mod html;
pub mod inspection;
pub mod memory_plan;
pub mod plot;
pub mod receipt;
pub mod run_report;
pub mod stop;
pub mod summary;
pub mod text;
