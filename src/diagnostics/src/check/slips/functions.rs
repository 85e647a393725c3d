//! Functions and types of ours that are given what others take: a number of replicas, a loss without its field, a pair.

use stratoscope_cell_syntax::Syntax;
use syn::{Expr, Item, Pat, Stmt};

use super::tree::{find, find_local, is_in, name_of, place};
use super::{Answer, Slip, edit, insert};
use crate::Place;

pub(super) fn answer(slip: &Slip) -> Option<Answer> {
    match slip.code() {
        "E0061" => strategy(slip).or_else(|| classes(slip)),
        "E0599" => strategy(slip),
        "E0423" => loss(slip),
        "E0308" => no_value(slip).or_else(|| not_collected(slip)),
        "E0277" | "E0608" | "E0609" => pair(slip).or_else(|| optional(slip)),
        _ => None,
    }
}

/// What a name of the cell is bound to, as it is written: `Sequential([…])?`.
pub(in crate::check) fn model_of(cell: &Syntax, name: &str) -> Option<String> {
    find_local(cell, |local| match &local.pat {
        Pat::Ident(bound) if bound.ident == name => {
            let at = place(&local.init.as_ref()?.expr);
            cell.text().get(at.start..at.end).map(str::to_owned)
        }
        _ => None,
    })
}

/// The type of a variable that is bound to what one of ours makes, as a function names it.
pub(in crate::check) fn type_returned(cell: &Syntax, name: &str) -> Option<String> {
    let value = model_of(cell, name)?;
    let head: String = value
        .chars()
        .take_while(|it| it.is_alphanumeric() || "_!:".contains(*it))
        .collect();
    let of_type = match head.as_str() {
        "Sequential" => "Sequential",
        "fit!" => "History",
        "start!" => "Run",
        "evaluate!" => "Evaluation",
        "make_classification" | "make_regression" => "Dataset",
        _ if value.contains(".predict(") => "Predictions",
        path => {
            let (of_type, function) = path.rsplit_once("::")?;
            let is_type = of_type.starts_with(char::is_uppercase) && !of_type.contains(':');
            let makes = matches!(function, "new" | "from_pretrained" | "logical" | "on")
                || of_type == "Dataset";
            return (is_type && makes).then(|| of_type.to_owned());
        }
    };
    Some(of_type.to_owned())
}

/// `MirroredStrategy::new(2)`, `MirroredStrategy::new([cpu(0)])`, `ParameterServerStrategy::new(2, 1)`.
fn strategy(slip: &Slip) -> Option<Answer> {
    find(slip.cell, |it| {
        let Expr::Call(call) = it else {
            return None;
        };
        let path = slip.text(place(&call.func)).replace(' ', "");
        let of_type = path.strip_suffix("::new")?;
        let has_logical = matches!(of_type, "MirroredStrategy" | "CentralStorageStrategy");
        let is_here = is_in(slip.span, place(it));
        let first = call.args.first()?;
        if of_type == "ParameterServerStrategy" && call.args.len() == 2 && is_here {
            let name = place(&call.func);
            let why = "`logical` takes how many workers and servers the device is split into";
            let function = edit(name.end - "new".len(), name.end, "logical");
            return Some(Answer::of(vec![function]).why(why));
        }
        if !has_logical || !is_here || call.args.len() != 1 {
            return None;
        }
        let is_list = matches!(first, Expr::Array(_) | Expr::Reference(_))
            || matches!(first, Expr::Macro(called) if called.mac.path.is_ident("vec"));
        let (function, why) = if is_list {
            ("on", "`on` takes the devices; `new()` finds them itself")
        } else {
            (
                "logical",
                "`new()` takes all devices that there are; `logical(2)` splits one into two",
            )
        };
        let name = place(&call.func);
        let start = name.end - "new".len();
        Some(Answer::of(vec![edit(start, name.end, function)]).why(why))
    })
}

/// `BertForSequenceClassification::from_pretrained("…")` without the number of classes.
fn classes(slip: &Slip) -> Option<Answer> {
    find(slip.cell, |it| {
        let Expr::Call(call) = it else {
            return None;
        };
        let path = slip.text(place(&call.func)).to_owned();
        let is_head = path.starts_with("BertForSequenceClassification")
            || path.starts_with("BertForTokenClassification");
        if !is_head
            || !path.ends_with("::from_pretrained")
            || !is_in(slip.span, place(it))
            || call.args.len() != 1
        {
            return None;
        }
        let end = place(call.args.first()?).end;
        let words = "pass the number of classes as the second value, such as `data.num_labels()`";
        Some(
            match data_set(slip, end) {
                Some(data) => Answer::of(vec![insert(end, format!(", {data}.num_labels()"))]),
                None => Answer::words(words),
            }
            .why("the head has an output for each class, and the checkpoint does not say how many"),
        )
    })
}

/// The data set of the cell or the notebook, if there is one only.
fn data_set(slip: &Slip, before: usize) -> Option<String> {
    let of_cell = find_local(slip.cell, |local| {
        let Pat::Ident(name) = &local.pat else {
            return None;
        };
        let value = slip.text(place(&local.init.as_ref()?.expr));
        let is_data = value.starts_with("Dataset::") && place(local).end < before;
        is_data.then(|| name.ident.to_string())
    });
    of_cell.or_else(|| {
        let variables = slip.context.variables.iter();
        let mut sets = variables.filter(|(_, of_type)| of_type.ends_with("Dataset"));
        match (sets.next(), sets.next()) {
            (Some((name, _)), None) => Some(name.clone()),
            _ => None,
        }
    })
}

/// A function whose last value is dropped by its `;`.
fn no_value(slip: &Slip) -> Option<Answer> {
    let is_dropped = slip
        .found
        .labels
        .iter()
        .any(|it| it.text.ends_with("found `()`"));
    let statements = slip.cell.statements().filter(|_| is_dropped)?;
    statements.iter().find_map(|statement| {
        let Stmt::Item(Item::Fn(function)) = statement else {
            return None;
        };
        let returns = place(&function.sig.output);
        let Stmt::Expr(value, Some(semicolon)) = function.block.stmts.last()? else {
            return None;
        };
        let at = place(semicolon);
        let is_value = !matches!(
            value,
            Expr::Return(_) | Expr::Assign(_) | Expr::ForLoop(_) | Expr::While(_)
        );
        (is_in(slip.span, returns) && is_value).then(|| {
            Answer::of(vec![edit(at.start, at.end, "")])
                .titled("leave out the last `;`")
                .why("the last value of a function is what it returns, unless a `;` follows")
        })
    })
}

/// An iterator where a list is expected.
fn not_collected(slip: &Slip) -> Option<Answer> {
    const ITERATORS: [&str; 9] = [
        "Map<",
        "Filter<",
        "Rev<",
        "Take<",
        "Skip<",
        "Zip<",
        "Enumerate<",
        "Cloned<",
        "Copied<",
    ];
    let mut labels = slip.found.labels.iter();
    let label = labels.find(|it| it.text.starts_with("expected `Vec<"))?;
    let (_, found) = label.text.split_once("found `")?;
    let found = found.split('<').next()?.rsplit("::").next()?;
    let is_iterator = ITERATORS.iter().any(|it| it.trim_end_matches('<') == found);
    let Place::Span(span) = label.place else {
        return None;
    };
    is_iterator.then(|| {
        Answer::of(vec![insert(span.end, ".collect()")])
            .why("`collect` makes a list of what an iterator yields")
    })
}

/// `Option` in a text for a reader, such as a metric.
fn optional(slip: &Slip) -> Option<Answer> {
    let is_number = slip
        .message()
        .contains("Option<f64>` doesn't implement `std::fmt::Display`");
    let name = slip
        .text(slip.span)
        .trim_matches(['{', '}'])
        .split(':')
        .next()?
        .to_owned();
    if !is_number {
        return None;
    }
    let bound = slip.bound(&name, slip.span.start)?;
    let at = bound.value_span.filter(|_| bound.of_type.is_none())?;
    Some(
        Answer::of(vec![insert(at.end, ".unwrap_or(f64::NAN)")])
            .why("it is `None` if there is no such number"),
    )
}

/// `loss = CategoricalCrossentropy`.
fn loss(slip: &Slip) -> Option<Answer> {
    let name = slip.text(slip.span);
    let with_logits = [
        "BinaryCrossentropy",
        "CategoricalCrossentropy",
        "SparseCategoricalCrossentropy",
    ];
    if !with_logits.contains(&name) {
        return None;
    }
    let rest = &slip.cell.text()[slip.span.end..];
    // `Loss()` and `Loss(true)`.
    let brackets = match rest.strip_prefix('(') {
        Some(inside) => inside.find(')')? + 2,
        None => 0,
    };
    let end = slip.span.end;
    Some(Answer::of(vec![edit(end, end + brackets, " { from_logits: true }")]).why(
        "a model whose last layer has no activation returns logits; after a softmax or a sigmoid it is `from_logits: false`",
    ))
}

/// `split["train"]`, `split.train` and `split[0]` of the pair that `split` returns.
fn pair(slip: &Slip) -> Option<Answer> {
    let message = slip.message();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let is_pair = quoted.any(|it| it.starts_with('(') && it.contains(','));
    if !is_pair {
        return None;
    }
    let half = |name: &str| match name.trim_matches('"') {
        "train" | "0" | "x" | "data" => Some("0"),
        "test" | "validation" | "valid" | "val" | "dev" | "1" | "y" | "labels" => Some("1"),
        _ => None,
    };
    find(slip.cell, |it| match it {
        Expr::Index(index) if is_in(slip.span, place(it)) => {
            let half = half(slip.text(place(&index.index)))?;
            let from = place(&index.expr).end;
            name_of(&index.expr)?;
            Some(edit(from, place(it).end, format!(".{half}")))
        }
        Expr::Field(field) if place(&field.member) == slip.span => Some(edit(
            slip.span.start,
            slip.span.end,
            half(slip.text(slip.span))?,
        )),
        _ => None,
    })
    .map(|edit| {
        Answer::of(vec![edit]).why("it is a pair: `.0` is its first value and `.1` its second")
    })
}
