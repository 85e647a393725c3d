//! SC0203 `strategy-not-used`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A loop of one's own that computes on one replica although the model has several. Our own calls
/// always use all of them, and what `with_network` is used for is nobody's to see.
#[derive(Clone, Copy, Debug)]
pub struct StrategyNotUsed;

impl Rule for StrategyNotUsed {
    const PAGE: RulePage = RulePage {
        code: "SC0203",
        name: "strategy-not-used",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A loop of one's own over the network of replica 0, which `model.with_network` lends, where a \
                strategy has several replicas.",
        why: "A model inside a scope does not make a loop distributed: what is called on one copy runs on one \
              device, and the others wait. `fit!`, `evaluate!` and `predict` always split the batch over all \
              replicas.",
        bad: "for batch in batches {\n    \
              model.with_network(|network| network.logits(&batch, mode, &device)); // replica 0, every time\n}",
        good: "fit!(model, train, batch_size = 32)?; // each replica has its share of the 32",
        tensorflow: tensorflow::page("SC0203"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("what a loop of one's own does with a network cannot be seen");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("a loop over replica 0's network uses one device of the strategy")
            .why("a scope places variables; what runs on all replicas are the calls that split a batch")
            .fix("let `fit!` run the steps, or split the batch over the replicas")
    }
}
