//! SC0624 `network-not-in-stages`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A network that a pipeline cannot divide.
#[derive(Clone, Debug)]
pub enum NetworkNotInStages {
    /// It has no encoder layers.
    WithoutLayers,
    /// It is no chain of layers that can be computed one by one.
    NoChain {
        /// What users call the model.
        model: String,
    },
    /// Its decoder is a table of the first stage.
    TiedDecoder {
        /// What users call the model.
        model: String,
    },
    /// All its layers read a table of distances.
    SharedTable {
        /// What users call the model.
        model: String,
    },
    /// All its layers are one layer.
    SharedLayers {
        /// What users call the model.
        model: String,
    },
    /// Two stages have the same variable.
    Tied {
        /// Its name at its second place.
        variable: String,
        /// The stages.
        stages: (usize, usize),
    },
}

impl Rule for NetworkNotInStages {
    const PAGE: RulePage = RulePage {
        code: "SC0624",
        name: "network-not-in-stages",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A model that a `PipelineStrategy` cannot divide: one that is no chain of embeddings, encoder layers and a head \
                (a `Sequential`, a custom network), or one of which two stages need the same variable. \
                `BertForMaskedLM` is of the second kind, since its decoder is the table of word embeddings, and so are MPNet and \
                DeBERTa, whose layers all read one table of distances, and ALBERT, whose layers share their weights.",
        why: "A stage computes its layers from the output of the stage before, and each variable lives on one stage. A variable of \
              two stages would need a copy on both, and a sum of its gradients at each step.",
        bad: "scope!(pipeline, {\n    \
                  let dense = Sequential([Dense(8).input_shape(4), Dense(3)])?;\n\
              });",
        good: "scope!(pipeline, {\n    \
                   let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               });",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &["let pipeline = PipelineStrategy::logical(2)?;"];

    fn diagnostic(&self) -> Diagnostic {
        let (message, label, why) = match self {
            Self::WithoutLayers => (
                "the network has no encoder layers that the stages of a pipeline could divide".to_owned(),
                "made under a pipeline",
                "a pipeline divides the encoder layers of a BERT".to_owned(),
            ),
            Self::NoChain { model } => (
                format!("`{model}` is no chain of encoder layers, which the stages of a pipeline divide"),
                "made under a pipeline",
                "a stage computes its layers from the output of the stage before; how to do that is known for the BERT models"
                    .to_owned(),
            ),
            Self::TiedDecoder { model } => (
                format!("`{model}` needs its word embeddings on the first and on the last stage"),
                "its decoder is the table of word embeddings",
                "each variable lives on one stage, with its gradient and its moments".to_owned(),
            ),
            Self::SharedTable { model } => (
                format!("all layers of `{model}` read one table of distances, which each stage would need"),
                "an MPNet or a DeBERTa, made under a pipeline",
                "each variable lives on one stage, with its gradient and its moments".to_owned(),
            ),
            Self::SharedLayers { model } => (
                format!("all layers of `{model}` share their weights, which each stage would need"),
                "an ALBERT, made under a pipeline",
                "each variable lives on one stage, with its gradient and its moments".to_owned(),
            ),
            Self::Tied { variable, stages } => (
                format!(
                    "`{variable}` is used on stage {} and on stage {} of the pipeline",
                    stages.0, stages.1
                ),
                "its network has a variable at two places",
                "each variable lives on one stage, with its gradient and its moments".to_owned(),
            ),
        };
        let place = match self {
            Self::NoChain { model } if model == "Sequential" => Place::call("Sequential"),
            _ => Place::call("from_pretrained"),
        };
        Self::start(message)
            .label(place, label)
            .why(why)
            .fix("`MirroredStrategy::logical(2)?.shard(Shard::Parameters)?` divides the variables of any network by rows")
            .fix("or build the model on one device, outside of the scope")
    }
}
