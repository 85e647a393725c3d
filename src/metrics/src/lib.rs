//! Losses and metrics: what a model is trained to make small, and the numbers that are measured beside it.
//!
//! A [`Loss`] is a sum over examples, a tensor that is differentiated; the step above divides it. A [`Metric`] is a pure function
//! of a [`Tally`](metric::Tally), which counts labels and predictions over a whole split. The tallies of replicas are added up
//! when somebody reads them ([`Tallies`](metric::Tallies)).
//!
//! ```
//! use stratoscope_data::Labels;
//! use stratoscope_metrics::accuracy;
//! use stratoscope_metrics::metric::Tally;
//!
//! let mut tally = Tally::of_classes(2);
//! tally.add(&Labels::Classes(vec![0, 1, 1]), &[0.9, 0.1, 0.2, 0.8, 0.7, 0.3]);
//! assert_eq!(accuracy().value(&tally), Some(2.0 / 3.0));
//! ```
//!
//! Which loss and which metrics a model can have is checked by the crate above, from what they say of themselves
//! ([`Metric::objection`], [`Loss::is_regression`]). How sure a value is belongs to `stratoscope-evaluation`.
//!
//! Start reading at `loss/mod.rs` and one loss, such as `loss/huber.rs`; then `metric/mod.rs`, `metric/tally.rs` and one metric, such
//! as `metric/f1.rs`.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod loss;
pub mod metric;

pub use loss::{
    BinaryCrossentropy, CategoricalCrossentropy, Hinge, Huber, IntoLoss, KlDivergence,
    LabelSmoothing, LogCosh, Loss, MeanAbsoluteError, MeanSquaredError, MultipleNegativesRanking,
    MultipleNegativesSymmetricRanking, OwnLoss, SparseCategoricalCrossentropy, SquaredHinge,
    TripletMargin,
};
pub use metric::list::*;
pub use metric::{IntoMetric, IntoMetrics, OwnMetric};
