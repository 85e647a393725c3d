//! Layers and networks of PyTorch: `nn.Sequential`, and classes that are a chain of layers.

use std::collections::BTreeMap;

use stratoscope_diagnostics::CellSpan;

use super::super::arguments::see_whole;
use super::super::call::Made;
use super::super::layer::Layer;
use super::super::thing::Thing;
use super::super::{Translator, Why, text};
use crate::model::{Call, Class, Function, Kind, Statement, StatementKind, Value};

/// Activations by the names of modules and functions.
const ACTIVATIONS: &[(&[&str], &str)] = &[
    (&["ReLU", "relu"], "relu"),
    (&["Sigmoid", "sigmoid"], "sigmoid"),
    (&["Tanh", "tanh"], "tanh"),
    (&["Softmax", "softmax"], "softmax"),
    (&["GELU", "gelu"], "gelu"),
    (&["SiLU", "silu"], "silu"),
    (&["ELU", "elu"], "elu"),
    (&["Softplus", "softplus"], "softplus"),
];

const NO_CHAIN: &str = "a `Module` is translated where `forward` is a chain of layers without arguments of its own; any other is a `Network` of your \
                        own, as in notebooks/model_outside_scope.ipynb";

fn activation(name: &str) -> Option<&'static str> {
    ACTIVATIONS
        .iter()
        .find(|(names, _)| names.contains(&name))
        .map(|(_, it)| *it)
}

/// A layer without an input shape.
fn plain(rust: String, span: CellSpan) -> Layer {
    Layer {
        rust,
        activation: None,
        input_shape: None,
        units: None,
        span,
        is_dense: false,
        is_activation: false,
        is_flatten: false,
    }
}

fn activating(name: &str, span: CellSpan) -> Layer {
    Layer {
        activation: Some(name.to_owned()),
        is_activation: true,
        ..plain(String::new(), span)
    }
}

impl Translator<'_> {
    /// `nn.Linear(4, 2)`, `nn.ReLU()`, `nn.Sequential(…)`.
    pub(crate) fn layer_of_torch(&mut self, full: &str, call: &Call) -> Result<Made, Why> {
        if full == "torch.nn.Sequential" {
            call.see_all();
            let mut layers = Vec::new();
            for value in &call.arguments {
                match self.made(value)?.1 {
                    Thing::Layer(layer) => layers.push(layer),
                    Thing::Layers(more, _) => layers.extend(more),
                    other => return Err(format!("an element is {}, no layer", other.word())),
                }
            }
            return self.network(layers, call.span);
        }
        let layer = self.one_layer(full, call)?;
        Ok((String::new(), Thing::Layer(layer)))
    }

    fn one_layer(&mut self, full: &str, call: &Call) -> Result<Layer, Why> {
        let last = full.rsplit('.').next().unwrap_or_default();
        let span = call.span;
        Ok(match last {
            "Linear" => {
                let inputs = call
                    .argument("in_features", 0)
                    .ok_or("it has no number of inputs")?;
                let inputs = self.value(inputs)?;
                let units = call
                    .argument("out_features", 1)
                    .ok_or("it has no number of outputs")?;
                if let Some(bias) = call.keyword("bias")
                    && bias.value.kind == Kind::Bool(false)
                {
                    return Err("`Dense` has a bias".to_owned());
                }
                Layer {
                    activation: Some("linear".to_owned()),
                    input_shape: Some(format!("({inputs},)")),
                    units: self.integer(units),
                    is_dense: true,
                    ..plain(format!("Dense({})", self.value(units)?), span)
                }
            }
            "Dropout" => {
                let rate = match call.argument("p", 0) {
                    Some(rate) => self.float(rate)?,
                    None => "0.5".to_owned(),
                };
                plain(format!("Dropout({rate})"), span)
            }
            "Embedding" => {
                let count = call
                    .argument("num_embeddings", 0)
                    .ok_or("it has no number of words")?;
                let size = call.argument("embedding_dim", 1).ok_or("it has no size")?;
                plain(
                    format!("Embedding({}, {})", self.value(count)?, self.value(size)?),
                    span,
                )
            }
            "Flatten" => Layer {
                is_flatten: true,
                ..plain("Flatten".to_owned(), span)
            },
            "Identity" => activating("linear", span),
            name => match activation(name) {
                Some(activation) => {
                    call.argument("dim", 0);
                    call.keyword("inplace");
                    activating(activation, span)
                }
                None => {
                    return Err(format!(
                        "there is no layer `{name}` here; there are Linear, Dropout, Embedding and activations, and a `Network` of your own"
                    ));
                }
            },
        })
    }

    /// `model = nn.Linear(3, 1)`.
    pub(crate) fn model_of_one(
        &mut self,
        name: &str,
        call: &Call,
        span: CellSpan,
    ) -> Result<(), Why> {
        self.keeps_outside(name)?;
        let layer = self.one_layer("torch.nn.Linear", call)?;
        let (rust, thing) = self.network(vec![layer], call.span)?;
        self.push(format!("let {} = {rust};", text::name(name)), span);
        self.things.insert(name.to_owned(), thing);
        Ok(())
    }

    /// A model of layers: the first of them knows the shape of the input.
    fn network(&mut self, mut layers: Vec<Layer>, span: CellSpan) -> Result<Made, Why> {
        let shape = layers
            .first_mut()
            .and_then(|layer| layer.input_shape.take());
        for layer in &mut layers {
            layer.input_shape = None;
        }
        let (rust, facts) = self.sequential(layers, shape, span)?;
        self.note(
            span,
            "its weights begin with other random numbers: `Dense` begins as in Keras",
        );
        Ok((rust, Thing::Model(facts)))
    }

    /// `class Net(nn.Module):`. `None`: another class.
    pub(crate) fn module_of_torch(
        &mut self,
        it: &Class,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let is_module = it
            .bases
            .iter()
            .any(|base| self.names.full(base).as_deref() == Some("torch.nn.Module"));
        if !is_module {
            return None;
        }
        let method = |name: &str| {
            it.body.iter().find_map(|statement| match &statement.kind {
                StatementKind::Function(function) if function.name == name => Some(function),
                _ => None,
            })
        };
        let (Some(init), Some(forward)) = (method("__init__"), method("forward")) else {
            return Some(Err(NO_CHAIN.to_owned()));
        };
        if init.parameters.len() != 1 || forward.parameters.len() != 2 {
            return Some(Err(NO_CHAIN.to_owned()));
        }
        Some(
            self.module(it, init, forward, span)
                .map_err(|why| format!("{why}. {NO_CHAIN}")),
        )
    }

    fn module(
        &mut self,
        it: &Class,
        init: &Function,
        forward: &Function,
        span: CellSpan,
    ) -> Result<(), Why> {
        let mut fields: BTreeMap<String, Vec<Layer>> = BTreeMap::new();
        for statement in &init.body {
            match &statement.kind {
                StatementKind::Assign(targets, value) => {
                    let path = targets
                        .first()
                        .and_then(Value::path)
                        .filter(|path| path.len() == 2 && path[0] == "self");
                    let name =
                        path.ok_or("`__init__` sets something else than layers")?[1].to_owned();
                    let layers = match (self.names.called(value).as_deref(), value.call()) {
                        (Some("torch.nn.Sequential"), Some(call)) => {
                            let mut layers = Vec::new();
                            for inner in &call.arguments {
                                layers.extend(self.layer_value(inner)?);
                            }
                            layers
                        }
                        _ => self.layer_value(value)?,
                    };
                    fields.insert(name, layers);
                }
                StatementKind::Expression(value) if value.method("__init__").is_some() => {}
                StatementKind::Nothing => {}
                _ => return Err("`__init__` does something else than to set layers".to_owned()),
            }
        }
        let mut values: BTreeMap<String, Vec<Layer>> = BTreeMap::new();
        values.insert(forward.parameters[1].0.clone(), Vec::new());
        let mut layers = None;
        for statement in &forward.body {
            match &statement.kind {
                StatementKind::Assign(targets, value) => {
                    let name = targets
                        .first()
                        .and_then(Value::name)
                        .ok_or("`forward` is no chain of layers")?;
                    let made = self.forwarded(value, &fields, &values)?;
                    values.insert(name.to_owned(), made);
                }
                StatementKind::Return(Some(value)) => {
                    layers = Some(self.forwarded(value, &fields, &values)?)
                }
                StatementKind::Nothing => {}
                _ => return Err("`forward` is no chain of layers".to_owned()),
            }
        }
        let mut layers = layers.ok_or("`forward` returns nothing")?;
        see_statements(&init.body);
        see_statements(&forward.body);
        let shape = layers
            .first_mut()
            .and_then(|layer| layer.input_shape.take());
        for layer in &mut layers {
            layer.input_shape = None;
        }
        if let Some(first) = layers.first_mut() {
            first.input_shape = shape;
        }
        self.note(
            span,
            "its weights begin with other random numbers: `Dense` begins as in Keras",
        );
        self.class_of_layers(&it.name, layers, span);
        Ok(())
    }

    fn layer_value(&mut self, value: &Value) -> Result<Vec<Layer>, Why> {
        let full = self
            .names
            .called(value)
            .ok_or("`__init__` sets something else than layers")?;
        let call = value
            .call()
            .ok_or("`__init__` sets something else than layers")?;
        Ok(vec![self.one_layer(&full, call)?])
    }

    /// The layers that a value of `forward` has passed.
    fn forwarded(
        &self,
        value: &Value,
        fields: &BTreeMap<String, Vec<Layer>>,
        values: &BTreeMap<String, Vec<Layer>>,
    ) -> Result<Vec<Layer>, Why> {
        if let Some(name) = value.name() {
            return values
                .get(name)
                .cloned()
                .ok_or_else(|| "`forward` is no chain of layers".to_owned());
        }
        let call = value.call().ok_or("`forward` is no chain of layers")?;
        let inner = call.arguments.first();
        if let Some(["self", field]) = call.function.path().as_deref() {
            let layers = fields
                .get(*field)
                .ok_or("`forward` calls something else than layers")?;
            let mut before =
                self.forwarded(inner.ok_or("a layer gets no input")?, fields, values)?;
            before.extend(layers.iter().cloned());
            return Ok(before);
        }
        let full = self.names.full(&call.function).unwrap_or_default();
        let last = full.rsplit('.').next().unwrap_or_default();
        match activation(last).filter(|_| full.starts_with("torch.")) {
            Some(name) => {
                let mut before =
                    self.forwarded(inner.ok_or("an activation gets no input")?, fields, values)?;
                before.push(activating(name, call.span));
                Ok(before)
            }
            None => Err("`forward` is no chain of layers".to_owned()),
        }
    }
}

fn see_statements(body: &[Statement]) {
    for statement in body {
        statement.values().into_iter().for_each(see_whole);
    }
}
