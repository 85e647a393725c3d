//! Records of a history are shown as one table, also a single one: `history.epochs`, `history.steps[0]`.

use stratoscope_models::{EpochRecord, ExecutionRecord, Records, StepRecord};
use stratoscope_wire::MimeBundle;

use super::{IntoBundle, html_and_plain};

/// Implements [`IntoBundle`] for a record whose lists are tables.
macro_rules! tables {
    ($($kind:ty => $table:path),+ $(,)?) => {
        $(impl IntoBundle for $kind {
            fn bundle(&self) -> MimeBundle {
                Self::bundle_of_list(std::slice::from_ref(self))
            }

            fn bundle_of_list(items: &[Self]) -> MimeBundle {
                table(&$table(items))
            }
        })+
    };
}

tables!(
    EpochRecord => Records::of_epochs,
    StepRecord => Records::of_steps,
    ExecutionRecord => Records::of_executions,
);

fn table(records: &Records) -> MimeBundle {
    html_and_plain(records.to_html(), records.to_plain())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_one_table() {
        let step = |step| StepRecord {
            step,
            loss: 0.5,
            learning_rate: 1e-3,
        };
        let bundle = vec![step(1), step(2)].bundle();
        assert_eq!(
            bundle["text/plain"],
            "step    loss     rate\n   1  0.5000  1.00e-3\n   2  0.5000  1.00e-3"
        );
        assert_eq!(step(1).bundle().len(), 2);
    }
}
