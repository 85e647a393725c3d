//! A run that stands at a layer of its coming step: the values of this layer, and the layers that are computed.

use burn::tensor::TensorData;
use stratoscope_models::{InStep, LayerPass, Place, Probe};
use stratoscope_render::text;
use stratoscope_wire::MimeBundle;

use super::View;
use super::numbers::Numbers;
use super::runs::{Parts, numbers};
use crate::display::IntoBundle;

/// The layer at which a run stands: what it puts out, or the gradients of it. At the end of the step, what the update adds
/// to each weight.
pub(super) struct LayerView(pub InStep);

impl View for LayerView {
    fn line(&self) -> String {
        self.0.place_in_words()
    }

    fn named(&self) -> usize {
        match (&self.0.place, self.0.pass()) {
            (Place::Update(updates), _) => updates.named(),
            (_, pass) => pass.map_or(0, |it| it.values.len()),
        }
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        match (&self.0.place, self.0.pass()) {
            (Place::Update(updates), _) => updates.part(position),
            (_, pass) => value(pass?, position),
        }
    }

    fn rich(&self) -> MimeBundle {
        self.0.bundle()
    }
}

/// The layers of a micro-batch that are computed, in their order.
pub(super) struct ComputedView(pub InStep);

impl View for ComputedView {
    fn line(&self) -> String {
        text::count(self.0.computed().len(), "layer")
    }

    fn indexed(&self) -> usize {
        self.0.computed().len()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let pass = self.0.computed().get(position)?;
        Some((format!("[{position}]"), Box::new(PassView(pass))))
    }
}

/// A layer, forward or backward.
struct PassView<'a>(&'a LayerPass);

impl View for PassView<'_> {
    fn line(&self) -> String {
        self.0.to_string()
    }

    fn named(&self) -> usize {
        self.0.values.len()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        value(self.0, position)
    }
}

/// A value of a layer.
fn value(pass: &LayerPass, position: usize) -> Option<(String, Box<dyn View + '_>)> {
    let value: &Probe = pass.values.get(position)?;
    let is_of_several = pass.values.iter().any(|it| it.replica > 0);
    let name = match is_of_several {
        true => format!("{} on replica {}", value.name, value.replica),
        false => value.name.clone(),
    };
    let line = numbers(&value.shape, &value.statistics);
    let read = || Some(TensorData::new(value.elements.clone(), value.shape.clone()));
    let view = Numbers::new(line, value.shape.clone(), read);
    Some((name, Box::new(view)))
}
