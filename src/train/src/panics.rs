//! What a panic says.

use std::any::Any;

/// The words of a panic, if it has some.
pub(crate) fn words(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
}

/// Their first line.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> &str {
    let first = words(panic).and_then(|words| words.lines().next());
    first.unwrap_or("without a word")
}
