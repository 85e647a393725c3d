//! Fixes of errors at run time that the text of the cell makes exact: the names of its variables, the number of its devices.

use proc_macro2::TokenTree;
use stratoscope_cell_syntax::{CellSyntax, Syntax};

use super::calls::span_of;
use super::slips::model_of;
use crate::{CellSpan, Diagnostic, Edit, Fix, FixKind, Place};

/// Adds to a diagnostic, whose places are found, what the text of its cell knows.
pub fn name_what_is_meant(cell: &CellSyntax, diagnostic: &mut Diagnostic) {
    match diagnostic.code.as_str() {
        "SC0112" => compile_first(cell, diagnostic),
        "SC0906" => one_device_as_several(cell, diagnostic),
        _ => {}
    }
}

fn first_span(diagnostic: &Diagnostic) -> Option<CellSpan> {
    match diagnostic.labels.first()?.place {
        Place::Span(span) => Some(span),
        _ => None,
    }
}

/// SC0112: the call with the model's name, before the line of the call that needs it, and with a rate for a model of its kind.
fn compile_first(cell: &CellSyntax, diagnostic: &mut Diagnostic) {
    let Some(span) = first_span(diagnostic) else {
        return;
    };
    let Some(fix) = cell.read(move |cell| compiled(cell, span)) else {
        return;
    };
    diagnostic.fixes.insert(0, fix);
    diagnostic.fixes.truncate(1);
}

fn compiled(cell: &Syntax, span: CellSpan) -> Option<Fix> {
    let text = cell.text();
    let name = text.get(span.start..span.end)?;
    let is_name = name.chars().all(|it| it.is_alphanumeric() || it == '_');
    if !is_name || name.is_empty() {
        return None;
    }
    // A model whose layers are not in this cell is one of BERT by its name, or begins anew.
    let value = model_of(cell, name);
    let is_bert = value.as_deref().map_or_else(
        || name.to_lowercase().contains("bert"),
        |it| it.starts_with("Bert"),
    );
    let value = value.unwrap_or_default();
    let outputs = value
        .rsplit_once("Dense(")
        .map(|(_, rest)| rest.trim_start());
    let has_softmax = value.contains("\"softmax\"");
    let loss = match outputs {
        Some(rest) if rest.starts_with("1)") && !value.contains("\"sigmoid\"") => {
            "MeanSquaredError"
        }
        Some(rest) if rest.starts_with("1)") => "BinaryCrossentropy { from_logits: false }",
        _ if has_softmax => "SparseCategoricalCrossentropy { from_logits: false }",
        _ => "SparseCategoricalCrossentropy { from_logits: true }",
    };
    let optimizer = if is_bert {
        "AdamW::new(5e-5)"
    } else {
        "Adam::new(0.001)"
    };
    let call = format!("compile!({name}, optimizer = {optimizer}, loss = {loss})?;");
    // Before the statement, at its indent.
    let line = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let indent = &text[line..line + text[line..].len() - text[line..].trim_start().len()];
    let statements = cell.statements()?.iter();
    let mut starts = statements.map(|it| span_of(syn::spanned::Spanned::span(it)));
    let statement = starts.rfind(|it| it.start <= span.start && span.end <= it.end)?;
    // In a loop it would begin again with each pass.
    let is_its_line = text[statement.start..span.start].lines().count() <= 1;
    let edits = if is_its_line {
        vec![Edit {
            place: Place::span(statement.start, statement.start),
            replacement: format!("{call}\n{indent}"),
        }]
    } else {
        Vec::new()
    };
    Some(Fix {
        kind: FixKind::Change,
        title: format!("compile it first: `{call}`"),
        edits,
    })
}

/// SC0906 for a strategy on several devices: as many logical ones.
fn one_device_as_several(cell: &CellSyntax, diagnostic: &mut Diagnostic) {
    let Some(fix) = cell.read(as_logical) else {
        return;
    };
    // One other device in place of each would be there twice.
    diagnostic.fixes.retain(|fix| {
        fix.kind != FixKind::Suggestion && !fix.title.contains("MirroredStrategy::logical")
    });
    diagnostic.fixes.insert(0, fix);
}

fn as_logical(cell: &Syntax) -> Option<Fix> {
    let trees: Vec<TokenTree> = cell.tokens()?.into_iter().collect();
    strategy_on(cell.text(), &trees)
}

/// `MirroredStrategy::on([…, …])` among these tokens.
fn strategy_on(text: &str, trees: &[TokenTree]) -> Option<Fix> {
    for (at, tree) in trees.iter().enumerate() {
        let TokenTree::Group(group) = tree else {
            continue;
        };
        if let Some(fix) = strategy_on(text, &group.stream().into_iter().collect::<Vec<_>>()) {
            return Some(fix);
        }
        let is_on = at >= 4 && matches!(&trees[at - 1], TokenTree::Ident(name) if *name == "on");
        let of_type = at
            .checked_sub(4)
            .map(|it| trees[it].to_string())
            .unwrap_or_default();
        let has_logical = matches!(
            of_type.as_str(),
            "MirroredStrategy" | "CentralStorageStrategy"
        );
        let inside = group.stream().into_iter().next();
        let Some(TokenTree::Group(list)) = inside.filter(|_| is_on && has_logical) else {
            continue;
        };
        let list: Vec<TokenTree> = list.stream().into_iter().collect();
        let devices =
            list.split(|it| matches!(it, TokenTree::Punct(sign) if sign.as_char() == ','));
        let count = devices.filter(|it| !it.is_empty()).count();
        if count < 2 {
            continue;
        }
        let (start, end) = (
            span_of(trees[at - 1].span()).start,
            span_of(group.span()).end,
        );
        text.get(start..end)?;
        return Some(Fix {
            kind: FixKind::Change,
            title: format!(
                "without so many devices: `{of_type}::logical({count})` makes {count} logical ones of one device"
            ),
            edits: vec![Edit {
                place: Place::span(start, end),
                replacement: format!("logical({count})"),
            }],
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;
    use crate::render::apply;

    fn fixed(cell: &str, code: &str, at: &str) -> Option<String> {
        let start = cell.rfind(at).expect("stands in the cell");
        let mut found = Diagnostic::new(code, Severity::Error, "x")
            .label(Place::span(start, start + at.len()), "")
            .fix("in words");
        name_what_is_meant(&CellSyntax::of(cell), &mut found);
        apply(cell, found.fixes.first()?)
    }

    #[test]
    fn the_call_names_the_model_of_the_cell() {
        let cell = "let net = Sequential([Dense(8).input_shape(4), Dense(3)])?;\nfit!(net, data)?;";
        let new = fixed(cell, "SC0112", "net").expect("an edit");
        let line = new.lines().nth(1).expect("a line");
        assert_eq!(
            line,
            "compile!(net, optimizer = Adam::new(0.001), loss = SparseCategoricalCrossentropy { from_logits: true })?;"
        );
        let cell =
            "let m = BertForSequenceClassification::from_pretrained(\"x\", 2)?;\nfit!(m, data)?;";
        assert!(
            fixed(cell, "SC0112", "m")
                .is_some_and(|it| it.contains("(m, optimizer = AdamW::new(5e-5)"))
        );
    }

    #[test]
    fn several_devices_are_logical_ones() {
        let cell = "let s = MirroredStrategy::on([gpu(0), gpu(1), gpu(2)])?;";
        assert_eq!(
            fixed(cell, "SC0906", "on").as_deref(),
            Some("let s = MirroredStrategy::logical(3)?;")
        );
        assert_eq!(
            fixed("let s = MirroredStrategy::on([gpu(0)])?;", "SC0906", "on"),
            None
        );
    }
}
