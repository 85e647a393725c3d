//! A module small enough for a table and named like a BERT.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Int, Tensor};

#[derive(Module, Debug)]
pub struct Encoder {
    pub word_embeddings: Embedding,
    pub layer: Vec<Layer>,
    pub classifier: Linear,
}

#[derive(Module, Debug)]
pub struct Layer {
    pub attention: Linear,
    pub layer_norm: LayerNorm,
}

impl Encoder {
    pub fn new(layers: usize, device: &Device) -> Self {
        let layer = |_| Layer {
            attention: LinearConfig::new(4, 4).init(device),
            layer_norm: LayerNormConfig::new(4).init(device),
        };
        Self {
            word_embeddings: EmbeddingConfig::new(11, 4).init(device),
            layer: (0..layers).map(layer).collect(),
            classifier: LinearConfig::new(4, 3).init(device),
        }
    }

    /// # Shapes
    /// ids [B, S] → logits [B, 3]
    pub fn forward(&self, ids: Tensor<2, Int>) -> Tensor<2> {
        let mut hidden = self.word_embeddings.forward(ids);
        for layer in &self.layer {
            hidden = layer
                .layer_norm
                .forward(layer.attention.forward(hidden.clone()) + hidden);
        }
        let [batch, _, width] = hidden.dims();
        self.classifier
            .forward(hidden.mean_dim(1).reshape([batch, width]))
    }

    /// The same with another classifier bias.
    pub fn with_other_bias(mut self) -> Self {
        struct Other;
        impl ModuleMapper for Other {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                if D == 1 {
                    param.map(|bias| bias + 1.0)
                } else {
                    param
                }
            }
        }
        self.classifier = self.classifier.map(&mut Other);
        self
    }
}

/// The names of a checkpoint: the path of fields, with BERT's prefixes.
pub fn named(module: &Encoder) -> Vec<(String, ParamId)> {
    #[derive(Default)]
    struct Names {
        path: Vec<String>,
        found: Vec<(String, ParamId)>,
    }
    impl ModuleVisitor for Names {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(match name {
                "word_embeddings" => "bert.embeddings.word_embeddings".to_owned(),
                "layer" => "bert.encoder.layer".to_owned(),
                "layer_norm" => "LayerNorm".to_owned(),
                "gamma" => "weight".to_owned(),
                "beta" => "bias".to_owned(),
                same => same.to_owned(),
            });
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.found.push((self.path.join("."), param.id));
        }
    }
    let mut names = Names::default();
    module.visit(&mut names);
    names.found
}

/// Gradients that are `value` everywhere, on each parameter's device.
pub fn constant_gradients(module: &Encoder, value: f32) -> GradientsParams {
    struct Fill(f32, GradientsParams);
    impl ModuleVisitor for Fill {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let device = param.val().device().without_autodiff();
            self.1.register(
                param.id,
                Tensor::<D>::full(param.lazy_shape(), self.0, &device),
            );
        }
    }
    let mut fill = Fill(value, GradientsParams::new());
    module.visit(&mut fill);
    fill.1
}
