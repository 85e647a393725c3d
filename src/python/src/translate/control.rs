//! Blocks: scopes, loops, conditions.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::number::Type;
use super::stages::Stage;
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Statement, StatementKind, Value, each_value};

/// The pattern of a loop, its items, and its names with their types.
type Iterated = (String, String, Vec<(String, Type)>);

impl Translator<'_> {
    /// `with strategy.scope():`.
    pub(crate) fn with(
        &mut self,
        items: &[(Value, Option<Value>)],
        body: &[Statement],
        span: CellSpan,
    ) -> Result<(), Why> {
        let is_open = |(value, _): &(Value, Option<Value>)| {
            value.call().and_then(|call| call.function.name()) == Some("open")
        };
        if items.iter().any(is_open) {
            return Err(
                "`std::fs::read_to_string(\"…\")?` reads a text, `std::fs::write(\"…\", text)?` writes one"
                    .to_owned(),
            );
        }
        if self.is_without_gradients(items) {
            self.block(body);
            return Ok(());
        }
        let [(value, name)] = items else {
            return Err("`with` is translated for `strategy.scope()`".to_owned());
        };
        let Some((object, _)) = value.method("scope").filter(|_| name.is_none()) else {
            let full = self.names.called(value).unwrap_or_default();
            return Err(match full.as_str() {
                "tensorflow.device" => "a device is chosen by a strategy: `OneDeviceStrategy::new(cpu(0))?` and its scope".to_owned(),
                "tensorflow.GradientTape" => "a step by hand is `model.gradients(&batch)?` and `model.apply(gradients)?`".to_owned(),
                _ => "`with` is translated for `strategy.scope()`".to_owned(),
            });
        };
        let name = object.name().ok_or("the strategy is no name")?.to_owned();
        let strategy = match self.things.get(&name) {
            Some(Thing::Strategy | Thing::Missing(_)) => self.value(object)?,
            Some(other) => return Err(format!("`{name}` is {}, no strategy", other.word())),
            None => {
                let rust = self.value(object)?;
                self.free(&name, "a strategy, such as `MirroredStrategy::logical(2)?`")?;
                rust
            }
        };
        let head = CellSpan {
            start: span.start,
            end: value.span.end,
        };
        let first = self.translation.lines.len();
        self.push(format!("scope!({strategy}, {{"), head);
        self.depth += 1;
        self.scopes.push(name);
        self.block(body);
        self.comments_before(span.end);
        self.scopes.pop();
        self.depth -= 1;
        if self.translation.lines[first + 1..]
            .iter()
            .all(|line| line.is_comment)
        {
            // Nothing is left in it.
            self.translation.lines.remove(first);
            for line in &mut self.translation.lines[first..] {
                line.depth = self.depth;
            }
            return Ok(());
        }
        self.push_alone("});");
        Ok(())
    }

    /// A block that is translated as a whole, or not at all: without one of its statements it would do something else.
    pub(crate) fn nested(
        &mut self,
        head: String,
        body: &[Statement],
        span: CellSpan,
    ) -> Result<(), Why> {
        let left = self.translation.left.len();
        let first = self.translation.lines.len();
        let first_line = body.first().map_or(span.end, |it| it.span.start);
        let head_span = CellSpan {
            start: span.start,
            end: first_line.max(span.start + 1),
        };
        // A first line of an `else` starts with any letter: a range that ends in one is empty here.
        let end = self.source(head_span).trim_end().len() + head_span.start;
        self.push(
            head,
            CellSpan {
                start: span.start,
                end,
            },
        );
        self.depth += 1;
        self.block(body);
        self.depth -= 1;
        match self.translation.left.get(left) {
            None => Ok(()),
            Some(found) => {
                let why = format!(
                    "line {} in it is not translated: {}",
                    found.lines.0, found.why
                );
                self.translation.left.truncate(left);
                // The comment on the whole block says it.
                let lines = self.translation.lines.split_off(first);
                let others = lines
                    .into_iter()
                    .filter(|line| !line.text.starts_with("// Not translated, "));
                self.translation.lines.extend(others);
                Err(why)
            }
        }
    }

    /// `for target in items:`.
    pub(crate) fn for_loop(
        &mut self,
        statement: &Statement,
        target: &Value,
        items: &Value,
        body: &[Statement],
    ) -> Result<(), Why> {
        if only_configures(body) {
            see_whole(items);
            self.idle(statement.span, "memory of a GPU is taken as it is needed");
            self.skip_comments(statement.span.end);
            return Ok(());
        }
        if let Some(done) = self.torch_loop(statement, items, body) {
            return done;
        }
        if let Some(tape) = self.tape_in(body) {
            see_whole(items);
            return self.tape_loop(statement, items, body, tape);
        }
        let (pattern, list, kinds) = self.iterated(target, items)?;
        let mut made = self.made_in(body);
        for (name, kind) in kinds {
            made.insert(name.clone());
            self.things.insert(name, Thing::of(kind));
        }
        self.loop_over_classes(target, items);
        let made = (made, self.line(statement.span.start));
        self.inner_block(
            format!("for {pattern} in {list} {{"),
            body,
            statement.span,
            made,
        )?;
        self.push_alone("}");
        Ok(())
    }

    /// The pattern and the items of a loop, and the types of its names.
    fn iterated(&mut self, target: &Value, items: &Value) -> Result<Iterated, Why> {
        if let Some(inner) = self.in_progress_bar(items) {
            let (pattern, list, kinds) = self.iterated(target, &inner)?;
            return Ok((pattern, format!("track({list})"), kinds));
        }
        let call = items.call();
        let called = call
            .and_then(|call| call.function.name())
            .filter(|name| !self.names.has(name));
        match (target.name(), called, call) {
            (Some(name), Some("range"), Some(call)) => {
                call.see_all();
                let bounds = self.range(call.arguments.as_slice())?;
                let pattern = match self.uses.get(name).is_some_and(|uses| *uses > 1) {
                    true => text::name(name),
                    false => format!("_{}", name.trim_start_matches('_')),
                };
                let pattern = if pattern == "_" || name == "_" {
                    "_".to_owned()
                } else {
                    pattern
                };
                Ok((pattern, bounds, vec![(name.to_owned(), Type::Int)]))
            }
            (None, Some("enumerate"), Some(call)) => {
                let (Kind::Tuple(names), [list]) = (&target.kind, call.arguments.as_slice()) else {
                    return Err("this `enumerate` is not translated".to_owned());
                };
                call.see_all();
                let [index, item] = names.as_slice() else {
                    return Err("this `enumerate` is not translated".to_owned());
                };
                let (index, item) = (
                    index.name().ok_or("a name is expected")?,
                    item.name().ok_or("a name is expected")?,
                );
                let bar = self.in_progress_bar(list);
                let list = bar.as_ref().unwrap_or(list);
                let kind = self.kind_of_items(list);
                let mut list = format!("{}.iter()", self.iterable(list)?);
                if bar.is_some() {
                    list = format!("track({list})");
                }
                let names = vec![(index.to_owned(), Type::Int), (item.to_owned(), kind)];
                Ok((
                    format!("({}, {})", text::name(index), text::name(item)),
                    format!("{list}.enumerate()"),
                    names,
                ))
            }
            (None, Some("zip"), Some(call)) if let Kind::Tuple(names) = &target.kind => {
                self.zipped(names, call)
            }
            (Some(name), _, _) => {
                let numbers = self.numbers(items);
                let kind = numbers.unwrap_or_else(|| self.kind_of_items(items));
                let list = self.iterable(items)?;
                if numbers.is_some() || self.classes_in(items).is_some() {
                    // Numbers are copied: what they are given to takes no reference.
                    let list = list
                        .strip_prefix("vec!")
                        .map_or_else(|| format!("{list}.iter().copied()"), str::to_owned);
                    return Ok((text::name(name), list, vec![(name.to_owned(), kind)]));
                }
                Ok((
                    text::name(name),
                    format!("&{list}"),
                    vec![(name.to_owned(), kind)],
                ))
            }
            _ => Err(self.of_loop(items)),
        }
    }

    /// `for text, label in zip(texts, labels):` of two lists.
    fn zipped(&mut self, names: &[Value], call: &Call) -> Result<Iterated, Why> {
        const WHY: &str = "a loop over `zip(…)` is translated for two lists of the cell";
        let ([a, b], [first, second]) = (names, call.arguments.as_slice()) else {
            return Err(WHY.to_owned());
        };
        let (a, b) = (a.name().ok_or(WHY)?, b.name().ok_or(WHY)?);
        call.see_all();
        let kinds = [(a, first), (b, second)]
            .map(|(name, list)| (name.to_owned(), self.kind_of_items(list)));
        let second = match self.classes_in(second) {
            Some(_) => format!("{}.iter().copied()", self.iterable(second)?),
            None => format!("&{}", self.iterable(second)?),
        };
        let copied = match self.classes_in(first) {
            Some(_) => ".copied()",
            None => "",
        };
        let first = self.iterable(first)?;
        Ok((
            format!("({}, {})", text::name(a), text::name(b)),
            format!("{first}.iter(){copied}.zip({second})"),
            kinds.into(),
        ))
    }

    /// The numbers of a loop over a list that is written out, or of one whose line has nothing but numbers.
    pub(crate) fn numbers(&self, items: &Value) -> Option<Type> {
        let of_number = |it: &Value| match it.kind {
            Kind::Int(_) => Some(Type::Int),
            Kind::Float(_) => Some(Type::Float),
            _ => None,
        };
        if let Some(name) = items.name() {
            let begin = format!("let {} = vec![", text::name(name));
            let mut lines = self.translation.lines.iter().rev();
            let inside = lines.find_map(|it| {
                // A comment may stand behind it.
                let code = it.text.split(" // ").next()?;
                code.strip_prefix(&begin)?.strip_suffix("];")
            })?;
            let mut values = inside.split(", ");
            let is_float = values
                .clone()
                .all(|it| it.parse::<f64>().is_ok() && it.contains(['.', 'e']));
            let is_int = values.all(|it| it.parse::<i64>().is_ok());
            return match (is_float, is_int) {
                (true, _) => Some(Type::Float),
                (_, true) => Some(Type::Int),
                _ => None,
            };
        }
        let mut kinds = items.elements()?.iter().map(of_number);
        let first = kinds.next()??;
        kinds.all(|it| it == Some(first)).then_some(first)
    }

    fn iterable(&mut self, items: &Value) -> Result<String, Why> {
        let is_list = match items.name() {
            Some(name) => matches!(
                self.things.get(name),
                Some(Thing::List | Thing::Texts | Thing::Floats(_) | Thing::Missing(_))
                    | Some(Thing::Staged(
                        Stage::Probabilities | Stage::Classes | Stage::Labels | Stage::Scores,
                        _
                    ))
            ),
            None => matches!(items.kind, Kind::List(_)) || is_of_a_history(items),
        };
        match is_list {
            true => self.value(items),
            false => Err(self.of_loop(items)),
        }
    }

    fn kind_of_items(&self, items: &Value) -> Type {
        let is_texts = match items.name() {
            Some(name) => matches!(self.things.get(name), Some(Thing::Texts)),
            None => items
                .elements()
                .is_some_and(|it| it.iter().all(|it| it.text().is_some())),
        };
        if is_texts { Type::Text } else { Type::Unknown }
    }

    /// `range(…)` as Rust's.
    fn range(&mut self, bounds: &[Value]) -> Result<String, Why> {
        let mut written = Vec::new();
        for bound in bounds {
            let typed = self.typed(bound)?;
            written.push(typed.operand());
        }
        match (written.as_slice(), bounds.get(2).map(Value::integer)) {
            ([end], _) => Ok(format!("0..{end}")),
            ([start, end], _) => Ok(format!("{start}..{end}")),
            ([start, end, step], Some(Some(by))) if by > 0 => {
                Ok(format!("({start}..{end}).step_by({step})"))
            }
            _ => Err("the step of `range` is not a positive number that is written".to_owned()),
        }
    }

    /// `if … elif … else`.
    pub(crate) fn branches(
        &mut self,
        branches: &[(Option<Value>, Vec<Statement>)],
        span: CellSpan,
    ) -> Result<(), Why> {
        if branches.iter().all(|(_, body)| only_configures(body)) {
            branches
                .iter()
                .filter_map(|(it, _)| it.as_ref())
                .for_each(see_whole);
            self.idle(span, "memory of a GPU is taken as it is needed");
            self.skip_comments(span.end);
            return Ok(());
        }
        // `if __name__ == "__main__":` is always true in a cell.
        if let [(Some(condition), body)] = branches
            && let Kind::Binary(left, "==", right) = &condition.kind
            && left.name() == Some("__name__")
            && right.text() == Some("__main__")
        {
            self.block(body);
            return Ok(());
        }
        for (index, (condition, body)) in branches.iter().enumerate() {
            let word = if index == 0 { "if" } else { "} else if" };
            let head = match condition {
                Some(condition) => format!("{word} {} {{", self.condition(condition)?.rust),
                None => "} else {".to_owned(),
            };
            let start = condition
                .as_ref()
                .map_or(body.first().map_or(span.start, |it| it.span.start), |it| {
                    it.span.start
                });
            let whole = CellSpan {
                start,
                end: span.end,
            };
            let made = (self.made_in(body), self.line(span.start));
            self.inner_block(head, body, whole, made)?;
        }
        self.push_alone("}");
        Ok(())
    }
}

/// Whether a block only sets how GPUs take their memory, and says so.
pub(crate) fn only_configures(body: &[Statement]) -> bool {
    let mut sets = false;
    each_value(body, &mut |value| {
        if let Kind::Attribute(_, name) = &value.kind {
            sets |= name == "set_memory_growth";
        }
    });
    fn is_of_it(statement: &Statement) -> bool {
        match &statement.kind {
            StatementKind::Expression(value) => {
                let is_print = value
                    .call()
                    .is_some_and(|call| call.function.name() == Some("print"));
                let path = value.call().and_then(|call| call.function.path());
                is_print || path.is_some_and(|path| path.contains(&"config"))
            }
            StatementKind::Nothing => true,
            StatementKind::Assign(_, value) => {
                let path = value.call().and_then(|call| call.function.path());
                path.is_some_and(|path| path.contains(&"config"))
            }
            StatementKind::For(..) | StatementKind::If(_) | StatementKind::Try(_) => statement
                .blocks()
                .iter()
                .all(|block| block.iter().all(is_of_it)),
            _ => false,
        }
    }
    sets && body.iter().all(is_of_it)
}

/// `history.history["loss"]`
fn is_of_a_history(items: &Value) -> bool {
    let Kind::Index(object, name) = &items.kind else {
        return false;
    };
    let is_history = matches!(&object.kind, Kind::Attribute(_, name) if name == "history");
    is_history && name.text().is_some()
}
