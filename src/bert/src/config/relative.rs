//! What `config.json` says of attention that looks at distances: MPNet and DeBERTa. Source: transformers v5.24.0,
//! `configuration_mpnet.py` and `configuration_deberta_v2.py`, whose defaults hold for absent fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stratoscope_diagnostics::Result;

use super::LARGEST_SIZE;
use super::read::Fields;
use crate::family::Family;

/// How attention depends on the distance between two tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relative {
    /// MPNet's: a number for each head is added to the score, by the bucket of the distance; there are 32.
    Scores,
    /// DeBERTa's: a vector for each bucket of the distance, with which queries and keys are multiplied, too.
    Vectors(DistanceVectors),
}

/// The vectors of a DeBERTa for distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistanceVectors {
    /// Buckets in each direction: the table has twice as many vectors.
    pub span: usize,
    /// The distance from which on all are in the last bucket, where longer distances share buckets; `None`: each distance
    /// below `span` is a bucket of its own.
    pub largest_distance: Option<usize>,
    /// Whether a query is multiplied with the vector of the distance as a key.
    pub content_to_position: bool,
    /// Whether a key is multiplied with the vector of the distance as a query.
    pub position_to_content: bool,
    /// Whether the vectors are normalized before they are used.
    pub normalized: bool,
}

/// Options of a DeBERTa: what an absent one is in transformers, and what is computed.
const OPTIONS: [(&str, bool, bool); 4] = [
    ("relative_attention", false, true),
    ("share_att_key", false, true),
    ("position_biased_input", true, false),
    ("legacy", true, true),
];

impl Relative {
    /// Reads the fields of a model of this family; `None` where its attention knows no distances.
    ///
    /// # Errors
    /// SC0903 for an option that is not implemented, SC0909 for a value that makes no network.
    pub(super) fn of(fields: &Fields<'_>, family: Family) -> Result<Option<Self>> {
        match family {
            Family::MpNet => {
                let name = "relative_attention_num_buckets";
                // transformers makes a table of so many rows and looks up 32 of them all the same.
                fields.must_be(name, &Value::from(32))?;
                Ok(Some(Self::Scores))
            }
            Family::Deberta => Ok(Some(Self::Vectors(DistanceVectors::of(fields)?))),
            _ => Ok(None),
        }
    }
}

impl DistanceVectors {
    fn of(fields: &Fields<'_>) -> Result<Self> {
        for (field, absent, computed) in OPTIONS {
            let absent = Value::Bool(absent);
            let found = fields.present(field).unwrap_or(&absent);
            if *found != computed {
                return Err(fields.unsupported(field, found, &[&computed.to_string()]));
            }
        }
        let zeros = ["type_vocab_size", "conv_kernel_size", "pooler_dropout"];
        for field in zeros {
            let found = fields.present(field);
            if let Some(found) = found.filter(|it| it.as_f64() != Some(0.0)) {
                return Err(fields.unsupported(field, found, &["0"]));
            }
        }
        let widths = ["embedding_size", "pooler_hidden_size"];
        let hidden = fields.file.get("hidden_size");
        for field in widths {
            let found = fields.present(field);
            if let Some(found) = found.filter(|it| Some(*it) != hidden) {
                let hidden = hidden.map_or("1536".to_owned(), Value::to_string);
                return Err(fields.unsupported(field, found, &[&hidden]));
            }
        }
        let activation = fields.file.get("pooler_hidden_act");
        if let Some(found) = activation.filter(|it| *it != "gelu") {
            return Err(fields.unsupported("pooler_hidden_act", found, &["gelu"]));
        }
        let largest = match signed(fields, "max_relative_positions")? {
            Some(largest) => largest,
            None => fields.count("max_position_embeddings", 512, LARGEST_SIZE)?,
        };
        let buckets = signed(fields, "position_buckets")?;
        let kinds = kinds(fields)?;
        let has = |kind: &str| kinds.iter().any(|it| it == kind);
        Ok(Self {
            span: buckets.unwrap_or(largest),
            largest_distance: buckets.map(|_| largest),
            content_to_position: has("c2p"),
            position_to_content: has("p2c"),
            normalized: normalizes(fields)?,
        })
    }
}

/// A count of which −1 says that there is none.
fn signed(fields: &Fields<'_>, name: &str) -> Result<Option<usize>> {
    match fields.present(name) {
        Some(value) if value.as_i64().is_some_and(|it| it < 1) => Ok(None),
        None => Ok(None),
        // With one bucket there is no distance from which on it begins.
        Some(value) if value == 1 => fields.invalid(name, value, "−1, or an integer ≥ 2"),
        Some(_) => fields.count(name, 2, LARGEST_SIZE).map(Some),
    }
}

/// Which products there are beside that of a query and a key: a list, or names between bars.
fn kinds(fields: &Fields<'_>) -> Result<Vec<String>> {
    let name = "pos_att_type";
    let Some(value) = fields.present(name) else {
        return Ok(Vec::new());
    };
    let kinds: Option<Vec<String>> = match value {
        Value::String(names) => {
            let names = names.split('|').map(str::trim).map(str::to_lowercase);
            Some(names.filter(|it| !it.is_empty()).collect())
        }
        Value::Array(names) => {
            let names = names.iter().map(|it| it.as_str().map(str::to_lowercase));
            names.collect()
        }
        _ => None,
    };
    let known = |kinds: &Vec<String>| kinds.iter().all(|it| it == "c2p" || it == "p2c");
    match kinds.filter(known) {
        Some(kinds) => Ok(kinds),
        None => Err(fields.unsupported(name, value, &["c2p", "p2c", "p2c|c2p"])),
    }
}

/// Whether the vectors are normalized.
fn normalizes(fields: &Fields<'_>) -> Result<bool> {
    let name = "norm_rel_ebd";
    let Some(value) = fields.present(name) else {
        return Ok(false);
    };
    let names = value.as_str().unwrap_or_default().to_lowercase();
    match names.as_str() {
        "none" => Ok(false),
        "layer_norm" => Ok(true),
        _ => Err(fields.unsupported(name, value, &["layer_norm", "none"])),
    }
}
