//! What `config.json` of a ModernBERT has beside the fields of a BERT. Source: transformers v4.57.1,
//! `configuration_modernbert.py`, whose defaults hold for absent fields; since v5 the file names the kind of each layer
//! (`layer_types`) and the bases (`rope_parameters`).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stratoscope_diagnostics::Result;

use super::read::Fields;
use super::{LARGEST_COUNT, LARGEST_SIZE};
use crate::parameters::Initial;

/// What a ModernBERT has beside the fields of a BERT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModernConfig {
    /// How each layer attends, `num_hidden_layers` of them.
    pub layers: Vec<LayerAttention>,
    /// Dropout inside the feed-forward part; 0 up to, not including, 1.
    pub mlp_dropout_prob: f64,
    /// What a head for a whole sequence reads.
    pub pooling: Pooling,
    /// New weights are at most this number of their standard deviations from 0; more than 0.
    pub initializer_cutoff_factor: f64,
}

/// How a layer attends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerAttention {
    /// θ: the numbers 2·j and 2·j + 1 of D are rotated by `position / θ^(2·j/D)`.
    pub base: f64,
    /// The largest distance to a position that is attended to, on either side; `None`: all positions.
    pub window: Option<usize>,
}

/// What a head for a whole sequence reads of the last layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pooling {
    /// The vector of the first token.
    #[default]
    First,
    /// The mean over the tokens.
    Mean,
}

/// Options with another value than the one that is computed.
const COMPUTED: [(&str, Value); 6] = [
    ("attention_bias", Value::Bool(false)),
    ("mlp_bias", Value::Bool(false)),
    ("norm_bias", Value::Bool(false)),
    ("classifier_bias", Value::Bool(false)),
    ("decoder_bias", Value::Bool(true)),
    ("rope_scaling", Value::Null),
];

impl ModernConfig {
    /// Reads the fields for a model of so many layers.
    ///
    /// # Errors
    /// SC0903 for an option that is not implemented, SC0909 for a value that makes no network.
    pub(super) fn of(fields: &Fields<'_>, layers: usize) -> Result<Self> {
        for (field, computed) in COMPUTED {
            fields.must_be(field, &computed)?;
        }
        if let Some(found) = fields.file.get("classifier_activation")
            && found != "gelu"
        {
            return Err(fields.unsupported("classifier_activation", found, &["gelu"]));
        }
        let pooling = match fields.file.get("classifier_pooling") {
            None => Pooling::First,
            Some(value) if value == "cls" => Pooling::First,
            Some(value) if value == "mean" => Pooling::Mean,
            Some(other) => {
                return Err(fields.unsupported("classifier_pooling", other, &["cls", "mean"]));
            }
        };
        Ok(Self {
            layers: attention_of_layers(fields, layers)?,
            mlp_dropout_prob: fields.number("mlp_dropout", 0.0)?,
            pooling,
            initializer_cutoff_factor: cutoff(fields)?,
        })
    }

    /// The initial values of new weights with this standard deviation. Source: transformers v4.57.1 `modeling_modernbert.py`,
    /// `_init_weights`.
    pub(crate) fn initial(&self, deviation: f64) -> Initial {
        Initial::Truncated {
            deviation,
            cutoff: self.initializer_cutoff_factor,
        }
    }
}

/// A smaller factor would leave out nearly all numbers that are drawn.
const MIN_CUTOFF: f64 = 0.1;

fn cutoff(fields: &Fields<'_>) -> Result<f64> {
    let name = "initializer_cutoff_factor";
    let Some(value) = fields.file.get(name) else {
        return Ok(2.0);
    };
    if value.is_null() {
        return Ok(3.0);
    }
    match value
        .as_f64()
        .filter(|it| it.is_finite() && *it >= MIN_CUTOFF)
    {
        Some(factor) => Ok(factor),
        None => fields.invalid(name, value, &format!("a number ≥ {MIN_CUTOFF}")),
    }
}

/// Whether each layer attends to all positions, and with which base.
fn attention_of_layers(fields: &Fields<'_>, layers: usize) -> Result<Vec<LayerAttention>> {
    let global = LayerAttention {
        base: base(fields, "full_attention", "global_rope_theta", 160_000.0)?,
        window: None,
    };
    // A file without this base means that of the other layers.
    let without = match fields.file.get("local_rope_theta") {
        Some(Value::Null) => global.base,
        _ => 10_000.0,
    };
    let reach = fields.count("local_attention", 128, LARGEST_SIZE)?;
    let local = LayerAttention {
        base: base(fields, "sliding_attention", "local_rope_theta", without)?,
        window: Some(reach / 2),
    };
    let kind = |is_global: bool| if is_global { global } else { local };
    let Some(types) = fields.present("layer_types") else {
        let every = fields.count("global_attn_every_n_layers", 3, LARGEST_COUNT)?;
        return Ok((0..layers)
            .map(|layer| kind(layer.is_multiple_of(every)))
            .collect());
    };
    let of_types = types.as_array().filter(|types| types.len() == layers);
    let of_types = of_types.and_then(|types| {
        let kinds = types.iter().map(|it| match it.as_str() {
            Some("full_attention") => Some(global),
            Some("sliding_attention") => Some(local),
            _ => None,
        });
        kinds.collect()
    });
    match of_types {
        Some(kinds) => Ok(kinds),
        None => {
            let expected = format!(
                "a list of {layers}, for each layer `full_attention` or `sliding_attention`"
            );
            fields.invalid("layer_types", types, &expected)
        }
    }
}

/// The base of one kind of layers: `rope_parameters.{kind}.rope_theta`, or the field that it had before.
fn base(fields: &Fields<'_>, kind: &str, before: &str, default: f64) -> Result<f64> {
    let parameters = fields
        .file
        .get("rope_parameters")
        .and_then(|it| it.get(kind));
    if let Some(found) = parameters.and_then(|it| it.get("rope_type"))
        && found != "default"
    {
        return Err(fields.unsupported("rope_parameters", found, &["default"]));
    }
    let theta = parameters.and_then(|it| it.get("rope_theta"));
    let (field, theta) = match theta {
        Some(theta) => ("rope_parameters", Some(theta)),
        None => (before, fields.present(before)),
    };
    let Some(theta) = theta else {
        return Ok(default);
    };
    match theta
        .as_f64()
        .filter(|base| base.is_finite() && *base >= 1.0)
    {
        Some(base) => Ok(base),
        None => fields.invalid(field, theta, "a number ≥ 1"),
    }
}
