//! SC0620 `stages-do-not-fit`.

use stratoscope_render::text;

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Stages of a pipeline that cannot be filled with the layers of a network.
#[derive(Clone, Debug)]
pub struct StagesDoNotFit {
    /// Stages of the strategy.
    pub stages: usize,
    /// Encoder layers of the network.
    pub layers: usize,
    /// The layers of each stage, where they were given.
    pub given: Option<Vec<usize>>,
}

impl StagesDoNotFit {
    /// As even as possible, with the rest on the later stages.
    fn even(&self) -> String {
        let (each, rest) = (self.layers / self.stages, self.layers % self.stages);
        let own = |stage| each + usize::from(stage >= self.stages - rest);
        let own: Vec<String> = (0..self.stages)
            .map(|stage| own(stage).to_string())
            .collect();
        format!("`.stages([{}])?`", own.join(", "))
    }
}

impl Rule for StagesDoNotFit {
    const PAGE: RulePage = RulePage {
        code: "SC0620",
        name: "stages-do-not-fit",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A `PipelineStrategy` with more stages than the network has encoder layers, or with `.stages([…])` whose numbers \
                do not add up to the number of its layers.",
        why: "Each stage computes at least one encoder layer, and each layer is on one stage. A stage without a layer would \
              only pass activations on.",
        bad: "let pipeline = PipelineStrategy::logical(8)?;\n\
              scope!(pipeline, {\n    \
                  let deep = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?; // 6 layers\n\
              });",
        good: "let pipeline = PipelineStrategy::logical(2)?;\n\
               scope!(pipeline, {\n    \
                   let deep = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               });",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let layers = text::count(self.layers, "layer");
        let stages = text::count(self.stages, "stage");
        match &self.given {
            Some(given) => {
                let sum: usize = given.iter().sum();
                let found = Self::start(format!(
                    "the stages have {} in all, and the network has {}",
                    text::count(sum, "layer"),
                    self.layers
                ))
                .label(Place::call("stages"), format!("adds up to {sum}"))
                .why("each encoder layer is on one stage");
                match self.layers >= self.stages {
                    true => found.fix(format!("write {}", self.even())),
                    false => found.fix(format!(
                        "make a pipeline with at most {}",
                        self.stages_at_most()
                    )),
                }
                .fix("leave `.stages(…)` out: the layers are then divided by their cost")
            }
            None => Self::start(format!("a pipeline of {stages} for a network of {layers}"))
                .label(
                    Place::call("from_pretrained"),
                    format!("a network of {layers}"),
                )
                .why("each stage computes at least one encoder layer")
                .fix(format!(
                    "make a pipeline with at most {}",
                    self.stages_at_most()
                )),
        }
    }
}

impl StagesDoNotFit {
    fn stages_at_most(&self) -> String {
        text::count(self.layers, "stage")
    }
}
