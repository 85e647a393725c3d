//! `keras.distribution.set_distribution`: the strategy of the cells that follow, and the scope of the models in the same cell.

use std::collections::BTreeSet;

use stratoscope_diagnostics::CellSpan;

use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Statement, StatementKind, each_statement, each_value};
use crate::names::Names;

impl Translator<'_> {
    /// `set_distribution(distribution)`: the strategy of the cells that follow. In the rest of this cell, models are made in its
    /// scope.
    pub(crate) fn set_distribution(&mut self, call: &Call, span: CellSpan) -> Result<(), Why> {
        let given = call
            .argument("value", 0)
            .ok_or("it names no distribution")?;
        if given.kind == Kind::None {
            return Err("a default strategy stays until another one is set; `strategy = none` in `compile!` trains on one device".to_owned());
        }
        if !self.inside.is_empty() || self.in_function {
            return Err(
                "it stands in a block or a function, and what follows depends on whether it runs"
                    .to_owned(),
            );
        }
        let name = match given.name() {
            Some(name) => name.to_owned(),
            None => {
                let (rust, thing) = self.made(given)?;
                if !matches!(thing, Thing::Strategy) {
                    return Err(format!("it gets {}, no distribution", thing.word()));
                }
                let name = match self.names.has("distribution") {
                    true => "the_distribution",
                    false => "distribution",
                };
                self.push(format!("let {name} = {rust};"), span);
                self.strategies.push(name.to_owned());
                self.things.insert(name.to_owned(), Thing::Strategy);
                name.to_owned()
            }
        };
        match self.things.get(&name) {
            Some(Thing::Strategy) => {}
            Some(other) => return Err(format!("`{name}` is {}, no distribution", other.word())),
            None => self.free(&name, "a strategy, such as `ModelParallel::logical(2)?`")?,
        }
        self.push(format!("{}.set_default();", text::name(&name)), span);
        self.note(
            span,
            "a default strategy holds from the next cell on; in this cell, what makes a model stands in its scope",
        );
        self.default_scope = Some(name);
        Ok(())
    }

    /// The strategy in whose scope a model is made.
    pub(crate) fn scope_of_models(&self) -> Option<String> {
        let default = self.default_scope.as_ref().filter(|_| !self.in_function);
        self.scopes.last().or(default).cloned()
    }

    /// Adds the line that makes a model, in the scope of the default strategy where the cell has set one.
    pub(crate) fn push_model(&mut self, line: String, span: CellSpan) {
        let scope = self.scope_of_models();
        let Some(scope) = scope.filter(|_| self.scopes.is_empty()) else {
            self.push(line, span);
            return;
        };
        self.push(format!("scope!({}, {{", text::name(&scope)), span);
        self.depth += 1;
        self.push(line, span);
        self.depth -= 1;
        self.push_alone("});");
    }
}

/// Functions that are called in the scope of a strategy; all, where the cell sets a default one.
pub(super) fn in_scopes(statements: &[Statement], names: &Names) -> BTreeSet<String> {
    if names.calls("set_distribution") {
        return names.called_names().clone();
    }
    let mut called = BTreeSet::new();
    each_statement(statements, &mut |statement| {
        if let StatementKind::With(items, body) = &statement.kind
            && items
                .iter()
                .any(|(value, _)| value.method("scope").is_some())
        {
            each_value(body, &mut |value| {
                let name = value.call().and_then(|call| call.function.name());
                called.extend(name.map(str::to_owned));
            });
        }
    });
    called
}
