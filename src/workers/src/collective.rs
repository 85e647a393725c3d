//! Operations in which all members of a group take part.

use crate::fault::Outcome;
use crate::precision::Precision;

/// A group of processes in a fixed order, and what they do together. Every member calls the same operations in the same
/// order; `step` numbers them, and must be the same at all members.
pub trait Collective: Send {
    /// The place of this process in the order, from 0.
    fn position(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// The sum of all values of all members, added one after the other in the order of the members, and of each member's
    /// values in their order: `((v0 + v1) + v2) + …`, element by element. So the result has the same bits however the
    /// values are divided over processes. The first of `values` becomes the sum; the others keep their elements. With
    /// [`Precision::Bfloat16`] values and sums are rounded as that says.
    ///
    /// # Errors
    /// A member is gone, silent or in another step, or the operation was aborted; then the first of `values` holds
    /// nothing of use, and the group must be formed anew.
    fn all_reduce(
        &mut self,
        step: u64,
        values: &mut [Vec<f32>],
        precision: Precision,
    ) -> Outcome<()>;

    /// Every member gets the values of the first one.
    ///
    /// # Errors
    /// As [`Self::all_reduce`].
    fn broadcast(&mut self, step: u64, values: &mut [f32]) -> Outcome<()>;

    /// The values of the other members, at the first member, in their order; nothing elsewhere. The first member's own are
    /// not used.
    ///
    /// # Errors
    /// As [`Self::all_reduce`].
    fn gather(&mut self, step: u64, own: &[f32]) -> Outcome<Vec<Vec<f32>>>;

    /// Returns when every member has called it.
    ///
    /// # Errors
    /// As [`Self::all_reduce`].
    fn barrier(&mut self, step: u64) -> Outcome<()>;

    /// The bytes that this process has sent in the group.
    fn bytes_sent(&self) -> u64;

    /// Ends what is going on here at once, and everything after it: the neighbors notice. The same from another thread is
    /// an [`Aborter`](crate::chain::Aborter).
    fn abort(&self);
}
