//! What an example can be labeled with: [`IntoTarget`].

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// The label of an example, as it is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The number of a class. For rows of numbers it is the index of the class and must not be negative; for texts it is
    /// the name of the class, as in a file.
    Class(i64),
    /// A number to be predicted.
    Value(f32),
    /// The name of a class.
    Name(String),
}

impl Target {
    /// The number of the class.
    pub(crate) fn class(&self) -> Option<i64> {
        match *self {
            Self::Class(class) => Some(class),
            Self::Value(_) | Self::Name(_) => None,
        }
    }

    /// Whether it says nothing: a blank name, or NaN.
    pub(crate) fn is_missing(&self) -> bool {
        match self {
            Self::Class(_) => false,
            Self::Value(value) => value.is_nan(),
            Self::Name(name) => name.trim().is_empty(),
        }
    }
}

/// The elements of `y`: integers and texts for classes, floats for numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no label",
    label = "integers number classes, texts name them, floats are numbers to be predicted"
)]
pub trait IntoTarget {
    /// The label.
    fn into_target(self) -> Target;
}

macro_rules! into_target {
    ($($integer:ty),*; $($float:ty),*; $($name:ty),*) => {
        $(impl IntoTarget for $integer {
            fn into_target(self) -> Target {
                Target::Class(i64::try_from(self).unwrap_or(i64::MAX))
            }
        })*
        $(impl IntoTarget for $float {
            fn into_target(self) -> Target {
                Target::Value(self as f32)
            }
        })*
        $(impl IntoTarget for $name {
            fn into_target(self) -> Target {
                Target::Name(self.to_string())
            }
        })*
    };
}

into_target!(
    i8, i16, i32, i64, isize, u8, u16, u32, u64, usize;
    f32, f64;
    &str, &mut str, String, Box<str>, Arc<str>, Rc<str>, Cow<'_, str>, char
);

impl IntoTarget for bool {
    fn into_target(self) -> Target {
        Target::Class(i64::from(self))
    }
}

impl<T: IntoTarget + Clone> IntoTarget for &T {
    fn into_target(self) -> Target {
        self.clone().into_target()
    }
}

impl IntoTarget for Target {
    fn into_target(self) -> Target {
        self
    }
}
