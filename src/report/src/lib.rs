//! What happened, as values: histories, plots, summaries, receipts and what one sees inside a run, and how they are written
//! as text and HTML.
//!
//! No value refers to a model or a run. Training fills them in, and each stays as it was when the run goes on. Drawing is
//! `stratoscope-render`'s.
//!
//! Start reading at [`history`], the record of a run; then [`stop`] and [`run_report`], where a run stands, and [`inspection`],
//! what `run.gradients()` and its kin return; [`profile`] is where the time of a run goes, [`influence`] because of which rows
//! a model answers as it does. [`html`] and [`text`] have what the tables share.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod comparison;
pub mod counters;
pub mod gradient_norms;
pub mod held;
pub mod history;
pub mod html;
pub mod influence;
pub mod inspection;
pub mod memory_plan;
pub mod pipeline;
pub mod plot;
pub mod profile;
pub mod rate_curve;
pub mod receipt;
pub mod run_report;
pub mod stop;
pub mod summary;
pub mod text;
