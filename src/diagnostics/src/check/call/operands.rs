//! What stands in a call beside its named arguments: the model and the data, a missing comma, `name: value`,
//! values without names.

use proc_macro2::{Delimiter, TokenTree};

use super::super::calls::Operand;
use super::super::kind;
use super::super::literal::{self, Literal};
use super::super::segments::Slip;
use super::Checker;
use super::named_data::is_named_data;
use crate::arguments::{self, IdentifierKind, Kind};
use crate::rules::{ArgumentNotNamed, MissingComma, Unnamed, WrongOperands};
use crate::{CellSpan, Diagnostic, Edit, Fix, Place, Rule};
use stratoscope_render::text;

fn insert(at: usize, text: impl Into<String>) -> Edit {
    Edit {
        place: Place::span(at, at),
        replacement: text.into(),
    }
}

impl Checker<'_> {
    /// SC0122 and SC0123: how the parts are written.
    pub(super) fn slips(&mut self) {
        let parsed = self.parsed;
        for slip in &parsed.slips {
            match slip {
                Slip::Comma { after, before } => {
                    let before_text = self.text.get(before.start..before.end).unwrap_or_default();
                    let facts = MissingComma {
                        call: parsed.call.name.clone(),
                        before: before_text.to_owned(),
                        place: Place::Span(*before),
                        insert: Place::span(*after, *after),
                        arguments: Vec::new(),
                    };
                    self.found(Vec::new(), facts.diagnostic());
                }
                Slip::Colon { argument, .. } => self.colon(*argument),
                Slip::Unnamed(operand, tokens) => self.unnamed(operand, tokens),
            }
        }
    }

    /// SC0123 and SC0124: which operands there are.
    pub(super) fn operands(&mut self) {
        let parsed = self.parsed;
        let wanted = self.table.operands.len();
        let kinds: Vec<Option<Kind>> = parsed
            .call
            .operands
            .iter()
            .zip(&parsed.operands)
            .map(|(operand, tokens)| self.kind_of(operand, tokens))
            .collect();
        if self.wrong_order(&kinds) || self.without_a_model(&kinds) {
            return;
        }
        let operands: Vec<(&Operand, &Vec<TokenTree>)> = parsed
            .call
            .operands
            .iter()
            .zip(&parsed.operands)
            .skip(wanted)
            .collect();
        // `fit!(model, x, y)`: the data as Keras takes it.
        if let [(labels, tokens), rest @ ..] = operands.as_slice()
            && wanted == 2
            && literal::read(tokens).is_none()
            && kinds[2].is_none()
        {
            self.arrays(labels);
            for (operand, tokens) in rest {
                self.unnamed(operand, tokens);
            }
            return;
        }
        for (operand, tokens) in operands {
            self.unnamed(operand, tokens);
        }
        if parsed.call.operands.len() + 1 == wanted {
            self.without_data();
        }
    }

    /// What an operand is, where the cell or the notebook shows it.
    fn kind_of(&self, operand: &Operand, tokens: &[TokenTree]) -> Option<Kind> {
        let name = operand.text.trim_start_matches('&').trim();
        let known = self.context.variables.get(name);
        let of_type = known.and_then(|kind| kind::of_type(kind));
        if let Some(bound) = self.cell.bound.get(name) {
            // Before the cell binds it anew, it may still be that of the notebook.
            return bound.filter(|kind| known.is_none() || of_type == Some(*kind));
        }
        of_type.or_else(|| kind::of(self.text, tokens, self.defined))
    }

    /// `fit!(train, model)`.
    fn wrong_order(&mut self, kinds: &[Option<Kind>]) -> bool {
        let call = &self.parsed.call;
        let [first, second, ..] = call.operands.as_slice() else {
            return false;
        };
        let is_swapped = match kinds {
            [Some(Kind::Dataset), other, ..] => *other != Some(Kind::Dataset),
            [None, Some(Kind::Model), ..] => true,
            _ => false,
        };
        if call.name == "compile" || !is_swapped {
            return false;
        }
        let lent = |text: &str| text.trim_start_matches('&').trim_start().to_owned();
        let edit = |at: CellSpan, text: &str| Edit {
            place: Place::Span(at),
            replacement: lent(text),
        };
        let facts = WrongOperands {
            message: format!(
                "`{}!` takes the model first, then the data: `{}` is not a model",
                call.name, first.text
            ),
            place: Place::Span(first.span),
            label: "the dataset".to_owned(),
            fix: Fix {
                kind: crate::FixKind::Change,
                title: format!(
                    "write `{}!({}, {}, …)`",
                    call.name,
                    lent(&second.text),
                    lent(&first.text)
                ),
                edits: vec![
                    edit(first.span, &second.text),
                    edit(second.span, &first.text),
                ],
            },
            arguments: Vec::new(),
        };
        self.found(Vec::new(), facts.diagnostic());
        true
    }

    /// `compile!(optimizer = …)`, `fit!(train, epochs = 3)`.
    fn without_a_model(&mut self, kinds: &[Option<Kind>]) -> bool {
        let call = &self.parsed.call;
        let is_data = matches!(kinds, [Some(Kind::Dataset)]) && call.name != "compile";
        if !(call.operands.is_empty() || is_data) {
            return false;
        }
        let model = self.only_one(Kind::Model).unwrap_or("model").to_owned();
        let is_empty = call.operands.is_empty() && call.arguments.is_empty();
        let data = if is_data || call.name == "compile" {
            String::new()
        } else {
            format!(", {}", self.only_one(Kind::Dataset).unwrap_or("train"))
        };
        let operands = format!("{model}{data}");
        let at = match (call.operands.first(), call.arguments.first()) {
            (Some(operand), _) => operand.span.start,
            (None, Some(argument)) => argument.span.start,
            (None, None) => call.inside.start,
        };
        let comma = if is_empty { "" } else { ", " };
        let facts = WrongOperands {
            message: format!("`{}!` needs the model as its first operand", call.name),
            place: Place::Span(call.name_span),
            label: "no model here".to_owned(),
            fix: Fix {
                kind: crate::FixKind::Change,
                title: format!("write `{}!({operands}, …)`", call.name),
                edits: vec![insert(at, format!("{operands}{comma}"))],
            },
            arguments: Vec::new(),
        };
        self.found(Vec::new(), facts.diagnostic());
        true
    }

    /// `fit!(model, epochs = 3)`.
    fn without_data(&mut self) {
        let call = &self.parsed.call;
        let Some(model) = call.operands.last() else {
            return;
        };
        let named = call.arguments.iter().find(|it| is_named_data(&it.name));
        let place = named.map_or(call.name_span, |it| it.name_span);
        let (message, label, fix) = match self.named_data() {
            Some(fix) => (
                "takes the dataset as its second operand, without a name",
                "the data has no name",
                fix,
            ),
            None => {
                let held_out = self.held_out().filter(|_| call.name == "evaluate");
                let data = held_out.or_else(|| self.only_one(Kind::Dataset).map(str::to_owned));
                let data = data
                    .or_else(|| self.a_dataset())
                    .unwrap_or_else(|| "train".to_owned());
                let edits = vec![insert(model.span.end, format!(", {data}"))];
                let is_bound = self.cell.bound.contains_key(&data);
                let is_open = !is_bound && self.may_be_of_texts(&model.text);
                let fix = Fix {
                    kind: crate::FixKind::Change,
                    title: if is_open {
                        format!(
                            "write the data that the model fits as its second operand, such as `{}!({}, {data})?`",
                            call.name, model.text
                        )
                    } else {
                        format!("write `{}!({}, {data}, …)`", call.name, model.text)
                    },
                    edits: if is_open { Vec::new() } else { edits },
                };
                (
                    "needs the dataset as its second operand",
                    "no data here",
                    fix,
                )
            }
        };
        let facts = WrongOperands {
            message: format!("`{}!` {message}", call.name),
            place: Place::Span(place),
            label: label.to_owned(),
            fix,
            arguments: Vec::new(),
        };
        self.found(Vec::new(), facts.diagnostic());
    }

    /// Whether an operand is a list of texts, by its own text, by the `let` of the cell, or by its type in the notebook.
    pub(super) fn are_texts(&self, operand: &str) -> bool {
        let name = operand.trim_start_matches('&').trim();
        let is_list = |value: &str| {
            let value = value.trim_start().trim_start_matches('&');
            let value = value.strip_prefix("vec!").unwrap_or(value);
            let element = value.trim_start().strip_prefix('[').unwrap_or_default();
            element.trim_start().starts_with('"')
        };
        let bound = [format!("let {name} ="), format!("let mut {name} =")];
        let bound = bound
            .iter()
            .find_map(|begin| self.text.rsplit_once(begin.as_str()));
        match (bound, self.context.variables.get(name)) {
            (Some((_, value)), _) => is_list(value),
            (None, Some(of_type)) => of_type.contains("str") || of_type.contains("String"),
            (None, None) => is_list(name),
        }
    }

    /// `fit!(model, x, y)`.
    fn arrays(&mut self, labels: &Operand) {
        let call = &self.parsed.call;
        let [model, features, ..] = call.operands.as_slice() else {
            return;
        };
        let owner = features.text.trim_start_matches('&').trim();
        let is_same = labels.text.trim_start_matches('&').trim() == owner;
        let of_one = self.of_one_set(&features.text, &labels.text);
        let of_one = of_one.or_else(|| (is_same && self.is_data(owner)).then(|| owner.to_owned()));
        let pair = match of_one {
            Some(data) => data,
            None => self.pair_of(features, labels),
        };
        let facts = WrongOperands {
            message: format!(
                "`{}!` takes one dataset with examples and labels",
                call.name
            ),
            place: Place::Span(labels.span),
            label: "a second operand for the data".to_owned(),
            fix: Fix {
                kind: crate::FixKind::Change,
                title: format!(
                    "write `{}!({}, {}, …)`",
                    call.name,
                    model.text,
                    text::excerpt(&pair, 60)
                ),
                edits: vec![Edit {
                    place: Place::span(features.span.start, labels.span.end),
                    replacement: pair,
                }],
            },
            arguments: Vec::new(),
        };
        self.found(Vec::new(), facts.diagnostic());
    }

    /// The examples and their labels as one data set.
    fn pair_of(&self, features: &Operand, labels: &Operand) -> String {
        if self.are_texts(&features.text) {
            kind::from_rows(&features.text, &labels.text)
        } else {
            kind::from_arrays(&features.text, &labels.text)
        }
    }

    /// `train.texts` and `train.labels`: both are in the data set already.
    pub(super) fn of_one_set(&self, features: &str, labels: &str) -> Option<String> {
        let owner = |text: &str| {
            let text = text.trim_start_matches('&').trim();
            let (name, _) = text.split_at(text.find(['.', '['])?);
            Some(name.to_owned())
        };
        let (name, other) = (owner(features)?, owner(labels)?);
        let bound = self.cell.bound.get(&name).copied().flatten();
        let known = self.context.variables.get(&name);
        let kind = bound.or_else(|| known.and_then(|it| kind::of_type(it)));
        (name == other && kind == Some(Kind::Dataset)).then_some(name)
    }

    /// SC0123: a value without its name.
    fn unnamed(&mut self, operand: &Operand, tokens: &[TokenTree]) {
        let call = &self.parsed.call;
        let name = self.name_for(operand, tokens);
        let fix = match &name {
            Some(name) => Fix {
                kind: crate::FixKind::Change,
                title: written(name, &operand.text),
                edits: vec![insert(operand.span.start, format!("{name} = "))],
            },
            None => {
                let names = self.table.arguments.iter().map(|argument| argument.name);
                let names: Vec<&str> = names.collect();
                Fix {
                    kind: crate::FixKind::Change,
                    title: format!(
                        "write its name before it: one of {}",
                        text::names(&names, 20)
                    ),
                    edits: Vec::new(),
                }
            }
        };
        let facts = ArgumentNotNamed {
            call: call.name.clone(),
            given: Unnamed::Value(text::excerpt(&operand.text, 40)),
            place: Place::Span(operand.span),
            fix,
            arguments: Vec::new(),
        };
        self.found(Vec::new(), facts.diagnostic());
    }

    /// The argument that a value is probably meant for.
    fn name_for(&self, operand: &Operand, tokens: &[TokenTree]) -> Option<String> {
        let call = &self.parsed.call;
        let is_free = |name: &&str| {
            arguments::find(self.table.arguments, name).is_some() && call.argument(name).is_none()
        };
        // The argument that Keras has at this place, or else the first that is not given.
        let place = call.operands.iter().position(|it| it.span == operand.span);
        let place = place.and_then(|place| place.checked_sub(self.table.operands.len()));
        let by_place = |names: &[&'static str]| {
            let there = place.and_then(|place| names.get(place)).copied();
            there
                .filter(is_free)
                .or_else(|| names.iter().copied().find(is_free))
        };
        let name = match (self.kind_of(operand, tokens), literal::read(tokens)) {
            (Some(kind), _) => kind.argument(),
            (None, Some(Literal::Text(text))) => [
                (IdentifierKind::Optimizer, "optimizer"),
                (IdentifierKind::Loss, "loss"),
                (IdentifierKind::Metric, "metrics"),
            ]
            .into_iter()
            .find(|(kind, _)| kind.knows(&text))
            .map(|(_, name)| name),
            (None, Some(Literal::Integer(_))) => by_place(&["epochs", "batch_size"]),
            (None, None) if is_list(tokens) => Some("metrics"),
            (None, _) if call.name == "compile" => by_place(&["optimizer", "loss", "metrics"]),
            (None, _) => None,
        };
        name.filter(is_free).map(str::to_owned)
    }
}

/// `[…]`
fn is_list(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Group(list)] if list.delimiter() == Delimiter::Bracket)
}

/// What to write, as a title.
fn written(name: &str, value: &str) -> String {
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("write `{name} = {}`", text::excerpt(&line, 60))
}

/// An optimizer is among the values without a name.
pub(super) fn has_unnamed_optimizer(checker: &Checker<'_>) -> bool {
    checker.parsed.slips.iter().any(|slip| match slip {
        Slip::Unnamed(operand, tokens) => {
            checker.name_for(operand, tokens).as_deref() == Some("optimizer")
        }
        _ => false,
    })
}

/// SC0127 of `None`, which Python writes for an argument that is not given.
impl Checker<'_> {
    pub(super) fn none(&mut self) {
        use crate::rules::PythonSpelling;
        for (index, argument, value) in self.given() {
            let is_none = matches!(value, [TokenTree::Ident(word)] if word == "None");
            let is_known = arguments::find(self.table.arguments, &argument.name).is_some();
            if !is_none || !is_known {
                continue;
            }
            let fix = if argument.name == "strategy" {
                Fix {
                    kind: crate::FixKind::Change,
                    title: "write `strategy = none`".to_owned(),
                    edits: vec![Edit {
                        place: Place::Span(argument.value_span),
                        replacement: "none".to_owned(),
                    }],
                }
            } else {
                Fix {
                    kind: crate::FixKind::Change,
                    title: format!("remove `{}`: its default applies", argument.name),
                    edits: vec![Edit {
                        place: Place::Span(argument.drop_span),
                        replacement: String::new(),
                    }],
                }
            };
            let diagnostic: Diagnostic = PythonSpelling {
                given: "None".to_owned(),
                reason: "to use the default, do not write the argument".to_owned(),
                places: vec![Place::Span(argument.value_span)],
                fix,
            }
            .diagnostic();
            self.found(vec![index], diagnostic);
        }
    }
}
