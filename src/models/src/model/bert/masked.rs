//! BERT that predicts hidden tokens, as a model: pretraining on the texts of a domain, and filling in.

use burn::tensor::{Device, Int, Tensor, TensorData};
use stratoscope_bert::{BatchTensors, LoadOptions, MaskedLm, Mode};
use stratoscope_data::{Batch, Labels, Masking};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Origin;

use super::{BertFiles, load};
use crate::model::ModelOf;
use crate::predict::{IntoExamples, Predictions};
use crate::problem;
use stratoscope_network::{InStages, Network};

/// BERT that predicts hidden tokens.
pub type BertForMaskedLM = ModelOf<MaskedLm>;

impl Network for MaskedLm {
    type Files = BertFiles;

    /// K rows of V numbers, in one row for each example: a row for each token that is to be predicted. Where the batch does
    /// not say which, for each token.
    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        let width = batch.seq;
        let all = 0..(batch.size() * width) as i32;
        let places: Vec<i32> = match &batch.labels {
            Labels::Tokens(labels) => match &labels.places {
                Some(places) => {
                    let rows = places.chunks(labels.seq.max(1)).enumerate();
                    let in_batch = |(row, own): (usize, &[i32])| {
                        let first = (row * width) as i32;
                        own.iter().map(|at| first + at).collect::<Vec<_>>()
                    };
                    rows.flat_map(in_batch).collect()
                }
                None => all.collect(),
            },
            _ => all.collect(),
        };
        let count = places.len();
        let places = TensorData::new(places, [count]);
        let places = Tensor::<1, Int>::from_data(places, &device.clone().inner());
        let logits = self.forward(BatchTensors::from_batch(batch, device), places, mode);
        let [count, vocabulary] = logits.dims();
        let rows = batch.size().max(1);
        logits.reshape([rows, count / rows * vocabulary])
    }

    fn in_stages() -> InStages {
        InStages::TiedDecoder
    }

    of_a_checkpoint!();
}

impl ModelOf<MaskedLm> {
    /// Loads a checkpoint. A head that it lacks is new; its decoder is the word embeddings in any case.
    ///
    /// # Errors
    /// The checkpoint's own diagnostics; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained(name: &str) -> Result<Self> {
        load(name, &LoadOptions::new(), Origin::current())
    }

    /// The same with every choice that there is, such as the seed of a new head.
    ///
    /// # Errors
    /// As [`Self::from_pretrained`].
    #[track_caller]
    pub fn from_pretrained_with(name: &str, options: &LoadOptions) -> Result<Self> {
        load(name, options, Origin::current())
    }

    /// Which tokens are hidden in training and evaluation: `Masking { share: 0.15, whole_words: true }`.
    ///
    /// # Errors
    /// SC0103 for a share that is not above 0 and at most 1; SC0121 in a callback of the model's own run.
    pub fn set_masking(&self, masking: Masking) -> Result<()> {
        // This form of the condition also refuses NaN.
        if !(masking.share > 0.0 && masking.share <= 1.0) {
            let expects = "a share above 0 and at most 1";
            let problem = problem::bad_value("set_masking", "share", masking.share, expects);
            return Err(Box::new(problem));
        }
        self.free_state("set_masking")?
            .files
            .of_mut::<BertFiles>()
            .masking = masking;
        Ok(())
    }

    /// Fills in the masks of texts: `model.fill("a [MASK] server")?`. The same as `predict`.
    ///
    /// # Errors
    /// As [`predict`](crate::Model::predict); SC0103 for a text without a mask.
    #[track_caller]
    pub fn fill(&self, texts: impl IntoExamples) -> Result<Predictions> {
        self.predict(texts)
    }
}
