//! Loops that call a model and train nothing: `evaluate!`, or the validation of `fit!`.

use super::super::arguments::see_whole;
use super::super::tape_loop::data_of_loop;
use super::super::thing::{Pipeline, Thing};
use super::super::trainer::metrics::Measure;
use super::super::trainer::part::Part;
use super::super::{Translator, Why, text};
use crate::model::{Kind, Statement, StatementKind, Value, each_statement, each_value};

impl Translator<'_> {
    /// The data of a loop in the same epoch that only calls the model, and that loop.
    pub(super) fn validation_of_loop<'v>(
        &mut self,
        body: &'v [Statement],
    ) -> Option<(Pipeline, &'v [Statement])> {
        let mut found = None;
        each_statement(body, &mut |statement| {
            if let StatementKind::For(_, items, block) = &statement.kind
                && found.is_none()
            {
                let mut has_step = false;
                each_value(block, &mut |value| {
                    has_step |= value.method("backward").is_some()
                });
                if !has_step {
                    found = Some((data_of_loop(items), &block[..]));
                }
            }
        });
        let (items, block) = found?;
        see_whole(&items);
        let data = self.batches_of(&items).ok()?;
        Some((data, block))
    }

    /// The metrics of the cell, and the accuracy that a loop counts by hand.
    pub(super) fn metrics_of_loop(&mut self, block: &[Statement]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        self.hub.unused_metrics.clear();
        let measures = self.things.values().filter_map(|thing| match thing {
            Thing::Part(part) => match &**part {
                Part::Measures(measures) => Some(measures.clone()),
                _ => None,
            },
            _ => None,
        });
        for measure in measures.flatten() {
            let Measure { rust, .. } = measure;
            if !names.contains(&rust) {
                names.push(rust);
            }
        }
        let mut counts = false;
        each_value(block, &mut |value| {
            let is_equal = |it: &Value| {
                let mut found = false;
                it.visit(&mut |inner| found |= matches!(inner.kind, Kind::Binary(_, "==", _)));
                found
            };
            counts |= value
                .method("sum")
                .is_some_and(|(object, _)| is_equal(object));
        });
        if counts && !names.contains(&"accuracy()".to_owned()) {
            names.push("accuracy()".to_owned());
        }
        names
    }

    /// A loop that calls the model on batches and trains nothing; `None`: another loop.
    pub(super) fn evaluation_loop(
        &mut self,
        statement: &Statement,
        items: &Value,
        body: &[Statement],
    ) -> Option<Result<(), Why>> {
        let loader = data_of_loop(items);
        let is_loader = match loader.name().map(|name| self.things.get(name)) {
            Some(Some(Thing::Data(data))) => data.batch.is_some(),
            Some(None) => loader.name().is_some_and(|name| name.contains("loader")),
            _ => false,
        };
        let model = self.step_of(body).model.cloned()?;
        if !is_loader {
            return None;
        }
        see_whole(items);
        Some(self.evaluated(statement, &loader, &model, body))
    }

    pub(super) fn evaluated(
        &mut self,
        statement: &Statement,
        loader: &Value,
        model: &Value,
        body: &[Statement],
    ) -> Result<(), Why> {
        let rust = self.model_name(model)?;
        self.needs_compile(model)?;
        let data = self.batches_of(loader)?;
        let mut parts = Vec::new();
        self.of_pipeline("evaluate", &data, &mut parts);
        self.skip_comments(statement.span.end);
        self.push(
            text::call("evaluate!", &format!("{rust}, {}", data.rust), &parts, "?;"),
            statement.span,
        );
        self.note(
            statement.span,
            "`evaluate!` computes the loss and the metrics of `compile!` over the whole data",
        );
        self.others_of_loop(body);
        each_value(body, &mut see_whole);
        self.miss_bound(statement);
        Ok(())
    }

    /// The data of a loop: a loader by its name, or one that is made there.
    pub(super) fn batches_of(&mut self, loader: &Value) -> Result<Pipeline, Why> {
        let is_made = self.names.called(loader).as_deref() == Some("torch.utils.data.DataLoader");
        match loader.call().filter(|_| is_made) {
            Some(_) => match self.made(loader)?.1 {
                Thing::Data(data) => Ok(data),
                other => Err(format!("it is {}, no data set", other.word())),
            },
            None => self.pipeline(loader),
        }
    }
}
