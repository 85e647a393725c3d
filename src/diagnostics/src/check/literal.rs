//! Values that the text decides: literals, and what an argument says about them.

use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::Lit;

use super::calls::span_of;
use crate::CellSpan;
use crate::arguments::{Accepts, Argument, Interval};

/// A value that the text decides.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    /// An integer with its sign.
    Integer(i128),
    /// A number with a point or an exponent.
    Float(f64),
    /// A text.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// `True` or `False`, as Python has it.
    PythonFlag(bool),
    /// A character or bytes: a literal that no argument takes.
    Other,
}

impl Literal {
    /// What it is, in the words of the tables.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Integer(_) => "integer",
            Self::Float(_) => "number",
            Self::Text(_) => "text",
            Self::Flag(_) | Self::PythonFlag(_) => "bool",
            Self::Other => "literal",
        }
    }
}

/// Why a literal cannot be taken.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    /// What was expected, in words.
    pub expects: String,
    /// What was probably meant.
    pub replacement: Option<String>,
}

/// The literal that the tokens are, if they are one.
pub(super) fn read(tokens: &[TokenTree]) -> Option<Literal> {
    match tokens {
        [TokenTree::Punct(minus), rest @ ..] if minus.as_char() == '-' => match read(rest)? {
            Literal::Integer(value) => Some(Literal::Integer(-value)),
            Literal::Float(value) => Some(Literal::Float(-value)),
            _ => None,
        },
        [TokenTree::Group(group)]
            if matches!(group.delimiter(), Delimiter::None | Delimiter::Parenthesis) =>
        {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            read(&inner)
        }
        [TokenTree::Ident(word)] => match word.to_string().as_str() {
            "true" => Some(Literal::Flag(true)),
            "false" => Some(Literal::Flag(false)),
            "True" => Some(Literal::PythonFlag(true)),
            "False" => Some(Literal::PythonFlag(false)),
            _ => None,
        },
        [TokenTree::Literal(literal)] => Some(match Lit::new(literal.clone()) {
            // `1f64` is a float without a point.
            Lit::Int(value) if matches!(value.suffix(), "f32" | "f64") => {
                Literal::Float(value.base10_parse().unwrap_or(f64::NAN))
            }
            Lit::Int(value) => Literal::Integer(value.base10_parse().unwrap_or(i128::MAX)),
            Lit::Float(value) => Literal::Float(value.base10_parse().unwrap_or(f64::NAN)),
            Lit::Str(value) => Literal::Text(value.value()),
            Lit::Bool(value) => Literal::Flag(value.value),
            _ => Literal::Other,
        }),
        _ => None,
    }
}

/// The same, of a text.
pub(super) fn read_text(text: &str) -> Option<Literal> {
    let tokens: Vec<TokenTree> = TokenStream::from_str(text).ok()?.into_iter().collect();
    read(&tokens)
}

/// What the argument says about a literal.
pub(super) fn judge(argument: &Argument, literal: &Literal) -> Result<(), Refusal> {
    let refuse = |expects: &str, replacement: Option<String>| {
        Err(Refusal {
            expects: expects.to_owned(),
            replacement,
        })
    };
    match argument.accepts {
        Accepts::Value(_) => Ok(()),
        Accepts::Integer(least) => {
            let expects = format!("an integer ≥ {least}");
            let near = |value: i128| {
                let value = if value >= i128::from(least) {
                    value
                } else {
                    i128::from(least)
                };
                Some(value.to_string())
            };
            match literal {
                Literal::Integer(value) if *value >= i128::from(least) => Ok(()),
                Literal::Integer(value) => refuse(&expects, near(value.saturating_abs())),
                Literal::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
                    refuse(&expects, near(value.abs() as i128))
                }
                Literal::Text(text) => refuse(
                    &expects,
                    text.trim()
                        .parse::<i128>()
                        .ok()
                        .filter(|value| *value >= i128::from(least))
                        .and_then(near),
                ),
                _ => refuse(&expects, None),
            }
        }
        Accepts::Share(above, below) => {
            let expects = format!("a number above {above} and below {below}");
            let inside = |value: f64| value > above && value < below;
            match literal {
                Literal::Float(value) if inside(*value) => Ok(()),
                Literal::Integer(value) if inside(*value as f64) => Ok(()),
                Literal::Integer(value) if inside(*value as f64 / 100.0) => {
                    refuse(&expects, Some((*value as f64 / 100.0).to_string()))
                }
                _ => refuse(&expects, None),
            }
        }
        Accepts::Number(interval) => number(interval, literal),
        Accepts::Flag => match literal {
            Literal::Flag(_) => Ok(()),
            Literal::PythonFlag(value) => refuse("`true` or `false`", Some(value.to_string())),
            Literal::Integer(value @ (0 | 1)) => {
                refuse("`true` or `false`", Some((*value == 1).to_string()))
            }
            // Keras's 2 is one line an epoch.
            Literal::Integer(2) if argument.name == "verbose" => {
                refuse("`true` or `false`", Some("true".to_owned()))
            }
            Literal::Text(value) => {
                let meant = match value.to_lowercase().as_str() {
                    "yes" | "on" | "true" | "auto" => Some("true"),
                    "no" | "off" | "false" | "none" => Some("false"),
                    _ => None,
                };
                refuse("`true` or `false`", meant.map(str::to_owned))
            }
            _ => refuse("`true` or `false`", None),
        },
        // Which texts are known is SC0105's to say; that a number is none, SC0120's.
        Accepts::Identifier(_) => Ok(()),
    }
}

/// What an interval says about a literal.
pub(super) fn number(interval: Interval, literal: &Literal) -> Result<(), Refusal> {
    let near = |value: f64| {
        let value = [value, -value]
            .into_iter()
            .find(|value| interval.holds(*value))?;
        Some(decimal(value))
    };
    let replacement = match literal {
        Literal::Integer(value) if interval.holds(*value as f64) => return Ok(()),
        Literal::Float(value) if interval.holds(*value) => return Ok(()),
        Literal::Integer(value) => near(*value as f64),
        Literal::Float(value) => near(*value),
        Literal::Text(text) => text.trim().parse().ok().and_then(near),
        Literal::Flag(_) | Literal::PythonFlag(_) | Literal::Other => None,
    };
    Err(Refusal {
        expects: interval.words().to_owned(),
        replacement,
    })
}

/// A number as Rust reads it back: small ones with an exponent.
pub(super) fn decimal(value: f64) -> String {
    match value {
        small if small != 0.0 && small.abs() < 1e-3 => format!("{small:e}"),
        _ => format!("{value:?}"),
    }
}

/// The texts in a value that stand for losses, metrics or optimizers: the value itself, or the elements
/// of `[…]`, `&[…]` and `vec![…]`.
pub(super) fn texts(tokens: &[TokenTree]) -> Vec<(String, CellSpan)> {
    match tokens {
        [TokenTree::Literal(literal)] => match Lit::new(literal.clone()) {
            Lit::Str(text) => vec![(text.value(), span_of(literal.span()))],
            _ => Vec::new(),
        },
        [TokenTree::Punct(and), rest @ ..] if and.as_char() == '&' => texts(rest),
        [TokenTree::Ident(vec), TokenTree::Punct(bang), rest @ ..]
            if vec == "vec" && bang.as_char() == '!' =>
        {
            texts(rest)
        }
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::Bracket => {
            let elements: Vec<TokenTree> = group.stream().into_iter().collect();
            elements
                .split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ','))
                .flat_map(|element| match element {
                    [TokenTree::Literal(_)] => texts(element),
                    _ => Vec::new(),
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    fn check(call: &str, name: &str, value: &str, expected: Result<(), Option<&str>>) {
        let call = arguments::call(call).expect("a call of the table");
        let argument = arguments::find(call.arguments, name).expect("an argument of the table");
        let tokens: Vec<TokenTree> = TokenStream::from_str(value)
            .expect("tokens")
            .into_iter()
            .collect();
        let found = match read(&tokens) {
            Some(literal) => judge(argument, &literal).map_err(|refusal| refusal.replacement),
            None => Ok(()),
        };
        assert_eq!(
            found,
            expected.map_err(|near| near.map(str::to_owned)),
            "{name} = {value}"
        );
    }

    #[test]
    fn counts_are_whole_and_positive() {
        for name in ["steps_per_execution", "gradient_accumulation_steps"] {
            check("compile", name, "1", Ok(()));
            check("compile", name, "1_000usize", Ok(()));
            check("compile", name, "0x10", Ok(()));
            check("compile", name, "n + 1", Ok(()));
            check("compile", name, "0", Err(Some("1")));
            check("compile", name, "-4", Err(Some("4")));
            check("compile", name, "(0)", Err(Some("1")));
            check("compile", name, "2.5", Err(None));
            check("compile", name, "2.0", Err(Some("2")));
            check("compile", name, "\"16\"", Err(Some("16")));
            check("compile", name, "\"auto\"", Err(None));
            check("compile", name, "true", Err(None));
            check("compile", name, "'4'", Err(None));
        }
        check("fit", "seed", "0", Ok(()));
        check("fit", "seed", "-1", Err(Some("1")));
    }

    #[test]
    fn a_number_with_the_suffix_of_a_float_is_one() {
        assert_eq!(read_text("1f64"), Some(Literal::Float(1.0)));
        assert_eq!(read_text("-2_f32"), Some(Literal::Float(-2.0)));
        assert_eq!(read_text("3u8"), Some(Literal::Integer(3)));
        assert_eq!(read_text("0x1f64"), Some(Literal::Integer(0x1f64)));
    }

    #[test]
    fn flags_and_shares() {
        check("compile", "drop_unsupported", "true", Ok(()));
        check("compile", "drop_unsupported", "True", Err(Some("true")));
        check("fit", "shuffle", "0", Err(Some("false")));
        check("fit", "shuffle", "2", Err(None));
        check("fit", "verbose", "2", Err(Some("true")));
        check("fit", "validation_split", "0.1", Ok(()));
        check("fit", "validation_split", "1.0", Err(None));
        check("fit", "validation_split", "10", Err(Some("0.1")));
    }

    #[test]
    fn numbers_of_optimizers_have_their_intervals() {
        let check = |interval: Interval, text: &str, expected: Result<(), Option<&str>>| {
            let literal = read_text(text).expect("a literal");
            let found = number(interval, &literal).map_err(|refusal| refusal.replacement);
            assert_eq!(
                found,
                expected.map_err(|near| near.map(str::to_owned)),
                "{text}"
            );
        };
        use Interval::*;
        check(NotNegative, "0.01", Ok(()));
        check(NotNegative, "0", Ok(()));
        check(NotNegative, "-5e-5", Err(Some("5e-5")));
        check(NotNegative, "\"0.01\"", Err(Some("0.01")));
        check(NotNegative, "true", Err(None));
        check(Positive, "1.0", Ok(()));
        check(Positive, "0.0", Err(None));
        check(BelowOne, "0.999", Ok(()));
        check(BelowOne, "1.0", Err(None));
        check(BelowOne, "-0.9", Err(Some("0.9")));
        check(UpToOne, "1", Ok(()));
        check(UpToOne, "1.01", Err(None));
        check(FromOne, "1", Ok(()));
        check(FromOne, "0.99", Err(None));
        check(NegativeUpToOne, "-0.8", Ok(()));
        check(NegativeUpToOne, "-1", Ok(()));
        check(NegativeUpToOne, "0.0", Err(None));
    }
}
