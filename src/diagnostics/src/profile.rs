//! The versions of TensorFlow and Keras whose answers can be shown beside ours.

use serde::{Deserialize, Serialize};

/// A version whose exact words a card may quote. Each was run; see the notes of a rule's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Profile {
    /// TensorFlow 2.3.4.
    #[serde(rename = "tf-2.3")]
    Tf23,
    /// TensorFlow 2.4.4; 2.5 and 2.6 differ in few texts.
    #[serde(rename = "tf-2.4")]
    Tf24,
    /// tf_keras 2.18.0 on TensorFlow 2.18.1.
    #[serde(rename = "tf_keras-2.18")]
    TfKeras218,
    /// Keras 3.15.1 with its TensorFlow backend.
    #[serde(rename = "keras-3")]
    Keras3,
}

impl Profile {
    /// Every profile, oldest first.
    pub const ALL: [Self; 4] = [Self::Tf23, Self::Tf24, Self::TfKeras218, Self::Keras3];

    /// The name a user types: `tf-2.3`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tf23 => "tf-2.3",
            Self::Tf24 => "tf-2.4",
            Self::TfKeras218 => "tf_keras-2.18",
            Self::Keras3 => "keras-3",
        }
    }

    /// The product and version, to begin a sentence with.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tf23 => "TensorFlow 2.3",
            Self::Tf24 => "TensorFlow 2.4",
            Self::TfKeras218 => "tf_keras 2.18",
            Self::Keras3 => "Keras 3",
        }
    }

    /// The profile of a name, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name().eq_ignore_ascii_case(name.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for profile in Profile::ALL {
            assert_eq!(Profile::parse(profile.name()), Some(profile));
            let json = serde_json::to_string(&profile).expect("a unit variant serializes");
            assert_eq!(json, format!("\"{}\"", profile.name()));
        }
        assert_eq!(Profile::parse("tf-1"), None);
    }
}
