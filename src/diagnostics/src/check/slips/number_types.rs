//! What the numbers of a cell are: floats or integers, and of which type a list has them.

use syn::{Expr, ExprBinary, Lit};

use super::super::calls::span_of;
use super::Slip;
use super::tree::{name_of, place};

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Float,
    Integer,
}

/// `xs.len()`, `xs.iter().count()`.
pub(super) fn is_integer_call(expression: &Expr) -> bool {
    match expression {
        Expr::MethodCall(call) => call.method == "len" || call.method == "count",
        Expr::Paren(inner) => is_integer_call(&inner.expr),
        _ => false,
    }
}

impl Slip<'_> {
    /// Left and right of an operation: by what rustc says, else by the text.
    pub fn sides(&self, binary: &ExprBinary) -> Option<(Number, Number)> {
        let (left, right) = (self.number(&binary.left), self.number(&binary.right));
        let message = self.message();
        let of_word = |word: &str| match word.trim_start_matches('&') {
            "{float}" | "f64" | "f32" => Some(Number::Float),
            "{integer}" => Some(Number::Integer),
            it if it.len() < 6 && it.starts_with(['i', 'u']) => Some(Number::Integer),
            _ => None,
        };
        let mut quoted = message.split('`').skip(1).step_by(2);
        let named = match (quoted.next(), quoted.next()) {
            (Some(first), Some(second)) => Some((of_word(first)?, of_word(second)?)),
            _ => {
                let (float, integer) = (message.find("float")?, message.find("integer")?);
                Some(if float < integer {
                    (Number::Float, Number::Integer)
                } else {
                    (Number::Integer, Number::Float)
                })
            }
        };
        let (first, second) = named?;
        // "cannot add a float to an integer": what is added comes first.
        let is_reversed = message.contains(" to ") || message.contains(" from ");
        let said_by_rustc = if is_reversed {
            (second, first)
        } else {
            (first, second)
        };
        match (left, right) {
            (Some(left), Some(right)) if left != right => Some((left, right)),
            _ => Some(said_by_rustc),
        }
    }

    /// Whether an expression is a float or an integer, where the text says it.
    pub fn number(&self, expression: &Expr) -> Option<Number> {
        match expression {
            Expr::Lit(it) => match &it.lit {
                Lit::Float(_) => Some(Number::Float),
                Lit::Int(number) if number.suffix().starts_with('f') => Some(Number::Float),
                Lit::Int(_) => Some(Number::Integer),
                _ => None,
            },
            Expr::Paren(inner) => self.number(&inner.expr),
            Expr::Unary(inner) => self.number(&inner.expr),
            Expr::Cast(cast) => of_type(self.text(place(&cast.ty))),
            Expr::MethodCall(call) if is_integer_call(expression) && call.args.is_empty() => {
                Some(Number::Integer)
            }
            Expr::Path(_) => {
                let name = name_of(expression)?;
                let at = place(expression);
                if let Some(known) = self.type_of(&name, at) {
                    return of_type(&known);
                }
                let bound = self.bound(&name, at.start)?;
                self.number(bound.value.as_ref()?)
            }
            _ => None,
        }
    }

    /// The type of the numbers in a list, or of what an iterator yields.
    pub fn element_of(&self, expression: &Expr) -> Option<String> {
        const SAME: [&str; 12] = [
            "iter",
            "into_iter",
            "iter_mut",
            "copied",
            "cloned",
            "rev",
            "skip",
            "take",
            "filter",
            "to_vec",
            "clone",
            "as_slice",
        ];
        match expression {
            Expr::Paren(inner) => self.element_of(&inner.expr),
            Expr::Reference(inner) => self.element_of(&inner.expr),
            Expr::MethodCall(call) if SAME.iter().any(|it| call.method == it) => {
                self.element_of(&call.receiver)
            }
            Expr::MethodCall(call) if call.method == "map" => match call.args.first()? {
                Expr::Closure(closure) => match &*closure.body {
                    Expr::MethodCall(last)
                        if is_integer_call(&closure.body) && last.args.is_empty() =>
                    {
                        Some("usize".to_owned())
                    }
                    Expr::Cast(cast) => Some(self.text(place(&cast.ty)).to_owned()),
                    body if mentions_float(self.text(place(body))) => Some("f64".to_owned()),
                    // A number of the list's own type, as in `x * x`.
                    Expr::Binary(_) => self.element_of(&call.receiver),
                    _ => None,
                },
                _ => None,
            },
            Expr::Index(index) => {
                let name = name_of(&index.expr)?;
                let of_type = self.type_of(&name, place(expression))?;
                if of_type.ends_with("History") {
                    return Some("f64".to_owned());
                }
                let inner = inside(&of_type)?;
                inside(inner)
                    .map(str::to_owned)
                    .filter(|it| is_number_type(it))
            }
            Expr::Array(array) => self.literal(array.elems.first()?),
            Expr::Macro(called) if called.mac.path.is_ident("vec") => {
                let text = self.text(span_of(called.mac.delimiter.span().join()));
                let first = text.get(1..)?.split([',', ';', ']']).next()?;
                self.literal(&syn::parse_str::<Expr>(first).ok()?)
            }
            Expr::Range(_) => Some("i32".to_owned()),
            Expr::Path(_) => {
                let name = name_of(expression)?;
                let at = place(expression);
                if let Some(known) = self.type_of(&name, at) {
                    let inner = inside(&known)?;
                    return is_number_type(inner).then(|| inner.to_owned());
                }
                let value = self.bound(&name, at.start)?.value?;
                self.element_of(&value)
            }
            _ => None,
        }
    }

    fn literal(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Lit(it) => match &it.lit {
                Lit::Float(number) if number.suffix().is_empty() => Some("f64".to_owned()),
                Lit::Float(number) => Some(number.suffix().to_owned()),
                Lit::Int(number) if number.suffix().is_empty() => Some("i32".to_owned()),
                Lit::Int(number) => Some(number.suffix().to_owned()),
                _ => None,
            },
            Expr::Unary(inner) => self.literal(&inner.expr),
            _ => None,
        }
    }

    /// How often a name stands in the cell, apart from its `let`.
    pub fn uses(&self, name: &str) -> usize {
        let is_part = |it: char| it.is_alphanumeric() || it == '_';
        let text = self.cell.text();
        let places = text.match_indices(name).filter(|(at, _)| {
            !text[..*at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
        });
        places.count().saturating_sub(1)
    }
}

fn mentions_float(text: &str) -> bool {
    const FLOATS: [&str; 5] = [".powi(", ".powf(", ".sqrt()", ".ln()", ".exp()"];
    FLOATS.iter().any(|it| text.contains(it)) || text.contains("as f64")
}

fn of_type(text: &str) -> Option<Number> {
    let text = text
        .trim_start_matches('&')
        .trim_start_matches("mut ")
        .trim();
    match text {
        "f64" | "f32" | "{float}" => Some(Number::Float),
        _ if is_number_type(text) => Some(Number::Integer),
        _ => None,
    }
}

fn is_number_type(text: &str) -> bool {
    const TYPES: [&str; 12] = [
        "f64", "f32", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize",
    ];
    TYPES.contains(&text)
}

/// `f64` of `&Vec<f64>`, `&[f64]`, `[f64; 3]`.
fn inside(of_type: &str) -> Option<&str> {
    let (open, close) = if of_type.contains('<') {
        ('<', '>')
    } else {
        ('[', ']')
    };
    let (_, rest) = of_type.split_once(open)?;
    let inner = rest.rsplit_once(close)?.0;
    Some(inner.split(';').next()?.trim())
}
