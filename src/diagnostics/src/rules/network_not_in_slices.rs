//! SC0628 `network-not-in-slices`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A network whose layers cannot be computed in slices.
#[derive(Clone, Debug)]
pub enum NetworkNotInSlices {
    /// It is no BERT.
    Unknown {
        /// What users call the model.
        model: String,
    },
    /// Its layers have adapters.
    Adapters {
        /// What users call the model.
        model: String,
    },
}

impl Rule for NetworkNotInSlices {
    const PAGE: RulePage = RulePage {
        code: "SC0628",
        name: "network-not-in-slices",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A model under `ModelParallel` whose layers several devices cannot compute together: a `Sequential`, a custom network, \
                or a BERT with adapters (`add_lora`).",
        why: "Between the two products of each half of an encoder layer each device computes alone; that is known of BERT's layers. \
              In another network a cut weight would have to be put together before each product, which saves no time and sends all \
              weights in each pass: `Shard::Parameters` does that, for any network. An adapter of a cut layer would have to be \
              cut with it.",
        bad: "let parallel = ModelParallel::logical(2)?;\n\
              scope!(parallel, {\n    \
                  let dense = Sequential([Dense(8).input_shape(4), Dense(3)])?;\n\
              });",
        good: "let sharded = MirroredStrategy::logical(2)?.shard(Shard::Parameters)?;\n\
               scope!(sharded, {\n    \
                   let dense = Sequential([Dense(8).input_shape(4), Dense(3)])?;\n\
               });",
        tensorflow: "Keras cuts the variables of any layer, and the compiler of JAX adds what has to be exchanged.",
    };

    fn diagnostic(&self) -> Diagnostic {
        let (message, label, why) = match self {
            Self::Unknown { model } => (
                format!("the layers of `{model}` cannot be computed in slices"),
                "made under `ModelParallel`",
                "which products of a layer follow each other without an exchange is known of BERT's encoder layers",
            ),
            Self::Adapters { model } => (
                format!("`{model}` has adapters, which cannot be computed in slices"),
                "its weights are cut by `ModelParallel`",
                "an adapter adds to the output of a whole layer, of which each device has a slice",
            ),
        };
        let place = match self {
            Self::Unknown { model } if model == "Sequential" => Place::call("Sequential"),
            Self::Unknown { .. } => Place::call("from_pretrained"),
            Self::Adapters { .. } => Place::call("add_lora"),
        };
        Self::start(message)
            .label(place, label)
            .why(why)
            .fix("`MirroredStrategy::logical(2)?.shard(Shard::Parameters)?` divides the variables of any network by rows")
            .fix("or build the model on one device, outside of the scope")
    }
}
