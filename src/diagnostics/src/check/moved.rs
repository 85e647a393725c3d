//! An argument of the optimizer that was written in `compile!`, moved to where it belongs.

use super::calls::{Call, CallArgument, Chain};
use crate::arguments::{self, OPTIMIZERS};
use crate::{CellSpan, Edit, Place};

/// The optimizer of this call with the argument added, and the edits that move it there. The optimizer
/// stays the one that is written: a chain, a variable or a text. `None`: there is none, or it
/// has no such argument.
pub(super) fn to_optimizer(
    call: &Call,
    chains: &[Chain],
    argument: &CallArgument,
) -> Option<(String, Vec<Edit>)> {
    let written = call.argument("optimizer")?;
    let inside = written.value_span;
    let edit = |span, replacement: &str| Edit {
        place: Place::Span(span),
        replacement: replacement.to_owned(),
    };
    let drop = edit(argument.drop_span, "");
    let value = argument.value.as_str();
    let is_rate = matches!(argument.name.as_str(), "learning_rate" | "lr");
    let name = match argument.name.as_str() {
        "clip_norm" | "max_grad_norm" => "global_clipnorm",
        name => name,
    };
    let has = |optimizer: &str| {
        let optimizer = arguments::optimizer(optimizer);
        optimizer.is_some_and(|it| arguments::find(it.arguments, name).is_some())
    };
    if value.is_empty() {
        return None;
    }
    let method = format!(".{name}({value})");
    let chain = chains
        .iter()
        .find(|chain| inside.start <= chain.span.start && chain.span.end <= inside.end);
    if let Some(chain) = chain {
        if is_rate {
            // A schedule has a rate of its own; only a bare number is replaced.
            chain.rate.parse::<f64>().ok()?;
            let written = format!("{}::new({value})", chain.optimizer);
            return Some((written, vec![edit(chain.inside, value), drop]));
        }
        if !has(&chain.optimizer) || chain.methods.iter().any(|method| method.name == name) {
            return None;
        }
        let end = CellSpan {
            start: chain.span.end,
            end: chain.span.end,
        };
        let written = format!("{}::new(…){method}", chain.optimizer);
        return Some((written, vec![edit(end, &method), drop]));
    }
    let named = written.value.trim_matches('"');
    let named = OPTIMIZERS
        .iter()
        .find(|it| it.name.eq_ignore_ascii_case(named));
    let Some(named) = named else {
        let is_variable = syn::parse_str::<syn::Ident>(&written.value).is_ok();
        let is_known = OPTIMIZERS
            .iter()
            .any(|it| arguments::find(it.arguments, name).is_some());
        let code = format!("{}{method}", written.value);
        return (is_variable && is_known && !is_rate)
            .then(|| (code.clone(), vec![edit(inside, &code), drop]));
    };
    let (optimizer, rate) = (named.name, named.named_rate);
    let code = match is_rate {
        true => format!("{optimizer}::new({value})"),
        false if has(optimizer) => format!("{optimizer}::new({rate}){method}"),
        false => return None,
    };
    Some((code.clone(), vec![edit(inside, &code), drop]))
}
