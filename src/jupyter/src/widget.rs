//! The models of Jupyter's widgets that this kernel shows: an HTML widget, and a row of buttons. A model has an id, by
//! which its comm is known, and a state; models refer to each other as `IPY_MODEL_<id>`.
//!
//! The states are those of <https://github.com/jupyter-widgets/ipywidgets/blob/main/packages/schema/jupyterwidgetmodels.latest.md>;
//! front ends fill in what is missing.

use serde_json::{Map, Value, json};
use stratoscope_wire::{RunAction, RunState};
use uuid::Uuid;

const BASE: (&str, &str) = ("@jupyter-widgets/base", "2.0.0");
const CONTROLS: (&str, &str) = ("@jupyter-widgets/controls", "2.0.0");

/// One model of a widget.
pub struct Model {
    /// The id of its comm.
    pub id: String,
    /// What front ends draw.
    pub state: Map<String, Value>,
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

    fn with(mut self, state: Value) -> Self {
        if let Value::Object(state) = state {
            self.state.extend(state);
        }
        self
    }

    /// How other models refer to it.
    fn reference(&self) -> String {
        format!("IPY_MODEL_{}", self.id)
    }

    /// The state with the name of its model.
    pub fn named(&self) -> Value {
        json!({
            "model_name": self.state["_model_name"],
            "model_module": self.state["_model_module"],
            "model_module_version": self.state["_model_module_version"],
            "state": self.state,
        })
    }
}

/// The MIME entry that displays a view of the model `id`.
pub fn view(id: &str) -> (String, Value) {
    (
        "application/vnd.jupyter.widget-view+json".to_owned(),
        json!({"version_major": 2, "version_minor": 0, "model_id": id}),
    )
}

/// The models of an HTML widget: layout, style, and last the widget itself, which refers to both.
pub fn html(html: &str) -> Vec<Model> {
    let layout = Model::new(BASE, "LayoutModel", BASE, "LayoutView");
    let style = Model::new(CONTROLS, "HTMLStyleModel", BASE, "StyleView");
    let table = Model::new(CONTROLS, "HTMLModel", CONTROLS, "HTMLView").with(json!({
        "value": html,
        "layout": layout.reference(),
        "style": style.reference(),
        "_dom_classes": [],
        "description": "",
        "description_allow_html": false,
        "placeholder": "",
        "tabbable": null,
        "tooltip": null,
    }));
    vec![layout, style, table]
}

/// A button of a run: what it asks for, its text, and what it does in a sentence.
type Button = (RunAction, &'static str, &'static str);

const BUTTONS: [Button; 6] = [
    (
        RunAction::Pause,
        "Pause",
        "Wait before the next optimizer step",
    ),
    (
        RunAction::Step,
        "Step",
        "Make one optimizer step, then wait again",
    ),
    (RunAction::Continue, "Continue", "Go on training"),
    (
        RunAction::Stop,
        "Stop",
        "End the call; the model keeps what it has learned",
    ),
    (
        RunAction::HalveRate,
        "Rate × ½",
        "Half the learning rate from the next step on",
    ),
    (
        RunAction::DoubleRate,
        "Rate × 2",
        "Twice the learning rate from the next step on",
    ),
];

/// Whether a button does something in this state of the run.
fn is_enabled(action: RunAction, state: RunState) -> bool {
    !matches!(
        (state, action),
        (RunState::Ended, _)
            | (RunState::Running, RunAction::Step | RunAction::Continue)
            | (RunState::Paused, RunAction::Pause)
    )
}

/// The buttons of a run, in a row.
pub struct RunButtons {
    /// In the order in which their comms are opened: the row itself is the last.
    pub models: Vec<Model>,
    buttons: Vec<(usize, RunAction)>,
}

impl RunButtons {
    /// The buttons of a run in this state.
    pub fn new(state: RunState) -> Self {
        let layout = Model::new(BASE, "LayoutModel", BASE, "LayoutView").with(json!({
            "width": "auto",
        }));
        let style = Model::new(CONTROLS, "ButtonStyleModel", BASE, "StyleView");
        let (of_button, of_style) = (layout.reference(), style.reference());
        let mut models = vec![layout, style];
        let mut buttons = Vec::new();
        for (action, text, tooltip) in BUTTONS {
            buttons.push((models.len(), action));
            let button = Model::new(CONTROLS, "ButtonModel", CONTROLS, "ButtonView");
            models.push(button.with(json!({
                "description": text,
                "tooltip": tooltip,
                "disabled": !is_enabled(action, state),
                "layout": of_button,
                "style": of_style,
                "_dom_classes": [],
                "button_style": "",
                "icon": "",
                "tabbable": null,
            })));
        }
        let children: Vec<String> = (buttons.iter())
            .map(|&(at, _)| models[at].reference())
            .collect();
        let of_row = Model::new(BASE, "LayoutModel", BASE, "LayoutView").with(json!({
            "flex_flow": "row wrap",
        }));
        let row = Model::new(CONTROLS, "HBoxModel", CONTROLS, "HBoxView").with(json!({
            "children": children,
            "layout": of_row.reference(),
            "_dom_classes": [],
            "box_style": "",
            "tabbable": null,
            "tooltip": null,
        }));
        models.extend([of_row, row]);
        Self { models, buttons }
    }

    /// What the button with this comm asks for, if it is one of them and does something now.
    pub fn action(&self, comm_id: &str) -> Option<RunAction> {
        let pressed = |&&(at, _): &&(usize, RunAction)| {
            let model = &self.models[at];
            model.id == comm_id && model.state["disabled"] == false
        };
        self.buttons.iter().find(pressed).map(|&(_, action)| action)
    }

    /// Enables the buttons that do something in this state; the ids of those that change, with the new value of
    /// `disabled`.
    pub fn set(&mut self, state: RunState) -> Vec<(String, bool)> {
        let mut changed = Vec::new();
        for &(at, action) in &self.buttons {
            let (model, disabled) = (&mut self.models[at], !is_enabled(action, state));
            if model.state["disabled"] != disabled {
                model.state.insert("disabled".to_owned(), disabled.into());
                changed.push((model.id.clone(), disabled));
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(buttons: &RunButtons) -> Vec<&str> {
        let models = buttons.buttons.iter().map(|&(at, _)| &buttons.models[at]);
        let enabled = models.filter(|model| model.state["disabled"] == false);
        enabled
            .filter_map(|model| model.state["description"].as_str())
            .collect()
    }

    #[test]
    fn buttons_are_enabled_where_they_do_something() {
        let mut buttons = RunButtons::new(RunState::Running);
        assert_eq!(enabled(&buttons), ["Pause", "Stop", "Rate × ½", "Rate × 2"]);
        let changed = buttons.set(RunState::Paused);
        assert_eq!(changed.len(), 3);
        let expected = ["Step", "Continue", "Stop", "Rate × ½", "Rate × 2"];
        assert_eq!(enabled(&buttons), expected);
        assert_eq!(buttons.set(RunState::Paused), []);
        buttons.set(RunState::Ended);
        assert_eq!(enabled(&buttons), [""; 0]);
    }

    #[test]
    fn only_an_enabled_button_asks_for_something() {
        let buttons = RunButtons::new(RunState::Running);
        let id = |text: &str| {
            let model = buttons
                .models
                .iter()
                .find(|model| model.state.get("description").is_some_and(|it| it == text));
            model.expect("a button").id.clone()
        };
        assert_eq!(buttons.action(&id("Pause")), Some(RunAction::Pause));
        assert_eq!(buttons.action(&id("Continue")), None);
        assert_eq!(buttons.action("another comm"), None);
    }

    #[test]
    fn models_refer_only_to_models_opened_before() {
        let buttons = RunButtons::new(RunState::Running);
        for (at, model) in buttons.models.iter().enumerate() {
            let text = Value::Object(model.state.clone()).to_string();
            let count = text.matches("IPY_MODEL_").count();
            let before = buttons.models[..at].iter();
            let known: usize = before.map(|it| text.matches(&it.reference()).count()).sum();
            assert_eq!(count, known, "{text}");
        }
    }
}
