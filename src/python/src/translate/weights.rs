//! Numbers of parameters, and files of weights: `summary`, `num_parameters`, `save_pretrained`.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::callback::folder;
use super::freezing::Setting;
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Function, Kind, Statement, StatementKind, Value};

impl Translator<'_> {
    /// Loops that freeze, numbers of parameters, and files of weights; `None`: another statement.
    pub(crate) fn about_parameters(&mut self, statement: &Statement) -> Option<Result<(), Why>> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::For(..) => self.freezes_in_loop(statement),
            StatementKind::Expression(value) => self.parameters_in_call(value, span),
            StatementKind::Assign(targets, value) => match targets.as_slice() {
                [target] => self.parameters_as_value(target, value, span),
                _ => None,
            },
            StatementKind::Function(it) => self.function_that_counts(it, span),
            _ => None,
        }
    }

    fn parameters_in_call(&mut self, value: &Value, span: CellSpan) -> Option<Result<(), Why>> {
        if let Some((object, call)) = value.method("requires_grad_") {
            let trains = match call.arguments.first().map(|it| &it.kind) {
                Some(Kind::Bool(trains)) => *trains,
                None => true,
                _ => return None,
            };
            call.see_all();
            return Some(self.set_parameters(object, &Setting::of_all(trains), span));
        }
        if let Some((model, _)) = value.method("load_state_dict") {
            return Some(Err(self.loaded_weights(Some(model), value)));
        }
        let call = value.call()?;
        if self.names.full(&call.function).as_deref() == Some("torch.save") {
            return Some(self.saved_weights(call, span));
        }
        let is_print = call.function.name() == Some("print");
        let model = self.counted(value).filter(|_| is_print)?;
        see_whole(value);
        Some(self.model_of_name(&model, value).map(|model| {
            self.push(format!("println!(\"{{}}\", {model}.summary());"), span);
            self.note(
                span,
                "`summary()` has the number of all parameters and of those that are trained",
            );
        }))
    }

    fn parameters_as_value(
        &mut self,
        target: &Value,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if self.names.called(value).as_deref() == Some("torch.load") {
            return Some(Err(self.loaded_weights(None, value)));
        }
        if let Kind::Attribute(part, flag) = &target.kind
            && flag == "requires_grad"
            && let Kind::Bool(trains) = value.kind
        {
            return Some(self.set_parameters(part, &Setting::of_all(trains), span));
        }
        let model = self.counted(value)?;
        let name = target.name()?;
        let is_trained = self.source(value.span).contains("requires_grad");
        if is_trained {
            return Some(Err(
                "`model.summary()` has the number of parameters that are trained, and `model.num_parameters()` counts all".to_owned(),
            ));
        }
        see_whole(value);
        let model = match self.model_of_name(&model, value) {
            Ok(model) => model,
            Err(why) => return Some(Err(why)),
        };
        self.push(
            format!("let {} = {model}.num_parameters();", text::name(name)),
            span,
        );
        self.things.insert(name.to_owned(), Thing::Int(None));
        Some(Ok(()))
    }

    fn function_that_counts(&mut self, it: &Function, span: CellSpan) -> Option<Result<(), Why>> {
        let [
            Statement {
                kind: StatementKind::Return(Some(value)),
                ..
            },
        ] = it.body.as_slice()
        else {
            return None;
        };
        if !self.source(value.span).contains("numel()") {
            return None;
        }
        self.skip_comments(span.end);
        self.idle(
            span,
            "`model.summary()` has the number of all parameters and of those that are trained",
        );
        self.hub.counting_functions.insert(it.name.clone());
        Some(Ok(()))
    }

    /// The name of the model whose parameters a value counts: `sum(p.numel() for p in model.parameters())`.
    fn counted(&self, value: &Value) -> Option<String> {
        let source = self.source(value.span);
        if source.contains(".numel()") {
            let before = source
                .split(".parameters()")
                .next()
                .filter(|it| it.len() < source.len())?;
            let name = before.rsplit(' ').next()?;
            let is_name = name.chars().all(|it| it.is_alphanumeric() || it == '_');
            return is_name.then(|| name.to_owned());
        }
        let mut found = None;
        value.visit(&mut |inner| {
            let Some(call) = inner.call() else {
                return;
            };
            let is_counting = call
                .function
                .name()
                .is_some_and(|name| self.hub.counting_functions.contains(name));
            let of_model = call.arguments.first().filter(|_| is_counting);
            let own = ["num_parameters", "count_params"]
                .iter()
                .find_map(|name| inner.method(name))
                .map(|(object, _)| object);
            let name = of_model.or(own).and_then(Value::name);
            found = found.take().or(name.map(str::to_owned));
        });
        found
    }

    fn model_of_name(&mut self, name: &str, at: &Value) -> Result<String, Why> {
        let value = Value {
            span: at.span,
            kind: Kind::Name(name.to_owned()),
        };
        self.model_name(&value)
    }

    /// `torch.save(model.state_dict(), "model.pt")`.
    fn saved_weights(&mut self, call: &Call, span: CellSpan) -> Result<(), Why> {
        const OF_RUN: &str = "the weights of a model are written by `model.save_pretrained(\"folder\")?`, and a whole run, with its optimizer, by \
                              `checkpoint = \"runs\", every = 100` of `fit!`, from which `resume_from = \"runs\"` continues";
        let object = call.argument("obj", 0).ok_or("it saves nothing")?;
        let path = call.argument("f", 1).ok_or("it names no file")?;
        let model = match object.method("state_dict") {
            Some((model, _)) => model,
            None => object,
        };
        let is_model = model.name().is_some() && self.is_model(model);
        if !is_model {
            return Err(self.missing_of(model).unwrap_or_else(|| OF_RUN.to_owned()));
        }
        self.needs_compile(model)?;
        let rust = self.model_name(model)?;
        let folder = match path.text() {
            Some(path) => text::text(&folder(path)),
            None => self.value(path)?,
        };
        call.see_all();
        self.note(
            path.span,
            format!("{folder} is a folder: the weights as safetensors, and what else `from_pretrained` reads"),
        );
        self.push(format!("{rust}.save_pretrained({folder})?;"), span);
        Ok(())
    }

    fn missing_of(&self, value: &Value) -> Option<Why> {
        value.name().and_then(|name| self.missing(name))
    }

    /// Why a file of PyTorch is not loaded, and how weights are.
    fn loaded_weights(&self, model: Option<&Value>, value: &Value) -> Why {
        let mut path = "folder".to_owned();
        value.visit(&mut |inner| {
            if let Some(call) = inner.call()
                && self.names.full(&call.function).as_deref() == Some("torch.load")
                && let Some(given) = call.arguments.first().and_then(Value::text)
            {
                path = folder(given);
            }
        });
        let path = text::text(&path);
        let is_bert = model
            .and_then(|it| self.facts(it))
            .is_none_or(|it| it.is_bert);
        match is_bert {
            true => format!(
                "files of `torch.save` are not read; a model is made from the folder that `save_pretrained` has written: \
                 `BertForSequenceClassification::from_pretrained_with({path}, &LoadOptions::new())?`"
            ),
            false => format!(
                "files of `torch.save` are not read; a model is made from the folder that `save` has written: `Sequential::load({path})?`"
            ),
        }
    }
}
