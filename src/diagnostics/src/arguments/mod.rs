//! The table of arguments: what `compile!`, `fit!`, `evaluate!` and the optimizers accept.
//!
//! One value per argument. The checker reads it, the cards print it, and `train` takes its ranges from it and tests that
//! each entry has a builder method. An argument that is not in the table does not exist.

mod compile;
mod elsewhere;
mod evaluate;
mod fit;
mod identifiers;
mod kind;
mod optimizers;
mod signatures;
mod signatures_of_layers;
mod signatures_of_metrics;
mod signatures_of_optimizers;

pub use compile::COMPILE;
pub use elsewhere::{Elsewhere, belongs_elsewhere, explained, translated};
pub use evaluate::EVALUATE;
pub use fit::FIT;
pub use identifiers::{
    IdentifierKind, LOSS_TYPES, LOSSES, METRICS, OPTIMIZER_NAMES, foreign_identifier,
};
pub use kind::Kind;
pub use optimizers::{ADAM, ADAMW, LION, OPTIMIZERS, Optimizer, RMSPROP, SGD, optimizer};
pub use signatures::{Form, Number, Parameter, Signature, To, signature, signatures};

/// One argument of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Argument {
    /// The name as written in a call.
    pub name: &'static str,
    /// Its type in words: `optimizer`, `integer ≥ 1`.
    pub expects: &'static str,
    /// The default in words; [`REQUIRED`] where there is none.
    pub default: &'static str,
    /// Where the default comes from: `Keras`, `ours`.
    pub origin: &'static str,
    /// What a literal must be.
    pub accepts: Accepts,
    /// Arguments of the same call that cannot stand beside it, and why.
    pub conflicts: &'static [(&'static str, &'static str)],
    /// What it does, and how it behaves at its edges.
    pub doc: &'static str,
}

/// The default of an argument that has none.
pub const REQUIRED: &str = "required";

/// What a literal value must be. Anything but a literal is left to the compiler and to run time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accepts {
    /// A value of this kind; `None`: of a type that only the compiler checks.
    Value(Option<Kind>),
    /// An integer that is at least this.
    Integer(u64),
    /// A number above the first bound and below the second.
    Share(f64, f64),
    /// A finite number of this interval.
    Number(Interval),
    /// `true` or `false`.
    Flag,
    /// A value, or a text that names one.
    Identifier(IdentifierKind),
}

/// Where a number of an optimizer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// 0 or more.
    NotNegative,
    /// More than 0.
    Positive,
    /// From 0, below 1.
    BelowOne,
    /// From 0 to 1, both included.
    UpToOne,
    /// 1 or more.
    FromOne,
    /// From −1, below 0.
    NegativeUpToOne,
}

impl Interval {
    /// Whether a number lies in it.
    pub fn holds(self, number: f64) -> bool {
        number.is_finite()
            && match self {
                Self::NotNegative => number >= 0.0,
                Self::Positive => number > 0.0,
                Self::BelowOne => (0.0..1.0).contains(&number),
                Self::UpToOne => (0.0..=1.0).contains(&number),
                Self::FromOne => number >= 1.0,
                Self::NegativeUpToOne => (-1.0..0.0).contains(&number),
            }
    }

    /// What is expected, if a number does not lie in it.
    pub fn refuses(self, number: f64) -> Option<&'static str> {
        (!self.holds(number)).then(|| self.words())
    }

    /// What is expected, in the words of messages.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotNegative => "a finite number ≥ 0",
            Self::Positive => "a finite number > 0",
            Self::BelowOne => "a number from 0, below 1",
            Self::UpToOne => "a number from 0 to 1",
            Self::FromOne => "a finite number ≥ 1",
            Self::NegativeUpToOne => "a number from -1, below 0",
        }
    }
}

impl Argument {
    /// An argument that has a default.
    const fn new(
        name: &'static str,
        expects: &'static str,
        default: &'static str,
        origin: &'static str,
        accepts: Accepts,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            expects,
            default,
            origin,
            accepts,
            conflicts: &[],
            doc,
        }
    }

    /// The same with arguments it excludes.
    const fn excludes(mut self, conflicts: &'static [(&'static str, &'static str)]) -> Self {
        self.conflicts = conflicts;
        self
    }
}

/// A call that takes named arguments.
#[derive(Clone, Copy, Debug)]
pub struct CallTable {
    /// Its name without `!`.
    pub name: &'static str,
    /// The operands before the named arguments.
    pub operands: &'static [&'static str],
    /// Its arguments, in the order in which they are shown.
    pub arguments: &'static [Argument],
}

/// The calls that take named arguments.
pub const CALLS: &[CallTable] = &[
    CallTable {
        name: "compile",
        operands: &["model"],
        arguments: COMPILE,
    },
    CallTable {
        name: "fit",
        operands: &["model", "data"],
        arguments: FIT,
    },
    CallTable {
        name: "start",
        operands: &["model", "data"],
        arguments: FIT,
    },
    CallTable {
        name: "evaluate",
        operands: &["model", "data"],
        arguments: EVALUATE,
    },
];

/// The call whose arguments are those of `call`: `start!` takes what `fit!` takes.
pub fn same_arguments(call: &str) -> &str {
    match call {
        "start" => "fit",
        call => call,
    }
}

/// The table of a call, by its name without `!`.
pub fn call(name: &str) -> Option<&'static CallTable> {
    CALLS.iter().find(|call| call.name == name)
}

/// What an argument accepts. `call`: `fit`, or an optimizer such as `AdamW`.
pub fn accepts(call_name: &str, argument: &str) -> Option<Accepts> {
    let arguments = match call(call_name) {
        Some(table) => table.arguments,
        None => optimizer(call_name)?.arguments,
    };
    find(arguments, argument).map(|argument| argument.accepts)
}

/// The least integer that an argument accepts; `None` for an argument that is no integer.
pub fn least_integer(call_name: &str, argument: &str) -> Option<u64> {
    match accepts(call_name, argument)? {
        Accepts::Integer(least) => Some(least),
        _ => None,
    }
}

/// What an argument expects in words, if `number` is outside its interval.
pub fn outside_interval(call_name: &str, argument: &str, number: f64) -> Option<&'static str> {
    match accepts(call_name, argument)? {
        Accepts::Number(interval) => interval.refuses(number),
        _ => None,
    }
}

/// An argument of a list, by its name.
pub fn find<'a>(arguments: &'a [Argument], name: &str) -> Option<&'a Argument> {
    arguments.iter().find(|argument| argument.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn tables() -> Vec<(&'static str, &'static [Argument])> {
        let calls = CALLS.iter().map(|call| (call.name, call.arguments));
        let optimizers = OPTIMIZERS
            .iter()
            .map(|optimizer| (optimizer.name, optimizer.arguments));
        calls.chain(optimizers).collect()
    }

    #[test]
    fn names_are_unique_and_every_field_says_something() {
        for (call, arguments) in tables() {
            let mut seen = HashSet::new();
            for argument in arguments {
                assert!(
                    seen.insert(argument.name),
                    "{call} has `{}` twice",
                    argument.name
                );
                for (field, text) in [
                    ("expects", argument.expects),
                    ("default", argument.default),
                    ("origin", argument.origin),
                    ("doc", argument.doc),
                ] {
                    assert!(
                        !text.is_empty(),
                        "{call}: `{}` has no {field}",
                        argument.name
                    );
                }
                assert!(
                    argument.doc.contains(". "),
                    "{call}: `{}`: two sentences",
                    argument.name
                );
                assert!(argument.doc.ends_with('.'), "{call}: `{}`", argument.name);
            }
        }
    }

    #[test]
    fn conflicts_name_arguments_of_the_same_call_and_are_mutual() {
        for (call, arguments) in tables() {
            for argument in arguments {
                for (other, _) in argument.conflicts {
                    let other = find(arguments, other).unwrap_or_else(|| panic!("{call}: {other}"));
                    assert!(
                        other
                            .conflicts
                            .iter()
                            .any(|(name, _)| *name == argument.name),
                        "{call}: `{}` and `{}`",
                        argument.name,
                        other.name
                    );
                }
            }
        }
    }

    #[test]
    fn what_belongs_elsewhere_is_not_an_argument_here() {
        for call in CALLS {
            for argument in call.arguments {
                assert!(
                    belongs_elsewhere(call.name, argument.name).is_none(),
                    "{}",
                    argument.name
                );
                assert!(
                    translated(call.name, argument.name).is_none(),
                    "{}",
                    argument.name
                );
            }
        }
    }
}
