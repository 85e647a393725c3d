//! Names and blocks. A name that Python makes in a block is there behind it; a variable of Rust ends with its block. So what a
//! block makes is missing behind it, and a name from outside is changed in it where a `let mut` can be assigned again, only.

use std::collections::BTreeSet;

use stratoscope_diagnostics::CellSpan;

use super::thing::Thing;
use super::{Translator, Why};
use crate::model::{Function, Kind, Statement, StatementKind, Value, each_statement, each_value};

/// Functions whose statements stand where they are called, one in another.
const MOST_NESTED: usize = 16;
/// Blocks around such a call.
const MOST_BLOCKS: usize = 20;
/// Such calls in a cell.
const MOST_CALLS: usize = 200;

impl Translator<'_> {
    /// Whether a name of the cell has a value.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        let thing = self.things.get(name);
        thing.is_some_and(|thing| !matches!(thing, Thing::Missing(_)))
    }

    /// Why a name has no value; `None` where it has one, or is none of the cell.
    pub(crate) fn missing(&self, name: &str) -> Option<Why> {
        match self.things.get(name) {
            Some(Thing::Missing(line)) if self.ended.contains(name) => Some(format!(
                "`{name}` is made in the block of line {line}, and a variable of Rust ends with its block"
            )),
            Some(Thing::Missing(line)) => {
                Some(format!("it needs `{name}`, which line {line} would make"))
            }
            _ => None,
        }
    }

    /// What a statement would have made is missing from here on, and a model that it would have given a layer.
    pub(crate) fn miss(&mut self, statement: &Statement) {
        let mut missing = Vec::new();
        each_statement(
            std::slice::from_ref(statement),
            &mut |inner| match &inner.kind {
                StatementKind::Assign(targets, _) => {
                    for target in targets {
                        target.visit(&mut |value| missing.extend(value.name().map(str::to_owned)));
                    }
                }
                StatementKind::Augment(target, _, _) => {
                    missing.extend(target.name().map(str::to_owned));
                }
                StatementKind::For(target, _, _) => {
                    target.visit(&mut |value| missing.extend(value.name().map(str::to_owned)));
                }
                StatementKind::Function(it) => missing.push(it.name.clone()),
                StatementKind::Class(it) => missing.push(it.name.clone()),
                StatementKind::Expression(value) => {
                    let model = value.method("add").and_then(|(object, _)| object.name());
                    let is_begun =
                        |name: &&str| matches!(self.things.get(*name), Some(Thing::Layers(..)));
                    missing.extend(model.filter(is_begun).map(str::to_owned));
                }
                _ => {}
            },
        );
        let line = self.line(statement.span.start);
        for name in missing {
            self.ended.remove(&name);
            self.things.insert(name, Thing::Missing(line));
        }
    }

    /// The names that a block gives a value to and that have none before it.
    pub(crate) fn made_in(&self, body: &[Statement]) -> BTreeSet<String> {
        let mut made = BTreeSet::new();
        each_statement(body, &mut |statement| {
            let targets: &[Value] = match &statement.kind {
                StatementKind::Assign(targets, _) => targets.as_slice(),
                StatementKind::For(target, _, _) => std::slice::from_ref(target),
                StatementKind::Function(it) => {
                    made.insert(it.name.clone());
                    &[]
                }
                StatementKind::Class(it) => {
                    made.insert(it.name.clone());
                    &[]
                }
                _ => &[],
            };
            for target in targets {
                target.visit(&mut |value| made.extend(value.name().map(str::to_owned)));
            }
        });
        made.retain(|name| !self.is_known(name));
        made
    }

    /// A block that runs several times or not at all, with the names that it makes.
    pub(crate) fn inner_block(
        &mut self,
        head: String,
        body: &[Statement],
        span: CellSpan,
        (made, line): (BTreeSet<String>, usize),
    ) -> Result<(), Why> {
        self.inside.push(made);
        let written = self.nested(head, body, span);
        for name in self.inside.pop().unwrap_or_default() {
            self.ended.insert(name.clone());
            self.things.insert(name, Thing::Missing(line));
        }
        written
    }

    /// Refuses a name that is from outside of the block: a `let` in it would be another variable, and what becomes a part of
    /// something else would be a part of it whether the block runs or not.
    pub(crate) fn keeps_outside(&self, name: &str) -> Result<(), Why> {
        match self.inside.last() {
            Some(made) if self.is_known(name) && !made.contains(name) => Err(format!(
                "`{name}` is made outside of this block, which may run several times or not at all"
            )),
            _ => Ok(()),
        }
    }

    /// Models that were begun by `Sequential()` are made before a loop or a condition that uses them, so that they are there
    /// behind it.
    pub(crate) fn begin_models(&mut self, statement: &Statement) {
        let is_block = matches!(
            statement.kind,
            StatementKind::For(..) | StatementKind::While(..) | StatementKind::If(_)
        );
        if !is_block {
            return;
        }
        let (mut used, mut added): (Vec<Value>, Vec<&str>) = (Vec::new(), Vec::new());
        each_value(std::slice::from_ref(statement), &mut |value| {
            if let Some(call) = value.call()
                && let Kind::Attribute(object, method) = &call.function.kind
                && let Some(name) = object.name()
                && matches!(self.things.get(name), Some(Thing::Layers(..)))
            {
                match method.as_str() {
                    "add" => added.push(name),
                    _ => used.push((**object).clone()),
                }
            }
        });
        for object in &used {
            if object.name().is_some_and(|name| !added.contains(&name)) {
                // What cannot be made is named where it is used.
                let _ = self.materialize(object, "");
            }
        }
    }

    /// The statements of a function without parameters stand where it is called.
    pub(crate) fn inline(&mut self, name: &str, function: &Function) -> Result<(), Why> {
        if self.inlined.iter().any(|it| it == name) {
            return Err(format!("`{name}` calls itself"));
        }
        if self.inlined.len() >= MOST_NESTED
            || self.depth >= MOST_BLOCKS
            || self.inlinings >= MOST_CALLS
        {
            return Err(
                "the statements of a function stand where it is called, and these would be too many"
                    .to_owned(),
            );
        }
        self.inlinings += 1;
        let made = self.made_in(&function.body);
        if let Some(inside) = self.inside.last_mut() {
            inside.extend(made);
        }
        self.inlined.push(name.to_owned());
        self.block(&function.body);
        self.inlined.pop();
        Ok(())
    }
}
