//! Numbers of arguments that count something.

use stratoscope_diagnostics::Result;

use crate::count::Count;

/// The number of an argument that counts something, or its default.
pub fn size(given: Option<Count>, default: usize, call: &str, argument: &str) -> Result<usize> {
    Ok(optional_size(given, call, argument)?.unwrap_or(default))
}

/// The number of an argument that counts something, if it was given.
pub(crate) fn optional_size(
    given: Option<Count>,
    call: &str,
    argument: &str,
) -> Result<Option<usize>> {
    let checked = |count: Count| {
        let number = count.checked(call, argument)?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    };
    given.map(checked).transpose()
}
