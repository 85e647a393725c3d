//! A label, or a number, for a whole sequence: the network of transformers'
//! `BertForSequenceClassification`. Checkpoint keys `bert.*` and `classifier`.
//! Source: Devlin et al. 2019, section 4.1; transformers v4.57.1 `modeling_bert.py`,
//! `BertForSequenceClassification`. Dimensions: B sequences, H = hidden_size, C = num_labels.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use stratoscope_diagnostics::Result;

use crate::batch::BatchTensors;
use crate::bert::{Bert, BertOutput};
use crate::config::BertConfig;
use crate::linear::Linear;
use crate::mode::{DropoutSite, Mode};
use crate::ops;
use crate::parameters::{Parameters, Store};
use crate::taps;

/// The body, and a dense layer on its pooled output.
///
/// # Example
/// ```
/// use burn::tensor::Device;
/// use stratoscope_bert::{BatchTensors, BertConfig, Mode, SequenceClassifier};
///
/// # fn main() -> stratoscope_diagnostics::Result<()> {
/// let text = r#"{"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}"#;
/// let config = BertConfig::from_json(text, "config.json".as_ref())?.with_num_labels(3)?;
/// let device = Device::flex();
/// let network = SequenceClassifier::init(&config, 42, &device)?;
/// let (ids, mask, types) = (vec![2, 5, 3, 2, 3, 0], vec![1.0, 1.0, 1.0, 1.0, 1.0, 0.0], vec![0; 6]);
/// let batch = BatchTensors::from_values(ids, mask, types, [2, 3], &device);
/// assert_eq!(network.forward(batch, Mode::Eval).dims(), [2, 3]); // [B, C]
/// # Ok(())
/// # }
/// ```
#[derive(Module, Debug)]
pub struct SequenceClassifier {
    /// The body.
    pub bert: Bert,
    /// H → C.
    pub classifier: Linear,
    #[module(skip)]
    classifier_dropout: f64,
}

/// The logits and the intermediate results.
#[derive(Clone, Debug)]
pub struct SequenceClassifierOutput {
    /// The outputs of the body.
    pub bert: BertOutput,
    /// Before any softmax, [B, C]. With C = 1 the number that a regression predicts.
    pub logits: Tensor<2>,
}

impl SequenceClassifier {
    /// A network with new weights, N(0, `initializer_range`), fixed by the seed on every device.
    ///
    /// # Errors
    /// SC0909 for a configuration with invalid values.
    pub fn init(config: &BertConfig, seed: u64, device: &Device) -> Result<Self> {
        config.check()?;
        let mut store = Store::new(device, config.initializer_range, seed);
        store = store.with_lora(config.lora.as_ref());
        Ok(Self::new(&mut store.root(), config))
    }

    /// Takes the parameters of the whole network.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let bert = Bert::new(&mut parameters.enter("bert"), config);
        let mut inside = parameters.enter("classifier");
        Self {
            bert,
            classifier: Linear::of_head(&mut inside, config, config.num_labels()),
            classifier_dropout: config.classifier_dropout(),
        }
    }

    /// # Shapes
    /// ids, mask and types [B, S] → logits [B, C]
    pub fn forward(&self, batch: BatchTensors, mode: Mode) -> Tensor<2> {
        let pooled = taps::within("bert", || self.bert.pooled(batch, mode));
        self.head(pooled, mode)
    }

    /// [`Self::forward`] with all intermediate results.
    pub fn forward_all(&self, batch: BatchTensors, mode: Mode) -> SequenceClassifierOutput {
        let bert = taps::within("bert", || self.bert.forward(batch, mode));
        let logits = self.head(bert.pooled.clone(), mode);
        SequenceClassifierOutput { bert, logits }
    }

    /// What follows the last encoder layer.
    ///
    /// # Shapes
    /// hidden [B, S, H], mask [B, S] with 1 = token → logits [B, C]
    pub fn of_hidden(&self, hidden: Tensor<3>, mask: Tensor<2>, mode: Mode) -> Tensor<2> {
        let pooled = || self.bert.pooler.forward(hidden, mask, mode);
        let pooled = taps::within("bert", || taps::within("pooler", pooled));
        self.head(pooled, mode)
    }

    /// pooled [B, H] → logits [B, C]
    fn head(&self, pooled: Tensor<2>, mode: Mode) -> Tensor<2> {
        let [batch, hidden_size] = pooled.dims();
        let pooled = pooled.reshape([batch, 1, hidden_size]);
        taps::within("classifier", || {
            let pooled = match mode.dropout(self.classifier_dropout, DropoutSite::Head) {
                Some((rate, key)) => ops::dropout(pooled, rate, key),
                None => pooled,
            };
            let logits = self.classifier.forward(pooled, mode); // [B, 1, C]
            let [_, _, labels] = logits.dims();
            taps::output(logits.reshape([batch, labels]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Precision;

    /// The first token's path through the last layer has the bits of the whole layer: for few rows and many, short and
    /// long sequences, narrow and wide layers, in float32 and in bfloat16.
    #[test]
    fn the_first_token_alone_has_the_bits_of_all_tokens() {
        let device = Device::flex();
        for (hidden, heads, inner) in [(8, 2, 16), (32, 2, 128), (384, 12, 1536)] {
            let text = format!(
                r#"{{"vocab_size": 50, "hidden_size": {hidden}, "num_hidden_layers": 2, "num_attention_heads": {heads},
                    "intermediate_size": {inner}, "max_position_embeddings": 64}}"#
            );
            let config = BertConfig::from_json(&text, "config.json".as_ref()).expect("valid");
            let config = config.with_num_labels(3).expect("3 labels");
            let network = SequenceClassifier::init(&config, 7, &device).expect("valid");
            for (batch, sequence) in [(1, 1), (1, 33), (1, 64), (2, 20), (5, 7), (31, 3), (40, 9)] {
                let tokens = batch * sequence;
                let ids = (0..tokens).map(|at| (at * 7 % 50) as i64).collect();
                let mask =
                    (0..tokens).map(|at| f32::from(u8::from(at % sequence < sequence.max(3) - 2)));
                let mask: Vec<f32> = mask.collect();
                let dims = [batch, sequence];
                let batch = BatchTensors::from_values(ids, mask, vec![0; tokens], dims, &device);
                for precision in [Precision::Float32, Precision::Bfloat16] {
                    let bits = |logits: Tensor<2>| -> Vec<u32> {
                        let data = logits.into_data();
                        data.iter::<f32>().map(f32::to_bits).collect()
                    };
                    let first = precision.during(|| network.forward(batch.clone(), Mode::Eval));
                    let all = precision.during(|| network.forward_all(batch.clone(), Mode::Eval));
                    assert_eq!(
                        bits(first),
                        bits(all.logits),
                        "{hidden} {dims:?} {precision:?}"
                    );
                }
            }
        }
    }
}
