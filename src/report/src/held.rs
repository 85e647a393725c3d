//! How much memory a value holds, for `%vars`.

use std::any::Any;

/// The memory behind a value, beside the value itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// In bytes, on all devices together.
    pub bytes: u64,
    /// The names of the devices; empty for a value in host memory.
    pub devices: Vec<String>,
}

/// Looks into a value of the type that it is registered for.
pub type Look = fn(&dyn Any) -> Option<Held>;
