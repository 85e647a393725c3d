//! From the parser's tree to the model. Deeper nesting than any program has becomes `Other`.

use ruff_python_ast as ast;
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};
use stratoscope_diagnostics::CellSpan;

use crate::model::{
    Call, Class, Comprehension, Function, Handler, Keyword, Kind, Piece, Seen, Statement,
    StatementKind, Try, Value,
};
use crate::parse::span;

mod imports;

use imports::{imported, imported_from};

/// Deeper values and blocks are not looked into.
const MOST_DEPTH: usize = 60;

/// Reads the tree of one text.
pub(crate) struct Lowering<'a> {
    text: &'a str,
    depth: usize,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, depth: 0 }
    }

    /// The statements of a block.
    pub(crate) fn block(&mut self, block: &[Stmt]) -> Vec<Statement> {
        if self.depth >= MOST_DEPTH {
            return Vec::new();
        }
        self.depth += 1;
        let statements = block.iter().map(|it| self.statement(it)).collect();
        self.depth -= 1;
        statements
    }

    fn statement(&mut self, statement: &Stmt) -> Statement {
        Statement {
            span: span(statement),
            kind: self.statement_kind(statement),
        }
    }

    fn statement_kind(&mut self, statement: &Stmt) -> StatementKind {
        match statement {
            Stmt::Import(it) => StatementKind::Import(it.names.iter().map(imported).collect()),
            Stmt::ImportFrom(it) => StatementKind::Import(imported_from(it)),
            Stmt::Assign(it) => {
                let targets = it.targets.iter().map(|target| self.value(target));
                StatementKind::Assign(targets.collect(), self.value(&it.value))
            }
            Stmt::AnnAssign(it) => match &it.value {
                Some(value) => {
                    StatementKind::Assign(vec![self.value(&it.target)], self.value(value))
                }
                None => StatementKind::Nothing,
            },
            Stmt::AugAssign(it) => {
                let (target, value) = (self.value(&it.target), self.value(&it.value));
                StatementKind::Augment(target, it.op.as_str(), value)
            }
            Stmt::Expr(it) => match &*it.value {
                Expr::EllipsisLiteral(_) => StatementKind::Nothing,
                Expr::StringLiteral(_) => StatementKind::Nothing,
                value => StatementKind::Expression(self.value(value)),
            },
            Stmt::With(it) if !it.is_async => {
                let items = it.items.iter().map(|item| {
                    let name = item.optional_vars.as_deref();
                    (
                        self.value(&item.context_expr),
                        name.map(|it| self.value(it)),
                    )
                });
                let items = items.collect();
                StatementKind::With(items, self.block(&it.body))
            }
            Stmt::For(it) if !it.is_async && it.orelse.is_empty() => {
                let (target, items) = (self.value(&it.target), self.value(&it.iter));
                StatementKind::For(target, items, self.block(&it.body))
            }
            Stmt::While(it) if it.orelse.is_empty() => {
                StatementKind::While(self.value(&it.test), self.block(&it.body))
            }
            Stmt::If(it) => {
                let mut branches = vec![(Some(self.value(&it.test)), self.block(&it.body))];
                for clause in &it.elif_else_clauses {
                    let test = clause.test.as_ref().map(|it| self.value(it));
                    branches.push((test, self.block(&clause.body)));
                }
                StatementKind::If(branches)
            }
            Stmt::Try(it) => StatementKind::Try(self.attempt(it)),
            Stmt::FunctionDef(it) if !it.is_async => StatementKind::Function(self.function(it)),
            Stmt::ClassDef(it) => {
                let bases = it.arguments.iter().flat_map(|it| it.args.iter());
                StatementKind::Class(Class {
                    name: it.name.to_string(),
                    bases: bases.map(|base| self.value(base)).collect(),
                    body: self.block(&it.body),
                })
            }
            Stmt::Return(it) => {
                StatementKind::Return(it.value.as_deref().map(|value| self.value(value)))
            }
            Stmt::Raise(_) => StatementKind::Raise,
            Stmt::Assert(it) => {
                let text = it.msg.as_deref().map(|it| self.value(it));
                StatementKind::Assert(self.value(&it.test), text)
            }
            Stmt::Delete(it) => StatementKind::Delete(self.values(&it.targets)),
            Stmt::Pass(_) => StatementKind::Nothing,
            Stmt::Break(_) => StatementKind::Leave("break"),
            Stmt::Continue(_) => StatementKind::Leave("continue"),
            Stmt::IpyEscapeCommand(it) => StatementKind::Escape(it.value.to_string()),
            other => StatementKind::Other(words_of_statement(other)),
        }
    }

    fn attempt(&mut self, it: &ast::StmtTry) -> Try {
        let mut handlers = Vec::new();
        for handler in &it.handlers {
            let ast::ExceptHandler::ExceptHandler(handler) = handler;
            let errors = match handler.type_.as_deref() {
                Some(Expr::Tuple(many)) => many.elts.iter().map(|it| self.source(it)).collect(),
                Some(one) => vec![self.source(one)],
                None => Vec::new(),
            };
            handlers.push(Handler {
                errors,
                name: handler.name.as_ref().map(ToString::to_string),
                body: self.block(&handler.body),
            });
        }
        Try {
            body: self.block(&it.body),
            handlers,
            has_more: it.is_star || !it.orelse.is_empty() || !it.finalbody.is_empty(),
        }
    }

    fn function(&mut self, it: &ast::StmtFunctionDef) -> Function {
        let given = &it.parameters;
        let parameters = given
            .posonlyargs
            .iter()
            .chain(&given.args)
            .chain(&given.kwonlyargs);
        let parameters = parameters.map(|parameter| {
            let default = parameter.default.as_deref().map(|it| self.value(it));
            (parameter.parameter.name.to_string(), default)
        });
        Function {
            name: it.name.to_string(),
            parameters: parameters.collect(),
            has_more: given.vararg.is_some() || given.kwarg.is_some(),
            decorators: it
                .decorator_list
                .iter()
                .map(|it| self.value(&it.expression))
                .collect(),
            body: self.block(&it.body),
        }
    }

    fn source(&self, it: &impl Ranged) -> String {
        let span = span(it);
        let source = self.text.get(span.start..span.end);
        source.unwrap_or_default().to_owned()
    }

    fn values(&mut self, values: &[Expr]) -> Vec<Value> {
        values.iter().map(|value| self.value(value)).collect()
    }

    fn value(&mut self, value: &Expr) -> Value {
        if self.depth >= MOST_DEPTH {
            let kind = Kind::Other("deeper nesting than is read");
            return Value {
                span: span(value),
                kind,
            };
        }
        self.depth += 1;
        let kind = self.kind(value);
        self.depth -= 1;
        Value {
            span: span(value),
            kind,
        }
    }

    fn optional(&mut self, value: &Option<Box<Expr>>) -> Option<Box<Value>> {
        value.as_deref().map(|it| self.boxed(it))
    }

    fn boxed(&mut self, value: &Expr) -> Box<Value> {
        Box::new(self.value(value))
    }

    fn kind(&mut self, value: &Expr) -> Kind {
        match value {
            Expr::NoneLiteral(_) => Kind::None,
            Expr::BooleanLiteral(it) => Kind::Bool(it.value),
            Expr::NumberLiteral(it) => self.number(it),
            Expr::StringLiteral(it) => Kind::Text(it.value.to_str().to_owned()),
            Expr::FString(it) => self.format(it),
            Expr::List(it) => Kind::List(self.values(&it.elts)),
            Expr::Tuple(it) => Kind::Tuple(self.values(&it.elts)),
            Expr::Dict(it) => {
                let items = it.items.iter().map(|item| {
                    let key = item.key.as_ref().map(|key| self.value(key));
                    Some((key?, self.value(&item.value)))
                });
                match items.collect() {
                    Some(items) => Kind::Dict(items),
                    None => Kind::Other("`**` in a dictionary"),
                }
            }
            Expr::Name(it) => Kind::Name(it.id.to_string()),
            Expr::Attribute(it) => Kind::Attribute(self.boxed(&it.value), it.attr.to_string()),
            Expr::Subscript(it) => Kind::Index(self.boxed(&it.value), self.boxed(&it.slice)),
            Expr::Slice(it) if it.step.is_none() => {
                Kind::Slice(self.optional(&it.lower), self.optional(&it.upper))
            }
            Expr::Call(it) => Kind::Call(Box::new(self.call(it))),
            Expr::UnaryOp(it) => match it.op {
                ast::UnaryOp::Not => Kind::Unary("not", self.boxed(&it.operand)),
                ast::UnaryOp::USub => Kind::Unary("-", self.boxed(&it.operand)),
                ast::UnaryOp::UAdd => self.kind(&it.operand),
                ast::UnaryOp::Invert => Kind::Other("`~`"),
            },
            Expr::BinOp(it) => {
                Kind::Binary(self.boxed(&it.left), it.op.as_str(), self.boxed(&it.right))
            }
            Expr::BoolOp(it) => self.condition(it),
            Expr::Compare(it) => match (&*it.ops, &*it.comparators) {
                ([op], [right]) => {
                    Kind::Binary(self.boxed(&it.left), op.as_str(), self.boxed(right))
                }
                _ => Kind::Other("a chain of comparisons"),
            },
            Expr::ListComp(it) => self.comprehension(&it.elt, &it.generators),
            Expr::Generator(it) => self.comprehension(&it.elt, &it.generators),
            Expr::Lambda(it) => {
                let parameters = it
                    .parameters
                    .iter()
                    .flat_map(|it| it.iter_non_variadic_params());
                let names = parameters.map(|it| it.parameter.name.to_string()).collect();
                Kind::Lambda(names, self.boxed(&it.body))
            }
            Expr::If(it) => Kind::Choice(Box::new([
                self.value(&it.test),
                self.value(&it.body),
                self.value(&it.orelse),
            ])),
            other => Kind::Other(words_of_value(other)),
        }
    }

    fn condition(&mut self, it: &ast::ExprBoolOp) -> Kind {
        /// A longer condition would be nested as deep.
        const MOST: usize = 50;
        let op = it.op.as_str();
        if it.values.len() > MOST {
            return Kind::Other("a long condition");
        }
        let mut values = self.values(&it.values).into_iter();
        let Some(first) = values.next() else {
            return Kind::Other("a condition");
        };
        let joined = values.fold(first, |left, right| Value {
            span: CellSpan {
                start: left.span.start,
                end: right.span.end,
            },
            kind: Kind::Binary(Box::new(left), op, Box::new(right)),
        });
        joined.kind
    }

    fn comprehension(&mut self, element: &Expr, generators: &[ast::Comprehension]) -> Kind {
        match generators {
            [one] if one.ifs.is_empty() && !one.is_async => {
                Kind::Comprehension(Box::new(Comprehension {
                    element: self.value(element),
                    target: self.value(&one.target),
                    items: self.value(&one.iter),
                }))
            }
            _ => Kind::Other("a list made by several loops or with a condition"),
        }
    }

    /// Numbers are written as in Python, which Rust reads too; but `1.` and `.5` get their zero.
    fn number(&self, it: &ast::ExprNumberLiteral) -> Kind {
        let source = self.source(it).to_lowercase();
        match &it.value {
            ast::Number::Int(_) => {
                let is_zeros = source.len() > 1 && source.trim_matches(['0', '_']).is_empty();
                Kind::Int(if is_zeros { "0".to_owned() } else { source })
            }
            ast::Number::Float(number) => Kind::Float(float(&source, *number)),
            ast::Number::Complex { .. } => Kind::Other("a complex number"),
        }
    }

    fn format(&mut self, it: &ast::ExprFString) -> Kind {
        let mut pieces = Vec::new();
        for part in &it.value {
            match part {
                ast::FStringPart::Literal(text) => pieces.push(Piece::Text(text.value.to_string())),
                ast::FStringPart::FString(part) => {
                    for element in &part.elements {
                        match element {
                            ast::InterpolatedStringElement::Literal(text) => {
                                pieces.push(Piece::Text(text.value.to_string()));
                            }
                            ast::InterpolatedStringElement::Interpolation(it) => {
                                if it.debug_text.is_some() {
                                    return Kind::Other("`{x=}` in a text");
                                }
                                let spec = it.format_spec.as_ref().map(|it| self.source(&**it));
                                pieces.push(Piece::Value(self.value(&it.expression), spec));
                            }
                        }
                    }
                }
            }
        }
        Kind::Format(pieces)
    }

    fn call(&mut self, it: &ast::ExprCall) -> Call {
        let (mut starred, mut spread, mut count) = (None, None, 0);
        let mut arguments = Vec::new();
        for argument in &it.arguments.args {
            match argument {
                Expr::Starred(it) => {
                    starred = starred.or(Some(span(it)));
                    count += 1;
                }
                argument => arguments.push(self.value(argument)),
            }
        }
        let mut keywords = Vec::new();
        for keyword in &it.arguments.keywords {
            let Some(name) = &keyword.arg else {
                starred = starred.or(Some(span(keyword)));
                count += 1;
                spread = match (&keyword.value, count) {
                    (Expr::Name(it), 1) => Some(it.id.to_string()),
                    _ => None,
                };
                continue;
            };
            keywords.push(Keyword {
                name: name.to_string(),
                name_span: span(name),
                span: span(keyword),
                drop_span: self.with_its_comma(keyword.range()),
                value: self.value(&keyword.value),
            });
        }
        Call {
            function: self.value(&it.func),
            arguments,
            keywords,
            starred,
            spread,
            span: span(it),
            seen: Seen::default(),
        }
    }

    /// An argument and the comma before it, or after it where it is the first one.
    fn with_its_comma(&self, range: TextRange) -> CellSpan {
        let (start, end) = (range.start().to_usize(), range.end().to_usize());
        let before = self.text[..start].trim_end();
        if before.ends_with(',') {
            return CellSpan {
                start: before.len() - 1,
                end,
            };
        }
        let after = self.text[end..].trim_start();
        let end = match after.strip_prefix(',') {
            Some(rest) => self.text.len() - rest.trim_start_matches(' ').len(),
            None => end,
        };
        CellSpan { start, end }
    }
}

fn float(source: &str, number: f64) -> String {
    let has_form = source.starts_with(|it: char| it.is_ascii_digit())
        && !source.ends_with('.')
        && !source.contains(".e")
        && source.trim_start_matches('0').len() + 1 >= source.len();
    match has_form {
        true => source.to_owned(),
        false => format!("{number:?}"),
    }
}

fn words_of_statement(statement: &Stmt) -> &'static str {
    match statement {
        Stmt::Global(_) | Stmt::Nonlocal(_) => "`global`",
        Stmt::Match(_) => "`match`",
        Stmt::For(_) | Stmt::While(_) => "a loop with `else`, or an asynchronous one",
        Stmt::With(_) | Stmt::FunctionDef(_) => "`async`",
        _ => "a statement of Python",
    }
}

fn words_of_value(value: &Expr) -> &'static str {
    match value {
        Expr::Set(_) | Expr::SetComp(_) => "a set",
        Expr::DictComp(_) => "a dictionary made by a loop",
        Expr::Slice(_) => "a range of an index",
        Expr::Starred(_) => "`*values`",
        Expr::Await(_) | Expr::Yield(_) | Expr::YieldFrom(_) => "a generator",
        Expr::BytesLiteral(_) => "bytes",
        Expr::Named(_) => "`:=`",
        Expr::EllipsisLiteral(_) => "`...`",
        _ => "an expression of Python",
    }
}
