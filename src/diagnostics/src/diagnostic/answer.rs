//! What a version of TensorFlow does with the program of a diagnostic.

use serde::{Deserialize, Serialize};

use crate::Profile;

/// What one version of TensorFlow does with the same program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The version.
    pub profile: Profile,
    /// What it does, in our words: ``raises in `compile` ``.
    pub does: String,
    /// What it says, in its own; `…` stands for what was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
}

impl Answer {
    /// It does this without a message.
    pub fn does(profile: Profile, does: impl Into<String>) -> Self {
        let does = does.into();
        Self {
            profile,
            does,
            says: None,
        }
    }

    /// It does this and says that.
    pub fn says(profile: Profile, does: impl Into<String>, says: impl Into<String>) -> Self {
        Self {
            says: Some(says.into()),
            ..Self::does(profile, does)
        }
    }
}
