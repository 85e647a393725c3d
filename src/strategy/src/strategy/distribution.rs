//! What each strategy says of itself.

use super::Strategy;
use super::explain::Row;
use crate::variable::kind::{Kind, Rows};

/// A strategy: where it stores variables and what its steps do. The default of a method holds for most.
pub(crate) trait Distribution {
    /// The name of its type: `MirroredStrategy`.
    fn type_name(&self) -> &'static str;

    /// The name in messages: `mirrored`.
    fn name(&self) -> &'static str;

    /// Where the variables of a module are stored while it trains.
    fn storing(&self) -> Storing;

    /// The creation rule: the kind that it gives to a variable. `taken` is the number of variables and shards that were
    /// stored before; `rows` is given for variables that may be split. Variables that replicas divide among them
    /// ([`Shard`](super::Shard)) have a rule of their own.
    fn created(&self, strategy: &Strategy, taken: usize, rows: Option<Rows>) -> Kind;

    /// What an optimizer step does, in a paragraph.
    fn step(&self, strategy: &Strategy) -> String;

    /// The bytes of a step, where they are not those of replicas with copies, or of replicas that fetch the variables.
    fn bytes(&self, _strategy: &Strategy) -> Option<Vec<Row>> {
        None
    }

    /// Its devices in words, where they are more than so many devices of a kind.
    fn devices(&self, _strategy: &Strategy) -> Option<String> {
        None
    }
}

/// Where the variables of a module are stored while it trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storing {
    /// A copy on each replica, which updates it.
    Copies,
    /// The same, with each replica in a process of its own.
    CopiesInProcesses,
    /// Once for all replicas, which fetch them before they compute.
    Once,
    /// Once for each replica, on its devices that compute the layers.
    ByLayers,
}
