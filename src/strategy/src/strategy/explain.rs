//! [`StepInWords`]: what an optimizer step under a strategy does, in a paragraph and in bytes.

use std::fmt;

use stratoscope_render::html::{NOTE_STYLE, TITLE_STYLE, escape};
use stratoscope_render::{text, units};

use super::distribution::Storing;
use super::workers::{html_of, text_of};
use super::{Shard, Strategy};

/// The weights of BERT-base in float32, 109.5 million of them: the example of the table.
pub(super) const EXAMPLE: f64 = 109.5e6 * 4.0;
/// Its activations between two layers for a batch of 32 × 128 tokens, in float32.
pub(super) const EXAMPLE_ACTIVATIONS: f64 = 32.0 * 128.0 * 768.0 * 4.0;

/// What an optimizer step under a strategy does, and what it needs, for weights of P bytes and an optimizer with two moments
/// such as Adam.
#[derive(Clone, Debug, PartialEq)]
pub struct StepInWords {
    title: String,
    sentence: String,
    rows: Vec<Row>,
}

/// A number of bytes as a multiple of P, with its formula.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    what: &'static str,
    formula: String,
    /// In P.
    factor: f64,
}

impl Row {
    /// The bytes `factor` · P, by a formula.
    pub(crate) fn new(what: &'static str, formula: impl Into<String>, factor: f64) -> Self {
        let formula = formula.into();
        Self {
            what,
            formula,
            factor,
        }
    }
}

impl Strategy {
    /// What an optimizer step does under this strategy.
    pub fn explain(&self) -> StepInWords {
        let sentence = match self.shard() {
            Some(shard) => of_shards(shard, self.replicas().len()),
            None => self.distribution().step(self),
        };
        StepInWords {
            title: format!(
                "an optimizer step of `{}`, {}",
                self.label(),
                self.devices_in_words()
            ),
            sentence,
            rows: self.bytes_of_a_step(),
        }
    }

    fn bytes_of_a_step(&self) -> Vec<Row> {
        if let Some(rows) = self.distribution().bytes(self) {
            return rows;
        }
        let count = self.replicas().len();
        let replicas = count as f64;
        let around = (replicas - 1.0) / replicas;
        let piece = |factor: f64, symbol: &str| (format!("{symbol}P / {count}"), factor / replicas);
        let whole = |factor: f64, symbol: &str| (format!("{symbol}P"), factor);
        let divided = |from: Shard, factor: f64, symbol: &str| match self.shard() >= Some(from) {
            true => piece(factor, symbol),
            false => whole(factor, symbol),
        };
        let row = |what, (formula, factor): (String, f64)| Row::new(what, formula, factor);
        let sent = |times: f64| match count {
            1 => ("0".to_owned(), 0.0),
            _ => (
                format!("{times} · {}/{count} · P", count - 1),
                times * around,
            ),
        };
        let kept = |weights| {
            vec![
                row("weights, on each replica", weights),
                row(
                    "gradients, until the update",
                    divided(Shard::Gradients, 1.0, ""),
                ),
                row("moments", divided(Shard::Optimizer, 2.0, "2 ")),
            ]
        };
        match (self.storing(), self.shard()) {
            (Storing::Once, _) => vec![
                row("weights, in one place", whole(1.0, "")),
                row("moments, there too", whole(2.0, "2 ")),
                row("weights, on each replica while it computes", whole(1.0, "")),
                row("gradients, on each replica", whole(1.0, "")),
                row("fetched by each replica, and sent back", whole(2.0, "2 ")),
            ],
            (_, shard) => {
                let mut rows = kept(divided(Shard::Parameters, 1.0, ""));
                let times = match shard {
                    None | Some(Shard::Gradients) => 2.0,
                    Some(Shard::Optimizer | Shard::Parameters) => 3.0,
                };
                rows.push(row("sent by a replica, on average", sent(times)));
                rows
            }
        }
    }
}

/// A step of replicas that have copies of all weights.
pub(super) fn all_reduced(strategy: &Strategy) -> String {
    format!(
        "Each of {} has a copy of all weights and computes its share of the batch forward and backward. An \
         all-reduce ({}) gives each of them the mean of all gradients; each makes the same update.",
        text::count(strategy.replicas().len(), "replica"),
        strategy.cross_device_ops().title(),
    )
}

fn of_shards(shard: Shard, replicas: usize) -> String {
    let each = text::count(replicas, "replica");
    match shard {
        Shard::Optimizer => format!(
            "Each of {each} has a copy of all weights and computes its share of the batch. An all-reduce gives each of them \
             the mean of all gradients. A replica keeps the moments of 1/{replicas} of the rows of each variable, updates \
             these, and sends them to all others (all-gather).",
        ),
        Shard::Gradients => format!(
            "Each of {each} has a copy of all weights and computes its share of the batch. A reduce-scatter gives each of \
             them the mean gradient of 1/{replicas} of the rows of each variable. It keeps their moments, updates these \
             rows, and sends them to all others (all-gather).",
        ),
        Shard::Parameters => format!(
            "Each of {each} keeps 1/{replicas} of the rows of each variable, with their moments. Before a layer computes, \
             forward and again backward, a replica gathers its other rows (all-gather) and drops them afterwards; the layer is \
             computed once more in the backward pass, from its input. A reduce-scatter gives each replica the mean gradient of \
             its rows, and it updates these.",
        ),
    }
}

impl StepInWords {
    fn table(&self) -> Vec<Vec<String>> {
        let heads = ["", "for weights of P bytes", "BERT-base"].map(str::to_owned);
        let row = |row: &Row| {
            let bytes = units::bytes((row.factor * EXAMPLE) as u64);
            vec![row.what.to_owned(), row.formula.clone(), bytes]
        };
        std::iter::once(heads.to_vec())
            .chain(self.rows.iter().map(row))
            .collect()
    }

    /// As HTML.
    pub fn to_html(&self) -> String {
        format!(
            "<div style=\"{TITLE_STYLE}\">{}</div><div style=\"{NOTE_STYLE}\">{}</div>{}",
            escape(&self.title),
            escape(&self.sentence),
            html_of(&self.table()),
        )
    }

    /// As text.
    pub fn to_plain(&self) -> String {
        let sentence = text::wrap(&self.sentence, 80).join("\n");
        let title = text::wrap(&self.title, 80).join("\n");
        format!("{title}\n{sentence}\n\n{}", text_of(&self.table()))
    }
}

impl fmt::Display for StepInWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AsStrategy, CentralStorageStrategy, DeviceMesh, MirroredStrategy, ModelParallel,
        OneDeviceStrategy, ParameterServerStrategy, PipelineStrategy, TpuStrategy, cpu,
    };

    fn mirrored(shard: Option<Shard>) -> StepInWords {
        let strategy = MirroredStrategy::logical(4).expect("logical devices");
        match shard {
            Some(shard) => strategy.shard(shard).expect("four replicas").explain(),
            None => strategy.explain(),
        }
    }

    /// The numbers of table 1 and of section 7 of the paper, for R = 4.
    #[test]
    fn the_bytes_are_those_of_the_paper() {
        let factors =
            |shard| -> Vec<f64> { mirrored(shard).rows.iter().map(|row| row.factor).collect() };
        assert_eq!(factors(None), [1.0, 1.0, 2.0, 1.5]);
        assert_eq!(factors(Some(Shard::Optimizer)), [1.0, 1.0, 0.5, 2.25]);
        assert_eq!(factors(Some(Shard::Gradients)), [1.0, 0.25, 0.5, 1.5]);
        assert_eq!(factors(Some(Shard::Parameters)), [0.25, 0.25, 0.5, 2.25]);
    }

    #[test]
    fn every_strategy_has_words() {
        let mesh = DeviceMesh::logical([2, 2], ["batch", "model"]).expect("devices");
        let all: Vec<Strategy> = vec![
            OneDeviceStrategy::new(cpu(0))
                .expect("a processor")
                .strategy(),
            CentralStorageStrategy::logical(2)
                .expect("devices")
                .strategy(),
            ParameterServerStrategy::logical(2, 1)
                .expect("devices")
                .strategy(),
            ParameterServerStrategy::logical(2, 1)
                .expect("devices")
                .synchronous()
                .strategy(),
            TpuStrategy::simulated().expect("cores").strategy(),
            PipelineStrategy::logical(3).expect("devices").strategy(),
            ModelParallel::logical(3).expect("devices").strategy(),
            ModelParallel::over(&mesh).expect("two axes").strategy(),
            PipelineStrategy::over(&mesh).expect("two axes").strategy(),
        ];
        for strategy in all {
            let words = strategy.explain().to_plain();
            assert!(
                words.lines().all(|line| line.chars().count() <= 100),
                "{words}"
            );
            assert!(
                words.contains("weights") && words.contains("BERT-base"),
                "{words}"
            );
        }
        let words = ModelParallel::over(&mesh).expect("two axes").explain();
        let factors: Vec<f64> = words.rows.iter().map(|row| row.factor).collect();
        // Those of one replica, but for half the activations, and the gradients of mirrored training.
        let alone = ModelParallel::logical(2).expect("devices").explain();
        let alone: Vec<f64> = alone.rows.iter().map(|row| row.factor).collect();
        assert_eq!(factors[..4], alone[..4]);
        assert_eq!(factors[4..], [alone[4] / 2.0, 1.0]);
        let words = PipelineStrategy::over(&mesh).expect("two axes").explain();
        let factors: Vec<f64> = words.rows.iter().map(|row| row.factor).collect();
        let alone = PipelineStrategy::logical(2).expect("devices").explain();
        let alone: Vec<f64> = alone.rows.iter().map(|row| row.factor).collect();
        assert_eq!(factors[..3], alone[..3]);
        assert_eq!(factors[3..], [alone[3] / 2.0, 1.0]);
        assert!(words.sentence.contains("all-reduce (centralized)"));
        let html = mirrored(Some(Shard::Parameters)).to_html();
        assert!(
            html.contains("3 · 3/4 · P") && html.contains("ZeRO-3"),
            "{html}"
        );
    }
}
