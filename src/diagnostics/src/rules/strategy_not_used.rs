//! SC0203 `strategy-not-used`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A loop that computes on replica 0 although the model has several replicas.
#[derive(Clone, Debug)]
pub struct StrategyNotUsed {
    /// Replicas of the model.
    pub replicas: usize,
    /// The device of replica 0.
    pub device: String,
}

impl Rule for StrategyNotUsed {
    const PAGE: RulePage = RulePage {
        code: "SC0203",
        name: "strategy-not-used",
        severity: Severity::Note,
        stage: Stage::Training,
        finds: "Four calls of `model.with_network` in one cell, on a model with several replicas, with no call \
                between them that uses all replicas. `with_network` lends the network of replica 0.",
        why: "A model inside a scope does not make a loop distributed: a call on one copy runs on one device, and \
              the other devices wait. `fit!`, `evaluate!`, `predict` and `model.gradients` split the batch over all \
              replicas.",
        bad: "for batch in train.tokenize(&model.tokenizer(), 64)?.batch(8)? {\n    \
              model.with_network(|network| network.logits(&batch, Mode::Eval, &device)); // replica 0, every time\n}",
        good: "for index in 0..4 {\n    \
               println!(\"{}\", model.gradients(&train.skip(8 * index).take(8))?); // each replica has 4 of the 8\n}",
        tensorflow: tensorflow::page("SC0203"),
    };

    const GIVEN: &'static [&'static str] = &[
        "let strategy = MirroredStrategy::logical(2)?;",
        "scope!(strategy, {\n    let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
        "let train = train.take(32);\nlet device = Device::flex().autodiff();",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let Self { replicas, device } = self;
        let others = text::count(replicas - 1, "other replica");
        Self::start(format!(
            "the loop runs on replica 0 alone: {others} did nothing"
        ))
        .label(
            Place::call("with_network"),
            "lends the network of replica 0",
        )
        .why("a scope places variables; only calls that split a batch run on all replicas")
        .evidence("replicas", replicas.to_string())
        .evidence("used", format!("replica 0 on {device}"))
        .fix("let `fit!` run the steps, or take `model.gradients(&batch)?`, which splits the batch")
        .tensorflow(Quote::of("SC0203"))
    }
}
