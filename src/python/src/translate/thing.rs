//! What a name of the Python cell is.

use stratoscope_diagnostics::CellSpan;

use super::distribution::Mesh;
use super::layer::Layer;
use super::pretrained::Head;
use super::stages::Stage;
use super::tape::Tape;
use super::trainer::part::Part;
use crate::model::{Call, Value};

/// What a name is known to be.
#[derive(Clone, Debug)]
pub(crate) enum Thing {
    /// A strategy.
    Strategy,
    /// A model.
    Model(ModelFacts),
    /// The layers of a model that is not made yet, and the shape of its input.
    Layers(Vec<Layer>, Option<String>),
    /// One layer, not applied.
    Layer(Layer),
    /// A function that returns a model, and its parameters with their defaults.
    Builder(ModelFacts, Vec<(String, Option<Value>)>),
    /// A subclass of `Model` that is a chain of layers: the layers.
    Class(Vec<Layer>),
    /// A function with a step by hand.
    Step(Box<Tape>),
    /// A function without parameters and result: its statements stand where it is called.
    Body(Box<crate::model::Function>),
    /// An optimizer.
    Optimizer,
    /// A loss.
    Loss(LossFacts),
    /// A metric or a list of them.
    Metrics,
    /// A schedule.
    Schedule,
    /// A callback, as an element of `callbacks`.
    Callback(CallbackKind),
    /// A list of callbacks.
    Callbacks(Vec<CallbackKind>),
    /// What a configuration of Hugging Face says of a head.
    Config(Box<Head>),
    /// A tokenizer.
    Tokenizer,
    /// Texts that a tokenizer has read.
    Encodings(Encodings),
    /// A function that only tokenizes what it gets.
    Tokenizes(Option<String>, CellSpan),
    /// A data set.
    Data(Pipeline),
    /// The parts of a data set.
    Splits(Splits),
    /// What `fit` returns.
    History,
    /// What `evaluate` returns.
    Evaluation,
    /// What `predict` returns.
    Predictions(Predicted),
    /// The numbers of the classes of predictions.
    Classes(Predicted),
    /// A table that says itself what it has.
    Report,
    /// What predictions say about a model, which is shown and not printed.
    Assessment,
    /// The labels of a data set of this name, whose rows are the set itself.
    LabelsOf(String),
    /// A whole number; its value, where it is written.
    Int(Option<i64>),
    /// Another number.
    Float,
    /// A text.
    Text,
    /// A part of what a model predicts, and the predictions, as Rust.
    Staged(Stage, String),
    /// A moment of a clock.
    Clock,
    /// A condition.
    Bool,
    /// A list of texts.
    Texts,
    /// A list of floats, and the run whose values they are.
    Floats(Option<String>),
    /// The numbers of the epochs of a run, for an axis.
    Epochs(String),
    /// A generator of random numbers, with its seed.
    Generator(Option<String>),
    /// A figure of matplotlib, which nothing is made for.
    Figure,
    /// A function that draws the run that it is given: the place and the name of its parameter.
    Draws(usize, String),
    /// A list of other things.
    List,
    /// A value that is translated and no more is known of.
    Value,
    /// A dictionary with texts as keys, whose values stand where they are read.
    Dict(Vec<(String, Value)>),
    /// `tf.data.Options`, with its policy for workers.
    Options(Option<&'static str>),
    /// A part of `compile!` or `fit!`.
    Part(Box<Part>),
    /// A mesh of devices.
    Mesh(Mesh),
    /// A map of layouts over a mesh.
    Layout(Mesh),
    /// A layout of Keras: the axes of a mesh, by the axes of a variable.
    Axes(Vec<Option<String>>),
    /// Nothing is made for it: what it stands for is part of something else.
    Folded,
    /// It is not translated, or was made in a block that has ended; the line.
    Missing(usize),
}

/// Predictions of the cell.
#[derive(Clone, Debug)]
pub(crate) struct Predicted {
    /// Them as Rust: their name, or the call that makes them.
    pub rust: String,
    /// The call that makes them.
    pub made: String,
    /// What was predicted, where it has a name.
    pub source: Option<Source>,
}

/// What was predicted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// A data set.
    Set(String),
    /// Rows of numbers.
    Rows(String),
}

/// What is known of a model.
#[derive(Clone, Debug)]
pub(crate) struct ModelFacts {
    /// Where it is made.
    pub span: CellSpan,
    /// BERT, whose heads have logits.
    pub is_bert: bool,
    /// The activation of its last layer; `None` where it is not known.
    pub activation: Option<String>,
    /// Its outputs.
    pub outputs: Option<i64>,
    /// Its variables exist.
    pub is_built: bool,
    /// The strategy whose scope it was made in.
    pub scope: Option<String>,
    /// Its `compile!` in the cell.
    pub compiled: Option<Compiled>,
}

/// A `compile!` of the cell.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    /// Its first line.
    pub line: usize,
    /// How many lines it has.
    pub count: usize,
    /// Its arguments.
    pub parts: Vec<String>,
}

/// What is known of a loss.
#[derive(Clone, Debug)]
pub(crate) struct LossFacts {
    /// Its type.
    pub name: String,
    /// As Rust.
    pub rust: String,
    /// Whether it takes logits; `None` for one that has no such setting.
    pub from_logits: Option<bool>,
    /// What is underlined when this is wrong.
    pub span: CellSpan,
}

/// Callbacks, and those that are arguments of `fit!`.
#[derive(Clone, Debug)]
pub(crate) enum CallbackKind {
    /// An element of the list, as Rust.
    Element(String),
    /// Arguments of `fit!`, such as `checkpoint = …`.
    Arguments(Vec<String>),
}

/// What a tokenizer was given.
#[derive(Clone, Debug)]
pub(crate) struct Encodings {
    /// The texts.
    pub texts: String,
    /// The second texts.
    pub pair: Option<String>,
    /// The greatest length in tokens.
    pub max_length: Option<String>,
    /// The tokenizer.
    pub tokenizer: Option<Value>,
}

/// A data set and what it sets in `fit!`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pipeline {
    /// It as Rust.
    pub rust: String,
    /// `batch_size`.
    pub batch: Option<String>,
    /// `max_length`.
    pub max_length: Option<String>,
    /// `Some(false)`: made by a pipeline without `shuffle`.
    pub shuffle: Option<bool>,
    /// The `shuffle` whose order a part that is taken of it must have.
    pub shuffled: Option<Box<Call>>,
    /// It is one of `tf.data`, whose maps see no texts.
    pub is_tensorflow: bool,
}

/// The parts of a data set.
#[derive(Clone, Debug)]
pub(crate) struct Splits {
    /// The names of the splits and of their variables.
    pub names: Vec<(&'static str, String)>,
    /// They are of `tf.data`, whose maps see no texts.
    pub is_tensorflow: bool,
    /// `max_length`.
    pub max_length: Option<String>,
}

impl Pipeline {
    /// A data set that is this.
    pub fn of(rust: impl Into<String>) -> Self {
        Self {
            rust: rust.into(),
            ..Self::default()
        }
    }
}

impl Thing {
    /// What it is in words, for a name that is not what is expected.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Strategy => "a strategy",
            Self::Model(_) => "a model",
            Self::Layers(..) | Self::Layer(_) => "a layer",
            Self::Draws(..) => "a function",
            Self::Builder(..) | Self::Tokenizes(..) | Self::Step(_) | Self::Body(_) => "a function",
            Self::Class(_) => "a class",
            Self::Optimizer => "an optimizer",
            Self::Loss(_) => "a loss",
            Self::Metrics => "a metric",
            Self::Schedule => "a schedule",
            Self::Callback(_) => "a callback",
            Self::Callbacks(_) => "a list of callbacks",
            Self::Tokenizer => "a tokenizer",
            Self::Config(_) => "a configuration",
            Self::Encodings(_) => "tokens",
            Self::Data(_) | Self::Splits(..) => "a data set",
            Self::History => "a history",
            Self::Evaluation => "an evaluation",
            Self::Predictions(_) => "predictions",
            Self::Classes(_) => "a list",
            Self::LabelsOf(_) => "the labels of a data set",
            Self::Report | Self::Assessment => "a table",
            Self::Int(_) | Self::Float => "a number",
            Self::Text => "a text",
            Self::Staged(..) => "predictions",
            Self::Clock => "a time",
            Self::Bool => "a condition",
            Self::Texts | Self::List | Self::Floats(_) | Self::Epochs(_) => "a list",
            Self::Figure => "a figure",
            Self::Generator(_) => "a generator of random numbers",
            Self::Dict(_) => "a dictionary",
            Self::Part(part) => part.word(),
            Self::Mesh(_) => "a mesh of devices",
            Self::Layout(_) | Self::Axes(_) => "a layout",
            Self::Value | Self::Options(_) | Self::Folded | Self::Missing(_) => "a value",
        }
    }
}
