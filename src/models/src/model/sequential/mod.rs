//! `Sequential`: a model written as a list of layers, as in Keras.
//!
//! ```
//! use stratoscope_data::make_regression;
//! use stratoscope_models::{Adam, CompileArgs, Dense, FitArgs, MeanSquaredError, Sequential};
//!
//! # fn main() -> stratoscope_diagnostics::Result<()> {
//! let model = Sequential([Dense(10).activation("relu").input_shape((5,)), Dense(1)])?;
//! println!("{}", model.summary());
//! model.compile(
//!     CompileArgs::new()
//!         .optimizer(Adam::new(0.01))
//!         .loss(MeanSquaredError),
//! )?;
//! let history = model.fit(&make_regression(64, 5, 0)?, FitArgs::new().epochs(2).verbose(false))?;
//! assert!(history.epochs[1].loss < history.epochs[0].loss);
//! # Ok(())
//! # }
//! ```
//!
//! With the shape of its input it is built at once, in the scope it stands in; without, it waits: see
//! `crate::model::build`. A model that is built can be saved and loaded: `saved.rs`.

mod constructors;
mod layer;
mod layers;
mod room;
mod saved;

use stratoscope_diagnostics::Result;
use stratoscope_strategy::{Origin, scope};

use crate::model::{Model, ModelOf};
use stratoscope_network::{Network, Outputs};

pub use constructors::{Dense, Dropout, Embedding, Flatten, GlobalAveragePooling1D};
pub(in crate::model) use layer::Kind;
pub use layer::Layer;
pub(crate) use layers::FAMILY;
pub use layers::Layers;
pub use stratoscope_network::{Activation, IntoActivation};

/// A model that is a list of layers.
pub type Sequential = ModelOf<Layers>;

/// A model that is a list of layers: `Sequential([Dense(10).activation("relu"), Dense(1)])?`.
///
/// # Errors
/// SC0915 for a layer or a shape that cannot be, SC0105 for an unknown activation; SC0907 if a device
/// does not take its copy.
#[allow(
    non_snake_case,
    reason = "models are written with Keras's names, `Sequential([…])`"
)]
#[track_caller]
pub fn Sequential(layers: impl IntoIterator<Item = Layer>) -> Result<Sequential> {
    of_layers(layers.into_iter().collect(), Origin::current())
}

impl Sequential {
    /// The same as [`Sequential`](Sequential()): `Sequential::new([Dense(10).activation("relu"), Dense(1)])?`.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn new(layers: impl IntoIterator<Item = Layer>) -> Result<Self> {
        of_layers(layers.into_iter().collect(), Origin::current())
    }
}

fn of_layers(layers: Vec<Layer>, origin: Origin) -> Result<Sequential> {
    let mut network = Layers::new(layers)?;
    if let Some(width) = network.declared().transpose()? {
        network.fits(width)?;
        network = network.build(width, &scope::device()?);
    }
    let outputs = Outputs::new("Sequential", network.outputs());
    Model::with_files(network, outputs, origin)
}
