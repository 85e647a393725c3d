//! Calls, and which of their arguments the translation has looked at.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use stratoscope_diagnostics::CellSpan;

use super::{Kind, Value};

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What is called.
    pub function: Value,
    /// Values without a name.
    pub arguments: Vec<Value>,
    /// Values with a name.
    pub keywords: Vec<Keyword>,
    /// The first of `*values` and `**values` among them.
    pub starred: Option<CellSpan>,
    /// The name of the only `**values`.
    pub spread: Option<String>,
    /// The call.
    pub span: CellSpan,
    /// The arguments that the translation has looked at.
    pub seen: Seen,
}

/// The arguments of a call that the translation has looked at, by their first bytes. Copies of a call share them. What is left
/// when a statement is translated is named on the card: no argument is dropped without a word.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<BTreeSet<usize>>>);

impl Seen {
    fn add(&self, value: &Value) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(value.span.start);
    }

    fn has(&self, value: &Value) -> bool {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.contains(&value.span.start)
    }
}

/// Calls are compared by what is written.
impl PartialEq for Seen {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// `name=value` in a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyword {
    /// The name.
    pub name: String,
    /// The bytes of the name.
    pub name_span: CellSpan,
    /// The bytes of name and value.
    pub span: CellSpan,
    /// The bytes to delete with it: a comma is among them.
    pub drop_span: CellSpan,
    /// The value.
    pub value: Value,
}

impl Call {
    /// The argument with a name, which counts as looked at.
    pub fn keyword(&self, name: &str) -> Option<&Keyword> {
        let found = self.keywords.iter().find(|keyword| keyword.name == name);
        if let Some(keyword) = found {
            self.seen.add(&keyword.value);
        }
        found
    }

    /// All arguments count as looked at: for callers that go through them and name those that they do not know.
    pub fn see_all(&self) {
        let keywords = self.keywords.iter().map(|keyword| &keyword.value);
        self.arguments
            .iter()
            .chain(keywords)
            .for_each(|value| self.seen.add(value));
    }

    /// The arguments without a name that nobody has looked at.
    pub fn unseen_arguments(&self) -> impl Iterator<Item = &Value> {
        self.arguments.iter().filter(|value| !self.seen.has(value))
    }

    /// The arguments with a name that nobody has looked at.
    pub fn unseen_keywords(&self) -> impl Iterator<Item = &Keyword> {
        self.keywords
            .iter()
            .filter(|keyword| !self.seen.has(&keyword.value))
    }

    /// The same call with all arguments named, by the names of its parameters in their order. `None`: it has more than these.
    pub fn named(&self, names: &[&str]) -> Option<Self> {
        if self.arguments.len() > names.len() {
            return None;
        }
        let given = self.arguments.iter().zip(names);
        let given = given.map(|(value, name)| Keyword {
            name: (*name).to_owned(),
            name_span: value.span,
            span: value.span,
            drop_span: value.span,
            value: value.clone(),
        });
        let keywords = given.chain(self.keywords.iter().cloned()).collect();
        Some(Self {
            function: self.function.clone(),
            arguments: Vec::new(),
            keywords,
            starred: self.starred,
            spread: self.spread.clone(),
            span: self.span,
            seen: self.seen.clone(),
        })
    }

    /// The bytes of an argument, its name among them, which counts as looked at.
    pub fn written(&self, name: &str, place: usize) -> Option<CellSpan> {
        match self.keyword(name) {
            Some(keyword) => Some(keyword.span),
            None => self.argument(name, place).map(|value| value.span),
        }
    }

    /// The value of an argument by its name or its place, which counts as looked at.
    pub fn argument(&self, name: &str, place: usize) -> Option<&Value> {
        if let Some(keyword) = self.keyword(name) {
            return Some(&keyword.value);
        }
        let value = self.arguments.get(place)?;
        self.seen.add(value);
        Some(value)
    }
}

impl Value {
    /// Calls `change` with every call in this value, but for those in lambdas and loops.
    pub fn change_calls(&mut self, change: &mut dyn FnMut(&mut Call)) {
        match &mut self.kind {
            Kind::List(values) | Kind::Tuple(values) => {
                values.iter_mut().for_each(|it| it.change_calls(change));
            }
            Kind::Attribute(value, _) | Kind::Unary(_, value) => value.change_calls(change),
            Kind::Index(a, b) | Kind::Binary(a, _, b) => {
                a.change_calls(change);
                b.change_calls(change);
            }
            Kind::Call(call) => {
                change(call.as_mut());
                call.function.change_calls(change);
                let named = call.keywords.iter_mut().map(|keyword| &mut keyword.value);
                for value in call.arguments.iter_mut().chain(named) {
                    value.change_calls(change);
                }
            }
            _ => {}
        }
    }
}
