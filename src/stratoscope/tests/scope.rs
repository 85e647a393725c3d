//! `scope!` in a plain program: statements leak their variables, a value is a value, and a failure
//! leaves the scope.

use stratoscope::prelude::*;
use stratoscope::strategy::scope::depth;

#[test]
fn statements_leave_their_variables_and_values_are_values() -> stratoscope::diagnostics::Result<()>
{
    let strategy = MirroredStrategy::logical(2)?;
    scope!(strategy, {
        let inside = depth();
        scope!(strategy, {
            let deeper = depth();
        });
    });
    assert_eq!((inside, deeper, depth()), (1, 2, 0));
    let value = scope!(strategy, { depth() + 10 });
    assert_eq!((value, depth()), (11, 0));
    Ok(())
}

#[test]
fn a_failure_leaves_the_scope() -> stratoscope::diagnostics::Result<()> {
    let strategy = MirroredStrategy::logical(2)?;
    let fails = || -> stratoscope::diagnostics::Result<()> {
        scope!(strategy, {
            stratoscope::data::Dataset::tsv("/no/such/file")?;
        });
        Ok(())
    };
    assert!(fails().is_err());
    assert_eq!(depth(), 0);
    Ok(())
}
