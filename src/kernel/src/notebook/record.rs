//! Records the outputs of cells as nbformat stores them: consecutive text of a stream is joined, and updates are applied
//! to every display of their id.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use stratoscope_wire::MimeBundle;

use super::file::lines;
use stratoscope_session::{CellError, OutputSink, Stream};

/// The outputs of all cells of a notebook; clones share them.
#[derive(Clone)]
pub struct Recorder {
    cells: Arc<Mutex<Vec<Recorded>>>,
}

/// The outputs of one cell.
#[derive(Clone, Debug, Default)]
struct Recorded {
    outputs: Vec<Output>,
    /// A `clear_output` that waits for the next output.
    clear_next: bool,
    /// The outputs differ from those in the notebook's cell.
    changed: bool,
}

#[derive(Clone, Debug)]
enum Output {
    Text {
        stream: Stream,
        text: String,
    },
    Display {
        data: MimeBundle,
        metadata: MimeBundle,
        display_id: Option<String>,
    },
    Result {
        number: u64,
        data: MimeBundle,
    },
    Error(CellError),
}

impl Recorder {
    /// Starts without outputs for the given cells.
    pub fn new(cells: &[Value]) -> Self {
        Self {
            cells: Arc::new(Mutex::new(vec![Recorded::default(); cells.len()])),
        }
    }

    /// The sink of the cell at `index`, executed as `number`.
    pub fn cell(&self, index: usize, number: u64) -> Arc<dyn OutputSink> {
        Arc::new(CellRecorder {
            recorder: self.clone(),
            index,
            number,
        })
    }

    /// Removes the recorded outputs of a cell.
    pub fn clear(&self, index: usize) {
        self.cells.lock()[index] = Recorded::default();
    }

    /// Records the error of a cell.
    pub fn error(&self, index: usize, error: &CellError) {
        self.add(index, Output::Error(error.clone()));
    }

    /// What the cell at `index` has displayed.
    pub fn displays(&self, index: usize) -> Vec<MimeBundle> {
        let display = |output: &Output| match output {
            Output::Display { data, .. } => Some(data.clone()),
            _ => None,
        };
        let cells = self.cells.lock();
        cells[index].outputs.iter().filter_map(display).collect()
    }

    /// Writes changed outputs into the notebook's cells; an update may have changed a display of an earlier cell.
    pub fn write_into(&self, cells: &mut [Value]) {
        for (recorded, cell) in self.cells.lock().iter_mut().zip(cells) {
            if std::mem::take(&mut recorded.changed) {
                cell["outputs"] = recorded.outputs.iter().map(Output::json).collect();
            }
        }
    }

    fn add(&self, index: usize, output: Output) {
        let mut cells = self.cells.lock();
        let cell = &mut cells[index];
        cell.changed = true;
        if std::mem::take(&mut cell.clear_next) {
            cell.outputs.clear();
        }
        if let Output::Text { stream, text } = &output {
            let same =
                |it: &&mut Output| matches!(it, Output::Text { stream: s, .. } if s == stream);
            if let Some(Output::Text { text: before, .. }) = cell.outputs.last_mut().filter(same) {
                before.push_str(text);
                return;
            }
        }
        cell.outputs.push(output);
    }

    fn update(&self, id: &str, data: &MimeBundle, metadata: &MimeBundle) {
        for cell in self.cells.lock().iter_mut() {
            for output in &mut cell.outputs {
                match output {
                    Output::Display {
                        data: old,
                        metadata: about,
                        display_id: Some(same),
                    } if same == id => {
                        old.clone_from(data);
                        about.clone_from(metadata);
                        cell.changed = true;
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Output {
    fn json(&self) -> Value {
        match self {
            Output::Text { stream, text } => json!({
                "name": stream.name(),
                "output_type": "stream",
                "text": lines(&terminal_text(text)),
            }),
            Output::Display { data, metadata, .. } => json!({
                "data": stored(data),
                "metadata": metadata,
                "output_type": "display_data",
            }),
            Output::Result { number, data } => json!({
                "data": stored(data),
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }),
            Output::Error(error) => json!({
                "ename": error.ename,
                "evalue": error.evalue,
                "output_type": "error",
                "traceback": error.traceback,
            }),
        }
    }
}

/// nbformat keeps text as lines, and JSON as it is.
fn stored(data: &MimeBundle) -> Value {
    let stored = data.iter().map(|(kind, value)| match value {
        Value::String(text) if !is_json(kind) => (kind.clone(), lines(text)),
        other => (kind.clone(), other.clone()),
    });
    Value::Object(stored.collect())
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// The text as a terminal would show it: after a carriage return, text overwrites the line from its start, as progress
/// bars do.
fn terminal_text(text: &str) -> String {
    if !text.contains('\r') {
        return text.to_owned();
    }
    let overwritten = |line: &str| -> String {
        let (content, end) = match line.strip_suffix('\n') {
            Some(content) => (content.strip_suffix('\r').unwrap_or(content), "\n"),
            None => (line, ""),
        };
        let mut shown: Vec<char> = Vec::new();
        for piece in content.split('\r') {
            let piece: Vec<char> = piece.chars().collect();
            let kept = shown.split_off(piece.len().min(shown.len()));
            shown = piece;
            shown.extend(kept);
        }
        shown.into_iter().collect::<String>() + end
    };
    text.split_inclusive('\n').map(overwritten).collect()
}

struct CellRecorder {
    recorder: Recorder,
    index: usize,
    number: u64,
}

impl OutputSink for CellRecorder {
    fn stream(&self, stream: Stream, text: &str) {
        self.recorder.add(
            self.index,
            Output::Text {
                stream,
                text: text.to_owned(),
            },
        );
    }

    fn display(
        &self,
        data: MimeBundle,
        metadata: MimeBundle,
        display_id: Option<String>,
        update: bool,
    ) {
        match (&display_id, update) {
            (Some(id), true) => self.recorder.update(id, &data, &metadata),
            (None, true) => {}
            _ => self.recorder.add(
                self.index,
                Output::Display {
                    data,
                    metadata,
                    display_id,
                },
            ),
        }
    }

    fn result(&self, data: MimeBundle) {
        self.recorder.add(
            self.index,
            Output::Result {
                number: self.number,
                data,
            },
        );
    }

    fn clear(&self, wait: bool) {
        let mut cells = self.recorder.cells.lock();
        let cell = &mut cells[self.index];
        cell.clear_next = wait;
        if !wait {
            cell.outputs.clear();
            cell.changed = true;
        }
    }

    fn input(&self, _prompt: &str, _password: bool) -> Option<String> {
        // A headless run has no user to ask.
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(text: &str) -> MimeBundle {
        MimeBundle::from_iter([("text/plain".to_owned(), json!(text))])
    }

    /// What cells 0 and 1 have shown, after `write` has used their outputs.
    fn check(write: impl FnOnce(&dyn OutputSink, &dyn OutputSink), expected: [Value; 2]) {
        let mut cells = vec![json!({"outputs": "kept"}), json!({"outputs": "kept"})];
        let recorder = Recorder::new(&cells);
        write(recorder.cell(0, 1).as_ref(), recorder.cell(1, 2).as_ref());
        recorder.write_into(&mut cells);
        assert_eq!(cells.map_outputs(), expected);
    }

    trait MapOutputs {
        fn map_outputs(self) -> [Value; 2];
    }

    impl MapOutputs for Vec<Value> {
        fn map_outputs(self) -> [Value; 2] {
            [self[0]["outputs"].clone(), self[1]["outputs"].clone()]
        }
    }

    #[test]
    fn text_of_a_stream_is_joined() {
        check(
            |cell, _| {
                cell.stream(Stream::Stdout, "a");
                cell.stream(Stream::Stdout, "b\nc");
                cell.stream(Stream::Stderr, "!");
                cell.stream(Stream::Stdout, "d");
            },
            [
                json!([
                    {"name": "stdout", "output_type": "stream", "text": ["ab\n", "c"]},
                    {"name": "stderr", "output_type": "stream", "text": ["!"]},
                    {"name": "stdout", "output_type": "stream", "text": ["d"]},
                ]),
                json!("kept"),
            ],
        );
    }

    #[test]
    fn updates_reach_every_display_of_the_name() {
        check(
            |first, second| {
                first.display(bundle("0 %"), MimeBundle::new(), Some("bar".into()), false);
                first.display(bundle("other"), MimeBundle::new(), None, false);
                second.display(bundle("100 %"), MimeBundle::new(), Some("bar".into()), true);
                second.display(bundle("?"), MimeBundle::new(), Some("none".into()), true);
            },
            [
                json!([
                    {"data": {"text/plain": ["100 %"]}, "metadata": {}, "output_type": "display_data"},
                    {"data": {"text/plain": ["other"]}, "metadata": {}, "output_type": "display_data"},
                ]),
                json!("kept"),
            ],
        );
    }

    #[test]
    fn clearing_at_once_and_with_the_next_output() {
        check(
            |first, second| {
                first.stream(Stream::Stdout, "gone");
                first.clear(false);
                second.stream(Stream::Stdout, "gone");
                second.clear(true);
                second.result(bundle("2"));
            },
            [
                json!([]),
                json!([{"data": {"text/plain": ["2"]}, "execution_count": 2, "metadata": {},
                        "output_type": "execute_result"}]),
            ],
        );
    }

    #[test]
    fn json_stays_json_and_text_becomes_lines() {
        let data = MimeBundle::from_iter([
            ("text/html".to_owned(), json!("<p>\n</p>")),
            (
                "application/vnd.stratoscope.diagnostic+json".to_owned(),
                json!({"code": "SC0101"}),
            ),
            ("application/json".to_owned(), json!("a\nb")),
        ]);
        let expected = json!({
            "text/html": ["<p>\n", "</p>"],
            "application/vnd.stratoscope.diagnostic+json": {"code": "SC0101"},
            "application/json": "a\nb",
        });
        assert_eq!(stored(&data), expected);
    }

    #[test]
    fn carriage_returns_overwrite() {
        assert_eq!(terminal_text("10 %\r100 %\nnext\rN"), "100 %\nNext");
        assert_eq!(terminal_text("windows\r\n"), "windows\n");
        assert_eq!(terminal_text("größe\rx"), "xröße");
    }
}
