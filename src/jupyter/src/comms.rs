//! The open comms. There are two kinds: the models of the widget of `%vars live`, which shows the variables after
//! each cell and which the kernel opens; and the control channel, which a reloaded front end opens to request
//! the state of all models.
//!
//! A front end with Jupyter's widgets draws the models; one without shows the table that is displayed with
//! them. Implemented is the part of the widget protocol that a table needs which only the kernel changes:
//! <https://github.com/jupyter-widgets/ipywidgets/blob/main/packages/schema/messages.md>

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::message::{CommClose, CommMessage, CommOpen, CommOpened};
use super::socket::iopub::Iopub;

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
    /// The control channels that front ends opened.
    controls: BTreeSet<String>,
}

/// One model of a widget.
struct Model {
    id: String,
    state: Map<String, Value>,
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
            state.models = models(html);
            for model in &state.models {
                let opened = CommOpened {
                    comm_id: &model.id,
                    target_name: WIDGET,
                    data: json!({"state": model.state, "buffer_paths": []}),
                };
                self.iopub.publish(parent, &opened);
            }
        } else {
            self.update(&mut state, parent, html);
        }
        state
            .models
            .last()
            .map(|it| it.id.clone())
            .unwrap_or_default()
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
    pub fn list(&self, target_name: Option<&str>) -> Value {
        let state = self.state.lock();
        let models = state.models.iter().map(|model| (model.id.as_str(), WIDGET));
        let controls = state.controls.iter().map(|id| (id.as_str(), CONTROL));
        let wanted = |(_, target): &(&str, &str)| target_name.is_none_or(|name| name == *target);
        models
            .chain(controls)
            .filter(wanted)
            .map(|(id, target)| (id.to_owned(), json!({"target_name": target})))
            .collect::<Map<_, _>>()
            .into()
    }

    /// A front end opens a comm. One to an unknown target is closed at once.
    pub fn opened(&self, parent: &Arc<Value>, comm: CommOpen) {
        if comm.target_name == CONTROL {
            self.state.lock().controls.insert(comm.comm_id);
            return;
        }
        let closed = CommClose {
            comm_id: comm.comm_id,
            data: json!({}),
        };
        self.iopub.publish(parent, &closed);
    }

    /// A front end sends a message over a comm.
    pub fn received(&self, parent: &Arc<Value>, message: &CommMessage) {
        let state = self.state.lock();
        let id = &message.comm_id;
        match message.data["method"].as_str() {
            Some("request_states") if state.controls.contains(id) => {
                let states: Map<String, Value> = state
                    .models
                    .iter()
                    .map(|model| (model.id.clone(), model.named()))
                    .collect();
                let data = json!({
                    "method": "update_states", "states": states, "buffer_paths": [],
                });
                self.send(parent, id, data);
            }
            Some("request_state") => {
                if let Some(model) = state.models.iter().find(|model| model.id == *id) {
                    self.send(parent, id, update(json!(model.state)));
                }
            }
            // Views cannot change the table.
            _ => {}
        }
    }

    /// A front end closes a comm. Closing one model of the table closes the table.
    pub fn closed(&self, comm_id: &str) {
        let mut state = self.state.lock();
        state.controls.remove(comm_id);
        if state.models.iter().any(|model| model.id == comm_id) {
            state.models.clear();
        }
    }

    fn send(&self, parent: &Arc<Value>, comm_id: &str, data: Value) {
        let comm_id = comm_id.to_owned();
        self.iopub.publish(parent, &CommMessage { comm_id, data });
    }
}

/// The MIME entry that displays a view of the model `id`.
pub fn view(id: &str) -> (String, Value) {
    (
        "application/vnd.jupyter.widget-view+json".to_owned(),
        json!({"version_major": 2, "version_minor": 0, "model_id": id}),
    )
}

fn update(state: Value) -> Value {
    json!({"method": "update", "state": state, "buffer_paths": []})
}

/// The models of an HTML widget: layout, style, and the widget itself, which refers to both.
fn models(html: &str) -> Vec<Model> {
    const BASE: (&str, &str) = ("@jupyter-widgets/base", "2.0.0");
    const CONTROLS: (&str, &str) = ("@jupyter-widgets/controls", "2.0.0");
    let layout = Model::new(BASE, "LayoutModel", BASE, "LayoutView");
    let style = Model::new(CONTROLS, "HTMLStyleModel", BASE, "StyleView");
    let mut table = Model::new(CONTROLS, "HTMLModel", CONTROLS, "HTMLView");
    let rest = json!({
        "value": html,
        "layout": format!("IPY_MODEL_{}", layout.id),
        "style": format!("IPY_MODEL_{}", style.id),
        "_dom_classes": [],
        "description": "",
        "description_allow_html": false,
        "placeholder": "",
        "tabbable": null,
        "tooltip": null,
    });
    if let Value::Object(rest) = rest {
        table.state.extend(rest);
    }
    vec![layout, style, table]
}

impl Model {
    fn new(of_model: (&str, &str), model: &str, of_view: (&str, &str), view: &str) -> Self {
        let state = json!({
            "_model_module": of_model.0,
            "_model_module_version": of_model.1,
            "_model_name": model,
            "_view_count": null,
            "_view_module": of_view.0,
            "_view_module_version": of_view.1,
            "_view_name": view,
        });
        Self {
            id: Uuid::new_v4().simple().to_string(),
            state: state.as_object().cloned().unwrap_or_default(),
        }
    }

    /// The state with the name of its model.
    fn named(&self) -> Value {
        json!({
            "model_name": self.state["_model_name"],
            "model_module": self.state["_model_module"],
            "model_module_version": self.state["_model_module_version"],
            "state": self.state,
        })
    }
}
