//! Which variables exist after a cell, where evcxr assumes something else.
//!
//! evcxr knows two ends of a cell: it has run, or it has failed and none of its variables exist. Variables that a cell has
//! kept although it ended early are declared to evcxr by a small cell of our own ([`Engine::adopt`]). Variables that are
//! lost although the cell has run are masked: later cells are compiled without them ([`State::masked`]).

use std::collections::{BTreeMap, BTreeSet};

use evcxr::{Error, EvalOutputs};
use stratoscope_wire::KeptVariable;

use super::{Engine, PATIENCE};
use crate::lost_variables::Cause;
use crate::persistence;
use crate::relay::Current;
use crate::show;
use stratoscope_cell_text::definitions;
use stratoscope_cell_text::rewrite::Rewritten;
use stratoscope_compile::evcxr_contract::TAKE;
use stratoscope_compile::state::State;
use stratoscope_session::Stream;

/// Variables that have ended with the cell that bound them, and what they were: `a borrow`.
pub(super) type Ended = BTreeMap<String, &'static str>;

impl Engine {
    /// The variables whose types the cell redefines; `changed`: the names that it redefines.
    pub(super) fn of_old_types(&self, changed: &BTreeSet<String>) -> BTreeSet<String> {
        self.list_names()
            .filter(|(_, kind)| definitions::names_one(kind, changed))
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// Has the next cell compiled with statics of its own, if it redefines a type: those of the old
    /// type are laid out otherwise. Whether it does.
    pub(super) fn begin_generation(&self, changed: &BTreeSet<String>) -> bool {
        let is_new = !changed.is_empty();
        if is_new {
            self.set_generation(self.generation + 1);
        }
        is_new
    }

    /// It has run, or has not been compiled.
    pub(super) fn end_generation(&mut self, is_new: bool, compiled: bool) {
        if is_new && compiled {
            self.generation += 1;
        } else if is_new {
            self.set_generation(self.generation);
        }
    }

    /// Has the next cell compiled without what is masked, and without these.
    pub(super) fn mask(&self, more: &BTreeSet<String>) {
        let names: Vec<String> = self.masked.union(more).cloned().collect();
        // A cell that is compiled with one of them is run again by evcxr without it.
        let _ = State::update(self.home.path(), |state| state.masked = names);
    }

    /// Statics of the cells that come belong to this generation of types.
    fn set_generation(&self, number: u32) {
        let _ = State::update(self.home.path(), |state| state.generation = number);
    }

    /// The cell has redefined the types of these variables, and has run: they are lost.
    pub(super) fn drop_redefined(
        &mut self,
        of_old_types: BTreeSet<String>,
        rewritten: &Rewritten,
        current: &Current,
    ) {
        let mut lost = Vec::new();
        for name in of_old_types {
            let made_in = self.made_by.remove(&name);
            self.lost_variables
                .note(&name, Cause::TypeRedefined, current.number, made_in);
            if !rewritten.bindings.contains(&name) {
                lost.push(name.clone());
            }
            self.masked.insert(name);
        }
        if !lost.is_empty() {
            let text = format!("this cell redefines types; lost: {}\n", show::names(&lost));
            current.outputs.stream(Stream::Stderr, &text);
        }
    }

    /// Evaluates a cell. A variable that its cell uses, and that cannot be kept for the next one, ends with the cell: then
    /// nothing has run yet, and the cell is compiled once more, with another value of this name at its end. Returns these
    /// variables, with what they were.
    pub(super) fn evaluate_whole(
        &mut self,
        rewritten: &mut Rewritten,
        current: &Current,
    ) -> (std::result::Result<EvalOutputs, Error>, Ended) {
        let mut ended = Ended::new();
        let is_bound_once = |name: &String| {
            let bound = rewritten.bindings.iter().filter(|it| *it == name);
            bound.count() == 1
        };
        // A closure is not compiled in vain.
        let closure = persistence::called_closure(&current.cell).filter(is_bound_once);
        let mut next = closure.map(|name| (name, "a closure"));
        loop {
            if let Some((name, what)) = next {
                rewritten.text += &format!("\n;let {name} = ();");
                ended.insert(name, what);
            }
            let result = self.evaluate(rewritten);
            let refused = self.not_kept(&result, rewritten, current);
            match refused.filter(|it| it.can_end && !ended.contains_key(&it.name)) {
                Some(refused) => next = Some((refused.name, refused.ends_as)),
                None => return (result, ended),
            }
        }
    }

    /// These variables have ended with the cell that bound them, and the values that they had before are gone.
    pub(super) fn end_variables(
        &mut self,
        ended: &Ended,
        (rewritten, before): (&mut Rewritten, &mut BTreeMap<String, String>),
        number: u64,
    ) {
        for (name, &what) in ended {
            self.lost_variables
                .note(name, Cause::Ended(what), number, Some(number));
            self.made_by.remove(name);
            self.masked.insert(name.clone());
            before.remove(name);
            rewritten.bindings.retain(|bound| bound != name);
        }
    }

    /// Makes known to evcxr what a cell has kept that was ended early. What it does not take is lost.
    pub(super) fn adopt(&mut self, kept: &[KeptVariable]) {
        if kept.is_empty() {
            return;
        }
        for variable in kept {
            self.masked.remove(&variable.name);
        }
        // What is masked is dropped when the next cell begins.
        self.mask(&BTreeSet::new());
        let all: String = kept.iter().map(adoption).collect();
        if self.context.execute(&all).is_err() {
            for variable in kept {
                let _ = self.context.execute(&adoption(variable));
            }
        }
    }

    /// Declares to evcxr what a cell has not changed that could not be loaded. If this cannot be loaded either, it is
    /// tried again before the next cell.
    pub(super) fn adopt_forgotten(&mut self) {
        let forgotten = std::mem::take(&mut self.forgotten);
        if forgotten.is_empty() {
            return;
        }
        self.adopt(&forgotten);
        self.link.sync(PATIENCE);
        let known = self.variable_names();
        let is_unknown = |it: &KeptVariable| !known.contains(&it.name);
        self.forgotten = forgotten.into_iter().filter(is_unknown).collect();
    }

    /// Variables of before the cell that evcxr takes for moved or bound again, although nothing of the cell has run.
    pub(super) fn forgotten_since(&self, before: &BTreeMap<String, String>) -> Vec<KeptVariable> {
        let known = self.variable_names();
        let forgotten = before.iter().filter(|(name, _)| !known.contains(*name));
        let variables = forgotten.map(|(name, type_name)| KeptVariable {
            name: name.clone(),
            type_name: type_name.clone(),
            // evcxr does not show which were; one `mut` too many is no error.
            is_mutable: true,
            is_new: false,
        });
        variables.collect()
    }

    /// Variables that evcxr does not know any more, or that the cell has bound again, need not be masked.
    pub(super) fn unmask(&mut self, made: &[String]) {
        let known: BTreeSet<&str> = self
            .context
            .variables_and_types()
            .map(|(name, _)| name)
            .collect();
        self.masked
            .retain(|name| known.contains(name.as_str()) && !made.contains(name));
        self.mask(&BTreeSet::new());
    }
}

/// The declaration of a variable whose value is there.
fn adoption(variable: &KeptVariable) -> String {
    let KeptVariable {
        name, type_name, ..
    } = variable;
    let mutability = if variable.is_mutable { "mut " } else { "" };
    format!("let {mutability}{name}: {type_name} = {TAKE}{type_name}>({name:?});\n")
}
