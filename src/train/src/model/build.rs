//! Models whose variables are made later than they themselves: when `build` says how wide the input is,
//! when `compile!` stands in a scope, or when the first data comes. Scope rules: docs/keras-semantics.md §3.
//!
//! A model without variables has replicas without variables. Building makes the variables on the
//! devices of the strategy that the model is bound to by then: of the scope that it was written in,
//! else of the scope that `compile!` stood in.

use stratoscope_data::Dataset;
use stratoscope_diagnostics::rules::{
    Examples, FitInAnotherScope, InputShapeMismatch, InvalidSize,
};
use stratoscope_diagnostics::{Place, Result, Rule};
use stratoscope_strategy::{Origin, Replicas, Strategy, cpu, scope};

use crate::arguments::{IntoCount, StrategyChoice};
use crate::model::{Model, State};
use crate::network::{Files, Input, Network, Outputs};

impl<N: Network<Files = Outputs>> Model<N> {
    /// A model of a network of one's own that takes numbers. See [`Network`] for an example.
    ///
    /// # Errors
    /// SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn of(network: N, outputs: Outputs) -> Result<Self> {
        Self::new(network, outputs, Origin::current())
    }
}

impl<N: Network> Model<N> {
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
        match state.replicas.first().input_width() {
            Some(built) if built != width => {
                let given = Examples::Numbers(Some(width));
                Err(does_not_fit(&state, given, "`input_shape`", "build"))
            }
            _ => Ok(()),
        }
    }

    /// Whether its variables exist.
    pub fn is_built(&self) -> bool {
        self.state().is_built()
    }
}

impl<N: Network> State<N> {
    pub(crate) fn is_built(&self) -> bool {
        self.replicas.first().is_built()
    }

    /// The strategy that `compile!` binds the model to: that of its scope, if nothing else has
    /// placed the variables before.
    pub(crate) fn to_be_bound(&self, choice: &StrategyChoice) -> Option<Strategy> {
        if self.is_built() || self.replicas.strategy().is_some() {
            return None;
        }
        match choice {
            StrategyChoice::None => None,
            StrategyChoice::This(strategy) => Some(strategy.clone()),
            StrategyChoice::OfTheScope => scope::current(),
        }
    }

    /// What `compile!` does with a model that waits: it binds the model to `strategy`, if there is one,
    /// and makes its variables if the network knows how wide its input is.
    pub(crate) fn settle(&mut self, strategy: Option<Strategy>, origin: Origin) -> Result<()> {
        if self.is_built() {
            return Ok(());
        }
        let bound = self.replicas.strategy();
        let strategy = strategy.or_else(|| bound.cloned());
        match self.replicas.first().input_width() {
            Some(width) => self.make_variables(width, strategy, origin),
            None if bound == strategy.as_ref() => Ok(()),
            None => {
                let network = self.replicas.first().clone();
                self.place(network, strategy, origin)
            }
        }
    }

    /// The strategy that variables made now belong to: the model's; one that neither a scope nor
    /// `compile!` has bound yet takes the active one.
    fn strategy_now(&self) -> Option<Strategy> {
        match self.replicas.strategy() {
            Some(bound) => Some(bound.clone()),
            None if self.compiled.is_none() => scope::current(),
            None => None,
        }
    }

    fn make_variables(
        &mut self,
        width: usize,
        strategy: Option<Strategy>,
        origin: Origin,
    ) -> Result<()> {
        let device = match strategy.as_ref().and_then(|it| it.replicas().first()) {
            Some(device) => device.training(),
            None => cpu(0).resolve()?.training(),
        };
        self.replicas.first().fits(width)?;
        let network = self.replicas.first().clone().build(width, &device);
        self.place(network, strategy, origin)
    }

    fn place(&mut self, network: N, strategy: Option<Strategy>, origin: Origin) -> Result<()> {
        let names: Vec<_> = network
            .parameters()
            .into_iter()
            .map(|known| (known.name, known.id))
            .collect();
        self.replicas = Replicas::place_under(strategy, network, &names, origin)?;
        self.enter_in_ledger();
        Ok(())
    }

    /// Before any data is looked at more closely: `fit!` must not stand in a foreign scope, the rows
    /// must be what the model takes, and a model that waited for them has its variables made.
    ///
    /// # Errors
    /// SC0205, SC0411, and what the network itself finds.
    pub(crate) fn ready_for(&mut self, data: &Dataset, call: &str, origin: Origin) -> Result<()> {
        if call == "fit" {
            self.stands_where_it_belongs()?;
        }
        // That there are no examples at all is said later, in the words of the call.
        if data.is_empty() {
            return Ok(());
        }
        let given = match data.num_features() {
            0 => Examples::Texts,
            width => Examples::Numbers(Some(width)),
        };
        let fits = match (self.files.takes(), given) {
            (Input::Texts, Examples::Texts) => true,
            (Input::Features, Examples::Numbers(_)) => {
                let width = self.replicas.first().input_width();
                width.is_none_or(|width| width == data.num_features())
            }
            _ => false,
        };
        if !fits {
            return Err(does_not_fit(self, given, &data.source, call));
        }
        self.replicas.first().check(data, call)?;
        if !self.is_built() {
            self.make_variables(data.num_features(), self.strategy_now(), origin)?;
        }
        Ok(())
    }

    /// SC0205.
    fn stands_where_it_belongs(&self) -> Result<()> {
        let bound = self.replicas.strategy();
        let Some(active) = scope::current().filter(|active| bound != Some(active)) else {
            return Ok(());
        };
        if bound.is_none() && (self.alone || (!self.is_built() && self.compiled.is_none())) {
            return Ok(());
        }
        let devices = self.replicas.devices().iter();
        let devices: Vec<&str> = devices.map(|device| device.name.as_str()).collect();
        let rule = FitInAnotherScope {
            active: active.label(),
            bound: bound.map(Strategy::label),
            device: devices.join(", "),
        };
        Err(rule.error())
    }
}

/// SC0411.
fn does_not_fit<N: Network>(
    state: &State<N>,
    given: Examples,
    source: &str,
    call: &str,
) -> Box<stratoscope_diagnostics::Diagnostic> {
    let rule = InputShapeMismatch {
        model: state.files.model_name().to_owned(),
        wants: match state.files.takes() {
            Input::Texts => Examples::Texts,
            Input::Features => Examples::Numbers(state.replicas.first().input_width()),
        },
        given,
        source: source.to_owned(),
        call: call.to_owned(),
    };
    rule.error()
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
            assert!(found.is_ok() || found.is_err_and(|told| told.code == "SC0915"));
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
