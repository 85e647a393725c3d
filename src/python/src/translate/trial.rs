//! `try` around `compile`: the fallback for an argument that is not supported, and an error that is printed.

use stratoscope_diagnostics::CellSpan;

use super::compile::Around;
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Statement, StatementKind, Try, Value, each_statement};

impl Translator<'_> {
    /// `try: … except …: …`.
    pub(crate) fn attempt(&mut self, it: &Try, span: CellSpan) -> Result<(), Why> {
        const NOT_THIS: &str = "`try` is translated around one `compile`; elsewhere `?` ends the cell with the error, and \
                                `match` handles it";
        let [handler] = it.handlers.as_slice() else {
            return Err(NOT_THIS.to_owned());
        };
        let Some((model, call)) = compiled(&it.body).filter(|_| !it.has_more) else {
            return Err(NOT_THIS.to_owned());
        };
        let (model, call) = (model.clone(), call.clone());
        if let Some(again) = compiles_again(&handler.body) {
            return self.fallback(&model, &call, again, span);
        }
        let prints = |body: &[Statement]| {
            body.iter()
                .all(|it| is_print(it).is_some() || it.kind == StatementKind::Nothing)
        };
        if !prints(&it.body[1..]) || !prints(&handler.body) {
            return Err(NOT_THIS.to_owned());
        }
        self.materialize(&model, "compile")?;
        let compiled = self.compile(&model, &call, Around::Shown)?;
        self.account(&it.body[0]);
        let head = CellSpan {
            start: span.start,
            end: it.body[0].span.end,
        };
        self.push(format!("match {compiled} {{"), head);
        self.depth += 1;
        self.arm("Ok(_)", &it.body[1..])?;
        let name = handler.name.clone();
        let pattern = match &name {
            Some(name) => format!("Err({})", text::name(name)),
            None => "Err(_)".to_owned(),
        };
        let before = name
            .as_ref()
            .and_then(|name| self.things.insert(name.clone(), Thing::Text));
        let written = self.arm(&pattern, &handler.body);
        if let Some(name) = name {
            match before {
                Some(thing) => self.things.insert(name, thing),
                None => self.things.remove(&name),
            };
        }
        written?;
        self.depth -= 1;
        self.push_alone("}");
        self.skip_comments(span.end);
        Ok(())
    }

    fn arm(&mut self, pattern: &str, body: &[Statement]) -> Result<(), Why> {
        let calls: Vec<(&Call, CellSpan)> = body
            .iter()
            .filter_map(|it| Some((is_print(it)?, it.span)))
            .collect();
        match calls.as_slice() {
            [] => self.push_alone(format!("{pattern} => {{}}")),
            [(one, span)] => {
                let line = self.print(one)?;
                self.push(
                    format!("{pattern} => {},", line.trim_end_matches(';')),
                    *span,
                );
            }
            several => {
                self.push_alone(format!("{pattern} => {{"));
                self.depth += 1;
                for (call, span) in several {
                    let line = self.print(call)?;
                    self.push(line, *span);
                }
                self.depth -= 1;
                self.push_alone("}");
            }
        }
        Ok(())
    }

    /// A second `compile` without the argument is `drop_unsupported = true`.
    fn fallback(
        &mut self,
        model: &Value,
        call: &Call,
        again: &Call,
        span: CellSpan,
    ) -> Result<(), Why> {
        const ARGUMENTS: [&str; 2] = ["steps_per_execution", "experimental_steps_per_execution"];
        let rest = |call: &Call| -> Vec<(String, String)> {
            let named = call
                .keywords
                .iter()
                .filter(|it| !ARGUMENTS.contains(&it.name.as_str()));
            let mut named: Vec<(String, String)> = named
                .map(|it| (it.name.clone(), self.words(it.value.span)))
                .collect();
            named.sort();
            named
        };
        let drops = call
            .keywords
            .iter()
            .any(|it| ARGUMENTS.contains(&it.name.as_str()));
        if !drops || rest(call) != rest(again) || call.arguments != again.arguments {
            return Err(
                "the second `compile` differs in more than `steps_per_execution`".to_owned(),
            );
        }
        self.materialize(model, "compile")?;
        // The optimizer and the loss are read twice in Python, once here.
        for keyword in &again.keywords {
            if let Some(uses) = keyword
                .value
                .name()
                .and_then(|name| self.uses.get_mut(name))
            {
                *uses = uses.saturating_sub(1);
            }
        }
        let compiled = self.compile(model, call, Around::Dropped)?;
        self.push_compile(model, &compiled, span);
        self.note(
            span,
            "`drop_unsupported = true` is this `try`: without a scope the argument is dropped, and the card says so",
        );
        self.skip_comments(span.end);
        Ok(())
    }

    /// A source without the spaces that lay it out.
    fn words(&self, span: CellSpan) -> String {
        self.source(span).split_whitespace().collect()
    }
}

/// The `compile` that a block begins with.
fn compiled(body: &[Statement]) -> Option<(&Value, &Call)> {
    match &body.first()?.kind {
        StatementKind::Expression(value) => value.method("compile"),
        _ => None,
    }
}

/// A `compile` in a handler, beside texts that are printed and an error that goes on.
fn compiles_again(body: &[Statement]) -> Option<&Call> {
    let mut found = None;
    each_statement(body, &mut |statement| {
        if let StatementKind::Expression(value) = &statement.kind
            && let Some((_, call)) = value.method("compile")
        {
            found = Some(call);
        }
    });
    found
}

fn is_print(statement: &Statement) -> Option<&Call> {
    match &statement.kind {
        StatementKind::Expression(value) => value
            .call()
            .filter(|call| call.function.name() == Some("print")),
        _ => None,
    }
}
