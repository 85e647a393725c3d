//! A network in segments: embeddings, encoder layers and a head follow each other, so that a stage of a pipeline can compute
//! some of them from the output of the stage before.
//!
//! [`Segment::hidden`] computes the part of the body that a segment has. Each network adds what comes after its layers, which the
//! last segment has ([`SequenceClassifier::of_hidden`](crate::SequenceClassifier::of_hidden) and the functions of this name
//! beside it). All segments together do what
//! `forward` does, operation by operation, so that they have its bits. Dropout masks are functions of numbers
//! ([`Mode`]), and no segment needs those of another.
//!
//! [`Segment::backward`] goes back through a segment: from the gradient by its output to those of its parameters and by its
//! input. As in [`recompute`](crate::recompute), there is a graph for each segment and none across them.

use std::ops::Range;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use crate::batch::BatchTensors;
use crate::bert::Bert;
use crate::body::Body;
use crate::embeddings::{self, Embeddings};
use crate::encoder::Encoder;
use crate::linear::Linear;
use crate::mode::Mode;
use crate::recompute::Recorded;
use crate::taps;

/// Which part of a network is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The encoder layers.
    pub layers: Range<usize>,
    /// Whether it has the head.
    pub has_head: bool,
}

/// What a segment computes.
#[derive(Clone, Debug)]
pub enum Computed {
    /// The output of its last layer, [B, S, H].
    Hidden(Tensor<3>),
    /// What the network puts out, [B, C].
    Outputs(Tensor<2>),
}

/// A body that can be computed in segments: a [`Bert`] or a [`Body`].
#[derive(Debug)]
pub struct Chain<'a> {
    embeddings: &'a Embeddings,
    project: Option<&'a Linear>,
    encoder: &'a Encoder,
}

impl<'a> From<&'a Bert> for Chain<'a> {
    fn from(body: &'a Bert) -> Self {
        Self {
            embeddings: &body.embeddings,
            project: body.embeddings_project.as_ref(),
            encoder: &body.encoder,
        }
    }
}

impl<'a> From<&'a Body> for Chain<'a> {
    fn from(body: &'a Body) -> Self {
        Self {
            embeddings: &body.embeddings,
            project: body.embeddings_project.as_ref(),
            encoder: &body.encoder,
        }
    }
}

impl Segment {
    /// The output of the segment's last layer, from the output of the segment before; without one, from the tokens.
    ///
    /// # Shapes
    /// before [B, S, H]; ids, mask and types [B, S] → [B, S, H]
    pub fn hidden<'a>(
        &self,
        body: impl Into<Chain<'a>>,
        before: Option<Tensor<3>>,
        batch: BatchTensors,
        mode: Mode,
    ) -> Tensor<3> {
        let Chain {
            embeddings,
            project,
            encoder,
        } = body.into();
        let before = before.unwrap_or_else(|| {
            taps::within("bert", || {
                let embedded = taps::within("embeddings", || embeddings.forward(&batch, mode));
                embeddings::projected(project, embedded, mode)
            })
        });
        let layers = self.layers.clone();
        let mask = batch.attention_mask;
        let through = || encoder.through(layers, before.clone(), mask, mode);
        let outputs = taps::within("bert", || taps::within("encoder", through));
        outputs.last().cloned().unwrap_or(before)
    }

    /// What the segment computes: with the head, what that makes of the last layer's output.
    pub fn computed(
        &self,
        hidden: Tensor<3>,
        head: impl FnOnce(Tensor<3>) -> Tensor<2>,
    ) -> Computed {
        match self.has_head {
            true => Computed::Outputs(head(hidden)),
            false => Computed::Hidden(hidden),
        }
    }

    /// The gradients of the parameters that a segment has computed `output` with, from the gradient by its output, and the
    /// gradient by `input`, where it is given. Without a graph there are none.
    ///
    /// # Shapes
    /// output and gradient [B, S, H], input and its gradient [B, S, H]
    pub fn backward<M: Module>(
        recorded: Recorded,
        module: &M,
        output: Tensor<3>,
        gradient: Tensor<3>,
        input: Option<&Tensor<3>>,
    ) -> (GradientsParams, Option<Tensor<3>>) {
        if !output.is_tracked() {
            return (GradientsParams::new(), None);
        }
        // The gradient of Σ y·g by y is 1·g: the very bits of g.
        let sum = (output * Tensor::from_inner(gradient)).sum();
        recorded.backward_to(&sum, module, input)
    }
}
