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

/// Notes the diagnostic that a panic's message is made of, as `.unwrap()` does: the standard library formats the message
/// before it calls the hook.
pub(crate) fn note(diagnostic: &Diagnostic) {
    RAISED.with_borrow_mut(|raised| {
        raised.get_or_insert_with(|| Box::new(diagnostic.clone()));
    });
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

    #[test]
    #[allow(clippy::unnecessary_literal_unwrap)]
    fn an_unwrap_has_the_diagnostic_for_its_cause_and_one_line_for_its_message() {
        let error = Diagnostic::new("SC0000", Severity::Error, "no").why("a long story");
        let result: Result<(), _> = Err(Box::new(error));
        let panic = std::panic::catch_unwind(|| result.unwrap()).expect_err("it panics");
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let expected = "called `Result::unwrap()` on an `Err` value: SC0000: no";
        assert_eq!(text, Some(expected));
        let raised = take_raised().expect("it was noted");
        assert_eq!(raised.why, ["a long story"]);
    }
}
