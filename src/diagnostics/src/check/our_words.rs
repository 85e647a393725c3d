//! What only rustc finds, and says in the words of the language: the same in those of the notebook.

use stratoscope_cell_syntax::{CellSyntax, Syntax};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::calls::{Found, Operand, span_of};
use super::strategies::strategies_made_in;
use super::{
    CellContext, habits, kind, outside_function, plain, readers, returned, slips, suggest,
    wrong_type::wrong_type,
};
use crate::arguments::Kind;
use crate::rules::{
    InvalidScopeSyntax, NamedArgumentInCall, QuestionMarkWithoutResult, UnknownStrategy,
};
use crate::{CellSpan, Diagnostic, Edit, Fix, Place, Rule};
use stratoscope_render::text;

/// An error of rustc's in the words of the notebook; `None`: rustc's are the better ones. Its first label is
/// the primary one, a span of the cell.
pub fn in_our_words(
    cell: impl Into<CellSyntax>,
    found: &Diagnostic,
    context: &CellContext,
) -> Option<Diagnostic> {
    let (found, context) = (found.clone(), context.clone());
    cell.into().read(move |cell| {
        let ours = answer(cell, &found, &context)?;
        Some(returned::settled(cell, ours))
    })
}

fn answer(cell: &Syntax, found: &Diagnostic, context: &CellContext) -> Option<Diagnostic> {
    let Place::Span(span) = found.labels.first()?.place else {
        return None;
    };
    let result = || slips::in_a_call(cell, found, span, context);
    if let Some(ours) = result().or_else(|| wrong_type(cell, found)) {
        return Some(ours);
    }
    let ours = match found.code.as_str() {
        "E0425" => {
            let function = outside_function::answer(cell, &found.message, span, context);
            let ours = function.or_else(|| unknown_strategy(cell, span, context));
            ours.or_else(|| named_value(cell, span, context))
        }
        "E0061" | "E0599" => of_a_method(cell, span, context),
        "E0277" if is_of_a_function(&found.message) => without_result(cell, span),
        "CompilationError" => in_a_macro(cell, found, span, context),
        _ => None,
    };
    ours.or_else(|| habits::answer(cell, found, span, context))
        .or_else(|| slips::answer(cell, found, span, context))
}

/// An expression of Python between the brackets of a macro, which the text alone takes for Rust: rustc reads them.
fn in_a_macro(
    cell: &Syntax,
    found: &Diagnostic,
    span: CellSpan,
    context: &CellContext,
) -> Option<Diagnostic> {
    if !found.message.starts_with("expected ") || !cell.is_rust() {
        return None;
    }
    let text = cell.text();
    let code = super::scan::scan(text).code;
    let ours = super::python_expressions::answer(text, &code, context)?;
    let is_here = matches!(ours.labels.first()?.place, Place::Span(it) if it.start <= span.start && span.end <= it.end);
    is_here.then_some(ours)
}

/// Whether rustc says that a `?` stands in a function or a method that returns no `Result`. Closures and `async` blocks
/// return for themselves, and a `?` on an `Option` is another mistake.
fn is_of_a_function(message: &str) -> bool {
    const AROUND: [&str; 3] = ["a function ", "a method ", "an async function "];
    let around = message.strip_prefix("the `?` operator can only be used in ");
    around.is_some_and(|around| AROUND.iter().any(|it| around.starts_with(it)))
}

/// SC0129: the name stands where a strategy is expected.
fn unknown_strategy(cell: &Syntax, span: CellSpan, context: &CellContext) -> Option<Diagnostic> {
    let text = cell.text();
    let given = text.get(span.start..span.end)?;
    let before = text[..span.start].trim_end();
    let before = before.strip_suffix('&').unwrap_or(before).trim_end();
    let opens = before.strip_suffix('(').map(str::trim_end);
    let is_scope = opens.is_some_and(|it| it.ends_with("scope!")) || before.ends_with("%%scope");
    let is_name = given.chars().all(|it| it.is_alphanumeric() || it == '_');
    if !is_scope || !is_name {
        return None;
    }
    let mut known = strategies_made_in(cell);
    for (name, type_name) in &context.variables {
        if kind::of_type(type_name) == Some(Kind::Strategy) && !known.contains(name) {
            known.push(name.clone());
        }
    }
    known.retain(|name| name != given);
    known.sort_by_key(|name| suggest::distance(given, name));
    let facts = UnknownStrategy {
        given: given.to_owned(),
        place: Place::Span(span),
        known,
    };
    Some(facts.diagnostic())
}

/// SC0125: the name stands before a `=` between a call's brackets.
fn named_value(cell: &Syntax, span: CellSpan, context: &CellContext) -> Option<Diagnostic> {
    let found = Found::of(cell, &context.defined)?;
    let is_meant = |plain: &&plain::Plain| {
        let mut named = plain.named.iter();
        named.any(|argument| argument.name_span == span)
    };
    let call = found.plain.iter().find(is_meant)?;
    let argument = call.named.iter().find(|it| it.name_span == span)?;
    let is_method = call.receiver.is_some() && !context.defined.functions.contains(&call.name);
    let fix = match readers::with_columns(call) {
        Some(fix) => fix,
        None if is_method => plain::as_methods(cell.text(), call),
        None => in_the_order_of(cell, call),
    };
    let facts = NamedArgumentInCall {
        callee: call.name.clone(),
        argument: argument.name.clone(),
        place: Place::Span(argument.span),
        written: fix.title,
        edits: fix.edits,
    };
    Some(facts.diagnostic())
}

/// The call of a function with its values in the order of its parameters. Of a function that is not in the cell the order is
/// not known: then several values have no edit.
fn in_the_order_of(cell: &Syntax, call: &plain::Plain) -> Fix {
    let mut fix = plain::without_names(cell.text(), call);
    if call.named.len() < 2 {
        return fix;
    }
    let statements = cell.statements().unwrap_or_default().iter();
    let mut functions = statements.filter_map(|it| match it {
        syn::Stmt::Item(syn::Item::Fn(function)) if function.sig.ident == call.name => {
            Some(&function.sig)
        }
        _ => None,
    });
    let parameters = functions.next().map(|it| {
        let names = it.inputs.iter().map(|it| match it {
            syn::FnArg::Typed(typed) => match &*typed.pat {
                syn::Pat::Ident(name) => name.ident.to_string(),
                _ => String::new(),
            },
            syn::FnArg::Receiver(_) => String::new(),
        });
        names.collect::<Vec<String>>()
    });
    let in_order = parameters.and_then(|names| {
        let operands = call.operands.iter().map(|it| Some(it.text.clone()));
        let rest = names.iter().skip(call.operands.len()).map(|name| {
            let value = call.named.iter().find(|it| it.name == *name)?;
            Some(value.value.clone())
        });
        let values: Option<Vec<String>> = operands.chain(rest).collect();
        values.filter(|it| it.len() == call.operands.len() + call.named.len())
    });
    let Some(values) = in_order else {
        fix.edits.clear();
        return fix;
    };
    let values = values.join(", ");
    fix.title = text::excerpt(&format!("{}({values})", call.name), 76);
    fix.edits = vec![Edit {
        place: Place::Span(call.inside),
        replacement: values,
    }];
    fix
}

/// SC0126 and SC0128: methods that Keras's models and strategies have.
fn of_a_method(cell: &Syntax, span: CellSpan, context: &CellContext) -> Option<Diagnostic> {
    let text = cell.text();
    let found = Found::of(cell, &context.defined)?;
    let call = found.plain.iter().find(|call| call.name_span == span)?;
    let receiver = call.receiver?;
    let variable = text.get(receiver.start..receiver.end)?;
    if is_of_another(&found, context, variable, &call.name) {
        return None;
    }
    let takes_closure = call
        .operands
        .first()
        .is_some_and(|it| it.text.contains("||"));
    if call.name == "scope" && (call.operands.is_empty() || takes_closure) {
        let strategy = text::excerpt(&text[receiver.start..receiver.end], 40);
        let edits = call
            .operands
            .first()
            .and_then(|it| of_closure(text, receiver, it));
        let facts = InvalidScopeSyntax {
            place: Place::Span(span),
            written: format!("scope!({strategy}, {{ … }});"),
            edits: edits.unwrap_or_default(),
        };
        return Some(facts.diagnostic());
    }
    crate::arguments::call(&call.name)?;
    Some(plain::of_a_method(text, call, receiver))
}

/// The edits that make `scope!(strategy, { … })` of `strategy.scope(|| { … })`.
fn of_closure(text: &str, receiver: CellSpan, operand: &Operand) -> Option<Vec<Edit>> {
    let bars = operand.text.find("||")? + "||".len();
    let start = operand.span.start + bars;
    let inner = text.get(start..operand.span.end)?;
    let start = start + inner.len() - inner.trim_start().len();
    let is_block = text[start..].starts_with('{');
    let strategy = &text[receiver.start..receiver.end];
    let edit = |start: usize, end: usize, replacement: String| Edit {
        place: Place::span(start, end),
        replacement,
    };
    let open = if is_block { "" } else { "{ " };
    let mut edits = vec![edit(
        receiver.start,
        start,
        format!("scope!({strategy}, {open}"),
    )];
    if !is_block {
        edits.push(edit(operand.span.end, operand.span.end, " }".to_owned()));
    }
    Some(edits)
}

/// Whether a method is that of a variable which is no model and no strategy, or may be one that the notebook defines.
fn is_of_another(found: &Found, context: &CellContext, variable: &str, method: &str) -> bool {
    let is_ours = |kind: Kind| matches!(kind, Kind::Model | Kind::Strategy);
    let known = match found.bound.get(variable) {
        Some(bound) => bound.map(is_ours),
        None => {
            let kind = context.variables.get(variable);
            let separates = |it: char| !(it.is_alphanumeric() || it == '_');
            // In a box or behind a reference, too.
            kind.map(|kind| kind.split(separates).filter_map(kind::of_type).any(is_ours))
        }
    };
    !known.unwrap_or_else(|| !found.defined.functions.contains(method))
}

/// SC1014: the function around a `?` returns no `Result`.
fn without_result(cell: &Syntax, span: CellSpan) -> Option<Diagnostic> {
    let text = cell.text();
    let function = function_around(cell, span)?;
    // Of a `scope!`, which brings a `?` with it, rustc marks the end.
    let scope = text[..span.end].rfind("scope!");
    let (what, place) = match (text.get(span.start..span.end)?, scope) {
        ("?", _) | (_, None) => ("?", Place::Span(span)),
        (_, Some(at)) => ("scope!", Place::span(at, at + "scope!".len())),
    };
    let returns = match &function.sig.output {
        syn::ReturnType::Default => None,
        syn::ReturnType::Type(_, kind) => {
            let span = span_of(kind.span());
            Some(text.get(span.start..span.end)?.to_owned())
        }
    };
    let facts = QuestionMarkWithoutResult {
        function: function.sig.ident.to_string(),
        returns,
        what: what.to_owned(),
        place,
        function_place: Place::Span(span_of(function.sig.ident.span())),
        fix: returned::with_result(cell, &function),
    };
    Some(facts.diagnostic())
}

/// The innermost function of the cell that a place is in.
pub(super) fn function_around(cell: &Syntax, span: CellSpan) -> Option<syn::ImplItemFn> {
    struct Functions(CellSpan, Option<syn::ImplItemFn>);
    impl Functions {
        fn note(&mut self, signature: &syn::Signature, block: &syn::Block) {
            let braces = block.brace_token.span;
            let (start, end) = (span_of(braces.open()).start, span_of(braces.close()).end);
            if start <= self.0.start && self.0.end <= end {
                self.1 = Some(syn::ImplItemFn {
                    attrs: Vec::new(),
                    vis: syn::Visibility::Inherited,
                    defaultness: None,
                    sig: signature.clone(),
                    block: block.clone(),
                });
            }
        }
    }
    impl<'ast> Visit<'ast> for Functions {
        fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
            self.note(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
        fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
            self.note(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }
    let mut functions = Functions(span, None);
    for statement in cell.statements()? {
        functions.visit_stmt(statement);
    }
    functions.1
}

/// What is called as a function and is a value: `metrics = [accuracy]`.
pub(super) fn is_function_item(kind: &str) -> Option<String> {
    let (_, path) = kind.strip_suffix('}')?.rsplit_once('{')?;
    let name = path.rsplit("::").next()?;
    kind.contains("fn(").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;
    use crate::render::apply;

    fn finding(text: &str, code: &str, message: &str, at: &str) -> Option<Diagnostic> {
        let start = text.rfind(at).expect("stands in the cell");
        let place = Place::span(start, start + at.len());
        let found = Diagnostic::new(code, Severity::Error, message).label(place, "");
        let variables = [
            ("mirrored", "MirroredStrategy"),
            ("stage", "usize"),
            ("boxed", "Box<stratoscope::train::ModelOf<Layers>>"),
        ];
        let context = CellContext::with_variables(variables);
        in_our_words(text, &found, &context)
    }

    #[test]
    fn a_strategy_that_is_not_there_is_one_of_the_live_ones() {
        let text = "let miroed = 1;\nscope!(mirored, { let a = 1; });";
        let found = finding(text, "E0425", "cannot find value `mirored`", "mirored").expect("ours");
        assert_eq!(found.code, "SC0129");
        assert_eq!(found.fixes[0].title, "did you mean `mirrored`?");
        let text = "%%scope mirored\nlet a = 1;";
        assert!(finding(text, "E0425", "", "mirored").is_some());
        assert!(finding("f(mirored);", "E0425", "", "mirored").is_none());
    }

    #[test]
    fn a_name_in_a_call_is_no_variable() {
        let text = "area(2.0, height = 3.0);";
        let found = finding(text, "E0425", "cannot find value `height`", "height").expect("ours");
        assert_eq!(found.code, "SC0125");
        let fixed = apply(text, &found.fixes[0]).expect("an edit");
        assert_eq!(fixed, "area(2.0, 3.0);");
        let text = "area(height = 3.0, width = 2.0);";
        let found = finding(text, "E0425", "cannot find value `height`", "height").expect("ours");
        assert_eq!(apply(text, &found.fixes[0]), None);
        let text = "fn area(width: f64, height: f64) -> f64 { width * height }\narea(height = 3.0, width = 2.0);";
        let found = finding(text, "E0425", "cannot find value `height`", "height = ");
        assert!(found.is_none());
        let start = text.rfind("height").expect("stands there");
        let error = Diagnostic::new("E0425", Severity::Error, "cannot find value `height`")
            .label(Place::span(start, start + "height".len()), "");
        let found = in_our_words(text, &error, &CellContext::default()).expect("ours");
        let fixed = apply(text, &found.fixes[0]).expect("an edit");
        assert!(fixed.ends_with("area(2.0, 3.0);"), "{fixed}");
    }

    #[test]
    fn a_method_of_keras_is_a_macro() {
        let text = "let e = model.evaluate(&dev)?;";
        let found = finding(text, "E0061", "takes 2 arguments", "evaluate").expect("ours");
        let fixed = apply(text, &found.fixes[0]).expect("an edit");
        assert_eq!(fixed, "let e = evaluate!(model, dev)?;");
    }

    #[test]
    fn a_function_is_changed_at_both_ends() {
        const ERROR: &str = "the `?` operator can only be used in a function that returns `Result` or `Option` (or another \
                             type that implements `FromResidual`)";
        for (text, expected) in [
            (
                "fn f() { g()?; }",
                "fn f() -> Result<(), Box<dyn std::error::Error>> { g()?; Ok(()) }",
            ),
            (
                "fn f(x: u8) -> usize {\n    let y = g()?;\n    y.len()\n}",
                "fn f(x: u8) -> Result<usize, Box<dyn std::error::Error>> {\n    let y = g()?;\n    Ok(y.len())\n}",
            ),
            (
                "fn f() { g()?; println!() }",
                "fn f() -> Result<(), Box<dyn std::error::Error>> { g()?; println!(); Ok(()) }",
            ),
        ] {
            let found = finding(text, "E0277", ERROR, "?").expect("ours");
            assert_eq!(found.code, "SC1014");
            assert_eq!(apply(text, &found.fixes[0]).as_deref(), Some(expected));
        }
        // A value that would be dropped, of a type that the text does not show.
        let text = "fn f() { let m = g()?; m }";
        let found = finding(text, "E0277", ERROR, "?").expect("ours");
        assert!(found.fixes[0].edits.is_empty() && found.fixes[0].title.contains("`Ok(m)`"));
        let text = "fn f() { scope!(s, { g(); }); }";
        let found = finding(text, "E0277", ERROR, ";").expect("ours");
        assert_eq!(found.labels[0].place, Place::span(9, 15));
        let text = "fn f() -> u8 { if a { return 1; } g()?; 2 }";
        let found = finding(text, "E0277", ERROR, "?").expect("ours");
        assert!(found.fixes[0].edits.is_empty());
        assert!(finding("g()?;", "E0277", ERROR, "?").is_none());
    }

    #[test]
    fn a_question_mark_is_blamed_on_the_function_that_it_returns_from() {
        let text = "fn f() { let c = || { g()?; }; c(); }";
        for (around, expected) in [
            ("in a function that returns `Result`", true),
            ("in a method that returns `Result`", true),
            ("in an async function that returns `Result`", true),
            ("in a closure that returns `Result`", false),
            ("in an async block that returns `Result`", false),
            ("in an async closure that returns `Result`", false),
            ("in a trait method that returns `Result`", false),
            (
                "on `Result`s, not `Option`s, in a function that returns `Result`",
                false,
            ),
            (
                "on `Option`s, not `Result`s, in a function that returns `Option`",
                false,
            ),
        ] {
            let message = format!("the `?` operator can only be used {around}");
            let found = finding(text, "E0277", &message, "?");
            let is_blamed = found.is_some_and(|it| it.code == "SC1014");
            assert_eq!(is_blamed, expected, "{message}");
        }
    }

    #[test]
    fn a_method_of_a_type_of_the_notebook_is_no_macro() {
        let own = "struct Line;\nimpl Line { fn fit(&self, x: u8, y: u8) {} }\nlet line = Line;\nline.fit(1);";
        assert!(finding(own, "E0061", "takes 2 arguments", "fit").is_none());
        assert!(finding("stage.fit(1);", "E0599", "no method", "fit").is_none());
        assert!(finding("model.fit(1);", "E0599", "no method", "fit").is_some());
        assert!(finding("mirrored.scope();", "E0599", "no method", "scope").is_some());
        assert!(finding("boxed.fit(1);", "E0599", "no method", "fit").is_some());
    }
}
