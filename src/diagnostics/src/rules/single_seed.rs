//! SC0516 `one-seed`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A result on few examples, from one seed. How far others would be from it takes several runs to know.
#[derive(Clone, Copy, Debug)]
pub struct OneSeed;

impl Rule for OneSeed {
    const PAGE: RulePage = RulePage {
        code: "SC0516",
        name: "one-seed",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A comparison of two runs on a few hundred examples, each with a single seed.",
        why: "BERT's head starts from random numbers and the order of the examples is random too. On 408 \
              validation pairs (MRPC's) one point of accuracy is 4 pairs, less than two seeds usually \
              differ by: what looks like a better setting may be a luckier seed.",
        bad: "fit!(model, train, epochs = 3)?;\nevaluate!(model, dev)?; // 0.86, and that is all",
        good: "for seed in 0..5 {\n    fit!(model, train, epochs = 3, seed = seed)?;\n    \
               println!(\"{}\", evaluate!(model, dev)?);\n}",
        tensorflow: tensorflow::page("SC0516"),
    };

    const NOT_RUN: Option<&'static str> = Some("they train five times over");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("one seed on few examples: another one may differ by more than the settings do")
            .why("head and order are random; on 408 examples one point of accuracy is 4 examples")
            .fix("train with several seeds and compare the means")
    }
}
