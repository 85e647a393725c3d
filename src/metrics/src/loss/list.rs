//! The losses. A row is a variant of [`Loss`] and its type, which has a file, with an implementation of [`Criterion`] for what it
//! computes and one of [`Named`] for the text that stands for it.

use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use super::criterion::{Criterion, Named};
use super::{
    BinaryCrossentropy, CategoricalCrossentropy, Hinge, Huber, IntoLoss, KlDivergence,
    LabelSmoothing, LogCosh, MeanAbsoluteError, MeanSquaredError, MultipleNegativesRanking,
    MultipleNegativesSymmetricRanking, OwnLoss, SparseCategoricalCrossentropy, SquaredHinge,
    TripletMargin,
};

macro_rules! losses {
    ($($(#[$doc:meta])* $loss:ident($type:ty),)*) => {
        /// What is minimized.
        ///
        /// The variants give the loss of one row: an example, a word or token that has a class, the begin or the end of an
        /// answer, or one of several labels. p is a probability that the model gives, y the label and e the error, output −
        /// label. Logarithms are natural, so that cross-entropies and divergences are in nats.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Loss {
            $($(#[$doc])* $loss($type),)*
            /// What a function returns, made by [`Loss::of_classes`] or [`Loss::of_numbers`]. The function cannot be sent to
            /// another process.
            #[serde(skip)]
            Own(OwnLoss),
        }

        impl Loss {
            /// The loss itself.
            pub(super) fn criterion(&self) -> &dyn Criterion {
                match self {
                    $(Self::$loss(loss) => loss,)*
                    Self::Own(loss) => loss,
                }
            }

            /// The loss of a text of the table.
            pub(super) fn named(text: &str) -> Option<Self> {
                let all = [$((<$type>::TEXT, (|| Self::$loss(<$type>::named())) as fn() -> Self)),*];
                let (_, loss) = all.into_iter().find(|(known, _)| *known == text)?;
                Some(loss())
            }
        }

        $(impl IntoLoss for $type {
            fn into_loss(self) -> Result<Loss> {
                self.check()?;
                Ok(Loss::$loss(self))
            }
        })*
    };
}

losses! {
    /// −log p(y), for a class y given by its index. See [`SparseCategoricalCrossentropy`].
    SparseCategoricalCrossentropy(SparseCategoricalCrossentropy),
    /// −Σ y log p over the C classes, for a class as a one-hot row y. Smoothing by s replaces y by y (1 − s) + s / C
    /// (Szegedy et al. 2016, section 7). See [`CategoricalCrossentropy`].
    CategoricalCrossentropy(LabelSmoothing<CategoricalCrossentropy>),
    /// −y log p − (1 − y) log (1 − p), for y of 0 or 1 and the probability p of class 1 by one output. Smoothing by s
    /// replaces y by y (1 − s) + s / 2. See [`BinaryCrossentropy`].
    BinaryCrossentropy(LabelSmoothing<BinaryCrossentropy>),
    /// e², in the square of the label's unit. See [`MeanSquaredError`].
    MeanSquaredError(MeanSquaredError),
    /// |e|, in the label's unit. See [`MeanAbsoluteError`].
    MeanAbsoluteError(MeanAbsoluteError),
    /// ½ e² where |e| ≤ `delta`, `delta` (|e| − ½ `delta`) beyond; in the square of the label's unit, as `delta` has
    /// the label's unit. See [`Huber`].
    Huber(Huber),
    /// log cosh e. It has no unit and depends on that of the label: about ½ e² for small errors, |e| − log 2 for large
    /// ones. See [`LogCosh`].
    LogCosh(LogCosh),
    /// Σ y log (y / p) over the classes, for a class as a one-hot row y whose zeros are replaced by 1e-7, as in Keras.
    /// See [`KlDivergence`].
    KlDivergence(KlDivergence),
    /// max(0, 1 − y · output), for y of −1 or 1; without a unit. See [`Hinge`].
    Hinge(Hinge),
    /// max(0, 1 − y · output)², for y of −1 or 1; without a unit. See [`SquaredHinge`].
    SquaredHinge(SquaredHinge),
    /// −log softmax(s · cos(aᵢ, cⱼ))ᵢ over the second and further texts c of all examples of the batch, for the scale s. See
    /// [`MultipleNegativesRanking`].
    MultipleNegativesRanking(MultipleNegativesRanking),
    /// The mean of that and of the same from the second to the first texts. See [`MultipleNegativesSymmetricRanking`].
    MultipleNegativesSymmetricRanking(MultipleNegativesSymmetricRanking),
    /// max(0, |a − p| − |a − n| + margin), for a text a, one that belongs to it and one that does not. See
    /// [`TripletMargin`].
    TripletMargin(TripletMargin),
}
