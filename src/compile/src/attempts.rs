//! The sources that rustc is given for one cell, one after the other, until one compiles or is wrong in the cell's own
//! lines: first statement by statement ([`super::staged`]), then as a whole that only stops between its statements,
//! then as evcxr has written it. Nearly always the first one decides.
//!
//! What rustc's errors have shown is remembered until the next cell, since evcxr compiles a cell that moves a variable
//! once more.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::generated;
use super::retry;
use super::staged::{self, Staged};
use super::state::{self, Form, State};
use stratoscope_cell_text::rewrite::items;

/// How often what cannot be kept is left out, before the cell is compiled as a whole.
const MOST_CORRECTIONS: usize = 3;

/// See the module.
pub struct Attempts {
    home: PathBuf,
    source: PathBuf,
    /// evcxr's source, adapted, with its marks.
    marked: String,
    /// The same with calls.
    whole: String,
    memory: state::Attempts,
    staged: Option<Staged>,
}

/// The source with the symbols of statics of this generation.
fn with_symbols(text: String, generation: u32) -> String {
    let symbols = |number| format!("{}{}", items::SYMBOL, items::generation(number));
    match generation {
        0 => text,
        number => text.replace(&symbols(0), &symbols(number)),
    }
}

impl Attempts {
    /// For the source that evcxr has written to the file `source`, which is replaced by the first one.
    pub fn begin(home: &Path, source: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(source)?;
        let state = State::read(home);
        let marked = generated::adapted(&with_symbols(text, state.generation), &state.masked);
        let mut hash = DefaultHasher::new();
        staged::statements(&marked).hash(&mut hash);
        let cell = hash.finish();
        let remembered = Some(state.attempts).filter(|it| it.cell == cell);
        let mut memory = remembered.unwrap_or_default();
        memory.cell = cell;
        memory.known.types.extend(staged::types(&marked));
        let mut attempts = Self {
            home: home.to_owned(),
            source: source.to_owned(),
            whole: generated::with_calls(&marked),
            marked,
            memory,
            staged: None,
        };
        attempts.write()?;
        Ok(attempts)
    }

    /// What the file holds now.
    pub fn text(&self) -> &str {
        self.staged.as_ref().map_or(&self.whole, |it| &it.text)
    }

    fn write(&mut self) -> io::Result<()> {
        self.memory.known.has_closures = self.memory.form == Form::Closures;
        self.staged = match self.memory.form {
            Form::Whole => None,
            _ => staged::staged(&self.marked, &self.memory.known),
        };
        if self.staged.is_some() || self.memory.form != Form::Closures {
            self.remember();
        }
        fs::write(&self.source, self.text())
    }

    fn remember(&self) {
        // Without it a cell is compiled once more.
        let _ = State::update(&self.home, |state| state.attempts.clone_from(&self.memory));
    }

    /// rustc has refused the source, and this is why. Whether there is another one, which the file
    /// then holds.
    pub fn again(&mut self, messages: &str) -> io::Result<bool> {
        let Some(staged) = &self.staged else {
            return Ok(false);
        };
        let faults: Vec<Fault> = messages
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter_map(|message: Value| Fault::of(&message, staged))
            .collect();
        // evcxr compiles the cell again without what cannot be kept: then it is known where it goes.
        for fault in &faults {
            if let Fault::Kept(name, Some(by)) | Fault::PutBack(name, Some(by)) = fault {
                self.memory.known.note_moved(name, *by);
            }
        }
        match verdict(&faults, staged, self.memory.form) {
            Verdict::Final => {
                self.remember();
                return Ok(false);
            }
            Verdict::Leave(names) if self.memory.corrections < MOST_CORRECTIONS => {
                self.memory.corrections += 1;
                for (name, statement) in names {
                    self.memory.known.note_moved(&name, statement);
                }
            }
            Verdict::Leave(_) | Verdict::Next => {
                self.memory.form = match self.memory.form {
                    Form::Closures => Form::Stops,
                    _ => Form::Whole,
                }
            }
            Verdict::Whole => self.memory.form = Form::Whole,
        }
        self.write()?;
        Ok(true)
    }

    /// A message of rustc's about the source, with evcxr's numbers of lines.
    pub fn as_of_evcxr(&self, message: &str) -> String {
        let Some(staged) = &self.staged else {
            return message.to_owned();
        };
        match serde_json::from_str::<Value>(message) {
            Ok(mut value) => {
                renumber(&mut value, staged);
                value.to_string()
            }
            Err(_) => message.to_owned(),
        }
    }
}

fn renumber(value: &mut Value, staged: &Staged) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_u64().and_then(|line| usize::try_from(line).ok()) {
                    Some(line) if name == "line_start" || name == "line_end" => {
                        *field = staged.line_of_evcxr(line).into();
                    }
                    _ => renumber(field, staged),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|it| renumber(it, staged)),
        _ => {}
    }
}

/// What is wrong, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// A line of the cell. `true`: it would be wrong in any source.
    Cell(bool),
    /// A variable cannot be kept behind its block, because this statement has moved it.
    Kept(String, Option<usize>),
    /// A variable of an earlier cell cannot be put back for this reason: evcxr knows what to do.
    PutBack(String, Option<usize>),
    /// It cannot be kept where this statement ends the cell.
    KeptAt(String, usize),
    Other,
}

impl Fault {
    fn of(message: &Value, staged: &Staged) -> Option<Self> {
        if message["level"] != "error" {
            return None;
        }
        let text = message["message"].as_str()?;
        if text.starts_with("aborting due to") {
            return None;
        }
        let code = message["code"]["code"].as_str().unwrap_or_default();
        let spans = message["spans"].as_array()?;
        let primary = spans.iter().find(|span| span["is_primary"] == true);
        if primary.is_some_and(is_about_a_type) {
            return Some(Self::Cell(true));
        }
        let line = primary.and_then(line_of)?;
        let name = text.split('`').nth(1).unwrap_or_default().to_owned();
        let is_moved = code == "E0382" || code == "E0505" || code == "E0507";
        let by = || mover(spans, staged);
        if let Some(kept) = staged.packs.get(&line) {
            return Some(match code {
                "E0382" => Self::Kept(kept.clone(), by()),
                _ => Self::Other,
            });
        }
        if line >= staged.put_back {
            return Some(match code {
                "E0382" => Self::PutBack(name, by()),
                _ => Self::Other,
            });
        }
        Some(match staged.ends_on(line) {
            Some(statement) if is_moved && !name.is_empty() => Self::KeptAt(name, statement),
            Some(_) => Self::Other,
            None => Self::Cell(retry::is_same_anywhere(code)),
        })
    }
}

/// Whether the place is in a line that only names the type of a variable.
fn is_about_a_type(span: &Value) -> bool {
    let line = span["text"][0]["text"].as_str();
    line.is_some_and(|line| generated::named_type(line).is_some())
}

/// The statement that has moved what an error is about.
fn mover(spans: &[Value], staged: &Staged) -> Option<usize> {
    let moves = |span: &&Value| {
        let label = span["label"].as_str();
        label.is_some_and(|label| label.contains("moved"))
    };
    let lines = spans.iter().filter(moves).filter_map(line_of);
    let of_the_cell =
        lines.filter(|line| *line < staged.put_back && !staged.packs.contains_key(line));
    of_the_cell
        .filter_map(|line| staged.statement_of(line))
        .min()
}

/// The line of the source that a place is on, also where a macro was called there.
fn line_of(span: &Value) -> Option<usize> {
    let is_source = |span: &Value| {
        let file = span["file_name"].as_str();
        file.is_some_and(|file| file.ends_with("lib.rs"))
    };
    if !is_source(span) && span["expansion"].is_object() {
        return line_of(&span["expansion"]["span"]);
    }
    usize::try_from(span["line_start"].as_u64()?).ok()
}

/// What is to be done about it.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The errors go to evcxr.
    Final,
    /// The same again, without keeping these from these statements on.
    Leave(Vec<(String, usize)>),
    /// The next form.
    Next,
    Whole,
}

fn verdict(faults: &[Fault], staged: &Staged, form: Form) -> Verdict {
    let mut leave = Vec::new();
    let mut is_final = !faults.is_empty();
    for fault in faults {
        match fault {
            Fault::Cell(is_sure) if *is_sure || form == Form::Stops => return Verdict::Final,
            Fault::Cell(_) => return Verdict::Next,
            // It is there again at the end of the cell, but not at each end.
            Fault::Kept(name, _) if staged.assigned.contains(name) => return Verdict::Whole,
            Fault::Kept(..) | Fault::PutBack(..) => {}
            Fault::KeptAt(name, statement) => {
                is_final = false;
                leave.push((name.clone(), *statement));
            }
            Fault::Other => return Verdict::Whole,
        }
    }
    match (is_final, leave.is_empty()) {
        (true, _) => Verdict::Final,
        (false, false) => Verdict::Leave(leave),
        (false, true) => Verdict::Next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line 5 begins statement 2, line 9 keeps `a`, line 12 and those behind it put variables back.
    fn source() -> Staged {
        Staged::for_tests([(5, 2)], [(9, "a")], 12, ["assigned"])
    }

    fn error(code: &str, message: &str, line: usize) -> Value {
        serde_json::json!({
            "level": "error", "message": message, "code": { "code": code },
            "spans": [{ "file_name": "src/lib.rs", "is_primary": true, "line_start": line }],
        })
    }

    fn check(errors: &[(&str, &str, usize)], form: Form, expected: &Verdict) {
        let staged = source();
        let faults: Vec<Fault> = errors
            .iter()
            .filter_map(|(code, message, line)| Fault::of(&error(code, message, *line), &staged))
            .collect();
        assert_eq!(verdict(&faults, &staged, form), *expected, "{errors:?}");
    }

    #[test]
    fn what_is_wrong_decides_what_is_tried_next() {
        use Form::{Closures, Stops};
        let moved = "use of moved value: `x`";
        let leave = || Verdict::Leave(vec![("x".to_owned(), 1)]);
        check(&[("E0308", "mismatched", 7)], Closures, &Verdict::Final);
        check(&[("E0505", "borrowed", 7)], Closures, &Verdict::Next);
        check(&[("E0505", "borrowed", 7)], Stops, &Verdict::Final);
        check(&[("E0382", moved, 5)], Closures, &leave());
        check(
            &[("E0382", moved, 5), ("E0382", moved, 9)],
            Closures,
            &leave(),
        );
        // evcxr leaves it out.
        check(&[("E0382", moved, 9)], Closures, &Verdict::Final);
        check(&[("E0382", moved, 12)], Closures, &Verdict::Final);
        check(&[("E0597", "does not live", 9)], Closures, &Verdict::Whole);
        check(
            &[("E0282", "annotations needed", 5)],
            Closures,
            &Verdict::Whole,
        );
        check(&[], Closures, &Verdict::Next);
    }

    #[test]
    fn a_type_that_the_next_cell_cannot_name_is_wrong_in_any_form() {
        let text = "#[allow(warnings)] fn __type_of_variable_0(_: Q) {} // q";
        let mut error = error("E0412", "cannot find type `Q` in this scope", 40);
        error["spans"][0]["text"] = serde_json::json!([{ "text": text }]);
        let fault = Fault::of(&error, &source());
        assert_eq!(fault, Some(Fault::Cell(true)));
    }

    #[test]
    fn a_variable_that_is_there_again_at_the_end_is_kept_by_evcxr() {
        let mut staged = source();
        staged.packs.insert(10, "assigned".to_owned());
        let fault = Fault::of(&error("E0382", "moved: `assigned`", 10), &staged);
        let faults = [fault.expect("an error")];
        assert_eq!(verdict(&faults, &staged, Form::Closures), Verdict::Whole);
    }

    #[test]
    fn statics_have_the_symbols_of_their_generation() {
        let text = format!("{}000000_7_1", items::SYMBOL);
        assert_eq!(with_symbols(text.clone(), 0), text);
        assert!(with_symbols(text, 12).ends_with("000012_7_1"));
    }

    #[test]
    fn a_cell_that_is_compiled_again_is_remembered() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("lib.rs");
        fs::write(&file, "fn f() {}\n").expect("writes");
        let mut attempts = Attempts::begin(home.path(), &file).expect("reads");
        assert_eq!(attempts.text(), "fn f() {}\n");
        // There is but one source of what is no cell.
        assert!(!attempts.again("").expect("decides"));
        assert_eq!(attempts.as_of_evcxr("no JSON"), "no JSON");
    }
}
