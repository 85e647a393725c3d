//! A small model of a Python program: the statements and values that the rules and the translation look at, each with the
//! bytes where it stands. What is not in the model is [`Kind::Other`] or [`StatementKind::Other`], with its place.

use stratoscope_diagnostics::CellSpan;

mod call;

pub use call::{Call, Keyword, Seen};

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Where it stands.
    pub span: CellSpan,
    /// What it is.
    pub kind: Kind,
}

/// The kinds of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `None`.
    None,
    /// `True`, `False`.
    Bool(bool),
    /// A whole number, as Rust writes it.
    Int(String),
    /// A number with a fraction or an exponent, as Rust writes it.
    Float(String),
    /// A text, its escapes resolved.
    Text(String),
    /// `f"…"`.
    Format(Vec<Piece>),
    /// `[a, b]`.
    List(Vec<Value>),
    /// `(a, b)`.
    Tuple(Vec<Value>),
    /// `{key: value}`.
    Dict(Vec<(Value, Value)>),
    /// A name.
    Name(String),
    /// `value.name`.
    Attribute(Box<Value>, String),
    /// `value[index]`.
    Index(Box<Value>, Box<Value>),
    /// `function(…)`.
    Call(Box<Call>),
    /// `start:end` of an index.
    Slice(Option<Box<Value>>, Option<Box<Value>>),
    /// `-value`, `not value`.
    Unary(&'static str, Box<Value>),
    /// `a + b`, `a < b`, `a and b`.
    Binary(Box<Value>, &'static str, Box<Value>),
    /// `[element for target in items]`, without conditions.
    Comprehension(Box<Comprehension>),
    /// `lambda a, b: body`.
    Lambda(Vec<String>, Box<Value>),
    /// `b if a else c`: the condition, the value, the other value.
    Choice(Box<[Value; 3]>),
    /// Something else, in a few words.
    Other(&'static str),
}

/// A part of an `f"…"`.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text between the braces.
    Text(String),
    /// A value in braces and what follows its colon.
    Value(Value, Option<String>),
}

/// `[element for target in items]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// What each element is.
    pub element: Value,
    /// The name of an item.
    pub target: Value,
    /// The items.
    pub items: Value,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Where it stands, its block included.
    pub span: CellSpan,
    /// What it is.
    pub kind: StatementKind,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// `import a as b`, `from a import b`.
    Import(Vec<Import>),
    /// `targets = value`; several targets for `a = b = value`.
    Assign(Vec<Value>, Value),
    /// `target += value`.
    Augment(Value, &'static str, Value),
    /// A value alone.
    Expression(Value),
    /// `with value as name:`.
    With(Vec<(Value, Option<Value>)>, Vec<Statement>),
    /// `for target in items:`.
    For(Value, Value, Vec<Statement>),
    /// `while condition:`.
    While(Value, Vec<Statement>),
    /// `if condition: … elif condition: … else: …`; the last condition is missing for `else`.
    If(Vec<(Option<Value>, Vec<Statement>)>),
    /// `try: … except …: …`.
    Try(Try),
    /// `def name(…):`.
    Function(Function),
    /// `class Name(bases):`.
    Class(Class),
    /// `return value`.
    Return(Option<Value>),
    /// `raise …`.
    Raise,
    /// `assert condition, text`.
    Assert(Value, Option<Value>),
    /// `del a, b`.
    Delete(Vec<Value>),
    /// `pass`, a text that documents.
    Nothing,
    /// `break`, `continue`.
    Leave(&'static str),
    /// `!pip …`, `%time …`.
    Escape(String),
    /// Something else, in a few words.
    Other(&'static str),
}

/// One imported name.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The name in the cell.
    pub name: String,
    /// What it stands for: `tensorflow.keras.layers`.
    pub path: String,
}

/// `try` with its handlers.
#[derive(Clone, Debug, PartialEq)]
pub struct Try {
    /// The statements that may fail.
    pub body: Vec<Statement>,
    /// The names of the errors, the name of the value, the statements.
    pub handlers: Vec<Handler>,
    /// It has `else` or `finally`.
    pub has_more: bool,
}

/// `except Error as name:`.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// `TypeError`; none for `except:`.
    pub errors: Vec<String>,
    /// The name of the error's value.
    pub name: Option<String>,
    /// The statements.
    pub body: Vec<Statement>,
}

/// `def`.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Names and defaults.
    pub parameters: Vec<(String, Option<Value>)>,
    /// `*args`, `**kwargs`, or parameters that must be named.
    pub has_more: bool,
    /// `@tf.function`.
    pub decorators: Vec<Value>,
    /// The statements.
    pub body: Vec<Statement>,
}

/// `class`.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its bases.
    pub bases: Vec<Value>,
    /// The statements.
    pub body: Vec<Statement>,
}

impl Value {
    /// The call, if it is one.
    pub fn call(&self) -> Option<&Call> {
        match &self.kind {
            Kind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The name, if it is one.
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, if it is one that is written.
    pub fn integer(&self) -> Option<i64> {
        match &self.kind {
            Kind::Int(number) => number.parse().ok(),
            Kind::Unary("-", value) => value.integer().map(|number| -number),
            _ => None,
        }
    }

    /// The number, if it is one that is written.
    pub fn number(&self) -> Option<f64> {
        match &self.kind {
            Kind::Int(number) | Kind::Float(number) => number.parse().ok(),
            Kind::Unary("-", value) => value.number().map(|number| -number),
            _ => None,
        }
    }

    /// The elements of a list or a tuple.
    pub fn elements(&self) -> Option<&[Value]> {
        match &self.kind {
            Kind::List(values) | Kind::Tuple(values) => Some(values),
            _ => None,
        }
    }

    /// `a.b.c` as its names.
    pub fn path(&self) -> Option<Vec<&str>> {
        match &self.kind {
            Kind::Name(name) => Some(vec![name]),
            Kind::Attribute(value, name) => {
                let mut path = value.path()?;
                path.push(name);
                Some(path)
            }
            _ => None,
        }
    }

    /// `object.method(…)`: the object and the call.
    pub fn method(&self, name: &str) -> Option<(&Value, &Call)> {
        let call = self.call()?;
        match &call.function.kind {
            Kind::Attribute(object, method) if method == name => Some((object, call)),
            _ => None,
        }
    }

    /// Calls `see` with this value and every value in it.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Value)) {
        see(self);
        match &self.kind {
            Kind::List(values) | Kind::Tuple(values) => {
                values.iter().for_each(|value| value.visit(see));
            }
            Kind::Dict(items) => {
                for (key, value) in items {
                    key.visit(see);
                    value.visit(see);
                }
            }
            Kind::Format(pieces) => {
                for piece in pieces {
                    if let Piece::Value(value, _) = piece {
                        value.visit(see);
                    }
                }
            }
            Kind::Attribute(value, _) | Kind::Unary(_, value) | Kind::Lambda(_, value) => {
                value.visit(see);
            }
            Kind::Index(a, b) | Kind::Binary(a, _, b) => {
                a.visit(see);
                b.visit(see);
            }
            Kind::Slice(start, end) => {
                for bound in [start, end].into_iter().flatten() {
                    bound.visit(see);
                }
            }
            Kind::Call(call) => {
                call.function.visit(see);
                call.arguments.iter().for_each(|value| value.visit(see));
                call.keywords
                    .iter()
                    .for_each(|keyword| keyword.value.visit(see));
            }
            Kind::Choice(parts) => parts.iter().for_each(|value| value.visit(see)),
            Kind::Comprehension(it) => {
                it.element.visit(see);
                it.target.visit(see);
                it.items.visit(see);
            }
            _ => {}
        }
    }
}

impl Statement {
    /// The blocks in it.
    pub fn blocks(&self) -> Vec<&[Statement]> {
        match &self.kind {
            StatementKind::With(_, body)
            | StatementKind::For(_, _, body)
            | StatementKind::While(_, body) => vec![body],
            StatementKind::If(branches) => branches.iter().map(|(_, body)| &body[..]).collect(),
            StatementKind::Try(it) => {
                let handlers = it.handlers.iter().map(|handler| &handler.body[..]);
                std::iter::once(&it.body[..]).chain(handlers).collect()
            }
            StatementKind::Function(it) => vec![&it.body],
            StatementKind::Class(it) => vec![&it.body],
            _ => Vec::new(),
        }
    }

    /// The values that stand in it directly, not in its blocks.
    pub fn values(&self) -> Vec<&Value> {
        match &self.kind {
            StatementKind::Assign(targets, value) => {
                targets.iter().chain(std::iter::once(value)).collect()
            }
            StatementKind::Augment(target, _, value) => vec![target, value],
            StatementKind::Expression(value) | StatementKind::Return(Some(value)) => vec![value],
            StatementKind::With(items, _) => items.iter().map(|(value, _)| value).collect(),
            StatementKind::For(target, items, _) => vec![target, items],
            StatementKind::While(condition, _) => vec![condition],
            StatementKind::Assert(condition, text) => {
                std::iter::once(condition).chain(text.as_ref()).collect()
            }
            StatementKind::Delete(targets) => targets.iter().collect(),
            StatementKind::If(branches) => {
                branches.iter().filter_map(|(it, _)| it.as_ref()).collect()
            }
            StatementKind::Function(it) => {
                let defaults = it.parameters.iter().filter_map(|(_, it)| it.as_ref());
                it.decorators.iter().chain(defaults).collect()
            }
            StatementKind::Class(it) => it.bases.iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// Calls `see` with every statement of a block and of the blocks in it.
pub fn each_statement<'a>(block: &'a [Statement], see: &mut dyn FnMut(&'a Statement)) {
    for statement in block {
        see(statement);
        for inner in statement.blocks() {
            each_statement(inner, see);
        }
    }
}

/// Calls `see` with every value of a block and of the blocks in it.
pub fn each_value<'a>(block: &'a [Statement], see: &mut dyn FnMut(&'a Value)) {
    each_statement(block, &mut |statement| {
        for value in statement.values() {
            value.visit(see);
        }
    });
}
