//! Weights of examples before the first step: whether each is a number that can multiply a loss, and not all of them 0.
//! SC0915.

use stratoscope_data::{Data, is_weight};
use stratoscope_diagnostics::rules::InvalidSize;
use stratoscope_diagnostics::{Place, Result, Rule};

/// # Errors
/// SC0915 for a weight that is negative or not finite, and if all are 0.
pub(super) fn checked(data: Data<'_>, call: &str) -> Result<()> {
    let refused = |what: String, given: String, expects: &str| {
        let rule = InvalidSize {
            what,
            given,
            expects: expects.to_owned(),
            place: Some(Place::Call {
                call: call.to_owned(),
            }),
        };
        Err(rule.error())
    };
    let is_nothing = match data {
        Data::Held(data) => {
            if let Some(example) = data.examples.iter().find(|it| !is_weight(it.weight)) {
                let what = format!("weight of row {}", example.row);
                let expects = "a finite number of 0 or more";
                return refused(what, example.weight.to_string(), expects);
            }
            data.examples.iter().all(|example| example.weight == 0.0)
        }
        // Its rows were checked when it was made.
        Data::Streamed(stream) => stream.weights() == Some((0.0, 0.0)),
    };
    if is_nothing && !data.is_empty() {
        let what = format!("weights of {}", data.source());
        return refused(what, "0 for all".to_owned(), "above 0 for some example");
    }
    Ok(())
}
