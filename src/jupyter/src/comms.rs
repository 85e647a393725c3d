//! The open comms. The kernel opens those of its widgets: the table of `%vars live`, which shows the variables after
//! each cell, and the buttons of a run of training. A front end with widgets opens the control channel, on which it
//! requests the state of all models when it is loaded.
//!
//! A front end with Jupyter's widgets draws the models; one without shows the table that is displayed with
//! them, and no buttons. Implemented is the part of the widget protocol that these need:
//! <https://github.com/jupyter-widgets/ipywidgets/blob/main/packages/schema/messages.md>

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use stratoscope_wire::{RunAction, RunState};
use uuid::Uuid;

use super::message::{CommClose, CommMessage, CommOpen, CommOpened};
use super::socket::iopub::Iopub;
use super::widget::{self, Model, RunButtons};

/// The target of a widget's model.
const WIDGET: &str = "jupyter.widget";
/// The target of the channel that requests all states.
const CONTROL: &str = "jupyter.widget.control";

/// Clones share the comms.
#[derive(Clone)]
pub struct Comms {
    iopub: Iopub,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The models of the live table, the table itself last. Empty: there is no live table.
    models: Vec<Model>,
    /// The runs of the running cell that have buttons.
    runs: Vec<Run>,
    /// The control channels that front ends opened.
    controls: BTreeSet<String>,
    /// Whether a front end with widgets was ever connected.
    has_widgets: bool,
}

/// A run with buttons.
struct Run {
    number: u64,
    buttons: RunButtons,
    /// The id of the display that shows them.
    display: String,
}

/// What a cell is to show after the state of a run has changed.
pub enum Change {
    /// Nothing.
    None,
    /// A view of the new buttons, as a display with this id.
    Opened {
        /// The MIME entry of the view.
        view: (String, Value),
        /// The id.
        display: String,
    },
    /// The display with this id is to be emptied.
    Ended {
        /// The id.
        display: String,
    },
}

impl State {
    /// All models of all widgets.
    fn models(&self) -> impl Iterator<Item = &Model> {
        let of_runs = self.runs.iter().flat_map(|run| &run.buttons.models);
        self.models.iter().chain(of_runs)
    }
}

impl Comms {
    /// No comm is open.
    pub fn new(iopub: Iopub) -> Self {
        Self {
            iopub,
            state: Arc::default(),
        }
    }

    /// Opens the live table with this HTML, or updates the open one; returns the id of its model. `parent` is the
    /// header of the request.
    pub fn open_table(&self, parent: &Arc<Value>, html: &str) -> String {
        let mut state = self.state.lock();
        if state.models.is_empty() {
            state.models = widget::html(html);
            self.open(parent, &state.models);
        } else {
            self.update(&mut state, parent, html);
        }
        state
            .models
            .last()
            .map(|it| it.id.clone())
            .unwrap_or_default()
    }

    /// Records what a run does, and updates its buttons. They exist only where a front end with widgets is.
    pub fn set_run(&self, parent: &Arc<Value>, number: u64, now: RunState) -> Change {
        let mut state = self.state.lock();
        let known = state.runs.iter().position(|run| run.number == number);
        match (known, now) {
            (Some(at), RunState::Ended) => {
                let run = state.runs.remove(at);
                let display = run.display.clone();
                self.close(parent, &run);
                Change::Ended { display }
            }
            (Some(at), _) => {
                for (id, disabled) in state.runs[at].buttons.set(now) {
                    self.send(parent, &id, update(json!({"disabled": disabled})));
                }
                Change::None
            }
            (None, RunState::Ended) => Change::None,
            (None, _) if !state.has_widgets => Change::None,
            (None, _) => {
                let buttons = RunButtons::new(now);
                self.open(parent, &buttons.models);
                let row = buttons.models.last().map(|row| row.id.as_str());
                let view = widget::view(row.unwrap_or_default());
                let display = Uuid::new_v4().simple().to_string();
                state.runs.push(Run {
                    number,
                    buttons,
                    display: display.clone(),
                });
                Change::Opened { view, display }
            }
        }
    }

    /// The cell has ended, and so have its runs; returns the ids of the displays to be emptied.
    pub fn end_runs(&self, parent: &Arc<Value>) -> Vec<String> {
        let runs = std::mem::take(&mut self.state.lock().runs);
        runs.iter().for_each(|run| self.close(parent, run));
        runs.into_iter().map(|run| run.display).collect()
    }

    /// Whether there is a live table.
    pub fn has_table(&self) -> bool {
        !self.state.lock().models.is_empty()
    }

    /// Replaces the HTML of the live table, if there is one.
    pub fn update_table(&self, parent: &Arc<Value>, html: &str) {
        self.update(&mut self.state.lock(), parent, html);
    }

    fn update(&self, state: &mut State, parent: &Arc<Value>, html: &str) {
        let Some(table) = state.models.last_mut() else {
            return;
        };
        if table.state["value"] == html {
            return;
        }
        table.state.insert("value".to_owned(), html.into());
        self.send(parent, &table.id, update(json!({"value": html})));
    }

    /// The open comms as `comm_info_reply` lists them; with `target_name`, only those to that target.
    pub fn list(&self, target_name: Option<&str>) -> Map<String, Value> {
        let state = self.state.lock();
        let models = state.models().map(|model| (model.id.as_str(), WIDGET));
        let controls = state.controls.iter().map(|id| (id.as_str(), CONTROL));
        let wanted = |(_, target): &(&str, &str)| target_name.is_none_or(|name| name == *target);
        models
            .chain(controls)
            .filter(wanted)
            .map(|(id, target)| (id.to_owned(), json!({"target_name": target})))
            .collect()
    }

    /// A front end opens a comm. One to an unknown target is closed at once.
    pub fn opened(&self, parent: &Arc<Value>, comm: CommOpen) {
        if comm.target_name == CONTROL {
            let mut state = self.state.lock();
            state.controls.insert(comm.comm_id);
            state.has_widgets = true;
            return;
        }
        let closed = CommClose {
            comm_id: comm.comm_id,
            data: json!({}),
        };
        self.iopub.publish(parent, &closed);
    }

    /// A front end sends a message over a comm. Returns the run and what is asked for, where that is a button of a
    /// run that was pressed.
    pub fn received(&self, parent: &Arc<Value>, message: &CommMessage) -> Option<(u64, RunAction)> {
        let state = self.state.lock();
        let id = &message.comm_id;
        match message.data["method"].as_str() {
            Some("request_states") if state.controls.contains(id) => {
                let states: Map<String, Value> = state
                    .models()
                    .map(|model| (model.id.clone(), model.named()))
                    .collect();
                let data = json!({
                    "method": "update_states", "states": states, "buffer_paths": [],
                });
                self.send(parent, id, data);
            }
            Some("request_state") => {
                if let Some(model) = state.models().find(|model| model.id == *id) {
                    self.send(parent, id, update(json!(model.state)));
                }
            }
            Some("custom") if message.data["content"]["event"] == "click" => {
                let pressed = |run: &Run| Some((run.number, run.buttons.action(id)?));
                return state.runs.iter().find_map(pressed);
            }
            // Views cannot change the models.
            _ => {}
        }
        None
    }

    /// A front end closes a comm. Closing one model of the table closes the table.
    pub fn closed(&self, comm_id: &str) {
        let mut state = self.state.lock();
        state.controls.remove(comm_id);
        if state.models.iter().any(|model| model.id == comm_id) {
            state.models.clear();
        }
    }

    fn open(&self, parent: &Arc<Value>, models: &[Model]) {
        for model in models {
            let opened = CommOpened {
                comm_id: &model.id,
                target_name: WIDGET,
                data: json!({"state": model.state, "buffer_paths": []}),
            };
            self.iopub.publish(parent, &opened);
        }
    }

    fn close(&self, parent: &Arc<Value>, run: &Run) {
        for model in &run.buttons.models {
            let closed = CommClose {
                comm_id: model.id.clone(),
                data: json!({}),
            };
            self.iopub.publish(parent, &closed);
        }
    }

    fn send(&self, parent: &Arc<Value>, comm_id: &str, data: Value) {
        let comm_id = comm_id.to_owned();
        self.iopub.publish(parent, &CommMessage { comm_id, data });
    }
}

fn update(state: Value) -> Value {
    json!({"method": "update", "state": state, "buffer_paths": []})
}
