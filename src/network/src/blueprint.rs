//! [`Blueprint`]: what a process that has this library builds a network from.

use serde::{Deserialize, Serialize};

/// The structure of a network, without the values of its variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    /// Which of the networks of this library it is.
    pub family: String,
    /// Its sizes, in the words of the family.
    pub description: Vec<u8>,
}

impl Blueprint {
    /// Of a family, from anything that describes the network.
    pub fn of(family: &str, description: &impl Serialize) -> Option<Self> {
        Some(Self {
            family: family.to_owned(),
            description: rmp_serde::to_vec(description).ok()?,
        })
    }

    /// What describes the network.
    pub fn read<T: for<'de> Deserialize<'de>>(&self) -> Result<T, String> {
        rmp_serde::from_slice(&self.description).map_err(|error| error.to_string())
    }
}
