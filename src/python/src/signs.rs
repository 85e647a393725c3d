//! Whether a text that parses as Python is Python. Short texts are often both: `f(1)`, `x = 5` and `tf.constant(1)` are Rust
//! too, as far as its grammar goes.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{self as ast, Expr, Mod, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse};
use ruff_text_size::Ranged;
use stratoscope_diagnostics::on_deep_stack;

use crate::Known;
use crate::names;
use crate::parse::{MOST_READ, STACK};

/// What shows that a text is Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// Nothing but spellings, such as `'text'` and `and`.
    Spelling,
    /// What means something else in Rust: a named argument, a name that is given a value without `let`, `True`.
    Words,
    /// A library of Python by its usual name: `np.array`.
    Library,
    /// What Rust has not: `import`, a block, a comprehension, a slice.
    Syntax,
}

/// A text that parses as Python.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The clearest sign.
    pub sign: Sign,
    /// It has `and`, `or`, `not` or `is`, which no Rust has.
    pub has_operators: bool,
    /// The bytes where its statements end.
    pub ends: Vec<usize>,
}

/// Reads a text; `None` where it does not parse as Python.
pub fn reading(text: &str, known: &Known) -> Option<Reading> {
    if text.len() > MOST_READ || text.trim().is_empty() {
        return None;
    }
    on_deep_stack("python", STACK, || {
        let parsed = parse(text, ParseOptions::from(Mode::Ipython)).ok()?;
        let Mod::Module(module) = parsed.syntax() else {
            return None;
        };
        let mut signs = Signs {
            text,
            known,
            bound: BTreeSet::new(),
            sign: Sign::Spelling,
            has_operators: false,
            is_rust: false,
        };
        signs.visit_body(&module.body);
        let reading = Reading {
            sign: signs.sign,
            has_operators: signs.has_operators,
            ends: module.body.iter().map(|it| it.end().to_usize()).collect(),
        };
        (!signs.is_rust).then_some(reading)
    })
}

/// Looks for signs.
struct Signs<'a> {
    text: &'a str,
    known: &'a Known,
    /// Names that the text gives values to.
    bound: BTreeSet<String>,
    sign: Sign,
    /// `and`, `or`, `not`, `is`.
    has_operators: bool,
    /// It says what only Rust says.
    is_rust: bool,
}

fn is_type_of_rust(annotation: &Expr) -> bool {
    const TYPES: &[&str] = &[
        "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f32", "f64",
        "String",
    ];
    matches!(annotation, Expr::Name(it) if TYPES.contains(&it.id.as_str()))
}

impl Signs<'_> {
    fn see(&mut self, sign: Sign) {
        self.sign = self.sign.max(sign);
    }

    /// A name that is given a value.
    fn binds(&mut self, target: &Expr) {
        match target {
            Expr::Name(it) => {
                if !self.known.variables.contains_key(it.id.as_str()) {
                    self.see(Sign::Words);
                }
                self.bound.insert(it.id.to_string());
            }
            Expr::Tuple(it) if !it.parenthesized => self.see(Sign::Syntax),
            _ => {}
        }
    }

    fn has_name(&self, name: &str) -> bool {
        self.known.variables.contains_key(name) || self.bound.contains(name)
    }

    fn source(&self, it: &impl Ranged) -> &str {
        let range = it.range();
        self.text
            .get(range.start().to_usize()..range.end().to_usize())
            .unwrap_or_default()
    }
}

impl<'a> Visitor<'a> for Signs<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(it) => it.targets.iter().for_each(|target| self.binds(target)),
            Stmt::AugAssign(it) => match it.op {
                ast::Operator::Pow | ast::Operator::FloorDiv | ast::Operator::MatMult => {
                    self.see(Sign::Syntax);
                }
                _ => {}
            },
            // `x: i32 = 5` lacks its `let`.
            Stmt::AnnAssign(it) if is_type_of_rust(&it.annotation) => self.is_rust = true,
            Stmt::Pass(_) => self.see(Sign::Words),
            Stmt::Expr(_)
            | Stmt::Return(_)
            | Stmt::Break(_)
            | Stmt::Continue(_)
            | Stmt::TypeAlias(_)
            | Stmt::IpyEscapeCommand(_) => {}
            _ => self.see(Sign::Syntax),
        }
        // What is clear needs no further look.
        if self.sign < Sign::Syntax {
            walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, value: &'a Expr) {
        match value {
            Expr::Lambda(_)
            | Expr::ListComp(_)
            | Expr::SetComp(_)
            | Expr::DictComp(_)
            | Expr::Generator(_)
            | Expr::If(_)
            | Expr::Named(_)
            | Expr::Slice(_)
            | Expr::Await(_)
            | Expr::Yield(_)
            | Expr::YieldFrom(_)
            | Expr::EllipsisLiteral(_) => self.see(Sign::Syntax),
            // `{ x }` and `*x` are Rust too.
            Expr::Set(_) | Expr::Starred(_) => self.see(Sign::Words),
            Expr::Dict(it) if !it.items.is_empty() => self.see(Sign::Syntax),
            Expr::Tuple(it) if !it.parenthesized => self.see(Sign::Syntax),
            Expr::BinOp(it) => match it.op {
                ast::Operator::MatMult => self.see(Sign::Syntax),
                ast::Operator::Pow | ast::Operator::FloorDiv => self.see(Sign::Words),
                _ => {}
            },
            Expr::Compare(it) => {
                self.has_operators |= it
                    .ops
                    .iter()
                    .any(|op| matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot));
                let is_in = |op: &ast::CmpOp| matches!(op, ast::CmpOp::In | ast::CmpOp::NotIn);
                if it.ops.len() > 1 || it.ops.iter().any(is_in) {
                    self.see(Sign::Syntax);
                }
            }
            Expr::BoolOp(_) => self.has_operators = true,
            Expr::UnaryOp(it) if it.op == ast::UnaryOp::Not => self.has_operators = true,
            Expr::BooleanLiteral(_) => self.see(Sign::Words),
            Expr::StringLiteral(it) => {
                let source = self.source(it);
                let is_long = source.contains("\"\"\"") || source.contains("'''");
                if is_long || it.value.is_implicit_concatenated() {
                    self.see(Sign::Syntax);
                }
            }
            Expr::Call(it) => {
                let has_named = !it.arguments.keywords.is_empty();
                let is_print = matches!(&*it.func, Expr::Name(name) if name.id.as_str() == "print");
                if has_named || is_print {
                    self.see(Sign::Words);
                }
                if it.arguments.keywords.iter().any(|it| it.arg.is_none()) {
                    self.see(Sign::Syntax);
                }
            }
            Expr::Attribute(it) => {
                if let Expr::Name(root) = &*it.value
                    && !self.has_name(root.id.as_str())
                    && names::is_library(root.id.as_str(), it.attr.as_str())
                {
                    self.see(Sign::Library);
                }
            }
            _ => {}
        }
        if self.sign < Sign::Syntax {
            walk_expr(self, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clearest_sign() {
        let known = Known {
            variables: [("losses".to_owned(), "Vec<f64>".to_owned())].into(),
        };
        for (text, expected) in [
            ("f(1)", Some(Sign::Spelling)),
            ("x.f('a') and y", Some(Sign::Spelling)),
            ("f(1)\ng(2)", Some(Sign::Spelling)),
            ("x = 5", Some(Sign::Words)),
            ("losses = g(2)", Some(Sign::Spelling)),
            ("f(x, y=2)", Some(Sign::Words)),
            ("print(x)", Some(Sign::Words)),
            ("2 ** 10", Some(Sign::Words)),
            ("7 // 2", Some(Sign::Words)),
            ("tf.constant(1)", Some(Sign::Library)),
            ("a = np.zeros(3)", Some(Sign::Library)),
            ("layers.Dense(3)", Some(Sign::Library)),
            ("layers.push(3)", Some(Sign::Spelling)),
            ("losses.Huber", Some(Sign::Spelling)),
            ("import os", Some(Sign::Syntax)),
            ("a, b = f(x)", Some(Sign::Syntax)),
            ("[len(t) for t in texts]", Some(Sign::Syntax)),
            ("x[1:3]", Some(Sign::Syntax)),
            ("f(**options)", Some(Sign::Syntax)),
            ("{ x }", Some(Sign::Words)),
            ("x: i32 = 5", None),
            ("x: int = 5", Some(Sign::Syntax)),
            ("let x = 1;", None),
            ("f(x)?;", None),
            ("compile!(model)", None),
            ("vec![1]", None),
        ] {
            let found = reading(text, &known).map(|it| it.sign);
            assert_eq!(found, expected, "{text}");
        }
    }
}
