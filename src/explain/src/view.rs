//! A classifier as this crate looks at it: from embeddings to logits, for one row or for several.

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{BatchTensors, BertTokenizer, Mode, SequenceClassifier};
use stratoscope_data::{Encoding, Tokenize};
use stratoscope_models::ModelOf;

/// Rows that are computed at once.
pub(crate) const ROWS: usize = 16;

/// The network and what belongs to it. Handles only: nothing is copied.
pub(crate) struct View {
    /// With gradients; its variables have none.
    network: SequenceClassifier,
    pub(crate) tokenizer: BertTokenizer,
    pub(crate) label_names: Vec<String>,
    /// The most tokens that the model reads.
    pub(crate) max_length: usize,
}

impl View {
    pub(crate) fn of(model: &ModelOf<SequenceClassifier>) -> Self {
        let network = model.with_network(|network| burn::module::Module::no_grad(network.clone()));
        Self {
            network,
            tokenizer: model.tokenizer(),
            label_names: model.label_names(),
            max_length: model.read_length(),
        }
    }

    /// The device that the network is on.
    fn device(&self) -> Device {
        self.network.classifier.weight.val().device()
    }

    /// Rows as tensors, padded to the longest.
    pub(crate) fn batch(&self, rows: &[Encoding]) -> BatchTensors {
        BatchTensors::from_rows(rows, self.tokenizer.pad_id(), &self.device())
    }

    /// What the encoder takes, [B, S, H].
    pub(crate) fn embedded(&self, batch: &BatchTensors) -> Tensor<3> {
        let bert = &self.network.bert;
        let embedded = bert.embeddings.forward(batch, Mode::Eval);
        match &bert.embeddings_project {
            Some(layer) => layer.forward(embedded, Mode::Eval),
            None => embedded,
        }
    }

    /// Embedded rows [B, S, H] → logits [B, C].
    pub(crate) fn logits_of(&self, embedded: Tensor<3>, mask: Tensor<2>) -> Tensor<2> {
        let bert = &self.network.bert;
        let hidden = bert.encoder.forward(embedded, mask.clone(), Mode::Eval);
        let last = hidden.last().cloned().expect("an encoder has a layer");
        let pooled = bert.pooler.forward(last, mask, Mode::Eval); // [B, H]
        let logits = self
            .network
            .classifier
            .forward(pooled.unsqueeze_dim::<3>(1), Mode::Eval);
        logits.squeeze_dim::<2>(1)
    }

    /// The logits of rows, some at a time, [B][C].
    pub(crate) fn logits(&self, rows: &[Encoding]) -> Vec<Vec<f64>> {
        let of_some = |rows: &[Encoding]| {
            let batch = self.batch(rows);
            let logits = self.network.forward(batch, Mode::Eval);
            numbers_2(logits)
        };
        rows.chunks(ROWS).flat_map(of_some).collect()
    }

    /// Runs the whole network, for what looks at its layers.
    pub(crate) fn run(&self, row: &Encoding) {
        let batch = self.batch(std::slice::from_ref(row));
        self.network.forward_all(batch, Mode::Eval);
    }

    /// How many layers the encoder has.
    pub(crate) fn layers(&self) -> usize {
        self.network.bert.encoder.depth()
    }

    /// How many attention heads each of them has.
    pub(crate) fn heads(&self) -> usize {
        let first = self.network.bert.encoder.layer.first();
        first.map_or(0, |layer| layer.heads())
    }

    /// The id that stands for a word that is hidden.
    pub(crate) fn hidden_id(&self) -> u32 {
        self.tokenizer
            .mask_id()
            .unwrap_or_else(|| self.tokenizer.unk_id())
    }
}

/// The numbers of a tensor, row by row, without its graph.
pub(crate) fn numbers_2(tensor: Tensor<2>) -> Vec<Vec<f64>> {
    let [_, width] = tensor.dims();
    let data = tensor.into_data().convert::<f32>();
    let all: Vec<f64> = data.iter::<f32>().map(f64::from).collect();
    all.chunks(width.max(1)).map(<[f64]>::to_vec).collect()
}

/// The probabilities of logits; of one output that of a sigmoid.
pub(crate) fn probabilities(logits: &[f64]) -> Vec<f64> {
    if let [one] = logits {
        return vec![1.0 / (1.0 + (-one).exp())];
    }
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = logits.iter().map(|it| (it - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|it| it / sum).collect()
}

/// The place of the largest number, the first one of equal ones.
pub(crate) fn largest(numbers: &[f64]) -> usize {
    let better = |best: usize, at: usize| {
        if numbers[at] > numbers[best] {
            at
        } else {
            best
        }
    };
    (0..numbers.len()).fold(0, better)
}
