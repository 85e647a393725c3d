//! What a debugger shows of variables: each value in one line, and what it consists of when it unfolds.
//!
//! Questions of the kernel are answered on a thread of their own, so that they are answered also while a cell runs. Then
//! only values are read that other threads may read (`Sync`) and that the cell has not taken. A model is read through its
//! handle, also while a run trains it: the loop lends it between two optimizer steps.
//!
//! Types of this project and of the standard library are known. Other types are registered by a cell that the kernel compiles
//! for this purpose ([`crate::__register_types!`]): only a cell can name them. Such a value is shown by its `Debug`, of
//! which the text is read as a tree (`text.rs`), and by its [`IntoBundle`](crate::display::IntoBundle).
//!
//! Start reading at `View`, then `answer`.

use std::ops::Range;

use stratoscope_wire::{
    InspectAnswer, InspectQuestion, InspectedValue, MimeBundle, ToKernel, ValuePath, Window,
};

use crate::connection;
use crate::display::plain;

mod data;
mod layers;
mod lists;
mod models;
mod numbers;
mod reader;
pub mod register;
mod runs;
mod text;
mod types;
mod variables;

pub(crate) use models::lender;
pub(crate) use variables::{Stored, Variables, note, share};

/// A value's one line has at most this many characters.
const LINE: usize = 200;

/// A value as a debugger shows it.
pub(crate) trait View {
    /// The value in one line; nothing is computed on a device for it.
    fn line(&self) -> String;

    /// The type, where it is not the variable's; may be empty.
    fn type_name(&self) -> String {
        String::new()
    }

    /// How many named children it has, such as fields.
    fn named(&self) -> usize {
        0
    }

    /// How many indexed children it has, such as the elements of a list.
    fn indexed(&self) -> usize {
        0
    }

    /// The name and the value of a child. Named children come first.
    fn child(&self, _position: usize) -> Option<(String, Box<dyn View + '_>)> {
        None
    }

    /// Called before its parts are looked at or it is displayed: what is computed on request is computed now.
    fn open(&self) {}

    /// Calls `each` with the names and values of the indexed children at these positions, counted without named ones.
    fn children(&self, range: Range<usize>, each: &mut dyn FnMut(String, &dyn View)) {
        let first = self.named();
        for position in range {
            if let Some((name, child)) = self.child(first + position) {
                each(name, child.as_ref());
            }
        }
    }

    /// What a cell would display of it.
    fn rich(&self) -> MimeBundle {
        plain(self.line())
    }
}

/// A value without children.
pub(crate) struct Leaf {
    pub line: String,
    pub type_name: &'static str,
}

impl Leaf {
    pub(crate) fn new(line: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            type_name: "",
        }
    }
}

impl View for Leaf {
    fn line(&self) -> String {
        self.line.clone()
    }

    fn type_name(&self) -> String {
        self.type_name.to_owned()
    }
}

/// Answers a question of the kernel on the thread for it.
pub(crate) fn ask(id: u64, generation: u32, is_idle: bool, question: InspectQuestion) {
    reader::ask(move || {
        register::begin(generation);
        let (answer, unknown) = answer(&question, is_idle);
        connection::reply(&ToKernel::Inspected {
            id,
            answer,
            unknown,
        });
    });
}

/// The answer, and the variables that it is about and whose types are to be registered first.
fn answer(question: &InspectQuestion, is_idle: bool) -> (InspectAnswer, Vec<String>) {
    match question {
        InspectQuestion::Variables => variables::all(is_idle),
        InspectQuestion::Children {
            path,
            named,
            indexed,
        } => at(path, is_idle, |view| children(view, *named, *indexed)),
        InspectQuestion::Find { expression } => find(expression, is_idle),
        InspectQuestion::Rich { path } => at(path, is_idle, |view| InspectAnswer::Rich {
            data: view.rich(),
        }),
        InspectQuestion::Runs if is_idle => (runs::standing(), Vec::new()),
        InspectQuestion::Runs => (InspectAnswer::missing("a cell is running"), Vec::new()),
    }
}

/// Calls `look` with the value at a path.
fn at(
    path: &ValuePath,
    is_idle: bool,
    look: impl FnOnce(&dyn View) -> InspectAnswer,
) -> (InspectAnswer, Vec<String>) {
    let mut look = Some(look);
    let mut answer = InspectAnswer::missing(format!("`{}` has no such part any more", path.name));
    let unknown = variables::with(&path.name, is_idle, &mut |view| {
        descend(view, &path.steps, &mut |view| {
            if let Some(look) = look.take() {
                view.open();
                answer = look(view);
            }
        });
    });
    match unknown {
        Ok(unknown) => (answer, unknown),
        Err(reason) => (InspectAnswer::missing(reason), Vec::new()),
    }
}

fn descend(view: &dyn View, steps: &[usize], look: &mut dyn FnMut(&dyn View)) {
    match steps.split_first() {
        None => look(view),
        Some((&step, rest)) => {
            if let Some((_, child)) = view.child(step) {
                descend(child.as_ref(), rest, look);
            }
        }
    }
}

/// The children in these windows.
fn children(view: &dyn View, named: Window, indexed: Window) -> InspectAnswer {
    let (all_named, all_indexed) = (view.named(), view.indexed());
    let of = |window: Window, all: usize| {
        let start = window.start.min(all);
        start..start.saturating_add(window.count).min(all)
    };
    let child = |position: usize| {
        let (name, child) = view.child(position)?;
        Some(described(name, child.as_ref()))
    };
    let mut values: Vec<_> = of(named, all_named).filter_map(child).collect();
    let named = values.len();
    view.children(of(indexed, all_indexed), &mut |name, child| {
        values.push(described(name, child));
    });
    InspectAnswer::Values {
        values,
        named,
        all_named,
        all_indexed,
    }
}

/// A value in one line.
fn described(name: String, view: &dyn View) -> InspectedValue {
    InspectedValue {
        name,
        value: Some(line(&view.line())),
        type_name: view.type_name(),
        named: view.named(),
        indexed: view.indexed(),
    }
}

/// A text in one line, with what a terminal would obey made visible, and cut at [`LINE`] characters.
fn line(text: &str) -> String {
    // The rest is not looked at.
    let cut: String = text.chars().take(LINE + 1).collect();
    let shown = stratoscope_render::text::visible_line(&cut);
    match shown.chars().count() > LINE {
        true => shown.chars().take(LINE - 1).chain(['…']).collect(),
        false => shown,
    }
}

/// Finds `variable.child[3].child`.
fn find(expression: &str, is_idle: bool) -> (InspectAnswer, Vec<String>) {
    let expression = expression.trim();
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let end = expression.find(|character| !is_name(character));
    let (name, rest) = expression.split_at(end.unwrap_or(expression.len()));
    let mut answer = InspectAnswer::missing(format!(
        "`{}` is not a part of a variable",
        line(expression)
    ));
    let unknown = variables::with(name, is_idle, &mut |view| {
        let mut steps = Vec::new();
        follow(view, rest, &mut steps, &mut |view, steps| {
            let path = ValuePath {
                name: name.to_owned(),
                steps: steps.to_vec(),
            };
            let value = described(expression.to_owned(), view);
            answer = InspectAnswer::Found { path, value };
        });
    });
    match unknown {
        Ok(unknown) => (answer, unknown),
        Err(reason) => (InspectAnswer::missing(reason), Vec::new()),
    }
}

/// Of deeper expressions nothing is found.
const DEEPEST: usize = 100;

fn follow(
    view: &dyn View,
    rest: &str,
    steps: &mut Vec<usize>,
    found: &mut dyn FnMut(&dyn View, &[usize]),
) {
    if rest.is_empty() {
        return found(view, steps);
    }
    if steps.len() >= DEEPEST {
        return;
    }
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    let indexed = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    if let Some((number, behind)) = indexed
        && let Ok(number) = number.trim().parse::<usize>()
        && number < view.indexed()
        && ends(behind)
    {
        let position = view.named() + number;
        // Of a map, the number may be a key.
        let is_it = |name: &str| *name == format!("[{number}]");
        if let Some((_, child)) = view.child(position).filter(|(name, _)| is_it(name)) {
            steps.push(position);
            return follow(child.as_ref(), behind, steps, found);
        }
    }
    if rest.starts_with('[') {
        return by_key(view, rest, steps, found);
    }
    let wanted = rest.strip_prefix('.').unwrap_or(rest);
    // The longest name: names may contain dots.
    let named = (0..view.named()).filter_map(|position| {
        let (name, _) = view.child(position)?;
        let behind = wanted.strip_prefix(name.as_str())?;
        ends(behind).then_some((name.len(), position))
    });
    let Some((length, position)) = named.max() else {
        return;
    };
    if let Some((_, child)) = view.child(position) {
        steps.push(position);
        follow(child.as_ref(), &wanted[length..], steps, found);
    }
}

/// Of longer maps, keys behind this many are not found.
const MOST_KEYS: usize = 100_000;

fn by_key(
    view: &dyn View,
    rest: &str,
    steps: &mut Vec<usize>,
    found: &mut dyn FnMut(&dyn View, &[usize]),
) {
    let mut place = None;
    let mut position = view.named();
    view.children(0..view.indexed().min(MOST_KEYS), &mut |name, _| {
        if place.is_none() && rest.starts_with(&name) {
            place = Some((position, name.len()));
        }
        position += 1;
    });
    if let Some((position, length)) = place
        && let Some((_, child)) = view.child(position)
    {
        steps.push(position);
        follow(child.as_ref(), &rest[length..], steps, found);
    }
}

#[cfg(test)]
mod tests;
