//! A closure cannot live between cells, since its type has no name. Suggests what can: a function, or the closure in a
//! box, with the types written out as far as the cell and the notebook show them.

use std::collections::BTreeMap;

use stratoscope_render::text;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use stratoscope_cell_syntax::CellSyntax;
use stratoscope_diagnostics::{Edit, Fix, FixKind, Place};

/// What stands where a type is not known.
const UNKNOWN: &str = "…";
/// Types that are copied, and that arithmetic keeps.
const NUMBERS: [&str; 14] = [
    "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize",
];
/// The most characters of code in a way out.
const MOST: usize = 120;

/// What is known of a closure that a variable is bound to.
struct Closure {
    /// Its parameters and their types.
    parameters: Vec<(String, Option<String>)>,
    returns: Option<String>,
    body: String,
    /// Whether the body is a block.
    is_block: bool,
    /// Names in the body that are no parameters.
    others: Vec<String>,
    /// Those of them that the same cell binds before: their types are not known yet.
    bound_here: Vec<String>,
    /// The closure as typed, without `move`.
    text: String,
    /// The type of a number in the body.
    number: Option<&'static str>,
    /// What the cell calls it with.
    given: Option<Vec<String>>,
}

/// Ways out for the closure that `name` is bound to, best first.
pub fn ways_out(
    name: &str,
    cell: &CellSyntax,
    variables: &BTreeMap<String, String>,
) -> Vec<String> {
    match function_and_box(name, cell, variables) {
        Some([function, boxed]) => vec![
            in_place_of_it(&function),
            format!("or box it, with its types: `{boxed}`"),
        ],
        None => vec![
            "make it a function".to_owned(),
            format!("or box it: `let {name}: Box<dyn Fn()> = Box::new(…);`"),
        ],
    }
}

fn in_place_of_it(function: &str) -> String {
    format!("make it a function: `{function}`")
}

/// The function that the closure can be, and its `let` with a box. `…` stands for a type that is not known, and for what is too long.
fn function_and_box(
    name: &str,
    cell: &CellSyntax,
    variables: &BTreeMap<String, String>,
) -> Option<[String; 2]> {
    let (wanted, code) = (name.to_owned(), cell.code().clone());
    let closure = cell.read(move |syntax| find(&wanted, &code, syntax.statements_as_typed()?))?;
    let unknown_kind = UNKNOWN.to_owned();
    let captured: Vec<(&String, &String)> = closure
        .others
        .iter()
        .filter_map(|other| {
            if closure.bound_here.contains(other) {
                Some((other, &unknown_kind))
            } else {
                variables.get_key_value(other)
            }
        })
        .collect();
    // Arithmetic on one type of number gives that type.
    let mut numbers = captured.iter().map(|(_, kind)| kind.as_str());
    let guess = match numbers.next() {
        Some(first) if NUMBERS.contains(&first) && numbers.all(|kind| kind == first) => Some(first),
        None if closure.others.is_empty() && closure.is_of_numbers() => closure.number,
        _ => None,
    };
    let kinds = closure.kinds(guess, variables);
    let number = match kinds.first() {
        Some(kind) if captured.is_empty() || guess.is_some() => Some(kind.as_str()),
        Some(_) => None,
        None => guess,
    };
    let number = number.filter(|kind| NUMBERS.contains(kind) && closure.is_arithmetic());
    let returns = closure
        .returns
        .clone()
        .or(number.map(str::to_owned))
        .or_else(|| closure.returned(&kinds))
        .unwrap_or_else(|| UNKNOWN.to_owned());
    let boxed = format!(
        "let {name}: Box<dyn Fn({}) -> {returns}> = Box::new(move {});",
        kinds.join(", "),
        closure.text
    );
    let boxed = text::excerpt(&boxed, MOST);
    let names = closure.parameters.iter().map(|(name, _)| name);
    let own = names
        .zip(&kinds)
        .map(|(name, kind)| format!("{name}: {kind}"));
    let lent = captured
        .iter()
        .map(|(name, kind)| match NUMBERS.contains(&kind.as_str()) {
            true => format!("{name}: {kind}"),
            false => format!("{name}: &{kind}"),
        });
    let operands: Vec<String> = own.chain(lent).collect();
    let body = match closure.is_block {
        true => closure.body.clone(),
        false => format!("{{ {} }}", closure.body),
    };
    let function = format!("fn {name}({}) -> {returns} {body}", operands.join(", "));
    let function = text::excerpt(&function, MOST);
    Some([function, boxed])
}

/// The edit that makes a function of the closure, if all types are known and it uses no other variables.
pub fn as_function(
    name: &str,
    cell: &CellSyntax,
    variables: &BTreeMap<String, String>,
) -> Option<Fix> {
    let [function, _] = function_and_box(name, cell, variables)?;
    let (wanted, code) = (name.to_owned(), cell.code().clone());
    let (span, others) = cell.read(move |syntax| {
        let statements = syntax.statements_as_typed()?;
        let found = find(&wanted, &code, statements)?;
        let statement = statements.iter().find(|it| binds(it, &wanted))?;
        let others = found.bound_here.into_iter().chain(found.others);
        Some((statement.span().byte_range(), others.collect::<Vec<_>>()))
    })?;
    let is_captured = others.iter().any(|it| variables.contains_key(it));
    if function.contains(UNKNOWN) || is_captured {
        return None;
    }
    Some(Fix {
        kind: FixKind::Change,
        title: in_place_of_it(&function),
        edits: vec![Edit {
            place: Place::span(span.start, span.end),
            replacement: function,
        }],
    })
}

/// Whether a statement is the `let` of a name.
fn binds(statement: &syn::Stmt, name: &str) -> bool {
    let syn::Stmt::Local(local) = statement else {
        return false;
    };
    let pattern = match &local.pat {
        syn::Pat::Type(typed) => typed.pat.as_ref(),
        other => other,
    };
    matches!(pattern, syn::Pat::Ident(bound) if bound.ident == name)
}

impl Closure {
    /// The types of its parameters: as written, as the cell calls it, or as guessed.
    fn kinds(&self, guess: Option<&str>, variables: &BTreeMap<String, String>) -> Vec<String> {
        let given = |place: usize| {
            let operands = self.given.as_ref()?;
            operands.get(place).and_then(|it| type_of(it, variables))
        };
        let parameters = self.parameters.iter().enumerate();
        let kinds = parameters.map(|(place, (_, kind))| {
            let kind = kind.clone().or_else(|| given(place));
            kind.unwrap_or_else(|| guess.unwrap_or(UNKNOWN).to_owned())
        });
        kinds.collect()
    }

    /// Whether its operands have one type of number: it calculates with them, or compares them.
    fn is_of_numbers(&self) -> bool {
        let others = ['(', '"', '[', '{', '&', '|'];
        !self.is_block && !self.body.contains(others) && !self.body.contains(" as ")
    }

    /// Whether the value has the type of its operands: sums and products of them.
    fn is_arithmetic(&self) -> bool {
        self.is_of_numbers() && !self.body.contains(['<', '>', '!']) && !self.body.contains("==")
    }

    /// The type of what it returns, where a method at the end of its body says it.
    fn returned(&self, kinds: &[String]) -> Option<String> {
        let body: syn::Expr = syn::parse_str(&self.body).ok()?;
        match &body {
            syn::Expr::MethodCall(call) => {
                let method = call.method.to_string();
                let of_type = |names: &[&str]| names.contains(&method.as_str());
                let receiver = typed(&self.body, &call.receiver);
                let is_data = |it: &(String, Option<String>), kind: &String| {
                    it.0 == receiver && kind.trim_start_matches('&') == "Dataset"
                };
                let mut parameters = self.parameters.iter().zip(kinds);
                if of_type(&["len", "count"]) {
                    Some("usize".to_owned())
                } else if of_type(&[
                    "to_string",
                    "to_uppercase",
                    "to_lowercase",
                    "replace",
                    "repeat",
                ]) {
                    Some("String".to_owned())
                } else if of_type(&["contains", "starts_with", "ends_with", "is_empty"]) {
                    Some("bool".to_owned())
                } else if of_type(&["take", "skip", "shuffled", "filter", "dedupe", "clone"])
                    && parameters.any(|(it, kind)| is_data(it, kind))
                {
                    Some("Dataset".to_owned())
                } else {
                    None
                }
            }
            syn::Expr::Macro(called) if called.mac.path.is_ident("format") => {
                Some("String".to_owned())
            }
            syn::Expr::Macro(called) if called.mac.path.is_ident("println") => {
                Some("()".to_owned())
            }
            syn::Expr::Binary(binary) => {
                let is_condition = matches!(
                    binary.op,
                    syn::BinOp::Eq(_)
                        | syn::BinOp::Ne(_)
                        | syn::BinOp::Lt(_)
                        | syn::BinOp::Le(_)
                        | syn::BinOp::Gt(_)
                        | syn::BinOp::Ge(_)
                        | syn::BinOp::And(_)
                        | syn::BinOp::Or(_)
                );
                is_condition.then(|| "bool".to_owned())
            }
            _ => None,
        }
    }
}

/// The type of a value that a closure is called with, as a parameter names it.
fn type_of(operand: &str, variables: &BTreeMap<String, String>) -> Option<String> {
    let literal = syn::parse_str::<syn::Lit>(operand).ok();
    if let Some(literal) = literal {
        return match literal {
            syn::Lit::Str(_) => Some("&str".to_owned()),
            syn::Lit::Float(_) => Some("f64".to_owned()),
            syn::Lit::Int(_) => Some("i32".to_owned()),
            syn::Lit::Bool(_) => Some("bool".to_owned()),
            _ => None,
        };
    }
    let sign = if operand.starts_with('&') { "&" } else { "" };
    let name = operand.trim_start_matches('&').trim_end_matches(".clone()");
    let kind = variables.get(name)?;
    // Types of ours are known by their last names.
    let short = match kind.strip_prefix("stratoscope::") {
        Some(path) if !path.contains('<') => path.rsplit("::").next().unwrap_or(path),
        Some(_) => return None,
        None => kind,
    };
    Some(format!("{sign}{short}"))
}

fn find(name: &str, code: &str, statements: &[syn::Stmt]) -> Option<Closure> {
    let mut before = Bound::default();
    statements.iter().find_map(|statement| {
        let syn::Stmt::Local(local) = statement else {
            return None;
        };
        let bound = match &local.pat {
            syn::Pat::Type(typed) => typed.pat.as_ref(),
            other => other,
        };
        match (bound, local.init.as_ref()?.expr.as_ref()) {
            (syn::Pat::Ident(bound), syn::Expr::Closure(closure)) if bound.ident == name => {
                let mut found = read(code, closure);
                let others = found.others.iter();
                let here = others.filter(|other| before.names.contains(other));
                found.bound_here = here.cloned().collect();
                let mut calls = Calls {
                    name,
                    code,
                    given: None,
                };
                statements.iter().for_each(|it| calls.visit_stmt(it));
                found.given = calls.given;
                Some(found)
            }
            _ => {
                before.visit_pat(&local.pat);
                None
            }
        }
    })
}

/// The first call of a closure by its name.
struct Calls<'a> {
    name: &'a str,
    code: &'a str,
    given: Option<Vec<String>>,
}

impl<'ast> Visit<'ast> for Calls<'_> {
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let is_it = matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident(self.name));
        if is_it && self.given.is_none() {
            let operands = call.args.iter().map(|it| typed(self.code, it));
            self.given = Some(operands.collect());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let values = called.parse_body_with(
            syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated,
        );
        if let Ok(values) = values {
            values.iter().for_each(|it| self.visit_expr(it));
        }
    }
}

/// The names that patterns bind.
#[derive(Default)]
struct Bound {
    names: Vec<String>,
}

impl<'ast> Visit<'ast> for Bound {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.names.push(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }
}

fn read(text: &str, closure: &syn::ExprClosure) -> Closure {
    let parameters = closure.inputs.iter().map(|operand| match operand {
        syn::Pat::Type(operand) => (typed(text, &operand.pat), Some(typed(text, &operand.ty))),
        other => (typed(text, other), None),
    });
    let parameters: Vec<(String, Option<String>)> = parameters.collect();
    let returns = match &closure.output {
        syn::ReturnType::Default => None,
        syn::ReturnType::Type(_, kind) => Some(typed(text, kind)),
    };
    let mut names = Names::default();
    names.visit_expr(&closure.body);
    let is_parameter = |name: &String| parameters.iter().any(|(other, _)| other == name);
    let others = names.found.into_iter().filter(|name| !is_parameter(name));
    let whole = typed(text, closure);
    Closure {
        others: others.collect(),
        bound_here: Vec::new(),
        given: None,
        returns,
        body: typed(text, &closure.body),
        is_block: matches!(*closure.body, syn::Expr::Block(_)),
        text: whole.trim_start_matches("move ").to_owned(),
        number: names.number,
        parameters,
    }
}

/// As it is typed, on one line.
fn typed(text: &str, part: &impl Spanned) -> String {
    let typed = text.get(part.span().byte_range()).unwrap_or(UNKNOWN);
    typed.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[derive(Default)]
struct Names {
    found: Vec<String>,
    number: Option<&'static str>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        if let Some(name) = path.path.get_ident() {
            let name = name.to_string();
            if !self.found.contains(&name) {
                self.found.push(name);
            }
        }
        visit::visit_expr_path(self, path);
    }

    fn visit_lit(&mut self, literal: &'ast syn::Lit) {
        match literal {
            syn::Lit::Float(number) if number.suffix().is_empty() => self.number = Some("f64"),
            syn::Lit::Int(number) if number.suffix().is_empty() => {
                self.number = self.number.or(Some("i32"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, expected: [&str; 2]) {
        let variables = [("v", "i32"), ("names", "Vec<String>")];
        let variables = variables
            .into_iter()
            .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
            .collect();
        let ways = ways_out("f", &CellSyntax::of(code), &variables);
        let code: Vec<&str> = ways
            .iter()
            .filter_map(|way| way.split('`').nth(1))
            .collect();
        assert_eq!(code, expected);
    }

    #[test]
    fn types_are_written_out_where_they_are_seen() {
        check(
            "let f = |d| d.trim().len();\nf(\"a\");",
            [
                "fn f(d: &str) -> usize { d.trim().len() }",
                "let f: Box<dyn Fn(&str) -> usize> = Box::new(move |d| d.trim().len());",
            ],
        );
        check(
            "// ü\nlet f = |x| x + v;",
            [
                "fn f(x: i32, v: i32) -> i32 { x + v }",
                "let f: Box<dyn Fn(i32) -> i32> = Box::new(move |x| x + v);",
            ],
        );
        check(
            "let f = |x: f32| 2.0 * x;",
            [
                "fn f(x: f32) -> f32 { 2.0 * x }",
                "let f: Box<dyn Fn(f32) -> f32> = Box::new(move |x: f32| 2.0 * x);",
            ],
        );
        check(
            "let f = move |i: usize| -> usize { names[i].len() };",
            [
                "fn f(i: usize, names: &Vec<String>) -> usize { names[i].len() }",
                "let f: Box<dyn Fn(usize) -> usize> = Box::new(move |i: usize| -> usize { names[i].len() });",
            ],
        );
        check(
            "let (rows, v) = load();\nlet f = |x| rows[x] + v;",
            [
                "fn f(x: …, rows: &…, v: &…) -> … { rows[x] + v }",
                "let f: Box<dyn Fn(…) -> …> = Box::new(move |x| rows[x] + v);",
            ],
        );
        check(
            "let f = |x| x > 3;",
            [
                "fn f(x: i32) -> bool { x > 3 }",
                "let f: Box<dyn Fn(i32) -> bool> = Box::new(move |x| x > 3);",
            ],
        );
    }
}
