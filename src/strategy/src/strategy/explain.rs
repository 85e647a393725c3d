//! [`StepInWords`]: what an optimizer step under a strategy does, in a paragraph and in bytes.

use std::fmt;

use stratoscope_render::html::{NOTE_STYLE, TITLE_STYLE, escape};
use stratoscope_render::{text, units};

use super::workers::{html_of, text_of};
use super::{PipelineSchedule, PipelineSettings, Shard, Strategy, StrategyKind, bubble};

/// The weights of BERT-base in float32, 109.5 million of them: the example of the table.
const EXAMPLE: f64 = 109.5e6 * 4.0;
/// Its activations between two layers for a batch of 32 × 128 tokens, in float32.
const EXAMPLE_ACTIVATIONS: f64 = 32.0 * 128.0 * 768.0 * 4.0;
/// Its encoder layers.
const EXAMPLE_LAYERS: u32 = 12;
/// The share of its weights in the matrices that `ModelParallel` cuts, with the biases beside them: per layer 4 H² + 2 H F + 3 H + F
/// of 109.5 million.
const EXAMPLE_CUT: f64 = 12.0 * (12.0 * 768.0 * 768.0 + 3.0 * 768.0 + 3072.0) / 109.5e6;

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
struct Row {
    what: &'static str,
    formula: String,
    /// In P.
    factor: f64,
}

impl Row {
    fn new(what: &'static str, formula: impl Into<String>, factor: f64) -> Self {
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
        let replicas = self.replicas().len();
        let sentence = match (self.kind(), self.shard()) {
            (StrategyKind::Pipeline, _) => self.pipeline().map_or_else(String::new, of_a_pipeline),
            (StrategyKind::ModelParallel, _) => of_slices(self.model_devices().len()),
            (StrategyKind::OneDevice, _) => {
                "One device computes the whole batch forward and backward, and updates its weights. Nothing is sent.".to_owned()
            }
            (_, Some(shard)) => of_shards(shard, replicas),
            (StrategyKind::Mirrored | StrategyKind::Tpu | StrategyKind::MultiWorkerMirrored, None) => format!(
                "Each of {} has a copy of all weights and computes its share of the batch forward and backward. An \
                 all-reduce ({}) gives each of them the mean of all gradients; each makes the same update.",
                text::count(replicas, "replica"),
                self.cross_device_ops().title(),
            ),
            (StrategyKind::CentralStorage, None) => format!(
                "The weights are on the first device. Each of {} fetches them, computes its share of the batch, and sends \
                 its gradients back, where their mean makes one update.",
                text::count(replicas, "replica"),
            ),
            (StrategyKind::ParameterServer, None) => format!(
                "The weights are on {}. Each of {} fetches them, computes its share of the batch, and sends its gradients \
                 to them; {}.",
                text::count(self.servers().len(), "server"),
                text::count(replicas, "worker"),
                match self.is_asynchronous() {
                    true => "each worker's gradients make an update of their own as soon as they arrive",
                    false => "the mean of all gradients makes one update",
                },
            ),
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
        if let Some(pipeline) = self.pipeline() {
            return bytes_of_a_pipeline(&pipeline);
        }
        if !self.model_devices().is_empty() {
            return bytes_of_slices(self.model_devices().len());
        }
        match (self.kind(), self.shard()) {
            (StrategyKind::CentralStorage | StrategyKind::ParameterServer, _) => vec![
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

fn of_a_pipeline(settings: PipelineSettings) -> String {
    let PipelineSettings {
        stages,
        micro_batches,
        schedule,
        ..
    } = settings;
    let kept = match schedule {
        PipelineSchedule::GPipe => format!(
            "All forward passes come before all backward passes (GPipe), so that a stage keeps the activations of all \
             {micro_batches} micro-batches."
        ),
        PipelineSchedule::OneForwardOneBackward => format!(
            "Forward and backward passes take turns (1F1B), so that the first stage keeps the activations of {} \
             micro-batches at most, and the last one of 1.",
            schedule.kept(0, stages, micro_batches)
        ),
    };
    format!(
        "Each of {} has some consecutive layers, with their gradients and moments. The batch is cut in {}. A stage computes \
         its layers and sends their activations to the next one; in the backward pass it sends the gradient by its input to \
         the one before. {kept} Each stage updates its own layers when all micro-batches are done. For stages of equal cost \
         on devices of their own, {:.0} % of the time of a step is waiting: (p − 1)/(m + p − 1) for p stages and m micro-batches.",
        text::count(stages, "stage"),
        match micro_batches {
            1 => "1 micro-batch".to_owned(),
            more => format!("{more} micro-batches"),
        },
        100.0 * bubble(stages, micro_batches),
    )
}

/// For equal parts of the weights, and a batch of 32 × 128 tokens.
fn bytes_of_a_pipeline(settings: &PipelineSettings) -> Vec<Row> {
    let stages = settings.stages as f64;
    let piece = |what, times: f64, symbol: &str| {
        let formula = format!("{symbol}P / {}", settings.stages);
        Row::new(what, formula, times / stages)
    };
    let borders = settings.stages - 1;
    let sent = 2.0 * (stages - 1.0) * EXAMPLE_ACTIVATIONS / EXAMPLE;
    vec![
        piece("weights, on a stage with a p-th of them", 1.0, ""),
        piece("gradients there", 1.0, ""),
        piece("moments there", 2.0, "2 "),
        Row::new(
            "activations and their gradients, between all stages",
            format!("2 · {borders} · B · S · H · 4 bytes"),
            sent,
        ),
    ]
}

fn of_slices(devices: usize) -> String {
    format!(
        "Each of {} has a slice of the weights of each encoder layer, with its gradients and moments: some of the attention heads, \
         and 1/{devices} of the numbers of the feed-forward part. All compute each layer together. Each half of a layer sends \
         its input to all devices and adds up their partial products on the first one; its backward pass does the same with the \
         gradients. Each of these four exchanges moves B × S × H numbers to or from each other device. The first device has all \
         that is not cut (embeddings, LayerNorm, head) and computes it alone.",
        text::count(devices, "device"),
    )
}

/// For the layers of BERT-base and a batch of 32 × 128 tokens.
fn bytes_of_slices(devices: usize) -> Vec<Row> {
    let count = devices as f64;
    let around = count - 1.0;
    let layers = f64::from(EXAMPLE_LAYERS);
    let sent = 8.0 * layers * around * EXAMPLE_ACTIVATIONS / EXAMPLE;
    let piece = |what, times: f64, symbol: &str| {
        let formula = format!("{symbol}C / {devices}");
        Row::new(what, formula, times * EXAMPLE_CUT / count)
    };
    let whole = 1.0 - EXAMPLE_CUT;
    vec![
        piece(
            "weights of the layers that are cut, C, on a device",
            1.0,
            "",
        ),
        piece("moments there", 2.0, "2 "),
        Row::new("all other weights, on the first device", "P − C", whole),
        Row::new("moments there", "2 (P − C)", 2.0 * whole),
        Row::new(
            "sent between the devices",
            format!("8 · {} · L · B · S · H · 4 bytes", devices - 1),
            sent,
        ),
    ]
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
        AsStrategy, CentralStorageStrategy, MirroredStrategy, ModelParallel, OneDeviceStrategy,
        ParameterServerStrategy, PipelineStrategy, TpuStrategy, cpu,
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
        let html = mirrored(Some(Shard::Parameters)).to_html();
        assert!(
            html.contains("3 · 3/4 · P") && html.contains("ZeRO-3"),
            "{html}"
        );
    }
}
