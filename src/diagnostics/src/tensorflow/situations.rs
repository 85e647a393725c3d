//! What each version does where a rule speaks, and how a card and the rule's page put it.

mod calls;
mod models;
mod runs;

/// What a version does in a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Continues without a message.
    Silent,
    /// Continues with a warning or a log line.
    Warns,
    /// Raises in this call.
    Raises,
    /// Continues here and raises in a later call, such as `fit` after `compile`.
    RaisesLater,
    /// Depends on the value, the device or the kind of model, as the text says.
    Depends,
    /// Has no such situation, or was not tested: the text makes no claim.
    Nothing,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The rule.
    pub code: &'static str,
    /// Which situation of the rule; empty where it has one only.
    pub case: &'static str,
    /// TensorFlow 2.3, 2.4 to 2.6, tf_keras 2.18, Keras 3.
    pub does: [Does; 4],
    /// The sentence of the card, to follow "In TensorFlow". `{name}` stands for a fact of the card.
    pub card: &'static str,
    /// The paragraph of the page; empty in all but one row of a rule.
    pub page: &'static str,
}

const fn row(
    code: &'static str,
    case: &'static str,
    does: [Does; 4],
    card: &'static str,
    page: &'static str,
) -> Situation {
    Situation {
        code,
        case,
        does,
        card,
        page,
    }
}

const SILENT: [Does; 4] = [Does::Silent; 4];
const SAYS_NOTHING: &str = "no message";
const NOTHING_IS_SAID: &str = "There is no message.";

/// Every situation, in the order of the codes.
pub const SITUATIONS: &[&[Situation]] = &[calls::CALLS, models::MODELS, runs::RUNS];
