//! Panics of rust-analyzer. It is asked about texts that are being typed, and a panic of its own costs an answer, neither
//! the evaluator nor its variables.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
}

/// The result of `work`. `None` if it panics; then nothing is printed.
pub fn silenced<T>(work: impl FnOnce() -> T) -> Option<T> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_SILENT.get() {
                report(panic);
            }
        }));
    });
    let before = IS_SILENT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_SILENT.set(before);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_answer_and_those_around_it_are_reported() {
        assert_eq!(silenced(|| 1), Some(1));
        assert_eq!(
            silenced(|| silenced(|| panic!("not printed")) == Some(1)),
            Some(false)
        );
        assert!(!IS_SILENT.get());
    }
}
