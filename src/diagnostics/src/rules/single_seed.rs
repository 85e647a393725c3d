//! SC0516 `single-seed`.

use stratoscope_render::text;

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// From this number of examples on, the usual difference between two seeds is smaller than the uncertainty from the examples.
const ENOUGH: usize = 2000;

/// Two models compared on few examples, each from one seed. How far others would be from it takes several runs to know.
#[derive(Clone, Copy, Debug)]
pub struct SingleSeed {
    /// The examples on which they are compared.
    pub examples: usize,
}

impl Rule for SingleSeed {
    const PAGE: RulePage = RulePage {
        code: "SC0516",
        name: "single-seed",
        severity: Severity::Note,
        stage: Stage::Comparison,
        finds: "A comparison of two models on fewer than 2000 examples, each trained with a single seed.",
        why: "BERT's head is initialized randomly and the order of the examples is random too. On the 408 validation \
              pairs of MRPC one point of accuracy is 4 pairs. That is less than the usual difference between two \
              seeds, so a setting that looks better may only have a better seed. A test on the examples, such as \
              McNemar's, does not measure this.",
        bad: "let (one, other) = (model.predict(&dev)?, second.predict(&dev)?);\none.difference(&other, &dev)?",
        good: "let runs = over_seeds(0..3, |seed| {\n    \
               let options = LoadOptions::new().num_labels(8).seed(seed);\n    \
               let model = BertForSequenceClassification::from_pretrained_with(\"all-MiniLM-L6-v2\", &options)?;\n    \
               compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true }, \
               metrics = [accuracy()])?;\n    \
               fit!(model, train, seed = seed, verbose = false)?;\n    \
               evaluate!(model, dev, verbose = false)\n})?;\nruns // mean and deviation of each result",
        tensorflow: tensorflow::page("SC0516"),
    };

    const GIVEN: &'static [&'static str] =
        &["let second = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;"];

    fn applies(&self) -> bool {
        self.examples < ENOUGH
    }

    fn diagnostic(&self) -> Diagnostic {
        let examples = text::count(self.examples, "example");
        Self::start(format!("one seed each, on {examples}: another seed may change more than this difference"))
            .why("the head and the order of the examples are random, and a test on the examples does not measure that")
            .fix("train both with several seeds and compare the means: `over_seeds(0..5, |seed| …)?`")
    }
}
