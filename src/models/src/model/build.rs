//! `model.build((None, 5))`: variables for an input of a given shape, and how shapes can be written.

use burn::tensor::Device;
use stratoscope_diagnostics::rules::{Examples, InvalidSize};
use stratoscope_diagnostics::{Place, Result, Rule};
use stratoscope_strategy::{Origin, scope};

use crate::count::IntoCount;
use crate::model::{Model, ModelOf};
use stratoscope_network::made::Made;
use stratoscope_network::{Network, Outputs};
use stratoscope_step::workers::{Host, host};
use stratoscope_train::building::does_not_fit;

impl Model {
    /// A model of a network of one's own that takes numbers. See [`Network`] for an example.
    ///
    /// # Errors
    /// SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn of<N>(network: N, outputs: Outputs) -> Result<ModelOf<N>>
    where
        N: Network<Files = Outputs>,
    {
        Self::with_files(network, outputs, Origin::current())
    }

    /// A model of a network that a function makes on a device; the closure has no variables of its surroundings. Worker
    /// processes call the function again, in the library of the cell that has it, so that a network of one's own trains
    /// under [`MultiWorkerMirroredStrategy`](stratoscope_strategy::MultiWorkerMirroredStrategy), too.
    ///
    /// # Errors
    /// As [`Self::of`], and SC0712 for a default device that is not there.
    #[track_caller]
    pub fn made_by<N>(make: fn(&Device) -> N, outputs: Outputs) -> Result<ModelOf<N>>
    where
        N: Network<Files = Outputs>,
    {
        let origin = Origin::current();
        let network = make(&scope::device()?);
        let model = Self::with_files(network, outputs, origin)?;
        let host: Host = host::<N>;
        let made = Made::by(host as *const (), make as *const ());
        model.state().step.made_by = Some(made);
        Ok(model)
    }
}

impl Model {
    /// Makes the variables for an input of this shape, in the active scope; Keras's `build((None, 5))`.
    /// What is built stays as it is.
    ///
    /// # Errors
    /// SC0915 for a shape that is not the number of columns of a row, SC0411 if the model was built
    /// for another one, SC0121 in a callback of its own run, SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn build(&self, input_shape: impl IntoInputShape) -> Result<()> {
        let origin = Origin::current();
        let width = input_shape.into_input_shape().width("build")?;
        let mut state = self.free_state("build")?;
        if !state.is_built() {
            let strategy = state.strategy_now();
            return state.make_variables(width, strategy, origin);
        }
        match state.step.replicas.first().input_width() {
            Some(built) if built != width => {
                let given = Examples::Numbers(Some(width));
                Err(does_not_fit(
                    &state,
                    given,
                    ("`input_shape`", false),
                    "build",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether its variables exist.
    pub fn is_built(&self) -> bool {
        self.state().is_built()
    }
}

/// The shape of an input as written, the number of rows included or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputShape(Vec<Option<u64>>);

/// How a shape can be written: `5`, `[5]`, `(5,)`, and with the open number of rows in front
/// `(None, 5)` or `[None, Some(5)]`.
#[diagnostic::on_unimplemented(
    message = "expected the shape of an input, got `{Self}`",
    label = "the numbers of a row: `5`, `[5]`, or with the rows `(None, 5)`"
)]
pub trait IntoInputShape {
    /// The shape as written.
    fn into_input_shape(self) -> InputShape;
}

fn size(count: impl IntoCount) -> Option<u64> {
    // What is negative is as wrong as 0.
    Some(count.into_count().value().unwrap_or_default())
}

impl<T: IntoCount> IntoInputShape for T {
    fn into_input_shape(self) -> InputShape {
        InputShape(vec![size(self)])
    }
}

impl<T: IntoCount, const N: usize> IntoInputShape for [T; N] {
    fn into_input_shape(self) -> InputShape {
        InputShape(self.into_iter().map(size).collect())
    }
}

impl<T: IntoCount> IntoInputShape for (T,) {
    fn into_input_shape(self) -> InputShape {
        InputShape(vec![size(self.0)])
    }
}

impl<T: IntoCount, const N: usize> IntoInputShape for [Option<T>; N] {
    fn into_input_shape(self) -> InputShape {
        let sizes = self.into_iter().map(|count| count.and_then(size));
        InputShape(sizes.collect())
    }
}

impl<T: IntoCount> IntoInputShape for (Option<T>, T) {
    fn into_input_shape(self) -> InputShape {
        InputShape(vec![self.0.and_then(size), size(self.1)])
    }
}

impl InputShape {
    /// The numbers of a row.
    ///
    /// # Errors
    /// SC0915 for a shape of another kind.
    pub(crate) fn width(&self, call: &str) -> Result<usize> {
        let width = match self.0[..] {
            [Some(width)] | [None, Some(width)] => usize::try_from(width).ok(),
            _ => None,
        };
        width.filter(|&width| width > 0).ok_or_else(|| {
            let sizes = self.0.iter();
            let sizes = sizes.map(|size| size.map_or("None".to_owned(), |size| size.to_string()));
            let rule = InvalidSize {
                what: "input_shape".to_owned(),
                given: format!("({})", sizes.collect::<Vec<_>>().join(", ")),
                expects: "the numbers of a row, at least 1: `5`, or `(None, 5)`".to_owned(),
                place: Some(Place::call(call)),
            };
            rule.error()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_written_as_in_keras() {
        let check = |shape: InputShape, expected: Option<usize>| {
            let found = shape.width("build");
            assert_eq!(found.as_ref().ok().copied(), expected, "{shape:?}");
            assert!(found.is_ok() || found.is_err_and(|finding| finding.code == "SC0915"));
        };
        check(5.into_input_shape(), Some(5));
        check([5].into_input_shape(), Some(5));
        check((5,).into_input_shape(), Some(5));
        check((None, 5).into_input_shape(), Some(5));
        check([None, Some(5)].into_input_shape(), Some(5));
        check(0.into_input_shape(), None);
        check((-5).into_input_shape(), None);
        check([28, 28].into_input_shape(), None);
        check([Some(5), None].into_input_shape(), None);
        check(([0_usize; 0]).into_input_shape(), None);
    }
}
