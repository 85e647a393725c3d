//! SC0625 `heads-not-divided`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Attention heads that devices cannot have as a whole.
#[derive(Clone, Debug)]
pub struct HeadsNotDivided {
    /// What users call the model.
    pub model: String,
    /// Attention heads of a layer.
    pub heads: usize,
    /// Devices that divide them.
    pub devices: usize,
}

impl HeadsNotDivided {
    /// The numbers of devices from 2 on that divide the heads.
    fn divisors(&self) -> Vec<String> {
        let numbers = (2..=self.heads).filter(|count| self.heads.is_multiple_of(*count));
        numbers.map(|count| count.to_string()).collect()
    }

    /// The largest number of devices up to the given one that divides the heads; at least 2.
    fn fewer(&self) -> Option<usize> {
        let divides = |count: &usize| self.heads.is_multiple_of(*count);
        (2..=self.devices.min(self.heads)).rev().find(divides)
    }
}

impl Rule for HeadsNotDivided {
    const PAGE: RulePage = RulePage {
        code: "SC0625",
        name: "heads-not-divided",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A `ModelParallel` over a number of devices that does not divide the attention heads of the model: a slice of query, \
                key and value would end within a head.",
        why: "A head computes the scores of its own queries and keys, all of whose numbers it needs. Two devices with a part of \
              a head each would compute other scores. A program that cuts there and gathers the parts afterwards is right, but \
              each layer sends more than it would without any cut.",
        bad: "let parallel = ModelParallel::logical(8)?;\n\
              scope!(parallel, {\n    \
                  let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              });",
        good: "let parallel = ModelParallel::logical(4)?;\n\
               scope!(parallel, {\n    \
                   let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               });",
        tensorflow: "Keras divides the columns of a kernel by the size of the mesh's axis and knows no heads.",
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            model,
            heads,
            devices,
        } = self;
        let found = Self::start(format!(
            "the {heads} attention heads of `{model}` are not divisible among {devices} devices"
        ))
        .label(
            Place::call("from_pretrained"),
            format!("{heads} heads in each layer"),
        )
        .why("a slice would end within a head, whose scores need all numbers of its queries and keys");
        let found = match self.fewer() {
            Some(fewer) => found.fix(format!("make the strategy with {fewer} devices")),
            None => found,
        };
        match self.divisors().as_slice() {
            [] => found.fix("build the model on one device, outside of the scope"),
            all => found.evidence("numbers of devices that fit", all.join(", ")),
        }
    }
}
