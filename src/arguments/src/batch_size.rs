//! `batch_size` of `fit!`: a number, or [`auto`].

use stratoscope_diagnostics::rules::ConflictingArguments;
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};

use super::{Count, DEFAULT_BATCH_SIZE, IntoCount};

/// A batch size that is chosen by the memory that is free: [`auto`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auto(Count);

/// `batch_size = auto(32)`: a global batch of 32 examples, computed in the largest parts that fit, whose gradients are
/// added up. `batch_size = auto`, without a number, is the largest power of two that fits and leaves an epoch 32
/// batches, 256 at most.
pub fn auto(examples: usize) -> Auto {
    Auto(examples.into_count())
}

/// A batch size as written.
#[derive(Clone, Copy, Debug)]
pub enum BatchSize {
    /// So many examples.
    Given(Count),
    /// So many examples, in parts that fit.
    Parts(Count),
    /// What fits.
    Any,
}

/// What `batch_size` takes: a number, `auto(32)` or `auto`.
#[diagnostic::on_unimplemented(
    message = "expected a batch size, got `{Self}`",
    label = "a whole number such as 32, `auto(32)` for 32 in parts that fit, or `auto`"
)]
pub trait IntoBatchSize {
    /// The batch size as written.
    fn into_batch_size(self) -> BatchSize;
}

macro_rules! numbers {
    ($($integer:ty),*) => {$(
        impl IntoBatchSize for $integer {
            fn into_batch_size(self) -> BatchSize {
                BatchSize::Given(self.into_count())
            }
        }
    )*};
}

numbers!(
    i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize
);

impl IntoBatchSize for Auto {
    fn into_batch_size(self) -> BatchSize {
        BatchSize::Parts(self.0)
    }
}

/// The function [`auto`] itself.
impl<F: Fn(usize) -> Auto> IntoBatchSize for F {
    fn into_batch_size(self) -> BatchSize {
        BatchSize::Any
    }
}

/// How the batches of a run are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// As they were written.
    Given,
    /// The parts of a batch of the size that was written.
    Parts,
    /// The size; until the data is known it is the default.
    Any,
}

/// The batch size, as far as it is known, and what is still to be chosen.
///
/// # Errors
/// SC0103 for a number below 1.
pub(super) fn resolve(written: Option<BatchSize>) -> Result<(usize, Choice)> {
    let size = |count: Count| -> Result<usize> {
        let number = count.checked("fit", "batch_size")?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    };
    Ok(match written {
        None => (DEFAULT_BATCH_SIZE, Choice::Given),
        Some(BatchSize::Given(count)) => (size(count)?, Choice::Given),
        Some(BatchSize::Parts(count)) => (size(count)?, Choice::Parts),
        Some(BatchSize::Any) => (DEFAULT_BATCH_SIZE, Choice::Any),
    })
}

/// Arguments that count batches need to know how large they are; each of these is given or not.
///
/// # Errors
/// SC0118 for the first that is given beside `auto`.
pub(super) fn check_counted(choice: Choice, counted: &[(&str, bool)]) -> Result<()> {
    let mut given = counted.iter().filter(|(_, is_given)| *is_given);
    match given.next() {
        Some((argument, _)) if choice == Choice::Any => Err(batches_of_unknown_size(argument)),
        _ => Ok(()),
    }
}

fn batches_of_unknown_size(argument: &str) -> Box<Diagnostic> {
    let rule = ConflictingArguments {
        call: "fit!".to_owned(),
        first: "batch_size".to_owned(),
        first_place: Place::argument("fit", "batch_size"),
        second: argument.to_owned(),
        second_place: Place::argument("fit", argument),
        first_drop: Place::argument("fit", "batch_size"),
        second_drop: Place::argument("fit", argument),
        reason: format!(
            "`{argument}` counts batches, and `auto` chooses their size; `auto(32)` keeps batches of 32"
        ),
        arguments: Vec::new(),
    };
    rule.error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_auto_with_and_without_a_number() {
        let of = |written: BatchSize| resolve(Some(written)).map_err(|finding| finding.code);
        assert_eq!(of(16.into_batch_size()), Ok((16, Choice::Given)));
        assert_eq!(of(16_usize.into_batch_size()), Ok((16, Choice::Given)));
        assert_eq!(of(auto(24).into_batch_size()), Ok((24, Choice::Parts)));
        assert_eq!(of(auto.into_batch_size()), Ok((32, Choice::Any)));
        assert_eq!(of((-1).into_batch_size()), Err("SC0103".to_owned()));
        assert_eq!(of(auto(0).into_batch_size()), Err("SC0103".to_owned()));
    }
}
