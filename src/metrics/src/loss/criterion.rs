//! What each loss says of itself.

use burn::tensor::Tensor;
use stratoscope_data::Labels;
use stratoscope_diagnostics::Result;

/// A loss: the numbers of a batch, and what the rest of the program has to know of it. The default of a method holds for most.
pub(super) trait Criterion {
    /// What the user calls it: `SparseCategoricalCrossentropy`.
    fn name(&self) -> &'static str;

    /// What follows its name where it is shown, as it is written: ` { delta: 1.0 }`.
    fn written(&self) -> String {
        String::new()
    }

    /// Checks its numbers.
    ///
    /// # Errors
    /// SC0103 for one that is out of its range.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The loss of each example, as numbers that add up to it; `None` without labels of its kind.
    ///
    /// # Shapes
    /// outputs [B, C], B labels → [B, C] or [B, 1]
    fn rows(&self, outputs: Tensor<2>, labels: &Labels) -> Option<Tensor<2>>;

    /// Whether it wants numbers instead of classes.
    fn is_regression(&self) -> bool {
        false
    }

    /// Whether the labels of its two classes may be −1 and 1 too.
    fn takes_signs(&self) -> bool {
        false
    }

    /// Whether the outputs are logits; `None` where there is no such choice.
    fn takes_logits(&self) -> Option<bool> {
        None
    }

    /// Where one output decides between two classes: the value above which it is class 1.
    fn threshold(&self) -> Option<f64> {
        None
    }

    /// Whether it compares the examples of a batch, or the texts of an example, by vectors.
    fn compares_examples(&self) -> bool {
        false
    }

    /// Whether the loss of an example depends on the other examples of its batch.
    fn needs_several(&self) -> bool {
        false
    }

    /// The fewest texts of an example, where it compares them.
    fn min_texts(&self) -> usize {
        2
    }

    /// How much it smooths labels, if it is a cross-entropy of classes from logits: one launch each way on a GPU.
    fn launched(&self) -> Option<f64> {
        None
    }
}

/// A loss that a text names.
pub(super) trait Named: Sized {
    /// The text, as in the table of `stratoscope_diagnostics`: `huber`. Other spellings are resolved there.
    const TEXT: &'static str;

    /// With Keras's defaults, but that a cross-entropy or a divergence takes logits.
    fn named() -> Self;
}

/// How `from_logits` is written.
pub(super) fn written(from_logits: bool) -> String {
    format!(" {{ from_logits: {from_logits} }}")
}
