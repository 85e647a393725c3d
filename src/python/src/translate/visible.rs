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

    /// The first name in a statement, not in its blocks, that has no value.
    pub(crate) fn missing_in(&self, statement: &Statement) -> Option<Why> {
        let mut found = None;
        // The targets come first.
        for value in statement
            .values()
            .into_iter()
            .skip(targets(statement).len())
        {
            value.visit(&mut |inner| {
                if found.is_none() {
                    found = inner.name().and_then(|name| self.missing(name));
                }
            });
        }
        found
    }

    /// The models whose `compile` stands in a statement that is left out.
    pub(crate) fn miss_compiles(&mut self, statement: &Statement) {
        if matches!(
            statement.kind,
            StatementKind::Function(_) | StatementKind::Class(_)
        ) {
            return;
        }
        for (method, is_training) in [("compile", false), ("fit", true)] {
            let mut models = Vec::new();
            each_value(std::slice::from_ref(statement), &mut |value| {
                if let Some((object, call)) = value.method(method)
                    && let Some(name) = object.name()
                {
                    models.push((name.to_owned(), call.span.start));
                }
            });
            for (name, at) in models {
                let line = self.line(at);
                match is_training {
                    true => self.untrained.insert(name, line),
                    false => self.uncompiled.insert(name, line),
                };
            }
        }
    }

    /// Refuses what would use a model without a training that the Python text gives it before.
    pub(crate) fn needs_training(&self, model: &Value) -> Result<(), Why> {
        self.needs_compile(model)?;
        let line = model.name().and_then(|name| self.untrained.get(name));
        match (line, model.name()) {
            (Some(line), Some(name)) => Err(format!(
                "it needs the `fit` of `{name}` in line {line}, which is not translated"
            )),
            _ => Ok(()),
        }
    }

    /// Refuses what would use a model with older settings than the Python text gives it.
    pub(crate) fn needs_compile(&self, model: &Value) -> Result<(), Why> {
        let line = model.name().and_then(|name| self.uncompiled.get(name));
        match (line, model.name()) {
            (Some(line), Some(name)) => Err(format!(
                "it needs the `compile` of `{name}` in line {line}, which is not translated"
            )),
            _ => Ok(()),
        }
    }

    /// What a statement would have made is missing from here on, and a model that it would have given a layer.
    /// Where a part of something would have been changed, the whole is missing.
    pub(crate) fn miss(&mut self, statement: &Statement) {
        let mut names = Vec::new();
        each_statement(std::slice::from_ref(statement), &mut |inner| {
            for target in targets(inner) {
                target.visit(&mut |value| names.extend(value.name().map(str::to_owned)));
            }
        });
        self.miss_bound(statement);
        self.set_missing(names, statement);
    }

    /// What a statement makes is missing from here on.
    pub(crate) fn miss_bound(&mut self, statement: &Statement) {
        let mut missing = Vec::new();
        each_statement(
            std::slice::from_ref(statement),
            &mut |inner| match &inner.kind {
                StatementKind::Augment(target, _, _) => {
                    missing.extend(target.name().map(str::to_owned));
                }
                StatementKind::Function(it) => missing.push(it.name.clone()),
                StatementKind::Class(it) => missing.push(it.name.clone()),
                StatementKind::Expression(value) => {
                    missing.extend(self.filled_by(value));
                    let model = value.method("add").and_then(|(object, _)| object.name());
                    let is_begun =
                        |name: &&str| matches!(self.things.get(*name), Some(Thing::Layers(..)));
                    missing.extend(model.filter(is_begun).map(str::to_owned));
                }
                _ => missing.extend(bound_in(inner).into_iter().map(str::to_owned)),
            },
        );
        self.set_missing(missing, statement);
    }

    fn set_missing(&mut self, names: Vec<String>, statement: &Statement) {
        let line = self.line(statement.span.start);
        for name in names {
            self.ended.remove(&name);
            self.things.insert(name, Thing::Missing(line));
        }
    }

    /// The names that a block gives a value to and that have none before it.
    pub(crate) fn made_in(&self, body: &[Statement]) -> BTreeSet<String> {
        let mut made = BTreeSet::new();
        each_statement(body, &mut |statement| {
            made.extend(bound_in(statement).into_iter().map(str::to_owned));
            match &statement.kind {
                StatementKind::Function(it) => {
                    made.insert(it.name.clone());
                }
                StatementKind::Class(it) => {
                    made.insert(it.name.clone());
                }
                _ => {}
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
        let is_loop = head.starts_with("for ") || head.starts_with("while ");
        self.inside.push(made);
        self.repeats.push(is_loop);
        let written = self.nested(head, body, span);
        self.repeats.pop();
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

    /// Whether the value of a name is taken several times: in several places, or in a loop that does not make it.
    pub(crate) fn is_moved_again(&self, name: &str) -> bool {
        let is_outside = |at: usize| {
            let blocks = self.inside.iter().skip(at);
            !blocks.into_iter().any(|made| made.contains(name))
        };
        let mut loops = self.repeats.iter().enumerate().filter(|(_, it)| **it);
        self.uses.get(name).is_some_and(|uses| *uses > 1) || loops.any(|(at, _)| is_outside(at))
    }

    /// Lets a block make names from outside of it anew: a `let` in it is another variable, which ends with the block. Refused are
    /// names whose value is read in making them, also in the next pass of a loop, what has no line of its own (`made` is `None`),
    /// and what becomes a part of something else.
    pub(crate) fn shadow(
        &mut self,
        names: &[&str],
        value: &Value,
        made: Option<&Thing>,
    ) -> Result<(), Why> {
        let is_part = |thing: &Thing| {
            matches!(
                thing,
                Thing::Layers(..) | Thing::Data(_) | Thing::Splits(_) | Thing::Options(_)
            )
        };
        for name in names {
            let Err(why) = self.keeps_outside(name) else {
                continue;
            };
            let mut reads_itself = self.carried.contains(*name);
            value.visit(&mut |inner| reads_itself |= inner.name() == Some(*name));
            let before = self.things.get(*name);
            if reads_itself || made.is_none() || made.into_iter().chain(before).any(is_part) {
                return Err(why);
            }
            if let Some(inside) = self.inside.last_mut() {
                inside.insert((*name).to_owned());
            }
        }
        Ok(())
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
        self.bodies.remove(name);
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

/// What a statement assigns to.
fn targets(statement: &Statement) -> &[Value] {
    match &statement.kind {
        StatementKind::Assign(targets, _) => targets,
        StatementKind::For(target, _, _) => std::slice::from_ref(target),
        _ => &[],
    }
}

/// The names that a statement gives values to: `model.trainable = False` and `sums[0] = 1` give none.
fn bound_in(statement: &Statement) -> Vec<&str> {
    targets(statement).iter().flat_map(bound).collect()
}

fn bound(target: &Value) -> Vec<&str> {
    match target.elements() {
        Some(several) => several.iter().flat_map(bound).collect(),
        None => target.name().into_iter().collect(),
    }
}

/// Names that a loop makes and reads before: the value is that of the pass before. A function that is written where it is called
/// reads such values too.
pub(super) fn carried(statements: &[Statement]) -> BTreeSet<String> {
    let mut carried = BTreeSet::new();
    each_statement(statements, &mut |statement| {
        let is_function = match &statement.kind {
            StatementKind::For(..) | StatementKind::While(..) => false,
            StatementKind::Function(it) if it.parameters.is_empty() => true,
            _ => return,
        };
        let (mut made, mut read) = (BTreeSet::<&str>::new(), BTreeSet::<&str>::new());
        each_statement(std::slice::from_ref(statement), &mut |inner| {
            let (assigned, names) = (targets(inner).len(), bound_in(inner));
            // The targets come first.
            for (place, value) in inner.values().into_iter().enumerate() {
                value.visit(&mut |value| {
                    let name = value.name().filter(|name| !made.contains(name));
                    read.extend(name.filter(|name| place >= assigned || !names.contains(name)));
                });
            }
            made.extend(names);
        });
        let before = read
            .into_iter()
            .filter(|name| is_function || made.contains(name));
        carried.extend(before.map(str::to_owned));
    });
    carried
}
