//! Loops that freeze parameters by their names: `freeze` and `unfreeze` take the beginning of a name.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::{Translator, Why, text};
use crate::model::{Kind, Statement, StatementKind, Value, each_value};

/// The bodies of models of transformers by their fields: here all have BERT's names.
const BODIES: &[&str] = &[
    "bert",
    "roberta",
    "distilbert",
    "electra",
    "mpnet",
    "deberta",
    "camembert",
    "albert",
    "xlm_roberta",
    "base_model",
];

const BY_NAME: &str = "parameters are frozen by the beginning of their names: `model.freeze(\"bert.embeddings\")?`, all by `model.freeze(\"\")?`, and \
                       `model.unfreeze(\"classifier\")?` trains some again; `model.summary()` has the names";

/// What a loop sets.
pub(super) struct Setting {
    /// The beginnings of the names that it is for; all if there are none.
    names: Vec<String>,
    /// It is for all but these.
    is_negated: bool,
    /// The parameters are trained.
    trains: bool,
    /// What is set for the other parameters.
    others: Option<bool>,
}

impl Setting {
    pub(super) fn of_all(trains: bool) -> Self {
        Self {
            names: Vec::new(),
            is_negated: false,
            trains,
            others: None,
        }
    }
}

/// A part of a model as a beginning of names here: `encoder.layer.3` of `model.bert.encoder.layer[3]`.
fn prefix(name: &str) -> Option<String> {
    let name = name.trim_matches('.');
    let (first, rest) = name.split_once('.').unwrap_or((name, ""));
    let joined = |head: &str, rest: &str| match rest {
        "" => head.to_owned(),
        rest => format!("{head}.{rest}"),
    };
    Some(match first {
        body if BODIES.contains(&body) => joined("bert", rest),
        "embeddings" | "encoder" | "pooler" => joined("bert", name),
        "transformer" => joined("bert.encoder", rest),
        "layer" => joined("bert.encoder", name),
        "classifier" | "qa_outputs" | "cls" => name.to_owned(),
        "pre_classifier" => "bert.pooler".to_owned(),
        _ => return None,
    })
}

/// The model and the part of it in `model.bert.encoder.layer[3]`.
fn part_of_model(value: &Value) -> Option<(&Value, String)> {
    match &value.kind {
        Kind::Name(_) => Some((value, String::new())),
        Kind::Attribute(object, name) => {
            let (model, part) = part_of_model(object)?;
            Some((model, format!("{part}.{name}").trim_matches('.').to_owned()))
        }
        Kind::Index(object, index) => {
            let (model, part) = part_of_model(object)?;
            let at = index.integer().filter(|it| *it >= 0)?;
            Some((model, format!("{part}.{at}")))
        }
        _ => None,
    }
}

/// `param.requires_grad = False`, `param.requires_grad_(False)`.
fn set_flag<'v>(statement: &'v Statement, name: &str) -> Option<&'v Value> {
    match &statement.kind {
        StatementKind::Assign(targets, value) => match &targets.first()?.kind {
            Kind::Attribute(object, flag)
                if flag == "requires_grad" && object.name() == Some(name) =>
            {
                Some(value)
            }
            _ => None,
        },
        StatementKind::Expression(value) => {
            let (object, call) = value.method("requires_grad_")?;
            (object.name() == Some(name)).then_some(call.arguments.first()?)
        }
        _ => None,
    }
}

/// The beginnings of names that a condition chooses, and whether it chooses all others.
fn chosen(condition: &Value, name: &str) -> Option<(Vec<String>, bool)> {
    let of_text = |it: &Value| prefix(it.text()?).map(|it| vec![it]);
    match &condition.kind {
        Kind::Unary("not", inner) => chosen(inner, name).map(|(names, not)| (names, !not)),
        Kind::Binary(left, op @ ("in" | "not in"), right) if right.name() == Some(name) => {
            Some((of_text(left)?, *op == "not in"))
        }
        Kind::Binary(left, op @ ("or" | "and"), right) => {
            let ((mut a, not_a), (b, not_b)) = (chosen(left, name)?, chosen(right, name)?);
            let is_union = (not_a, not_b) == (*op == "and", *op == "and");
            a.extend(b);
            is_union.then_some((a, not_a))
        }
        Kind::Call(_) => {
            let (object, call) = condition.method("startswith")?;
            let given = call
                .arguments
                .first()
                .filter(|_| object.name() == Some(name))?;
            let names = match given.elements() {
                Some(several) => several
                    .iter()
                    .map(|it| prefix(it.text()?))
                    .collect::<Option<_>>()?,
                None => of_text(given)?,
            };
            Some((names, false))
        }
        _ => None,
    }
}

impl Translator<'_> {
    /// A loop that freezes or trains parameters; `None`: another loop.
    pub(super) fn freezes_in_loop(&mut self, statement: &Statement) -> Option<Result<(), Why>> {
        let StatementKind::For(target, items, body) = &statement.kind else {
            return None;
        };
        let mut freezes = false;
        each_value(body, &mut |value| {
            freezes |= matches!(&value.kind, Kind::Attribute(_, name)
                if name == "requires_grad" || name == "requires_grad_" || name == "trainable");
        });
        let done = freezes.then(|| self.freezing_loop(target, items, body, statement.span))?;
        if done.is_ok() {
            see_whole(items);
            each_value(body, &mut see_whole);
            self.skip_comments(statement.span.end);
        }
        Some(done)
    }

    fn freezing_loop(
        &mut self,
        target: &Value,
        items: &Value,
        body: &[Statement],
        span: CellSpan,
    ) -> Result<(), Why> {
        let is_print = |it: &&Statement| match &it.kind {
            StatementKind::Expression(value) => {
                let call = value.call();
                call.is_some_and(|call| call.function.name() == Some("print"))
            }
            _ => false,
        };
        let body: Vec<&Statement> = body.iter().filter(|it| !is_print(it)).collect();
        if let Some((object, _)) = items.method("parameters") {
            let name = target.name().ok_or(BY_NAME)?;
            let [one] = body.as_slice() else {
                return Err(BY_NAME.to_owned());
            };
            let Some(Kind::Bool(trains)) = set_flag(one, name).map(|it| &it.kind) else {
                return Err(BY_NAME.to_owned());
            };
            return self.set_parameters(object, &Setting::of_all(*trains), span);
        }
        if let Some((object, _)) = items.method("named_parameters") {
            let names: Vec<&str> = (target.elements().unwrap_or_default().iter())
                .filter_map(Value::name)
                .collect();
            let [name, parameter] = names[..] else {
                return Err(BY_NAME.to_owned());
            };
            let setting = setting_of(&body, name, parameter).ok_or(BY_NAME)?;
            return self.set_parameters(object, &setting, span);
        }
        self.layers_in_loop(target, items, &body, span)
    }

    /// `for layer in model.bert.encoder.layer[:8]:`, `for layer in model.layers[:-1]:`.
    fn layers_in_loop(
        &mut self,
        target: &Value,
        items: &Value,
        body: &[&Statement],
        span: CellSpan,
    ) -> Result<(), Why> {
        let name = target.name().ok_or(BY_NAME)?;
        let [one] = body else {
            return Err(BY_NAME.to_owned());
        };
        let (list, range) = match &items.kind {
            Kind::Index(list, range) => (&**list, Some(&**range)),
            _ => (items, None),
        };
        let (model, part) = part_of_model(list).ok_or(BY_NAME)?;
        // Keras: the last layer of a model of transformers is its head.
        if let StatementKind::Assign(targets, value) = &one.kind
            && let Some(Kind::Attribute(layer, flag)) = targets.first().map(|it| &it.kind)
            && let Kind::Bool(trains) = value.kind
        {
            if flag != "trainable" || layer.name() != Some(name) || part != "layers" {
                return Err(BY_NAME.to_owned());
            }
            let is_bert = self.facts(model).is_some_and(|it| it.is_bert);
            let until = match range.map(|it| &it.kind) {
                Some(Kind::Slice(None, Some(end))) => end.integer(),
                Some(_) => Some(0),
                None => None,
            };
            return match (is_bert, until) {
                (_, None) => self.set_parameters(model, &Setting::of_all(trains), span),
                (true, Some(-1)) => {
                    let setting = Setting {
                        names: vec!["classifier".to_owned()],
                        is_negated: true,
                        trains,
                        others: None,
                    };
                    self.set_parameters(model, &setting, span)
                }
                _ => Err(BY_NAME.to_owned()),
            };
        }
        let StatementKind::For(inner, parameters, block) = &one.kind else {
            return Err(BY_NAME.to_owned());
        };
        let of_layer = parameters
            .method("parameters")
            .and_then(|(it, _)| it.name());
        let flag = match (inner.name(), block.as_slice()) {
            (Some(inner), [one]) => set_flag(one, inner).map(|it| &it.kind),
            _ => None,
        };
        let (Some(Kind::Bool(trains)), true) = (flag, of_layer == Some(name)) else {
            return Err(BY_NAME.to_owned());
        };
        let bounds = match range.map(|it| &it.kind) {
            Some(Kind::Slice(start, end)) => {
                let start = start.as_ref().map_or(Some(0), |it| it.integer());
                start.zip(end.as_ref().and_then(|it| it.integer()))
            }
            _ => None,
        };
        let (Some((start @ 0.., end @ 0..)), Some(part)) = (bounds, prefix(&part)) else {
            return Err(BY_NAME.to_owned());
        };
        let rust = self.model_name(model)?;
        let method = if *trains { "unfreeze" } else { "freeze" };
        self.push(
            format!("for layer in {start}..{end} {{\n    {rust}.{method}(&format!(\"{part}.{{layer}}\"))?;\n}}"),
            span,
        );
        Ok(())
    }

    /// Writes what is set for a model or a part of one.
    pub(super) fn set_parameters(
        &mut self,
        object: &Value,
        setting: &Setting,
        span: CellSpan,
    ) -> Result<(), Why> {
        let (model, part) = part_of_model(object).ok_or(BY_NAME)?;
        if self.facts(model).is_some_and(|facts| !facts.is_bert) && !part.is_empty() {
            return Err(BY_NAME.to_owned());
        }
        let rust = self.model_name(model)?;
        let whole = match part.as_str() {
            "" => String::new(),
            part => prefix(part).ok_or(BY_NAME)?,
        };
        let mut lines = Vec::new();
        let mut set = |name: &str, trains: bool| {
            let method = if trains { "unfreeze" } else { "freeze" };
            lines.push(format!("{rust}.{method}({})?;", text::text(name)));
        };
        let trains = setting.trains;
        if setting.names.is_empty() {
            set(&whole, trains);
            // The first layer of the head is the pooler here, which is in none of these bodies there.
            if [
                "roberta",
                "distilbert",
                "electra",
                "mpnet",
                "deberta",
                "camembert",
            ]
            .contains(&part.as_str())
            {
                set("bert.pooler", !trains);
            }
        } else {
            match (setting.is_negated, setting.others) {
                (true, others) => set("", others.map_or(trains, |_| trains)),
                (false, Some(others)) => set("", others),
                (false, None) => {}
            }
            let of_names = match setting.is_negated {
                true => setting.others.unwrap_or(!trains),
                false => trains,
            };
            setting.names.iter().for_each(|name| set(name, of_names));
        }
        self.push(lines.join("\n"), span);
        if part == "base_model" {
            self.note(span, "of RoBERTa, DistilBERT, ELECTRA, MPNet and DeBERTa, the first layer of the head is `bert.pooler` here, which `base_model` has not: `model.unfreeze(\"bert.pooler\")?` trains it");
        }
        Ok(())
    }
}

/// What the body of a loop over names and parameters sets.
fn setting_of(body: &[&Statement], name: &str, parameter: &str) -> Option<Setting> {
    let flag = |block: &[Statement]| match block {
        [one] => match set_flag(one, parameter).map(|it| &it.kind) {
            Some(Kind::Bool(trains)) => Some(*trains),
            _ => None,
        },
        _ => None,
    };
    match body {
        [one] => match &one.kind {
            StatementKind::If(branches) => match branches.as_slice() {
                [(Some(condition), block), rest @ ..] => {
                    let (names, is_negated) = chosen(condition, name)?;
                    let others = match rest {
                        [] => None,
                        [(None, block)] => Some(flag(block)?),
                        _ => return None,
                    };
                    Some(Setting {
                        names,
                        is_negated,
                        trains: flag(block)?,
                        others,
                    })
                }
                _ => None,
            },
            _ => match set_flag(one, parameter)? {
                value if matches!(value.kind, Kind::Bool(_)) => {
                    Some(Setting::of_all(value.kind == Kind::Bool(true)))
                }
                // `param.requires_grad = "classifier" in name`
                condition => {
                    let (names, is_negated) = chosen(condition, name)?;
                    Some(Setting {
                        names,
                        is_negated,
                        trains: true,
                        others: Some(false),
                    })
                }
            },
        },
        // `if "classifier" in name: continue`, then the flag.
        [skip, one] => {
            let StatementKind::If(branches) = &skip.kind else {
                return None;
            };
            let [(Some(condition), block)] = branches.as_slice() else {
                return None;
            };
            let [
                Statement {
                    kind: StatementKind::Leave("continue"),
                    ..
                },
            ] = block.as_slice()
            else {
                return None;
            };
            let (names, is_negated) = chosen(condition, name)?;
            let Some(Kind::Bool(trains)) = set_flag(one, parameter).map(|it| &it.kind) else {
                return None;
            };
            Some(Setting {
                names,
                is_negated: !is_negated,
                trains: *trains,
                others: None,
            })
        }
        _ => None,
    }
}
