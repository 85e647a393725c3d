//! Whether a pipeline can divide a network.

use burn::tensor::Tensor;
use stratoscope_bert::{BatchTensors, Mode};
use stratoscope_data::Batch;
use stratoscope_diagnostics::rules::NetworkNotInStages;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::Strategy;

use super::bert::BertFiles;
use super::{AnyNetwork, Files};

/// What a network makes of its last layer's output, [B, S, H]: its outputs, [B, C].
pub type Head<N> = fn(&N, Tensor<3>, &BatchTensors, &Batch, Mode) -> Tensor<2>;

/// Whether the layers of a network can be divided among the stages of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InStages {
    /// It is a chain of embeddings, encoder layers and a head.
    Chain,
    /// It is a chain, but its head needs a table of its embeddings.
    TiedDecoder,
    /// Nothing is known of its layers.
    NoChain,
}

/// Whether a strategy can place a network: a pipeline needs a chain of layers.
///
/// # Errors
/// SC0624 for another network.
pub fn check_stages(
    strategy: Option<&Strategy>,
    network: &AnyNetwork,
    files: &dyn Files,
) -> Result<()> {
    if strategy.is_none_or(|strategy| strategy.stages().is_empty()) {
        return Ok(());
    }
    let model = files.model_name().to_owned();
    if let Some(BertFiles { config, .. }) = files.get::<BertFiles>() {
        if config.relative.is_some() {
            return Err(NetworkNotInStages::SharedTable { model }.error());
        }
        if config.family.shares_layers() {
            return Err(NetworkNotInStages::SharedLayers { model }.error());
        }
    }
    match network.in_stages() {
        InStages::Chain => Ok(()),
        InStages::TiedDecoder => Err(NetworkNotInStages::TiedDecoder { model }.error()),
        InStages::NoChain => Err(NetworkNotInStages::NoChain { model }.error()),
    }
}
