//! The same program as a cell of a notebook: statement by statement, each line with the lines of Python that it stands for.
//!
//! What a name of the Python cell is (a strategy, a model, a data set, …) is a [`Thing`]. A statement that has no
//! counterpart is left out and named, and so is every statement that needs what it would have made: nothing is guessed.

mod arguments;
mod array;
mod assign;
mod block;
mod by_hand;
mod call;
mod callback;
mod chain;
mod chart;
mod compile;
mod control;
mod data;
mod default_strategy;
mod devices;
mod distribution;
mod fit;
mod frame;
mod frame_read;
mod frame_split;
mod freezing;
mod function;
mod index;
pub(crate) mod inference;
mod layer;
mod layout;
mod library;
mod literal;
mod look;
mod loss;
mod measured;
mod moves;
mod number;
mod optimizer;
mod options;
mod predicted;
mod pretrained;
mod random;
mod reasons;
mod settings;
mod source;
pub(crate) mod spelling;
pub(crate) mod stages;
mod steps;
mod strategy;
mod tape;
mod tape_loop;
mod text;
pub(crate) mod thing;
mod tokens;
mod torch;
pub(crate) mod trainer;
mod trial;
mod usual;
mod value;
mod visible;
mod waiting;
mod weights;

use std::collections::{BTreeMap, BTreeSet};

use stratoscope_diagnostics::{CellSpan, Diagnostic};

use crate::model::{Statement, each_value};
use crate::names::Names;
use crate::parse::Program;
use crate::{Known, Left, Line, Note, Translation};
use thing::Thing;
use trainer::Hub;

/// Why something is not translated, to follow a colon.
pub(crate) type Why = String;

/// Translates one cell.
pub(crate) struct Translator<'a> {
    text: &'a str,
    /// The first byte of each line.
    line_starts: Vec<usize>,
    names: Names,
    known: &'a Known,
    /// What the names of the cell are.
    things: BTreeMap<String, Thing>,
    /// The strategies whose scopes the statement stands in.
    scopes: Vec<String>,
    /// The strategy that the cell has made the default one.
    default_scope: Option<String>,
    /// The strategies that were made so far.
    strategies: Vec<String>,
    /// How often a name is read.
    uses: BTreeMap<String, usize>,
    /// Names whose values change after they are made.
    changing: BTreeSet<String>,
    /// Names that are given to an argument of `compile` or `fit` of this name.
    roles: BTreeMap<String, String>,
    /// Names of the cell's globals that a function may not see.
    in_function: bool,
    /// The program distributes a loop by hand.
    distributes: bool,
    /// The lines of `compile`s that are not translated, by their models: nothing is trained with older settings.
    uncompiled: BTreeMap<String, usize>,
    /// The losses of the `compile`s of the cell, by their models.
    losses: BTreeMap<String, thing::LossFacts>,
    /// What the cell says about the columns of its files.
    columns: frame::Columns,
    /// Rows of random numbers that wait for their labels.
    rows_of_numbers: BTreeMap<String, random::Rows>,
    /// Labels that Python makes one-hot rows of.
    is_one_hot: BTreeSet<String>,
    /// The lines of `fit`s that are not translated, by their models.
    untrained: BTreeMap<String, usize>,
    /// Callbacks that wait for a `fit`, by their names, and the names that one has taken.
    callbacks_waiting: BTreeMap<String, waiting::Waiting>,
    callbacks_taken: Vec<String>,
    /// Models that `Sequential()` has begun, and where.
    begun: Vec<(String, CellSpan)>,
    /// Functions that are called in the scope of a strategy.
    in_scopes: BTreeSet<String>,
    /// The function that is being written is one of these.
    of_scope: bool,
    /// The lines that make a model, held back until the scope that its `compile` stands in.
    held_back: BTreeMap<String, Vec<Line>>,
    depth: usize,
    /// The blocks around the statement that run several times or not at all: the names that each makes.
    inside: Vec<BTreeSet<String>>,
    /// Which of these blocks are loops.
    repeats: Vec<bool>,
    /// Names whose values a loop takes from the pass before.
    carried: BTreeSet<String>,
    /// Names that such a block has made, which are missing behind it.
    ended: BTreeSet<String>,
    /// The functions whose statements are being written where they are called.
    inlined: Vec<String>,
    /// Functions that were not called yet and whose statements would stand where they are.
    bodies: BTreeMap<String, CellSpan>,
    /// All such functions, and those with a step by hand.
    parts: BTreeMap<String, reasons::Part>,
    /// How many such calls there were.
    inlinings: usize,
    comments: Vec<CellSpan>,
    /// The comments that are in the cell already.
    next_comment: usize,
    /// Values of the cell that functions may use: they are written out there.
    constants: BTreeMap<String, String>,
    seed: Option<String>,
    /// The line of the last value that stands alone, which Python shows at the end of a cell.
    shown: Option<usize>,
    /// Where the cell asks how much memory is used.
    asked_memory: Option<CellSpan>,
    /// The `fit` whose arguments are read has validation data.
    is_validated: bool,
    /// What is known of transformers and PyTorch.
    hub: Hub,
    translation: Translation,
}

/// Translates a program and checks it.
pub(crate) fn translate(text: &str, program: &Program, known: &Known) -> Translation {
    let statements = &program.statements;
    let names = Names::of(statements);
    let hub = Hub::of(statements, &names);
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let mut translator = Translator {
        text,
        line_starts: std::iter::once(0).chain(ends).collect(),
        known,
        things: BTreeMap::new(),
        scopes: Vec::new(),
        default_scope: None,
        strategies: Vec::new(),
        uses: BTreeMap::new(),
        changing: look::changing(statements),
        roles: look::roles(statements),
        in_function: false,
        distributes: look::distributes(statements),
        uncompiled: BTreeMap::new(),
        untrained: BTreeMap::new(),
        losses: BTreeMap::new(),
        is_one_hot: BTreeSet::new(),
        rows_of_numbers: BTreeMap::new(),
        columns: frame::Columns::of(statements),
        callbacks_waiting: BTreeMap::new(),
        callbacks_taken: Vec::new(),
        begun: Vec::new(),
        in_scopes: default_strategy::in_scopes(statements, &names),
        names,
        of_scope: false,
        held_back: BTreeMap::new(),
        depth: 0,
        inside: Vec::new(),
        repeats: Vec::new(),
        carried: visible::carried(statements),
        ended: BTreeSet::new(),
        inlined: Vec::new(),
        bodies: BTreeMap::new(),
        parts: BTreeMap::new(),
        inlinings: 0,
        comments: program.comments.clone(),
        next_comment: 0,
        constants: BTreeMap::new(),
        seed: None,
        shown: None,
        asked_memory: None,
        is_validated: true,
        hub,
        translation: Translation::default(),
    };
    translator.uses = look::uses(statements);
    translator.translation.is_keras = translator.is_keras(statements);
    translator.block(statements);
    translator.show_last();
    translator.unused_bodies();
    translator.empty_lists();
    translator.unused_parts();
    translator.unused_callbacks();
    translator.unused_rows();
    translator.begun_models();
    translator.rest_of_comments();
    translator.show_memory();
    spelling::allow_names(&mut translator.translation.lines);
    translator.translation
}

impl Translator<'_> {
    /// Whether the cell uses a library that this product has a counterpart for.
    fn is_keras(&self, statements: &[Statement]) -> bool {
        let libraries = [
            "tensorflow",
            "keras",
            "tf_keras",
            "transformers",
            "datasets",
            "torch",
            "peft",
            "evaluate",
        ];
        let mut found = libraries.iter().any(|library| self.names.imports(library));
        each_value(statements, &mut |value| {
            let is_of_keras = |full: String| {
                let first = full.split('.').next().unwrap_or_default().to_owned();
                libraries.contains(&first.as_str()) || first == "tensorflow_datasets"
            };
            found |= self.names.full(value).is_some_and(is_of_keras);
            found |= value.call().is_some_and(|call| {
                ["Sequential", "Dense"]
                    .iter()
                    .any(|name| call.function.name() == Some(name))
            });
            found |= ["compile", "fit"].iter().any(|name| {
                value
                    .method(name)
                    .is_some_and(|(object, _)| object.name().is_some())
            });
        });
        found
    }

    /// The number of the line of a byte, counted from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.line_starts
            .partition_point(|start| *start <= at)
            .max(1)
    }

    /// The first and the last line of a range.
    pub(crate) fn lines(&self, span: CellSpan) -> (usize, usize) {
        (
            self.line(span.start),
            self.line(span.end.max(span.start + 1) - 1),
        )
    }

    /// The text of a range.
    pub(crate) fn source(&self, span: CellSpan) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Adds a line to the cell.
    pub(crate) fn push(&mut self, text: impl Into<String>, span: CellSpan) {
        let python = Some(self.lines(span));
        let text = text.into();
        for (index, text) in text.lines().enumerate() {
            let inner = text.len() - text.trim_start_matches("    ").len();
            let more = (text.len() - text.trim_start().len()).min(inner) / 4;
            self.translation.lines.push(Line {
                depth: self.depth + more,
                text: text.trim_start().to_owned(),
                python: python.filter(|_| index == 0),
                is_comment: text.trim_start().starts_with("//"),
            });
        }
    }

    /// Adds a line that stands for no line of Python.
    pub(crate) fn push_alone(&mut self, text: impl Into<String>) {
        let text: String = text.into();
        let is_comment = text.starts_with("//");
        let text = if is_comment {
            text::comment(&text)
        } else {
            text
        };
        self.translation.lines.push(Line {
            depth: self.depth,
            text,
            python: None,
            is_comment,
        });
    }

    /// Something that is different here, in words.
    pub(crate) fn note(&mut self, span: CellSpan, text: impl Into<String>) {
        let note = Note {
            line: self.line(span.start),
            text: text.into(),
        };
        if !self.translation.notes.contains(&note) {
            self.translation.notes.push(note);
        }
    }

    /// A mistake that a rule knows.
    pub(crate) fn find(&mut self, diagnostic: Diagnostic) {
        if !self.translation.findings.contains(&diagnostic) {
            self.translation.findings.push(diagnostic);
        }
    }

    /// What is left out, and why.
    pub(crate) fn leave(&mut self, span: CellSpan, why: impl Into<String>) {
        let lines = self.lines(span);
        let source = self.source(span);
        let first = source.lines().next().unwrap_or_default().trim().to_owned();
        let why = why.into();
        let where_ = match lines {
            (first, last) if first == last => format!("line {first}"),
            (first, last) => format!("lines {first} to {last}"),
        };
        let shown = stratoscope_render::text::excerpt(&first, 60);
        self.push_alone(format!("// Not translated, {where_}, `{shown}`: {why}."));
        if let Some(line) = self.translation.lines.last_mut() {
            line.python = Some(lines);
        }
        self.translation.left.push(Left {
            lines,
            python: first,
            why,
        });
    }

    /// Adds the comments that stand on lines of their own before a place.
    pub(crate) fn comments_before(&mut self, at: usize) {
        while let Some(span) = self.comments.get(self.next_comment).copied() {
            if span.start >= at {
                break;
            }
            self.next_comment += 1;
            let start = self.text[..span.start].rfind('\n').map_or(0, |it| it + 1);
            if self.text[start..span.start].trim().is_empty() {
                let words = self.source(span).trim_start_matches('#').trim().to_owned();
                if !words.is_empty() && !words.starts_with("!/") {
                    self.push_alone(format!("// {words}"));
                }
            }
        }
    }

    /// The comment behind a statement goes behind its last line.
    fn comment_behind(&mut self, statement: &Statement, before: usize) {
        let at = statement.span.end;
        let is_simple = statement.blocks().is_empty();
        if is_simple {
            self.skip_comments(at);
        }
        let Some(span) = self.comments.get(self.next_comment).copied() else {
            return;
        };
        if span.start < at || self.text[at..span.start].contains('\n') {
            return;
        }
        self.next_comment += 1;
        let words = self.source(span).trim_start_matches('#').trim().to_owned();
        let has_line = is_simple && self.translation.lines.len() > before;
        if let (true, Some(line)) = (has_line, self.translation.lines.last_mut())
            && !words.is_empty()
        {
            match line.is_comment {
                true => self.push_alone(format!("// {words}")),
                false => line.text += &format!(" // {}", text::comment(&words)),
            }
        }
    }

    /// Comments inside of what became something else say nothing any more.
    pub(crate) fn skip_comments(&mut self, to: usize) {
        while self
            .comments
            .get(self.next_comment)
            .is_some_and(|it| it.start < to)
        {
            self.next_comment += 1;
        }
    }

    fn rest_of_comments(&mut self) {
        self.depth = 0;
        self.comments_before(usize::MAX);
    }
}
