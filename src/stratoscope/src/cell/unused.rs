//! Results of ours that a statement of a cell drops; the kernel writes these calls into its text (`rewrite/unhandled.rs`
//! of `cell-text`). A call of the DSL is known by its name. Of any other call only the compiler knows whether it returns a
//! result of ours: it takes [`Ours`] for one, and [`Other`] for all other types, whose method needs one reference more.

use std::convert::Infallible;

use stratoscope_diagnostics::{Diagnostic, raise, unhandled};

/// The running statement, or this thread, asks a `Result` what it is: its errors were looked at.
pub fn looks() {
    unhandled::look();
}

/// Ends the cell with the error of a call of the DSL whose result a closure or a function drops.
pub fn dropped<T>(result: Result<T, Box<Diagnostic>>) {
    if let Err(error) = result {
        end(error);
    }
}

/// On the thread of the cell the call ends as an exception would. Another thread goes on, and the cell fails behind the
/// statement that runs.
#[inline(never)]
fn end(error: Box<Diagnostic>) {
    if super::STATEMENT.get().is_some() && !std::thread::panicking() {
        raise(error);
    }
    unhandled::report(&error);
}

/// A value that is about to be dropped, or shown.
#[derive(Debug)]
pub struct Unused<'a, T: ?Sized>(pub &'a T);

/// What becomes of a result of ours.
pub trait Ours {
    /// Its error, for the `?` of the cell.
    ///
    /// # Errors
    /// The error of the result.
    fn ends(&self) -> Result<(), Box<Diagnostic>>;

    /// Ends the cell with its error, where a `?` is not the cell's.
    fn raises(&self);

    /// Lets the cell fail at its end. Whether it does.
    fn fails(&self) -> bool;
}

impl<T> Ours for Unused<'_, Result<T, Box<Diagnostic>>> {
    fn ends(&self) -> Result<(), Box<Diagnostic>> {
        match self.0 {
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        }
    }

    fn raises(&self) {
        if let Err(error) = self.0 {
            end(error.clone());
        }
    }

    fn fails(&self) -> bool {
        match self.0 {
            Ok(_) => false,
            Err(error) => {
                fail(error);
                true
            }
        }
    }
}

/// The error is the cell's: no other is reported.
#[inline(never)]
fn fail(error: &Diagnostic) {
    super::failed(error);
    unhandled::begin_cell();
}

/// What becomes of all other values: nothing.
pub trait Other {
    /// Never an error.
    ///
    /// # Errors
    /// Never.
    fn ends(&self) -> Result<(), Infallible> {
        Ok(())
    }

    /// Nothing.
    fn raises(&self) {}

    /// Never.
    fn fails(&self) -> bool {
        false
    }
}

impl<T: ?Sized> Other for &Unused<'_, T> {}

/// The diagnostic of a panic, with what an `.expect(…)` or a `panic!` says beside it.
pub(super) fn with_words(diagnostic: Box<Diagnostic>, message: &str) -> Box<Diagnostic> {
    const UNWRAP: &str = "called `Result::unwrap()` on an `Err` value";
    let text = diagnostic.to_string();
    let words = message.strip_suffix(text.as_str()).unwrap_or(message);
    match words.trim_end_matches([' ', ':']) {
        "" | UNWRAP => diagnostic,
        words => Box::new(diagnostic.evidence("panic", words)),
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::{Severity, take_raised};

    use super::*;

    fn failing() -> Result<u8, Box<Diagnostic>> {
        let error = Diagnostic::new("SC0000", Severity::Error, "no");
        Err(Box::new(error))
    }

    #[test]
    #[allow(
        clippy::needless_borrow,
        reason = "`Other` needs it, and cells write it always"
    )]
    fn only_results_of_ours_are_errors() {
        assert!((&Unused(&failing())).ends().is_err());
        let good: Result<u8, Box<Diagnostic>> = Ok(1);
        assert!((&Unused(&good)).ends().is_ok());
        let other: Result<u8, String> = Err("no".to_owned());
        assert!((&Unused(&other)).ends().is_ok());
        assert!((&Unused(&1)).ends().is_ok());
        assert!(!(&Unused("text")).fails());
    }

    #[test]
    fn elsewhere_an_error_ends_the_call() {
        dropped(Ok::<u8, Box<Diagnostic>>(1));
        super::super::begin(1);
        super::super::at(1, 1).expect("nothing was dropped");
        let panic = std::panic::catch_unwind(|| dropped(failing()));
        assert!(panic.is_err());
        let found = super::super::PANIC.take().and_then(|it| it.diagnostic);
        let found = found.or_else(take_raised).expect("it was raised");
        assert_eq!(found.code, "SC0000");
        std::thread::spawn(|| dropped(failing()))
            .join()
            .expect("the thread goes on");
        assert!(super::super::at(2, 2).is_err());
    }

    #[test]
    fn the_words_of_an_expect_stand_on_the_card() {
        let words = |message: &str| {
            let Err(error) = failing() else {
                unreachable!()
            };
            let found = with_words(error, message);
            found.evidence.first().map(|it| it.value.clone())
        };
        assert_eq!(words("SC0000: no"), None);
        assert_eq!(
            words("called `Result::unwrap()` on an `Err` value: SC0000: no"),
            None
        );
        assert_eq!(
            words("it must train: SC0000: no").as_deref(),
            Some("it must train")
        );
    }
}
