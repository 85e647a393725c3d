//! What each token adds to a logit, by gradients: gradient × input, and integrated gradients. Sources: Shrikumar et al. 2016,
//! "Not just a black box"; Sundararajan, Taly and Yan 2017, "Axiomatic attribution for deep networks".
//!
//! The input is what the encoder takes, after the embeddings' LayerNorm, as of Captum's `LayerIntegratedGradients` on the
//! embeddings of a model. Dimensions: S tokens, H = hidden_size.

use burn::tensor::Tensor;
use stratoscope_data::Encoding;

use crate::quadrature::gauss_legendre;
use crate::view::{ROWS, View, numbers_2};

/// Numbers of one text, a number for each token.
pub(crate) struct ByToken {
    pub(crate) gradient_input: Vec<f64>,
    pub(crate) integrated: Vec<f64>,
    /// The logits of the text and of its reference.
    pub(crate) logits: Vec<f64>,
    pub(crate) reference: Vec<f64>,
}

/// Attributes the logit of `target` to the tokens of `row`, compared with `reference`, a row of the same length.
pub(crate) fn attribute(
    view: &View,
    row: &Encoding,
    reference: &Encoding,
    target: usize,
    steps: usize,
) -> ByToken {
    let both = view.batch(&[row.clone(), reference.clone()]);
    let embedded = view.embedded(&both).inner();
    let [_, tokens, _] = embedded.dims();
    let (own, other) = (
        embedded.clone().narrow(0, 0, 1),
        embedded.clone().narrow(0, 1, 1),
    );
    let mask = both.attention_mask.clone().inner().narrow(0, 0, 1);
    let (logits, slope) = gradient(view, own.clone(), mask.clone(), target);
    let of_reference = numbers_2(
        view.logits_of(autodiff(other.clone()), autodiff_2(mask.clone()))
            .inner(),
    );
    let difference = own.clone() - other.clone();
    // Σ w·∂f/∂x at x' + a·(x − x'), for each a of the rule.
    let rule = gauss_legendre(steps);
    let mut sum = difference.clone().zeros_like();
    for part in rule.chunks(ROWS) {
        let places: Vec<Tensor<3>> = part
            .iter()
            .map(|&(a, _)| other.clone() + difference.clone() * a as f32)
            .collect();
        let count = places.len();
        let (_, slopes) = gradient(
            view,
            Tensor::cat(places, 0),
            mask.clone().repeat_dim(0, count),
            target,
        );
        for (at, &(_, weight)) in part.iter().enumerate() {
            sum = sum + slopes.clone().narrow(0, at, 1) * weight as f32;
        }
    }
    let by_token = |product: Tensor<3>| -> Vec<f64> {
        let sums = product.sum_dim(2).reshape([1, tokens]);
        numbers_2(sums).remove(0)
    };
    ByToken {
        gradient_input: by_token(slope * own),
        integrated: by_token(sum * difference),
        logits: logits.into_iter().next().unwrap_or_default(),
        reference: of_reference.into_iter().next().unwrap_or_default(),
    }
}

/// The logits of embedded rows, and the gradient of each row's logit by that row, [B, S, H]: rows do not depend on each other.
fn gradient(
    view: &View,
    embedded: Tensor<3>,
    mask: Tensor<2>,
    target: usize,
) -> (Vec<Vec<f64>>, Tensor<3>) {
    let leaf = autodiff(embedded).require_grad();
    let logits = view.logits_of(leaf.clone(), autodiff_2(mask));
    let rows = logits.dims()[0];
    let sum = logits.clone().narrow(1, target, 1).reshape([rows]).sum();
    let gradients = sum.backward();
    let slope = leaf
        .grad(&gradients)
        .expect("the logit depends on the embeddings");
    (numbers_2(logits.inner()), slope)
}

fn autodiff(tensor: Tensor<3>) -> Tensor<3> {
    Tensor::from_inner(tensor)
}

fn autodiff_2(tensor: Tensor<2>) -> Tensor<2> {
    Tensor::from_inner(tensor)
}
