//! The call stack of a stop, with the cells' lines as typed, and the values in its frames.

use serde_json::{Value, json};
use stratoscope_debugger::VARIABLES;
use stratoscope_debugger::native::{function_name, type_name};

use super::stops::LIBRARY;
use super::{ANSWER_TIMEOUT, Adapter, Native};

/// More frames are not read.
const MAX_FRAMES: usize = 200;
/// More parts of a value are not read at once, as in `limits.py`.
const MAX_CHILDREN: u64 = 200;
/// Our numbers of frames begin here, behind those of runs.
pub(super) const FIRST_FRAME: u64 = 1_500_000_000;
/// Our numbers of values begin here; the adapter's are counted from it.
pub(super) const FIRST_VALUES: u64 = 1_000_000_000;
/// Lists of values that were read with their scopes.
const FIRST_LISTS: u64 = 1_400_000_000;
/// Where the number of a thread is in the adapter's number of a frame (`THREAD_FRAME_SHIFT` of `lldb-dap`).
const THREAD_SHIFT: u32 = 19;
/// The function that runs a cell.
const RUNS_THE_CELL: &str = "run_user_code_";

/// A frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    /// The adapter's number.
    pub id: u64,
    /// The name of its library.
    pub library: String,
    pub function: String,
    /// The file, and the line in it.
    pub file: String,
    pub line: u32,
    /// The cell's number, the path of the cell, and the line as typed.
    pub place: Option<(u64, String, u32)>,
}

impl Frame {
    /// Whether it runs a cell, and not a function of one.
    pub fn runs_the_cell(&self) -> bool {
        self.function.contains(RUNS_THE_CELL)
    }

    fn listed(&self, id: u64, is_statement: bool) -> Value {
        let Some((cell, path, line)) = &self.place else {
            let name = function_name(&self.function);
            let mut shown = json!({
                "id": id, "name": name, "line": self.line, "column": 0, "presentationHint": "subtle",
            });
            if !self.file.is_empty() {
                shown["source"] = json!({"name": self.library, "path": self.file});
            }
            return shown;
        };
        let name = match self.runs_the_cell() {
            false => function_name(&self.function),
            true if is_statement => format!("cell [{cell}]"),
            true => format!("closure in cell [{cell}]"),
        };
        let source = json!({"name": format!("cell [{cell}]"), "path": path});
        json!({"id": id, "name": name, "line": line, "column": 1, "source": source})
    }
}

/// A stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    pub thread: u64,
    /// From the top.
    pub frames: Vec<Frame>,
    /// The values of frames that were asked for.
    pub lists: Vec<Vec<Value>>,
}

impl Stop {
    /// Whether a frame is of a cell.
    pub fn is_in_a_cell(&self) -> bool {
        self.frames.iter().any(|it| it.place.is_some())
    }

    /// Whether a cell has been called, with or without debug information.
    pub fn has_code_of_cells(&self) -> bool {
        let mut frames = self.frames.iter();
        frames.any(|it| it.library.starts_with(LIBRARY.0))
    }

    /// The adapter's number of the top frame that is of a cell, else of the top frame.
    pub fn top(&self) -> u64 {
        let of_cell = self.frames.iter().find(|it| it.place.is_some());
        of_cell.or(self.frames.first()).map_or(0, |it| it.id)
    }

    /// The frame with one of our numbers.
    fn frame(&self, number: u64) -> Option<(usize, &Frame)> {
        let index = usize::try_from(number.checked_sub(FIRST_FRAME)?).ok()?;
        Some((index, self.frames.get(index)?))
    }

    /// As `stackTrace` lists them. `all`: also those of libraries.
    pub fn listed(&self, all: bool) -> Vec<Value> {
        let all = all || !self.is_in_a_cell();
        // The last one that runs the cell is its statement; those above it are closures in it.
        let is_of_cell = |it: &Frame| it.place.is_some() && it.runs_the_cell();
        let statement = self.frames.iter().rposition(is_of_cell);
        let frames = self.frames.iter().enumerate();
        frames
            .filter(|(_, it)| all || it.place.is_some())
            .map(|(index, it)| it.listed(FIRST_FRAME + index as u64, statement == Some(index)))
            .collect()
    }
}

impl Native {
    /// The adapter's numbers of the frames of a thread.
    pub(super) async fn frame_ids(
        &self,
        adapter: &Adapter,
        thread: u64,
        levels: usize,
    ) -> Vec<u64> {
        let arguments = json!({"threadId": thread, "startFrame": 0, "levels": levels});
        let answer = adapter.ask("stackTrace", arguments, ANSWER_TIMEOUT).await;
        let body = answer.unwrap_or_default();
        let frames = body["stackFrames"].as_array().into_iter().flatten();
        frames.filter_map(|it| it["id"].as_u64()).collect()
    }

    /// Reads the stack of a thread.
    pub(super) async fn read_stop(&self, adapter: &Adapter, thread: u64) -> Result<Stop, String> {
        let ids = self.frame_ids(adapter, thread, MAX_FRAMES).await;
        // The adapter's numbers of frames begin with that of their thread.
        let index = ids.first().ok_or("the thread has no frames")? >> THREAD_SHIFT;
        let list = format!("thread backtrace -c {MAX_FRAMES} {index}");
        let said = self.command(adapter, &list).await?;
        let debugger = self.debugger.lock();
        let state = self.state.lock();
        let frames = said.lines().filter_map(read_frame);
        let frames = frames.filter_map(|(index, mut frame)| {
            frame.id = *ids.get(index)?;
            if frame.file.ends_with("lib.rs") {
                let lines = state.libraries.get(&frame.library);
                let line = lines.and_then(|it| it.get(&frame.line));
                frame.place = line.and_then(|it| {
                    let path = debugger.path_of(it.cell)?;
                    Some((it.cell, path, it.line))
                });
            }
            Some(frame)
        });
        Ok(Stop {
            thread,
            frames: frames.collect(),
            lists: Vec::new(),
        })
    }

    /// The scopes of one of our frames.
    pub(super) async fn scopes(&self, adapter: &Adapter, number: u64) -> Result<Value, String> {
        let stop = self.state.lock().stop.clone().unwrap_or_default();
        let found = stop.frame(number);
        let (index, frame) = found.ok_or("the frame is not there any more")?;
        let locals = self.locals(adapter, frame.id).await?;
        let mut scopes = vec![json!({
            "name": "Locals", "variablesReference": self.remember(locals), "expensive": false,
            "presentationHint": "locals",
        })];
        // What the statements before have bound is in the functions around them.
        let mut bound: Vec<Value> = Vec::new();
        let around = stop.frames.iter().skip(index + 1);
        let is_around =
            |it: &&super::frames::Frame| it.library == frame.library && it.runs_the_cell();
        for outer in around.filter(|it| frame.runs_the_cell() && is_around(it)) {
            for local in self.locals(adapter, outer.id).await? {
                if !bound.iter().any(|it| it["name"] == local["name"]) {
                    bound.push(local);
                }
            }
        }
        if !bound.is_empty() {
            scopes.push(json!({
                "name": "Cell", "variablesReference": self.remember(bound), "expensive": false,
                "presentationHint": "locals",
            }));
        }
        scopes.push(json!({
            "name": "Variables", "variablesReference": VARIABLES, "expensive": false, "presentationHint": "globals",
        }));
        Ok(json!({"scopes": scopes}))
    }

    fn remember(&self, list: Vec<Value>) -> u64 {
        let mut state = self.state.lock();
        let lists = state.stop.as_mut().map(|it| &mut it.lists);
        lists.map_or(0, |lists| {
            lists.push(list);
            FIRST_LISTS + lists.len() as u64 - 1
        })
    }

    /// The variables of a frame.
    async fn locals(&self, adapter: &Adapter, frame: u64) -> Result<Vec<Value>, String> {
        let asked = json!({"frameId": frame});
        let scopes = adapter.ask("scopes", asked, ANSWER_TIMEOUT).await?;
        let mut scopes = scopes["scopes"].as_array().into_iter().flatten();
        let locals = scopes.find(|it| it["name"] == "Locals");
        match locals.and_then(|it| it["variablesReference"].as_u64()) {
            Some(number) => {
                let asked = json!({"variablesReference": number});
                self.values(adapter, asked).await
            }
            None => Ok(Vec::new()),
        }
    }

    async fn values(&self, adapter: &Adapter, arguments: Value) -> Result<Vec<Value>, String> {
        let body = adapter.ask("variables", arguments, ANSWER_TIMEOUT).await?;
        let values = body["variables"].as_array().into_iter().flatten();
        Ok(values.filter_map(variable).collect())
    }

    /// The reply to `variables` with one of our numbers.
    pub(super) async fn children(
        &self,
        adapter: &Adapter,
        arguments: &Value,
    ) -> Result<Value, String> {
        let number = arguments["variablesReference"].as_u64().unwrap_or(0);
        if let Some(list) = number.checked_sub(FIRST_LISTS) {
            let state = self.state.lock();
            let lists = state.stop.as_ref().map(|it| &it.lists);
            let list = usize::try_from(list).ok().and_then(|it| lists?.get(it));
            let list = list.ok_or("the values are not there any more")?;
            return Ok(json!({"variables": list}));
        }
        let mut arguments = arguments.clone();
        // Zero is all.
        let count = arguments["count"].as_u64().filter(|it| *it > 0);
        arguments["count"] = count.unwrap_or(MAX_CHILDREN).min(MAX_CHILDREN).into();
        arguments["variablesReference"] = number.saturating_sub(FIRST_VALUES).into();
        let values = self.values(adapter, arguments).await?;
        Ok(json!({"variables": values}))
    }

    /// The adapter's number of one of our frames; without a number, of the top one.
    pub(super) fn frame_of(&self, number: Option<u64>) -> Option<u64> {
        let state = self.state.lock();
        let stop = state.stop.as_ref()?;
        match number {
            Some(number) => stop.frame(number).map(|(_, it)| it.id),
            None => Some(stop.top()),
        }
    }
}

/// A line of [`super::FRAME_FORMAT`].
fn read_frame(line: &str) -> Option<(usize, Frame)> {
    let (_, rest) = line.split_once('@')?;
    let mut parts = rest.splitn(5, '|');
    let index = parts.next()?.parse().ok()?;
    let mut text = || Some(parts.next()?.trim().to_owned());
    let frame = Frame {
        library: text()?,
        file: text()?,
        line: text()?.parse().unwrap_or(0),
        function: text()?,
        ..Frame::default()
    };
    Some((index, frame))
}

/// A variable of the adapter as one of ours. `None`: the cell does not know it.
pub(super) fn variable(found: &Value) -> Option<Value> {
    let name = found["name"].as_str()?;
    if name.starts_with("evcxr_") || name.starts_with("__") {
        return None;
    }
    let type_name = type_name(found["type"].as_str().unwrap_or_default());
    let mut shown =
        json!({"name": name, "value": found["value"], "type": type_name, "variablesReference": 0});
    if let Some(expression) = found["evaluateName"].as_str() {
        shown["evaluateName"] = expression.into();
    }
    if let Some(number) = found["variablesReference"].as_u64().filter(|it| *it > 0) {
        shown["variablesReference"] = (FIRST_VALUES + number).into();
    }
    for count in ["indexedVariables", "namedVariables"] {
        if found[count].is_u64() {
            shown[count] = found[count].clone();
        }
    }
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_read_and_shown_with_cells() {
        let text = "* thread #2, name = 'cells'\n\
            \x20 * @0|libcode_3.so|/h/src/lib.rs|12|ctx::double::h1979f26dcd65b4b0\n\
            \x20   @1|libcode_3.so|/h/src/lib.rs|40|ctx::run_user_code_3::_$u7b$$u7b$closure$u7d$$u7d$::h1979f26dcd65b4b0\n\
            \x20   @2|libstd.so||0|main";
        let frames = text.lines().filter_map(read_frame);
        let mut frames: Vec<Frame> = frames.map(|(_, it)| it).collect();
        assert_eq!(frames.len(), 3);
        assert_eq!((frames[1].line, &*frames[2].function), (40, "main"));
        frames[0].place = Some((2, "/tmp/a.rs".to_owned(), 5));
        frames[1].place = Some((3, "/tmp/b.rs".to_owned(), 1));
        let stop = Stop {
            frames,
            ..Stop::default()
        };
        let shown = stop.listed(false);
        let names: Vec<&Value> = shown.iter().map(|it| &it["name"]).collect();
        assert_eq!(names, ["double", "cell [3]"]);
        assert_eq!(shown[0]["line"], 5);
        assert_eq!(stop.listed(true).len(), 3);
        assert!(stop.has_code_of_cells() && !Stop::default().has_code_of_cells());
    }

    #[test]
    fn values_have_rusts_types_and_our_numbers() {
        let found = json!({"name": "x", "value": "3", "type": "int", "variablesReference": 7});
        let shown = variable(&found).expect("it is shown");
        let number = json!(FIRST_VALUES + 7);
        assert_eq!(
            (&shown["type"], &shown["variablesReference"]),
            (&json!("i32"), &number)
        );
        assert_eq!(variable(&json!({"name": "evcxr_variable_store"})), None);
    }
}
