//! Statements.

use std::collections::BTreeMap;

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::callback::folder;
use super::compile::Around;
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::Line;
use crate::model::{Call, Kind, Statement, StatementKind, Value, each_value};

/// Where a model that is made outside of the scope is made instead.
pub(crate) enum Place {
    /// In the scope that its `compile` stands in.
    InScope,
    /// In a scope around its `compile`.
    AroundCompile,
}

impl Translator<'_> {
    /// Translates the statements of a block.
    pub(crate) fn block(&mut self, statements: &[Statement]) {
        let moved = match self.depth {
            0 => self.moved(statements),
            _ => BTreeMap::new(),
        };
        for statement in statements {
            self.comments_before(statement.span.start);
            self.begin_models(statement);
            let before = self.translation.lines.len();
            let found = self.found();
            if let Some(name) = made_name(statement)
                && moved.contains_key(&statement.span.start)
            {
                self.hold_back(statement, &name);
                continue;
            }
            let wraps = matches!(moved.get(&statement.span.start), Some(Place::AroundCompile));
            let depth = self.depth;
            let spread = self.spread_out(statement);
            let statement = spread.as_ref().unwrap_or(statement);
            let written = self
                .written_out(statement)
                .and_then(|()| self.statement(statement, wraps));
            match written {
                Ok(()) => self.account(statement),
                Err(why) => {
                    self.depth = depth;
                    self.forget(&found);
                    let why = self.missing_in(statement).unwrap_or(why);
                    self.fail(statement, before, why);
                }
            }
            self.comment_behind(statement, before);
        }
    }

    /// How much was found so far: free names, what is left out, different and idle; callbacks that a `fit` takes.
    fn found(&self) -> [usize; 5] {
        let it = &self.translation;
        let taken = self.callbacks_taken.len();
        [
            it.free.len(),
            it.left.len(),
            it.notes.len(),
            it.idle.len(),
            taken,
        ]
    }

    /// Of a statement that is left out, nothing else is to be read on the card.
    fn forget(&mut self, [free, left, notes, idle, taken]: &[usize; 5]) {
        self.callbacks_taken.truncate(*taken);
        self.translation.free.truncate(*free);
        self.translation.left.truncate(*left);
        self.translation.notes.truncate(*notes);
        self.translation.idle.truncate(*idle);
    }

    /// What a statement that is not translated would have made is missing from here on.
    fn fail(&mut self, statement: &Statement, before: usize, why: Why) {
        let is_by_hand = matches!(&statement.kind, StatementKind::For(_, _, body) if self.tape_in(body).is_some());
        let is_comment = |line: &Line| {
            let is_of_us = ["// Not translated, ", "// SC0"]
                .iter()
                .any(|start| line.text.starts_with(start));
            line.is_comment && !is_of_us
        };
        let mut kept: Vec<Line> = self
            .translation
            .lines
            .drain(before..)
            .filter(is_comment)
            .collect();
        for line in &mut kept {
            line.depth = self.depth;
        }
        self.translation.lines.extend(kept);
        self.skip_comments(statement.span.end);
        if is_by_hand {
            self.leave_parts(statement);
        }
        self.leave(statement.span, why);
        self.miss(statement);
        self.miss_compiles(statement);
    }

    fn statement(&mut self, statement: &Statement, wraps: bool) -> Result<(), Why> {
        let span = statement.span;
        if let Some(done) = self.about_devices(statement) {
            return done;
        }
        if let Some(done) = self.about_parameters(statement) {
            return done;
        }
        match &statement.kind {
            StatementKind::Import(_) => Ok(()),
            StatementKind::Nothing => Ok(()),
            StatementKind::Assign(targets, value) => match targets.as_slice() {
                [target] => self.assign(target, value, span),
                _ => Err("one value for several names is not translated".to_owned()),
            },
            StatementKind::Augment(target, op, value) => {
                if let ("+", Some(added)) = (*op, self.add_callbacks(target, value)) {
                    return added;
                }
                let name = target.name().ok_or("only names are changed in place")?;
                let (left, right) = (self.typed(target)?, self.typed(value)?);
                if left.kind != right.kind || !matches!(*op, "+" | "-" | "*") {
                    return Err("the types of its numbers are not known, or differ".to_owned());
                }
                self.push(format!("{} {op}= {};", text::name(name), right.rust), span);
                Ok(())
            }
            StatementKind::Expression(value) => self.expression(value, span, wraps),
            StatementKind::With(items, body) => self.with(items, body, span),
            StatementKind::For(target, items, body) => {
                self.for_loop(statement, target, items, body)
            }
            StatementKind::While(condition, body) => {
                let condition = self.condition(condition)?;
                let made = (self.made_in(body), self.line(span.start));
                self.inner_block(format!("while {} {{", condition.rust), body, span, made)?;
                self.push_alone("}");
                Ok(())
            }
            StatementKind::If(branches) => self.branches(branches, span),
            StatementKind::Try(it) => self.attempt(it, span),
            StatementKind::Function(it) => self.function(it, span),
            StatementKind::Class(it) => self.class(it, span),
            StatementKind::Return(_) => Err("`return` stands in a function only".to_owned()),
            StatementKind::Raise => Err("errors are values here: `?` returns one".to_owned()),
            StatementKind::Assert(condition, text) => {
                let condition = self.condition(condition)?.rust;
                let text = match text {
                    Some(text) => format!(", \"{{}}\", {}", self.value(text)?),
                    None => String::new(),
                };
                self.push(format!("assert!({condition}{text});"), span);
                Ok(())
            }
            StatementKind::Delete(targets) => self.delete(targets, span),
            StatementKind::Leave(word) => {
                self.push(format!("{word};"), span);
                Ok(())
            }
            StatementKind::Escape(command) => self.escape(command, span),
            StatementKind::Other(what) => Err(format!("{what} has no counterpart here")),
        }
    }

    /// `model.save("net.keras")`: a folder with the layers and their weights.
    fn save(&mut self, model: &Value, call: &Call, span: CellSpan) -> Result<(), Why> {
        let rust = self.model_name(model)?;
        self.needs_training(model)?;
        let path = call.argument("filepath", 0).ok_or("it names no file")?;
        let folder = match path.text() {
            Some(path) => text::text(&folder(path)),
            None => self.value(path)?,
        };
        self.note(
            path.span,
            format!("{folder} is a folder, which holds the layers with their weights; files of Keras are others"),
        );
        self.push(format!("{rust}.save({folder})?;"), span);
        Ok(())
    }

    /// `del a, b`: the values end.
    fn delete(&mut self, targets: &[Value], span: CellSpan) -> Result<(), Why> {
        let mut written = Vec::new();
        for target in targets {
            let name = target.name().ok_or("only names are deleted here")?;
            self.keeps_outside(name)?;
            written.push(format!("drop({});", self.name(name)?.rust));
        }
        for line in written {
            self.push(line, span);
        }
        Ok(())
    }

    /// A value alone: a call of something that acts.
    fn expression(&mut self, value: &Value, span: CellSpan, wraps: bool) -> Result<(), Why> {
        let Some(call) = value.call() else {
            return self.shown(value, span);
        };
        if let Some(why) = self.sets_up_python(value) {
            see_whole(value);
            self.idle(span, why);
            return Ok(());
        }
        if let Some(done) = self.statement_of_hub(value, call, span) {
            return done;
        }
        if let Some(done) = self.changed_in_place(value, span) {
            return done;
        }
        if let Some(full) = self.names.full(&call.function) {
            return self.library_call(&full, call, span);
        }
        if let Kind::Attribute(object, method) = &call.function.kind {
            if let Some(drawn) = self.chart_method(object, method, call, span) {
                return drawn;
            }
            if method == "add"
                && let Some(added) = self.add_layer(object, call)
            {
                return added;
            }
            self.materialize(object, method)?;
            return self.method(value, object, method, call, span, wraps);
        }
        match call.function.name() {
            Some("print") if !self.names.has("print") => {
                if let [one] = call.arguments.as_slice()
                    && let Some(rust) = self.assessment(one)?
                {
                    call.argument("", 0);
                    self.push(format!("display(&{rust});"), span);
                    return Ok(());
                }
                let line = self.print(call)?;
                self.push(line, span);
                Ok(())
            }
            Some(name) => match self.things.get(name).cloned() {
                Some(Thing::Body(function)) => self.inline(name, &function),
                Some(Thing::Draws(place, name)) => self.drawn(place, &name, call),
                _ => self.shown(value, span),
            },
            None => self.shown(value, span),
        }
    }

    /// An assessment, which `print` shows as a table.
    fn assessment(&mut self, value: &Value) -> Result<Option<String>, Why> {
        if let Some(name) = value.name() {
            let is_one = matches!(self.things.get(name), Some(Thing::Assessment));
            return Ok(is_one.then(|| text::name(name)));
        }
        if let Some((object, call)) = value.method("head") {
            let made = self.method_of_frame(object, "head", call)?;
            return Ok(made.map(|(rust, _)| rust));
        }
        let found = self.of_predictions(value)?;
        Ok(found.and_then(|(rust, thing)| matches!(thing, Thing::Assessment).then_some(rust)))
    }

    /// The value that the cell ends with is shown, as in Python: its line loses the `;`. A run has its table already.
    pub(crate) fn show_last(&mut self) {
        let Some(at) = self
            .shown
            .filter(|at| at + 1 == self.translation.lines.len())
        else {
            return;
        };
        if let Some(line) = self.translation.lines.get_mut(at)
            && line.depth == 0
            && !line.is_comment
            && !["fit!(", "compile!("]
                .iter()
                .any(|it| line.text.starts_with(it))
            && let Some(value) = line.text.strip_suffix(';')
        {
            line.text = value.to_owned();
        }
    }

    fn shown(&mut self, value: &Value, span: CellSpan) -> Result<(), Why> {
        let (rust, _) = self.made(value)?;
        match rust.is_empty() {
            true => Err("it has no counterpart of its own".to_owned()),
            false => {
                self.shown = Some(self.translation.lines.len());
                self.push(format!("{};", rust.trim_end_matches(".clone()")), span);
                Ok(())
            }
        }
    }

    fn method(
        &mut self,
        value: &Value,
        object: &Value,
        method: &str,
        call: &Call,
        span: CellSpan,
        wraps: bool,
    ) -> Result<(), Why> {
        match method {
            "compile" if wraps => {
                let strategy = self.strategies.last().cloned().unwrap_or_default();
                let compiled = self.compile(object, call, Around::Plain)?;
                self.push_alone(format!("scope!({}, {{", text::name(&strategy)));
                self.depth += 1;
                self.release(object);
                self.push_compile(object, &compiled, span);
                self.depth -= 1;
                self.push_alone("});");
                Ok(())
            }
            "compile" => {
                let compiled = self.compile(object, call, Around::Plain)?;
                self.release(object);
                self.push_compile(object, &compiled, span);
                Ok(())
            }
            "append" | "extend"
                if let Some(value) = call.argument("object", 0)
                    && let Some(added) = self.add_callbacks(object, value) =>
            {
                added
            }
            "summary" => {
                let model = self.model_name(object)?;
                self.push(format!("println!(\"{{}}\", {model}.summary());"), span);
                Ok(())
            }
            "build" => {
                let model = self.model_name(object)?;
                let shape = call.argument("input_shape", 0).ok_or("`build` gets no shape")?;
                let shape = self.shape_of_batches(shape)?;
                if let Some(Thing::Model(facts)) = object.name().and_then(|it| self.things.get_mut(it)) {
                    facts.is_built = true;
                }
                self.push(format!("{model}.build({shape})?;"), span);
                Ok(())
            }
            "save_pretrained" => {
                let model = self.model_name(object)?;
                self.needs_training(object)?;
                let folder = call.argument("save_directory", 0).ok_or("it names no folder")?;
                let folder = self.value(folder)?;
                self.push(format!("{model}.save_pretrained({folder})?;"), span);
                Ok(())
            }
            "save" | "save_weights" => self.save(object, call, span),
            "load_weights" => Err(
                "`Sequential::load(\"folder\")?` loads a model with its weights, and `from_pretrained` those of BERT".to_owned(),
            ),
            _ => self.shown(value, span),
        }
    }
}

/// The name that a statement gives to one value.
fn made_name(statement: &Statement) -> Option<String> {
    match &statement.kind {
        StatementKind::Assign(targets, _) => match targets.as_slice() {
            [one] => one.name().map(str::to_owned),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a name stands in a statement.
pub(crate) fn mentions(statement: &Statement, name: &str) -> bool {
    let mut found = false;
    each_value(std::slice::from_ref(statement), &mut |value| {
        found |= value.name() == Some(name)
    });
    found
}
