//! Metrics without their parentheses: `metrics = [accuracy, macro_f1]`, where rustc speaks of functions.

use proc_macro2::TokenTree;

use super::super::calls::{CallArgument, span_of};
use super::Checker;
use crate::arguments::{Accepts, Argument, IdentifierKind, Kind, METRICS};
use crate::rules::ArgumentTypeMismatch;
use crate::{Diagnostic, Edit, Fix, FixKind, Place, Rule};
use stratoscope_render::text;

impl Checker<'_> {
    /// SC0120: the names of functions in the place of the metrics that they make.
    pub(super) fn uncalled_metrics(
        &self,
        known: &Argument,
        argument: &CallArgument,
        value: &[TokenTree],
    ) -> Option<Diagnostic> {
        let is_of_metrics = known.accepts == Accepts::Identifier(IdentifierKind::Metric);
        let list: Vec<TokenTree> = match value {
            _ if !is_of_metrics => return None,
            [.., TokenTree::Group(list)] => list.stream().into_iter().collect(),
            [alone] => vec![alone.clone()],
            _ => return None,
        };
        let is_comma =
            |it: &TokenTree| matches!(it, TokenTree::Punct(sign) if sign.as_char() == ',');
        let elements = list.split(is_comma);
        let alone = elements.filter_map(|it| match it {
            [TokenTree::Ident(name)] => Some((name.to_string(), span_of(name.span()).end)),
            _ => None,
        });
        let names: Vec<(String, usize)> = alone.filter(|(name, _)| self.is_metric(name)).collect();
        let edits = names.iter().map(|(name, end)| Edit {
            place: Place::span(*end, *end),
            replacement: brackets(name).to_owned(),
        });
        let edits: Vec<Edit> = edits.collect();
        let (first, _) = names.first()?;
        let all: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        let lack = if all.len() == 1 {
            "lacks its parentheses"
        } else {
            "lack their parentheses"
        };
        let written: Vec<String> = all
            .iter()
            .map(|name| format!("{name}{}", brackets(name)))
            .collect();
        let facts = ArgumentTypeMismatch {
            argument: argument.name.clone(),
            given: text::excerpt(&argument.value, 60),
            expected: Kind::Metric.word().to_owned(),
            got: format!("the function `{first}`"),
            place: Place::Span(argument.value_span),
            fixes: vec![Fix {
                kind: FixKind::Change,
                title: format!("write {}", text::names(&written, 20)),
                edits,
            }],
            arguments: Vec::new(),
        };
        let mut found = facts.diagnostic();
        found.message = format!("{} {lack}", text::names(&all, 20));
        found.labels[0].text = "a function, not the metric that it makes".to_owned();
        Some(found)
    }

    /// Whether a name is that of a metric, and of nothing that the notebook has.
    fn is_metric(&self, name: &str) -> bool {
        METRICS.contains(&name)
            && !self.context.variables.contains_key(name)
            && !self.cell.bound.contains_key(name)
            && !self.defined.functions.contains(name)
            && !self.defined.items.contains(name)
    }
}

/// What a metric is called with.
fn brackets(name: &str) -> &'static str {
    if name == "top_k_accuracy" {
        "(5)"
    } else {
        "()"
    }
}
