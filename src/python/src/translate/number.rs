//! Arithmetic and conditions. Rust has no sums of integers and floats, and `/` of integers is not Python's: what a value is
//! must be known before it is written.

use super::stages::Stage;
use super::thing::Thing;
use super::{Translator, Why};
use crate::model::Value;

/// What is known of a value's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Int,
    Float,
    Text,
    Bool,
    Unknown,
}

/// A value as Rust, and its type.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub rust: String,
    pub kind: Type,
    /// It binds less than a unary operator: it needs brackets in another one.
    pub is_sum: bool,
}

impl Typed {
    pub fn new(rust: impl Into<String>, kind: Type) -> Self {
        Self {
            rust: rust.into(),
            kind,
            is_sum: false,
        }
    }

    pub fn sum(rust: String, kind: Type) -> Self {
        Self {
            rust,
            kind,
            is_sum: true,
        }
    }

    /// It as an operand of something that binds closer.
    pub fn operand(&self) -> String {
        match self.is_sum {
            true => format!("({})", self.rust),
            false => self.rust.clone(),
        }
    }

    /// It as a float.
    fn float(&self) -> Result<String, Why> {
        let is_literal = self
            .rust
            .bytes()
            .all(|it| it.is_ascii_digit() || it == b'_');
        match self.kind {
            Type::Float => Ok(self.operand()),
            Type::Int if is_literal => Ok(format!("{}.0", self.rust)),
            Type::Int => Ok(format!("{} as f64", self.operand())),
            _ => Err(unknown()),
        }
    }
}

fn unknown() -> Why {
    "the types of its numbers are not known from the cell".to_owned()
}

impl Thing {
    /// Its type.
    pub(crate) fn kind(&self) -> Type {
        match self {
            Self::Int(_) => Type::Int,
            Self::Float => Type::Float,
            Self::Text => Type::Text,
            Self::Bool => Type::Bool,
            Self::Staged(Stage::OneClass, _) => Type::Int,
            _ => Type::Unknown,
        }
    }

    /// What a value of this type is.
    pub(crate) fn of(kind: Type) -> Self {
        match kind {
            Type::Int => Self::Int(None),
            Type::Float => Self::Float,
            Type::Text => Self::Text,
            Type::Bool => Self::Bool,
            Type::Unknown => Self::Value,
        }
    }
}

impl Translator<'_> {
    /// `left op right`.
    pub(crate) fn binary(&mut self, left: &Value, op: &str, right: &Value) -> Result<Typed, Why> {
        if let "and" | "or" = op {
            let (a, b) = (self.condition(left)?, self.condition(right)?);
            let op = if op == "and" { "&&" } else { "||" };
            return Ok(Typed::sum(
                format!("{} {op} {}", a.operand(), b.operand()),
                Type::Bool,
            ));
        }
        if op == "-"
            && let Some(seconds) = self.seconds_between(left, right)
        {
            return Ok(seconds);
        }
        let (a, b) = (self.typed(left)?, self.typed(right)?);
        if matches!(op, "==" | "!=" | "<" | "<=" | ">" | ">=") {
            return compared(&a, op, &b);
        }
        let are_ints = a.kind == Type::Int && b.kind == Type::Int;
        match op {
            "+" | "-" | "*" if are_ints => Ok(Typed::sum(
                format!("{} {op} {}", a.operand(), b.operand()),
                Type::Int,
            )),
            "+" if a.kind == Type::Text && b.kind == Type::Text => Ok(Typed::new(
                format!("format!(\"{{}}{{}}\", {}, {})", a.rust, b.rust),
                Type::Text,
            )),
            "//" | "%" if are_ints => {
                let op = if op == "//" { "/" } else { "%" };
                let is_literal = |it: &Typed| it.rust.bytes().all(|it| it.is_ascii_digit());
                if !(is_literal(&a) && is_literal(&b)) {
                    self.note(
                        left.span,
                        "of numbers below 0, Rust's `/` and `%` round toward 0, Python's round down",
                    );
                }
                Ok(Typed::sum(
                    format!("{} {op} {}", a.operand(), b.operand()),
                    Type::Int,
                ))
            }
            "**" if are_ints => Ok(Typed::new(
                format!("i64::pow({}, {})", a.rust, b.rust),
                Type::Int,
            )),
            "+" | "-" | "*" | "/" => Ok(Typed::sum(
                format!("{} {op} {}", a.float()?, b.float()?),
                Type::Float,
            )),
            "**" => Ok(Typed::new(
                format!("({}).powf({})", a.float()?, b.float()?),
                Type::Float,
            )),
            _ => Err(format!("`{op}` is not translated")),
        }
    }

    /// `b if a else c`.
    pub(crate) fn choice(&mut self, [test, yes, no]: &[Value; 3]) -> Result<Typed, Why> {
        let test = self.condition(test)?;
        let (yes, no) = (self.typed(yes)?, self.typed(no)?);
        if yes.kind != no.kind {
            return Err("both values of `a if b else c` are of one type in Rust".to_owned());
        }
        let rust = format!(
            "(if {} {{ {} }} else {{ {} }})",
            test.rust, yes.rust, no.rust
        );
        Ok(Typed::new(rust, yes.kind))
    }

    /// A value that is a condition.
    pub(crate) fn condition(&mut self, value: &Value) -> Result<Typed, Why> {
        let typed = self.typed(value)?;
        match typed.kind {
            Type::Bool => Ok(typed),
            _ => Err("Rust takes conditions only, `x != 0` for a number".to_owned()),
        }
    }
}

fn compared(a: &Typed, op: &str, b: &Typed) -> Result<Typed, Why> {
    let (left, right) = match (a.kind, b.kind) {
        (x, y) if x == y && x != Type::Unknown => (a.operand(), b.operand()),
        (Type::Int, Type::Float) | (Type::Float, Type::Int) => {
            (format!("({})", a.float()?), b.float()?)
        }
        _ => return Err(unknown()),
    };
    Ok(Typed::sum(format!("{left} {op} {right}"), Type::Bool))
}
