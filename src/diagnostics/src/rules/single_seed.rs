//! SC0516 `single-seed`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A result on few examples, from one seed. How far others would be from it takes several runs to know.
#[derive(Clone, Copy, Debug)]
pub struct SingleSeed;

impl Rule for SingleSeed {
    const PAGE: RulePage = RulePage {
        code: "SC0516",
        name: "single-seed",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A comparison of two runs on a few hundred examples, each with a single seed.",
        why: "BERT's head is initialized randomly and the order of the examples is random too. On the 408 \
              validation pairs of MRPC one point of accuracy is 4 pairs, less than the usual difference between \
              two seeds: a setting that looks better may only have a better seed.",
        bad: "fit!(model, train, epochs = 3)?;\nevaluate!(model, dev)?; // 0.86, and that is all",
        good: "for seed in 0..5 {\n    fit!(model, train, epochs = 3, seed = seed)?;\n    \
               println!(\"{}\", evaluate!(model, dev)?);\n}",
        tensorflow: tensorflow::page("SC0516"),
    };

    const NOT_RUN: Option<&'static str> = Some("the cells train five times");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("one seed on few examples: the difference between seeds may be larger than that between settings")
            .why("the head and the order are random; on 408 examples one point of accuracy is 4 examples")
            .fix("train with several seeds and compare the means")
    }
}
