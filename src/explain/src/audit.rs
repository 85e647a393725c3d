//! [`AuditData`]: an audit of data with the vectors of a model.

use burn::module::Module;
use burn::tensor::Tensor;
use stratoscope_audit::{Audit, AuditOptions, classes_of};
use stratoscope_bert::{BatchTensors, Mode, SentenceEncoder, SequenceClassifier};
use stratoscope_data::{Dataset, Tokenize};
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Result, problem};
use stratoscope_models::{BertFiles, ModelOf, Network};

use crate::view::numbers_2;

/// Rows that are computed at once.
const ROWS: usize = 32;

/// Audits of texts with the vectors of an encoder: the mean over the tokens of its last layer.
///
/// An encoder that was trained on the labels of the data has learned the wrong ones too. Take one that has not seen them, such
/// as a checkpoint before its training, or give probabilities of [`out_of_fold`](crate::out_of_fold).
pub trait AuditData {
    /// Wrong labels, near-duplicates, outliers, parts with more errors than the rest, and a map. `model.audit(&train)?`
    ///
    /// # Errors
    /// SC0722 for data without a class for each row, or with one class; SC0723 for a class with fewer rows than folds; SC0103
    /// for rows of numbers; SC0520 if it is interrupted.
    fn audit(&self, data: &Dataset) -> Result<Audit> {
        self.audit_with(data, &AuditOptions::new())
    }

    /// The same with other folds, with more splits, or with probabilities of your own.
    ///
    /// # Errors
    /// As [`audit`](Self::audit); SC0103 for options that do not fit the data.
    fn audit_with(&self, data: &Dataset, options: &AuditOptions) -> Result<Audit>;
}

impl AuditData for ModelOf<SequenceClassifier> {
    fn audit_with(&self, data: &Dataset, options: &AuditOptions) -> Result<Audit> {
        audited(self, data, options, |network, batch| {
            let mask = batch.attention_mask.clone();
            mean(
                network.bert.forward(batch, Mode::Eval).last_hidden_state(),
                mask,
            )
        })
    }
}

impl AuditData for ModelOf<SentenceEncoder> {
    fn audit_with(&self, data: &Dataset, options: &AuditOptions) -> Result<Audit> {
        audited(self, data, options, |network, batch| {
            network.forward(batch, Mode::Eval)
        })
    }
}

/// The mean over the tokens. [B, S, H] and [B, S] → [B, H]
fn mean(hidden: Tensor<3>, mask: Tensor<2>) -> Tensor<2> {
    let sum = (hidden * mask.clone().unsqueeze_dim::<3>(2))
        .sum_dim(1)
        .squeeze_dim::<2>(1);
    sum / mask.sum_dim(1)
}

fn audited<N: Network<Files = BertFiles>>(
    model: &ModelOf<N>,
    data: &Dataset,
    options: &AuditOptions,
    forward: impl Fn(&N, BatchTensors) -> Tensor<2>,
) -> Result<Audit> {
    if let Some(row) = data.examples.iter().position(|it| !it.features.is_empty()) {
        let expects =
            "texts: `Audit::of(&data, &vectors, &options)?` takes vectors of any origin".to_owned();
        return Err(Box::new(problem::bad_value(
            "audit",
            "data",
            format!("numbers in row {row}"),
            expects,
        )));
    }
    // Before the vectors, which take longer.
    classes_of("audit", data)?;
    let (tokenizer, length) = (model.tokenizer(), model.read_length());
    // Without a graph for gradients.
    let network = model.with_network(Module::valid);
    let device = network.devices().into_iter().next().unwrap_or_default();
    let mut work = Work::begin(("embedding", "embedded"), data.len(), Unit::Things("row"));
    let mut vectors = Vec::with_capacity(data.len());
    for rows in data.examples.chunks(ROWS) {
        work.reached(vectors.len())?;
        let rows = rows
            .iter()
            .map(|row| tokenizer.encode(&row.text, row.pair.as_deref(), length));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let batch = BatchTensors::from_rows(&rows, tokenizer.pad_id(), &device);
        let vector = |row: Vec<f64>| row.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
        vectors.extend(numbers_2(forward(&network, batch)).into_iter().map(vector));
    }
    work.finished();
    Audit::of(data, &vectors, options)
}
