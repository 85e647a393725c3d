//! A cell that runs statement by statement, so that an error, a panic or an interrupt loses as few variables as Rust allows.
//!
//! evcxr's source of a cell keeps the cell's own variables behind its last statement. Here each
//! statement is a closure of its own that hands out what it binds, and what follows it is a labeled
//! block: a statement that ends the cell leaves its block, and behind each block the variables before
//! it are kept.
//!
//! ```text
//! 'cell_0: {
//!     let (a,) = match run(|| { let a = f()?; Ok((a,)) }) { Some(it) => it, None => break 'cell_0 };
//!     'cell_1: {
//!         let () = match run(|| { g(&a)?; Ok(()) }) { Some(it) => it, None => break 'cell_1 };
//!     }
//!     store.keep("a", a);
//! }
//! ```
//!
//! In a cell that waits for futures, such a statement is an asynchronous block: `run_async(async { … }).await`.
//!
//! A variable that a statement moves cannot be kept behind the block. Until then it is kept where a
//! statement ends the cell; so is one of an earlier cell that this cell shadows or moves.
//! [`super::attempts`] falls back where rustc does not accept the result.
//!
//! The cell's own lines stay where they are; generated code is on the lines that mark the statements, and behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::evcxr_contract::{
    CATCH, CLOSING, OPENING, PUT as PACK, TAKE as LOAD, WAITS, WAITS_CLOSING,
};
use super::generated::typed;
use super::state::Known;
use stratoscope_cell_text::rewrite::statement::{self, Facts};

const LABEL: &str = "'cell_";

/// With more statements a cell is compiled as a whole.
const MOST_STATEMENTS: usize = 100;

/// Types whose values are copied wherever they seem to be moved.
const COPIED: [&str; 17] = [
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
    "f64", "bool", "char", "&str",
];

/// The source, and what its lines are.
#[derive(Clone, Debug)]
pub struct Staged {
    /// To be compiled.
    pub text: String,
    /// The first line that is another one than evcxr's, counted from 1.
    first_moved: usize,
    /// evcxr's lines for those from there on.
    moved: Vec<usize>,
    /// Lines that keep a variable of the cell.
    pub packs: BTreeMap<usize, String>,
    /// Lines from here on put back what was there before.
    pub put_back: usize,
    /// Lines that begin a statement, and which, and end the one before it. The last line only ends one.
    marks: BTreeMap<usize, usize>,
    /// What the cell assigns to.
    pub assigned: BTreeSet<String>,
}

impl Staged {
    /// The statement that ends on this line, if it is one of ours.
    pub fn ends_on(&self, line: usize) -> Option<usize> {
        self.marks.get(&line).map(|it| it.saturating_sub(1))
    }

    /// The statement that this line is of.
    pub fn statement_of(&self, line: usize) -> Option<usize> {
        self.marks.range(..=line).next_back().map(|(_, it)| *it)
    }

    /// evcxr's number of a line, both counted from 1.
    pub fn line_of_evcxr(&self, line: usize) -> usize {
        match line.checked_sub(self.first_moved) {
            Some(behind) => self.moved.get(behind).copied().unwrap_or(line),
            None => line,
        }
    }
}

#[cfg(test)]
impl Staged {
    /// Of no text.
    pub fn for_tests<const N: usize>(
        marks: [(usize, usize); N],
        packs: [(usize, &str); N],
        put_back: usize,
        assigned: [&str; N],
    ) -> Self {
        Self {
            text: String::new(),
            first_moved: 9,
            moved: vec![9; 5],
            packs: packs.map(|(line, name)| (line, name.to_owned())).into(),
            put_back,
            marks: marks.into(),
            assigned: assigned.map(str::to_owned).into(),
        }
    }
}

/// A statement of the cell.
struct Statement {
    /// Its mark, counted from 0.
    mark: usize,
    /// Its lines in the cell, as the mark has them.
    lines: String,
    facts: Facts,
}

/// A variable that is to be kept.
#[derive(Clone)]
struct Variable {
    name: String,
    type_name: String,
    is_mutable: bool,
    /// This cell makes it.
    is_new: bool,
    /// The statements during which the name means it.
    from: usize,
    until: usize,
}

/// The source of a cell, read.
struct Source<'a> {
    lines: Vec<&'a str>,
    closing: usize,
    /// Where the lines begin that keep the cell's variables.
    packs: usize,
    statements: Vec<Statement>,
    /// Types of the cell's variables.
    new: BTreeMap<String, String>,
    /// Variables that evcxr does not put back, where a statement ends the cell.
    at_risk: Vec<Variable>,
}

/// The types of the variables that the cell keeps.
pub fn types(text: &str) -> BTreeMap<String, String> {
    let found = text.lines().filter_map(|line| typed(line, PACK));
    found
        .map(|(name, kind)| (name.into(), kind.into()))
        .collect()
}

/// The cell's statements alone.
pub fn statements(text: &str) -> &str {
    let behind = text.split_once(OPENING).or_else(|| text.split_once(WAITS));
    let behind = behind.map_or(text, |(_, behind)| behind);
    let end = [PACK, CLOSING, WAITS_CLOSING];
    let end = end.into_iter().find_map(|end| behind.find(end));
    &behind[..end.unwrap_or(behind.len())]
}

/// The source with its statements apart. `None`: nothing could be lost, or it is no such source.
pub fn staged(text: &str, known: &Known) -> Option<Staged> {
    let source = Source::read(text, known)?;
    let is_of_use = (0..source.statements.len())
        .any(|index| source.keeps_before(index) || !source.kept_at(index, known).is_empty());
    is_of_use.then(|| source.write(known))
}

impl<'a> Source<'a> {
    fn read(text: &'a str, known: &Known) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let is = |what: &'static str| move |line: &&str| line.trim() == what;
        let opening = lines.iter().position(is(OPENING));
        let (opening, closing, waits) = match opening {
            Some(opening) => (opening, CLOSING, false),
            None => (lines.iter().position(is(WAITS))?, WAITS_CLOSING, true),
        };
        let closing = lines.iter().rposition(is(closing))?;
        lines[..opening].iter().position(is(CATCH))?;
        let packs = lines[..closing]
            .iter()
            .rposition(|line| !line.starts_with(PACK))?
            + 1;
        let mut statements = Vec::new();
        for (index, line) in lines.iter().enumerate().take(packs).skip(opening) {
            if let Some((lines, facts)) = statement::read_mark(line) {
                // A later statement assigns what this one declares, or evcxr has yet to make the cell an asynchronous one.
                if facts.is_bound_to_its_place || (facts.waits && !waits) {
                    return None;
                }
                statements.push(Statement {
                    mark: index,
                    lines: lines.to_owned(),
                    facts,
                });
            }
        }
        if statements.is_empty() || statements.len() > MOST_STATEMENTS {
            return None;
        }
        let new = lines[packs..closing]
            .iter()
            .filter_map(|it| typed(it, PACK));
        let put_back: BTreeSet<&str> = lines[closing..]
            .iter()
            .filter_map(|line| Some(typed(line, PACK)?.0))
            .collect();
        let mut source = Self {
            new: new.map(|(name, kind)| (name.into(), kind.into())).collect(),
            packs,
            closing,
            statements,
            at_risk: Vec::new(),
            lines,
        };
        source.find_at_risk(opening, &put_back, known);
        Some(source)
    }

    fn find_at_risk(&mut self, opening: usize, put_back: &BTreeSet<&str>, known: &Known) {
        let last = self.statements.len();
        for line in &self.lines[..opening] {
            let Some((name, kind)) = typed(line, LOAD) else {
                continue;
            };
            let binds = |statement: &Statement| statement.binds(name).is_some();
            if !put_back.contains(name) {
                self.at_risk.push(Variable {
                    name: name.to_owned(),
                    type_name: kind.to_owned(),
                    is_mutable: line.trim().starts_with("let mut "),
                    is_new: false,
                    from: 0,
                    until: self.statements.iter().position(binds).unwrap_or(last),
                });
            }
        }
        for (index, statement) in self.statements.iter().enumerate() {
            for (name, is_mutable) in &statement.facts.binds {
                let type_name = known.types.get(name);
                let is_last = self.last_binding(name) == Some(index);
                if let (Some(kind), true, false) = (type_name, is_last, self.new.contains_key(name))
                {
                    self.at_risk.push(Variable {
                        name: name.clone(),
                        type_name: kind.clone(),
                        is_mutable: *is_mutable,
                        is_new: true,
                        from: index + 1,
                        until: last,
                    });
                }
            }
        }
    }

    fn last_binding(&self, name: &str) -> Option<usize> {
        let mut statements = self.statements.iter();
        statements.rposition(|statement| statement.binds(name).is_some())
    }

    /// What this statement binds and the end of its block keeps.
    fn kept_behind(&self, index: usize) -> impl Iterator<Item = (&str, &str, bool)> {
        let binds = self.statements[index].facts.binds.iter();
        binds.filter_map(move |(name, is_mutable)| {
            let kind = self.new.get(name)?;
            let is_last = self.last_binding(name) == Some(index);
            is_last.then_some((name.as_str(), kind.as_str(), *is_mutable))
        })
    }

    /// Whether something that was bound before this statement is kept behind it.
    fn keeps_before(&self, index: usize) -> bool {
        (0..index).any(|before| self.kept_behind(before).next().is_some())
    }

    /// What is kept when this statement ends the cell, because it is not kept otherwise.
    fn kept_at(&self, index: usize, known: &Known) -> Vec<&Variable> {
        let is_there = |it: &&Variable| {
            let is_copied = COPIED.contains(&&*it.type_name);
            let moves = |statement: &Statement| statement.facts.moves.contains(&it.name);
            let is_moved = self.statements[it.from.min(index)..=index]
                .iter()
                .any(moves);
            let is_known_to_be = known.moved.get(&it.name).is_some_and(|&at| at <= index);
            (it.from..=it.until).contains(&index) && !is_known_to_be && (is_copied || !is_moved)
        };
        self.at_risk.iter().filter(is_there).collect()
    }

    /// The same when the cell stops before the statement.
    fn kept_before(&self, index: usize, known: &Known) -> Vec<&Variable> {
        let mut kept: Vec<&Variable> = match index.checked_sub(1) {
            Some(before) => self.kept_at(before, known),
            None => self.at_risk.iter().filter(|it| it.from == 0).collect(),
        };
        kept.retain(|it| it.until >= index);
        kept
    }

    fn write(&self, known: &Known) -> Staged {
        let mut lines: Vec<String> = self.lines.iter().map(|&line| line.to_owned()).collect();
        let mut marks = BTreeMap::new();
        // Which statement each block stands behind.
        let mut blocks: Vec<usize> = Vec::new();
        let mut end = String::new();
        for (index, statement) in self.statements.iter().enumerate() {
            let mut text = std::mem::take(&mut end);
            if index == 0 {
                let _ = write!(text, "{LABEL}0: {{ ");
            } else if !self.statements[index - 1].facts.binds.is_empty() {
                blocks.push(index - 1);
                let _ = write!(text, "{LABEL}{}: {{ ", blocks.len());
            }
            let leave = format!("break {LABEL}{};", blocks.len());
            let _ = write!(
                text,
                "if ::stratoscope::cell::evcxr::stops({}) {{ {}{leave} }} ",
                statement.lines,
                keep_all(&self.kept_before(index, known)),
            );
            if self.is_closure(index, known) {
                let (outside, inside) = statement.tuples();
                let (begins, ends) = match statement.facts.waits {
                    true => ("run_async(async { ", "}).await"),
                    false => (
                        "run(|| -> ::std::result::Result<_, EvcxrUserCodeError> { ",
                        "})",
                    ),
                };
                let _ = write!(
                    text,
                    "let {outside} = match ::stratoscope::cell::evcxr::{begins}"
                );
                end = format!(
                    "Ok::<_, EvcxrUserCodeError>({inside}) {ends} {{ Some(it) => it, None => {{ {}{leave} }} }}; ",
                    keep_all(&self.kept_at(index, known)),
                );
            }
            lines[statement.mark] = text;
            marks.insert(statement.mark + 1, index);
        }
        let (tail, origins, packs) = self.tail(end, &blocks, &mut marks);
        let put_back = self.packs + tail.len() + 1;
        lines.splice(self.packs..self.closing, tail);
        let behind = self.closing + 1..=self.lines.len();
        Staged {
            text: lines.join("\n") + "\n",
            first_moved: self.packs + 1,
            moved: origins.into_iter().chain(behind).collect(),
            packs,
            put_back,
            marks,
            assigned: self.assigned(),
        }
    }

    /// The lines that end the last statement and all blocks, evcxr's lines for each, and which of
    /// them keep a variable.
    fn tail(
        &self,
        end: String,
        blocks: &[usize],
        marks: &mut BTreeMap<usize, usize>,
    ) -> (Vec<String>, Vec<usize>, BTreeMap<usize, String>) {
        let last = self.statements.len() - 1;
        let mut lines = vec![end];
        let mut origins = vec![self.closing + 1];
        let mut packs = BTreeMap::new();
        marks.insert(self.packs + 1, last + 1);
        for statement in std::iter::once(last).chain(blocks.iter().rev().copied()) {
            for (name, kind, is_mutable) in self.kept_behind(statement) {
                let is_its = |line: &&str| typed(line, PACK).is_some_and(|it| it.0 == name);
                let evcxrs = self.lines[self.packs..self.closing].iter();
                let origin = evcxrs.clone().position(is_its).unwrap_or(0) + self.packs + 1;
                lines.push(keep("keep", name, kind, is_mutable));
                origins.push(origin);
                packs.insert(self.packs + lines.len(), name.to_owned());
            }
            // The end of the block that this statement stands at the end of.
            lines.push("}".to_owned());
            origins.push(self.closing + 1);
        }
        (lines, origins, packs)
    }

    fn is_closure(&self, index: usize, known: &Known) -> bool {
        let Facts {
            moves,
            assigns,
            makes_items,
            ..
        } = &self.statements[index].facts;
        // In a closure, what is moved and assigned would be the closure's.
        let is_made_anew = !moves.is_disjoint(assigns);
        known.has_closures
            && !is_made_anew
            && !makes_items
            && (self.keeps_before(index) || !self.kept_at(index, known).is_empty())
    }

    fn assigned(&self) -> BTreeSet<String> {
        let all = self.statements.iter().flat_map(|it| &it.facts.assigns);
        all.cloned().collect()
    }
}

impl Statement {
    /// Whether it binds the variable, and as `mut`.
    fn binds(&self, name: &str) -> Option<bool> {
        let mut binds = self.facts.binds.iter();
        binds.find(|(it, _)| it == name).map(|(_, it)| *it)
    }

    /// What it binds, as a pattern and as a value.
    fn tuples(&self) -> (String, String) {
        let mut outside = String::from("(");
        let mut inside = String::from("(");
        for (name, is_mutable) in &self.facts.binds {
            let _ = write!(outside, "{}{name},", if *is_mutable { "mut " } else { "" });
            let _ = write!(inside, "{name},");
        }
        (outside + ")", inside + ")")
    }
}

fn keep(by: &str, name: &str, kind: &str, is_mutable: bool) -> String {
    format!("evcxr_variable_store.{by}::<{kind}>({name:?}, {kind:?}, {is_mutable}, {name});")
}

fn keep_all(variables: &[&Variable]) -> String {
    let kept = variables.iter().map(|it| {
        let by = if it.is_new { "keep" } else { "keep_old" };
        keep(by, &it.name, &it.type_name, it.is_mutable)
    });
    kept.map(|text| text + " ").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// evcxr's source of a cell with these statements, each a mark's facts and its lines; what it loads,
    /// keeps and puts back.
    fn source(
        statements: &[(&str, &str)],
        loads: &[&str],
        packs: &[&str],
        puts: &[&str],
    ) -> String {
        let mut text = String::from("fn run() {\n");
        for name in loads {
            text += &format!(
                "let mut {name} = evcxr_variable_store.take_variable::<T>(stringify!({name}));\n"
            );
        }
        text += &format!("{CATCH}\n{OPENING}\n");
        for (facts, lines) in statements {
            text += &format!("0/*at 1, 1:{facts}*/;\n{lines}\n");
        }
        let pack = |name: &&str| format!("{PACK}T>(stringify!({name}), {name});\n");
        text.extend(packs.iter().map(pack));
        text += &format!("{CLOSING}\n");
        text.extend(puts.iter().map(pack));
        text + "}\n"
    }

    fn known() -> Known {
        Known {
            has_closures: true,
            ..Known::default()
        }
    }

    fn kept_where_it_ends(text: &str, name: &str) -> usize {
        let text = staged(text, &known()).map_or_else(String::new, |it| it.text);
        text.matches(&format!("keep_old::<T>({name:?}")).count()
    }

    #[test]
    fn what_is_bound_is_kept_behind_the_block_of_what_follows() {
        let text = source(
            &[
                ("+a", "let a = 1;"),
                ("+mut b", "let mut b = 2;"),
                ("", "f(a,\nb);"),
            ],
            &[],
            &["b", "a"],
            &[],
        );
        let staged = staged(&text, &known()).expect("there is something to keep");
        let lines: Vec<&str> = staged.text.lines().collect();
        let evcxrs: Vec<&str> = text.lines().collect();
        // The cell's own lines have not moved.
        for at in [4, 6, 8, 9] {
            assert_eq!(lines[at], evcxrs[at]);
        }
        let a = staged
            .text
            .find("keep::<T>(\"a\", \"T\", false, a)")
            .expect("is kept");
        let b = staged
            .text
            .find("keep::<T>(\"b\", \"T\", true, b)")
            .expect("is kept");
        assert!(b < a, "{}", staged.text);
        assert_eq!(
            staged.text.matches('{').count(),
            staged.text.matches('}').count()
        );
        for (line, name) in &staged.packs {
            let evcxrs = evcxrs[staged.line_of_evcxr(*line) - 1];
            assert_eq!(typed(evcxrs, PACK), Some((name.as_str(), "T")));
            assert!(lines[line - 1].contains(&format!("keep::<T>({name:?}")));
        }
        assert_eq!(lines[staged.put_back - 1], CLOSING);
        assert_eq!(staged.line_of_evcxr(staged.put_back), 13);
        assert_eq!(staged.line_of_evcxr(3), 3);
    }

    #[test]
    fn a_cell_that_can_lose_nothing_stays() {
        let one = source(&[("+a", "let a = 1;")], &[], &["a"], &[]);
        assert!(staged(&one, &known()).is_none());
        let none = source(&[("", "f();"), ("", "g();")], &["x"], &[], &["x"]);
        assert!(staged(&none, &known()).is_none());
        let late = source(&[("+a,!", "let a;"), ("=a", "a = 1;")], &[], &["a"], &[]);
        assert!(staged(&late, &known()).is_none());
        assert!(staged("fn f() {}\n", &known()).is_none());
    }

    #[test]
    fn what_is_shadowed_or_moved_is_kept_until_then() {
        let cell = |shadows: &str, moves: &str| {
            source(
                &[
                    ("", "f();"),
                    (shadows, "let x = 1;"),
                    (moves, "g();"),
                    ("", "h();"),
                ],
                &["x"],
                &["x"],
                &[],
            )
        };
        // Where the first two statements stop and where they fail.
        assert_eq!(kept_where_it_ends(&cell("+x", ""), "x"), 4);
        // Where the second one fails it may have been moved.
        assert_eq!(kept_where_it_ends(&cell("+x,-x", ""), "x"), 3);
        let moved = source(
            &[("", "f();"), ("-x", "drop(x);"), ("", "h();")],
            &["x"],
            &[],
            &[],
        );
        assert_eq!(kept_where_it_ends(&moved, "x"), 3);
        let put_back = source(
            &[("+a", "let a = 1;"), ("", "f();")],
            &["x"],
            &["a"],
            &["x"],
        );
        assert_eq!(kept_where_it_ends(&put_back, "x"), 0);
    }

    #[test]
    fn items_are_made_in_their_place() {
        let statements = [("+a", "let a = 1;"), ("#", "mixed!(P);"), ("", "f(P);")];
        let staged = staged(&source(&statements, &[], &["a"], &[]), &known());
        let text = staged.expect("there is something to keep").text;
        let before = text.split("mixed!(P);").next().unwrap_or_default();
        assert!(!before.ends_with("EvcxrUserCodeError> { \n"), "{text}");
        assert_eq!(text.matches("evcxr::run(").count(), 1, "{text}");
    }

    #[test]
    fn a_statement_that_waits_is_an_asynchronous_block() {
        let statements = [
            ("+mut sum", "let mut sum = 0;"),
            ("~", "sum += f().await?;"),
        ];
        let text = source(&statements, &[], &["sum"], &[]);
        // evcxr finds out by rustc's error that the cell waits.
        assert!(staged(&text, &known()).is_none());
        let text = text.replace(OPENING, WAITS).replace(CLOSING, WAITS_CLOSING);
        let staged = staged(&text, &known()).expect("there is something to keep");
        let lines: Vec<&str> = staged.text.lines().collect();
        let run = lines
            .iter()
            .position(|line| line.contains("run_async(async {"));
        let run = run.expect("it waits");
        assert_eq!(lines[run + 1], "sum += f().await?;");
        assert!(lines[run + 2].contains("}).await {"), "{}", lines[run + 2]);
        let kept = lines
            .iter()
            .position(|line| line.contains("keep::<T>(\"sum\""));
        assert!(kept.is_some_and(|kept| kept > run), "{}", staged.text);
        assert_eq!(lines[staged.put_back - 1], WAITS_CLOSING);
    }

    #[test]
    fn what_is_made_anew_of_itself_runs_in_its_place() {
        let text = source(
            &[("+v", "let v = 1;"), ("-v,=v", "v = f(v)?;")],
            &[],
            &["v"],
            &[],
        );
        let staged = staged(&text, &known()).expect("it can be interrupted");
        assert!(!staged.text.contains("evcxr::run("), "{}", staged.text);
        assert!(staged.text.contains("evcxr::stops(1, 1)"));
        assert!(staged.assigned.contains("v"));
    }
}
