//! [`ModelOf`]: a model whose network has a known type.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use super::{Model, held};
use stratoscope_arguments::context::RunContext;
use stratoscope_network::Network;

/// A [`Model`] with a network of the type `N`: it has the model's methods, and those that need the type.
pub struct ModelOf<N> {
    model: Model,
    network: PhantomData<fn() -> N>,
}

impl<N: Network> ModelOf<N> {
    /// `None` where the model has another network.
    pub(super) fn typed(model: Model) -> Option<Self> {
        let has_it = {
            let state = model.state();
            let network = state.step.replicas.first();
            network.downcast_ref::<N>().is_some()
        };
        has_it.then(|| Self::of_model(model))
    }

    pub(super) fn of_model(model: Model) -> Self {
        held::register::<N>(&RunContext::current());
        Self {
            model,
            network: PhantomData,
        }
    }

    /// Calls `look` with replica 0's network. Everything may be asked of the model meanwhile. A loop of
    /// such calls on a model with several replicas shows SC0203: the others do nothing.
    pub fn with_network<T>(&self, look: impl FnOnce(&N) -> T) -> T {
        // A copy of the handles, so that the state is free again.
        let network = self.model.lent_network();
        let network = network.downcast_ref();
        look(network.expect("a model keeps the type of its network"))
    }
}

impl<N> Deref for ModelOf<N> {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}

impl<N> Clone for ModelOf<N> {
    /// Another handle of the same model.
    fn clone(&self) -> Self {
        Self {
            model: self.model.clone(),
            network: PhantomData,
        }
    }
}

impl<N> fmt::Debug for ModelOf<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.model, f)
    }
}
