//! Diagnostics where a signature leaves no room for a `Result`, as that of `history["acc"]`.

use std::cell::RefCell;

use crate::Diagnostic;

thread_local! {
    static RAISED: RefCell<Option<Box<Diagnostic>>> = const { RefCell::new(None) };
}

/// Ends the call: a panic, whose hook can ask for the diagnostic ([`take_raised`]). A notebook shows it as
/// the cell's error; elsewhere the panic's message is its text.
///
/// # Panics
/// Always.
pub fn raise(diagnostic: Box<Diagnostic>) -> ! {
    let text = diagnostic.to_string();
    RAISED.set(Some(diagnostic));
    panic!("{text}")
}

/// The diagnostic of the panic that this thread has just begun, for a panic hook.
pub fn take_raised() -> Option<Box<Diagnostic>> {
    RAISED.take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    #[test]
    fn what_is_raised_is_there_once_and_its_text_is_the_message() {
        let raised = std::panic::catch_unwind(|| {
            raise(Box::new(Diagnostic::new("SC0000", Severity::Error, "no")))
        });
        let panic = raised.expect_err("it never returns");
        let text = panic.downcast_ref::<String>();
        assert!(text.is_some_and(|text| text.contains("SC0000")), "{text:?}");
        assert_eq!(
            take_raised().map(|found| found.code).as_deref(),
            Some("SC0000")
        );
        assert!(take_raised().is_none());
    }
}
