//! From the named places of a diagnostic to bytes of the cell.
//!
//! The process that runs cells knows no text: it says "the argument `steps_per_execution` of `compile!`".
//! Here the name becomes a span. What is not in the text is dropped from the labels; what the
//! diagnostic says stays.

use proc_macro2::{TokenStream, TokenTree};
use stratoscope_cell_syntax::CellSyntax;

use super::calls::{Call, DEEPEST, Method, read_call, read_methods};
use super::{places, table};
use crate::{CellSpan, Diagnostic, Label, Place, Severity, arguments};

/// Turns named places and lines into spans of the cell.
pub fn resolve(cell: impl Into<CellSyntax>, diagnostic: &mut Diagnostic) {
    resolve_at(cell, diagnostic, None);
}

/// The same, for a diagnostic raised by the statement at `line` (counted from 1): of several calls of
/// one name, the one at or after that line is meant, a place that is not found is the
/// line, and a diagnostic without any place in the cell gets the line.
pub fn resolve_at(cell: impl Into<CellSyntax>, diagnostic: &mut Diagnostic, line: Option<usize>) {
    place(&cell.into(), diagnostic, line);
}

fn place(cell: &CellSyntax, diagnostic: &mut Diagnostic, line: Option<usize>) {
    let named =
        |place: &Place| !matches!(place, Place::Span(_) | Place::Line(_) | Place::File { .. });
    let edits = diagnostic.fixes.iter().flat_map(|fix| &fix.edits);
    let places = diagnostic.labels.iter().map(|label| &label.place);
    if places.chain(edits.map(|edit| &edit.place)).any(named) {
        // Lines are those of the cell as typed.
        let (code, named) = (cell.code().clone(), diagnostic.clone());
        let spans = cell.read(move |cell| {
            let resolver = Resolver {
                text: &code,
                tokens: cell.tokens()?,
                scope: cell.in_scope(),
                line,
            };
            Some(resolver.resolve(&named))
        });
        if let Some(resolved) = spans {
            *diagnostic = resolved;
        }
    }
    finish(cell.code(), diagnostic, line);
    let has_table = !diagnostic.arguments.is_empty();
    for other in &mut diagnostic.related {
        let had_none = other.arguments.is_empty();
        place(cell, other, line);
        // Further findings of a call are shown with the same table, which is shown once.
        if has_table && had_none {
            other.arguments.clear();
        }
    }
}

/// Lines become spans; what is still a name, or lies outside the text, goes.
fn finish(text: &str, diagnostic: &mut Diagnostic, line: Option<usize>) {
    for label in &mut diagnostic.labels {
        let lost = match &label.place {
            Place::Line(line) => Some(*line),
            Place::Span(_) | Place::File { .. } => None,
            // Still a name.
            _ => line,
        };
        if let Some(span) = lost.and_then(|line| line_span(text, line)) {
            label.place = Place::Span(span);
        }
    }
    let placed = |place: &Place| match place {
        Place::Span(span) => text.get(span.start..span.end).is_some(),
        Place::File { .. } => true,
        _ => false,
    };
    diagnostic.labels.retain(|label| placed(&label.place));
    let mut labels = diagnostic.labels.iter();
    let in_cell = labels.any(|label| matches!(label.place, Place::Span(_)));
    if !in_cell && let Some(span) = line.and_then(|line| line_span(text, line)) {
        let place = Place::Span(span);
        let text = "raised here".to_owned();
        diagnostic.labels.insert(0, Label { place, text });
    }
    for fix in &mut diagnostic.fixes {
        if !fix.edits.iter().all(|edit| placed(&edit.place)) {
            fix.edits.clear();
        }
    }
}

/// A line without the space around it.
fn line_span(text: &str, line: usize) -> Option<CellSpan> {
    let content = text.split_inclusive('\n').nth(line.checked_sub(1)?)?;
    let start: usize = text
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    let trimmed = content.trim();
    let start = start + (content.len() - content.trim_start().len());
    Some(CellSpan {
        start,
        end: start + trimmed.len(),
    })
}

/// The whole of a call on one line; of a longer one its first line, which is enough to see which one is
/// meant.
fn head_of(text: &str, call: &Call) -> CellSpan {
    let CellSpan { start, end } = call.span;
    let first_line = text[start..end]
        .find('\n')
        .map_or(end, |newline| start + newline);
    let end = start + text[start..first_line].trim_end().len();
    CellSpan { start, end }
}

/// A call and the methods that follow it.
struct NamedCall {
    call: Call,
    methods: Vec<Method>,
}

struct Resolver<'a> {
    text: &'a str,
    tokens: TokenStream,
    scope: bool,
    line: Option<usize>,
}

impl Resolver<'_> {
    fn resolve(&self, diagnostic: &Diagnostic) -> Diagnostic {
        let mut resolved = diagnostic.clone();
        self.fill_table(&mut resolved);
        for label in &mut resolved.labels {
            if let Some(span) = self.span(&label.place) {
                label.place = Place::Span(span);
            }
        }
        for edit in resolved.fixes.iter_mut().flat_map(|fix| &mut fix.edits) {
            if let Some(span) = self.edited(&edit.place, edit.replacement.is_empty()) {
                edit.place = Place::Span(span);
            }
        }
        resolved
    }

    /// What is marked for a named place: where the place itself is not in the text, the argument or the call
    /// that holds it.
    fn span(&self, place: &Place) -> Option<CellSpan> {
        match place {
            Place::Argument { call, name } => {
                let found = self.call(call, Some(name))?;
                let argument = found.call.argument(name).map(|argument| argument.span);
                let mut methods = found.methods.iter();
                let method = methods.find(|method| method.name == *name);
                let place = argument.or(method.map(|method| method.span));
                Some(place.unwrap_or(found.call.span))
            }
            Place::Field { call, argument, .. } => {
                let whole = || self.span(&Place::argument(call, argument));
                self.edited(place, false).or_else(whole)
            }
            Place::Model { call } => {
                let found = self.call(call, None)?.call;
                let model = found.operands.first();
                Some(model.map_or(found.span, |operand| operand.span))
            }
            Place::Call { call } => Some(head_of(self.text, &self.call(call, None)?.call)),
            Place::Operand { .. } => self.edited(place, false),
            Place::Span(_) | Place::Line(_) | Place::File { .. } => None,
        }
    }

    /// What an edit of a named place replaces: the place itself, or nothing is replaced. With `drops`, all that
    /// goes when it goes.
    fn edited(&self, place: &Place, drops: bool) -> Option<CellSpan> {
        match place {
            Place::Argument { call, name } => {
                let found = self.call(call, Some(name))?;
                let argument = found.call.argument(name).map(|argument| match drops {
                    true => argument.drop_span,
                    false => argument.span,
                });
                let mut methods = found.methods.iter();
                let method = methods.find(|method| method.name == *name);
                argument.or(method.map(|method| method.span))
            }
            Place::Field {
                call,
                argument,
                field,
            } => {
                let found = self.call(call, Some(argument))?;
                let value = found.call.argument(argument)?.value_span;
                places::field(&self.tokens, value, field)
            }
            Place::Operand {
                call,
                index,
                value,
                line,
            } => {
                let statement = places::statement(&self.tokens, line_span(self.text, *line)?.start);
                let mut calls = Vec::new();
                self.find(self.tokens.clone(), &[call.as_str()], false, 0, &mut calls);
                let operands = calls.into_iter().filter_map(|found| {
                    let inside = statement.contains(&found.call.span.start);
                    found
                        .call
                        .operands
                        .into_iter()
                        .nth(*index)
                        .filter(|_| inside)
                });
                let mut written = operands.filter(|it| it.text.parse() == Ok(*value));
                written.next_back().map(|operand| operand.span)
            }
            _ => self.span(place),
        }
    }

    /// The call of a name that is meant: if a line is known, the first one that begins there or later,
    /// or else one that reaches it; and one that has the argument, if one is named.
    fn call(&self, name: &str, argument: Option<&str>) -> Option<NamedCall> {
        let path: Vec<&str> = name.trim_end_matches('!').split("::").collect();
        let mut calls = Vec::new();
        self.find(self.tokens.clone(), &path, self.scope, 0, &mut calls);
        if calls.is_empty() && name == "fit" {
            // What is wrong with a run is found by the same code, whichever call makes it.
            self.find(self.tokens.clone(), &["start"], self.scope, 0, &mut calls);
        }
        let from = self
            .line
            .and_then(|line| line_span(self.text, line))
            .map_or(0, |span| span.start);
        let has = |found: &NamedCall| {
            argument.is_none_or(|name| {
                found.call.argument(name).is_some()
                    || found.methods.iter().any(|method| method.name == name)
            })
        };
        let begins = |found: &NamedCall| found.call.span.start >= from;
        let reaches = |found: &NamedCall| found.call.span.end > from;
        let best = calls
            .iter()
            .position(|found| has(found) && begins(found))
            .or_else(|| calls.iter().position(|found| has(found) && reaches(found)))
            .or_else(|| calls.iter().position(has))
            .or_else(|| calls.iter().position(reaches))
            .unwrap_or(0);
        (best < calls.len()).then(|| calls.swap_remove(best))
    }

    fn find(
        &self,
        tokens: TokenStream,
        path: &[&str],
        in_scope: bool,
        depth: usize,
        calls: &mut Vec<NamedCall>,
    ) {
        if depth > DEEPEST {
            return;
        }
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, tree) in trees.iter().enumerate() {
            if let Some(found) = self.call_at(&trees[index..], path, in_scope) {
                calls.push(found);
            }
            if let TokenTree::Group(group) = tree {
                let scoped = index >= 2
                    && matches!(&trees[index - 1], TokenTree::Punct(bang) if bang.as_char() == '!')
                    && matches!(&trees[index - 2], TokenTree::Ident(name) if name == "scope");
                self.find(group.stream(), path, in_scope || scoped, depth + 1, calls);
            }
        }
    }

    /// The call that begins at the first token, if it has this path and brackets.
    fn call_at(&self, trees: &[TokenTree], path: &[&str], in_scope: bool) -> Option<NamedCall> {
        let mut rest = trees;
        let mut last = None;
        for (index, segment) in path.iter().enumerate() {
            if index > 0 {
                let [
                    TokenTree::Punct(first),
                    TokenTree::Punct(second),
                    after @ ..,
                ] = rest
                else {
                    return None;
                };
                if first.as_char() != ':' || second.as_char() != ':' {
                    return None;
                }
                rest = after;
            }
            let [TokenTree::Ident(ident), after @ ..] = rest else {
                return None;
            };
            if ident != segment {
                return None;
            }
            last = Some(ident);
            rest = after;
        }
        if let [TokenTree::Punct(bang), after @ ..] = rest
            && bang.as_char() == '!'
        {
            rest = after;
        }
        let [TokenTree::Group(group), after @ ..] = rest else {
            return None;
        };
        let call = read_call(self.text, path.last()?, last?.span(), group, in_scope).call;
        Some(NamedCall {
            call,
            methods: read_methods(self.text, after),
        })
    }

    /// The table of arguments, where an error of run time points at an argument and has none. What a
    /// warning or a note points at was accepted: nothing in the table would be wrong.
    fn fill_table(&self, diagnostic: &mut Diagnostic) {
        if !diagnostic.arguments.is_empty() || diagnostic.severity != Severity::Error {
            return;
        }
        let argument = diagnostic
            .labels
            .iter()
            .find_map(|label| match &label.place {
                Place::Argument { call, name } if arguments::call(call).is_some() => {
                    Some((call, name))
                }
                _ => None,
            });
        let Some((call, name)) = argument else { return };
        let Some(found) = self.call(call, Some(name)) else {
            return;
        };
        let given = &found.call.arguments;
        let invalid: Vec<usize> = (0..given.len())
            .filter(|&index| given[index].name == *name)
            .collect();
        diagnostic.arguments = table::rows(&found.call, &invalid, |_| None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{
        BuiltAt, ModelOutsideScope, NotCompiled, StepsPerExecutionWithoutScope, StrategyName,
    };
    use crate::{ArgumentState, Rule, Severity};

    fn spans(text: &str, diagnostic: &Diagnostic) -> Vec<String> {
        diagnostic
            .labels
            .iter()
            .map(|label| match &label.place {
                Place::Span(span) => text[span.start..span.end].to_owned(),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn an_argument_becomes_its_text_and_its_removal_an_edit() {
        let text = "let größe = 16;\ncompile!(model,\n    optimizer = AdamW::new(5e-5),\n    \
                    steps_per_execution = größe,\n    metrics = [accuracy()],\n)?;";
        let facts = StepsPerExecutionWithoutScope::of_text(16, false);
        let mut diagnostic = facts.diagnostic();
        resolve(text, &mut diagnostic);
        assert_eq!(spans(text, &diagnostic), ["steps_per_execution = größe"]);
        let edit = &diagnostic.fixes[1].edits[0];
        let Place::Span(span) = edit.place else {
            panic!("{edit:?}")
        };
        assert_eq!(
            &text[span.start..span.end],
            "    steps_per_execution = größe,\n"
        );
        let row = diagnostic
            .arguments
            .iter()
            .find(|row| row.name == "steps_per_execution");
        assert_eq!(row.map(|row| row.state), Some(ArgumentState::Invalid));
        let optimizer = diagnostic
            .arguments
            .iter()
            .find(|row| row.name == "optimizer");
        assert_eq!(optimizer.map(|row| row.state), Some(ArgumentState::Given));
    }

    #[test]
    fn a_model_inside_a_scope_is_found_and_lines_become_spans() {
        let text = "let m = build();\nscope!(s, {\n    compile!(m, optimizer = o)?;\n});";
        let facts = ModelOutsideScope {
            strategy: StrategyName::of_variable("s"),
            replicas: 2,
            bound: None,
            variables: 3,
            device: "cpu:0".into(),
            compile_inside: true,
            is_named: false,
            built: BuiltAt::Here(Some(1)),
            figure: None,
        };
        let mut diagnostic = facts.diagnostic();
        resolve(text, &mut diagnostic);
        assert_eq!(spans(text, &diagnostic), ["m", "let m = build();"]);
    }

    #[test]
    fn of_several_calls_the_one_at_the_line_is_meant() {
        let text = "fit!(first, data)?;\nfit!(second, data)?;";
        let facts = NotCompiled { call: "fit".into() };
        for (line, model) in [(None, "first"), (Some(1), "first"), (Some(2), "second")] {
            let mut diagnostic = facts.diagnostic();
            resolve_at(text, &mut diagnostic, line);
            assert_eq!(spans(text, &diagnostic), [model], "{line:?}");
        }
    }

    #[test]
    fn of_a_call_over_several_lines_the_first_is_marked() {
        let text = "scope!(a, {\n    scope!(b, {\n        f();\n    });\n});";
        for (line, expected) in [(1, "scope!(a, {"), (2, "scope!(b, {")] {
            let mut diagnostic =
                Diagnostic::new("SC0204", Severity::Error, "x").label(Place::call("scope"), "");
            resolve_at(text, &mut diagnostic, Some(line));
            assert_eq!(spans(text, &diagnostic), [expected]);
        }
    }

    #[test]
    fn other_calls_and_methods_are_found_by_their_path() {
        let text = "let o = AdamW::new(1.0).weight_decay(-1.0);\nlet d = Dataset::tsv(\"a\")?;";
        let mut diagnostic = Diagnostic::new("SC0915", Severity::Error, "x")
            .label(Place::argument("AdamW::new", "weight_decay"), "")
            .label(Place::call("Dataset::tsv"), "")
            .label(Place::call("tsv"), "")
            .label(Place::call("csv"), "");
        resolve(text, &mut diagnostic);
        assert_eq!(
            spans(text, &diagnostic),
            [".weight_decay(-1.0)", "tsv(\"a\")", "tsv(\"a\")"],
            "what is not there goes"
        );
    }

    #[test]
    fn related_diagnostics_are_placed_too_and_the_table_is_shown_once() {
        let text = "compile!(m, optimizer = o, steps_per_execution = 4)?;";
        let facts = StepsPerExecutionWithoutScope::of_text(4, false);
        let mut diagnostic = facts.diagnostic().related(facts.diagnostic());
        resolve(text, &mut diagnostic);
        assert_eq!(
            spans(text, &diagnostic.related[0]),
            ["steps_per_execution = 4"]
        );
        assert!(!diagnostic.arguments.is_empty() && diagnostic.related[0].arguments.is_empty());
    }

    #[test]
    fn what_is_not_found_is_the_line_of_the_statement() {
        let text = "let a = 1;\n  train_it(&model);";
        let mut diagnostic = NotCompiled { call: "fit".into() }.diagnostic();
        resolve_at(text, &mut diagnostic, Some(2));
        assert_eq!(spans(text, &diagnostic), ["train_it(&model);"]);
        let mut diagnostic = NotCompiled { call: "fit".into() }.diagnostic();
        resolve_at("no rust here: \"", &mut diagnostic, None);
        assert!(diagnostic.labels.is_empty());
    }
}
