//! The message of a caught panic.

use std::any::Any;

/// The message of a panic, if it has one.
pub fn words(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
}

/// The first line of its message.
pub fn panicked(panic: &(dyn Any + Send)) -> &str {
    let first = words(panic).and_then(|words| words.lines().next());
    first.unwrap_or("without a word")
}
