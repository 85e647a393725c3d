//! Where a run that the panel drives stops by itself: the protocol's exception filters are conditions of
//! `run.break_when(…)`, with a number that can be changed.

use serde_json::{Map, Value, json};

/// The conditions that the panel has chosen.
#[derive(Debug, Default)]
pub struct Conditions {
    filters: Vec<String>,
    /// What stops a cell.
    pub of_cells: OfCells,
    of_data: Vec<String>,
    /// Some were chosen before: a run may have them.
    were_chosen: bool,
}

impl Conditions {
    /// `setExceptionBreakpoints`; returns the body of the reply.
    ///
    /// # Errors
    /// A filter that there is not, or a number that cannot be one; the reason.
    pub fn choose(&mut self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let mut arguments = arguments.clone();
        let of_cells = OfCells {
            panics: take(&mut arguments, PANICS.0),
            errors: take(&mut arguments, ERRORS.0),
        };
        self.filters = chosen(&arguments)?;
        self.of_cells = of_cells;
        self.were_chosen |= !self.filters.is_empty();
        let of_cells = usize::from(of_cells.panics) + usize::from(of_cells.errors);
        Ok(verified(self.filters.len() + of_cells))
    }

    /// `setDataBreakpoints`: a run stops before an update of this variable's layer that is larger than a share of its
    /// weights. Returns the body of the reply.
    ///
    /// # Errors
    /// The arguments are others; the reason.
    pub fn watch(&mut self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let wanted = list(arguments, "breakpoints")?;
        let of_update = &FILTERS[UPDATE_RATIO];
        let conditions = wanted.iter().map(|it| {
            let variable = it["dataId"].as_str().filter(|it| is_name(it));
            let variable = variable.ok_or("a `dataId` is one of `dataBreakpointInfo`")?;
            let ratio = of_update.with(&it["condition"])?;
            Ok(format!("{ratio}.of({variable:?})"))
        });
        self.of_data = conditions.collect::<Result<_, String>>()?;
        self.were_chosen |= !self.of_data.is_empty();
        Ok(verified(self.of_data.len()))
    }

    /// The argument of `break_for_panel`; `None` if no run can have a condition of the panel.
    pub fn code(&self) -> Option<String> {
        let all: Vec<String> = (self.filters.iter().chain(&self.of_data))
            .map(|condition| format!("stratoscope::prelude::{condition}"))
            .collect();
        self.were_chosen.then(|| match all.is_empty() {
            true => "None".to_owned(),
            false => format!("Some({})", all.join(" | ")),
        })
    }
}

/// Where a cell stops by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfCells {
    /// At a panic.
    pub panics: bool,
    /// At a `?` that ends the cell.
    pub errors: bool,
}

/// The filters of cells: their names and labels.
const PANICS: (&str, &str) = ("panic", "A cell panics");
const ERRORS: (&str, &str) = ("error", "A `?` ends a cell");

/// Takes a filter of cells out of the arguments of `setExceptionBreakpoints`. Whether it was there.
fn take(arguments: &mut Map<String, Value>, id: &str) -> bool {
    let mut is_there = false;
    for (list, key) in [("filters", None), ("filterOptions", Some("filterId"))] {
        if let Some(Value::Array(filters)) = arguments.get_mut(list) {
            let before = filters.len();
            filters.retain(|it| key.map_or(it, |key| &it[key]) != id);
            is_there |= filters.len() < before;
        }
    }
    is_there
}

fn verified(count: usize) -> Value {
    json!({"breakpoints": vec![json!({"verified": true}); count]})
}

/// More are refused.
const MAX_CONDITIONS: usize = 1000;

fn list(arguments: &Map<String, Value>, name: &str) -> Result<Vec<Value>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MAX_CONDITIONS => Ok(list.clone()),
        Some(_) => Err(format!(
            "`{name}` is to be a list of at most {MAX_CONDITIONS}"
        )),
    }
}

/// Whether this is the name of a variable of a model.
fn is_name(text: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || matches!(it, '_' | '.');
    !text.is_empty() && text.len() <= 500 && text.chars().all(is_part)
}

/// The body of the reply to `dataBreakpointInfo` for a value of a run, `model.dense.weight`.
pub fn data_of(part: Option<&str>) -> Value {
    let variable = part.and_then(|part| {
        let (of, variable) = part.split_once('.')?;
        let is_watched = ["model", "weights", "gradients", "updates"].contains(&of);
        (is_watched && is_name(variable)).then_some(variable)
    });
    match variable {
        Some(variable) => json!({
            "dataId": variable, "accessTypes": ["write"], "canPersist": true,
            "description": format!("an update of the layer of `{variable}` above 0.1 of its weights; the condition is another number"),
        }),
        None => json!({
            "dataId": null,
            "description": "only variables of the model of a run can be watched: `run.model.dense.weight`",
        }),
    }
}

/// A condition that can be chosen.
struct Filter {
    id: &'static str,
    label: &'static str,
    /// The condition with `#` for its number, and the number where none is given. `None`: it has no number.
    number: Option<f64>,
    about_number: &'static str,
    written: &'static str,
}

/// The filter about updates.
const UPDATE_RATIO: usize = 3;

const FILTERS: [Filter; 5] = [
    Filter {
        id: "nan",
        label: "The loss or a gradient is not finite",
        number: None,
        about_number: "",
        written: "nan()",
    },
    Filter {
        id: "spike",
        label: "The loss is a multiple of its median",
        number: Some(4.0),
        about_number: "the factor above 1, such as 4",
        written: "spike(#)",
    },
    Filter {
        id: "grad_norm",
        label: "The gradient norm is above a limit",
        number: Some(10.0),
        about_number: "the limit, such as 10",
        written: "grad_norm().above(#)",
    },
    Filter {
        id: "update_ratio",
        label: "An update is large beside its weights",
        number: Some(0.1),
        about_number: "the ratio, such as 0.1",
        written: "update_ratio().above(#)",
    },
    Filter {
        id: "accuracy_drop",
        label: "The training accuracy has dropped",
        number: Some(0.1),
        about_number: "the distance between 0 and 1, such as 0.1",
        written: "accuracy_drop().by(#)",
    },
];

/// As `initialize` announces them.
pub fn announced() -> Value {
    let announced = FILTERS.iter().map(|filter| {
        let mut shown = json!({"filter": filter.id, "label": filter.label, "default": false});
        if filter.number.is_some() {
            shown["supportsCondition"] = true.into();
            shown["conditionDescription"] = filter.about_number.into();
        }
        shown
    });
    let of_cells =
        [PANICS, ERRORS].map(|(id, label)| json!({"filter": id, "label": label, "default": false}));
    of_cells.into_iter().chain(announced).collect()
}

/// The names of the filters.
fn names() -> Vec<&'static str> {
    let of_runs = FILTERS.iter().map(|it| it.id);
    [PANICS.0, ERRORS.0].into_iter().chain(of_runs).collect()
}

/// The filters that `setExceptionBreakpoints` chooses, as Rust conditions.
///
/// # Errors
/// A filter that there is not, or a number that cannot be one; the reason.
fn chosen(arguments: &Map<String, Value>) -> Result<Vec<String>, String> {
    let plain = list(arguments, "filters")?
        .into_iter()
        .map(|id| (id, Value::Null));
    let with_numbers = list(arguments, "filterOptions")?
        .into_iter()
        .map(|it| (it["filterId"].clone(), it["condition"].clone()));
    let mut conditions = Vec::new();
    for (id, number) in plain.chain(with_numbers) {
        let id = id.as_str().ok_or("a filter is named by a text")?;
        let filter = FILTERS.iter().find(|it| it.id == id).ok_or_else(|| {
            let id: String = id.chars().take(100).collect();
            let names = names().join(", ");
            format!("there is no filter `{id}`; there are {names}")
        })?;
        let condition = filter.with(&number)?;
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    Ok(conditions)
}

impl Filter {
    /// The condition with this number; with the usual one where it is empty.
    fn with(&self, number: &Value) -> Result<String, String> {
        let Some(usual) = self.number else {
            return Ok(self.written.to_owned());
        };
        let number = match number {
            Value::Null => usual,
            Value::String(text) if text.trim().is_empty() => usual,
            Value::String(text) => text.trim().parse().unwrap_or(f64::NAN),
            other => other.as_f64().unwrap_or(f64::NAN),
        };
        let is_possible = match self.id {
            "spike" => number > 1.0,
            "accuracy_drop" => number > 0.0 && number < 1.0,
            _ => number > 0.0,
        };
        if !(is_possible && number.is_finite()) {
            return Err(format!(
                "`{}` takes a number: {}",
                self.id, self.about_number
            ));
        }
        Ok(self.written.replace('#', &format!("{number:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: Value) -> Result<Vec<String>, String> {
        chosen(arguments.as_object().expect("an object"))
    }

    #[test]
    fn filters_are_conditions() {
        let usual = of(json!({"filters": ["nan", "spike", "nan"]}));
        assert_eq!(usual, Ok(vec!["nan()".to_owned(), "spike(4.0)".to_owned()]));
        let own = of(json!({"filters": [], "filterOptions": [
            {"filterId": "grad_norm", "condition": " 2 "}, {"filterId": "update_ratio"},
        ]}));
        let expected = ["grad_norm().above(2.0)", "update_ratio().above(0.1)"];
        assert_eq!(own, Ok(expected.map(str::to_owned).to_vec()));
        assert_eq!(of(json!({})), Ok(Vec::new()));
    }

    #[test]
    fn filters_of_cells_are_apart() {
        let mut conditions = Conditions::default();
        let all = json!({"filters": ["panic", "nan"], "filterOptions": [{"filterId": "error"}]});
        let body = conditions.choose(all.as_object().expect("an object"));
        assert_eq!(body, Ok(verified(3)));
        let expected = OfCells {
            panics: true,
            errors: true,
        };
        assert_eq!(
            (conditions.of_cells, conditions.filters.len()),
            (expected, 1)
        );
        conditions.choose(&Map::new()).expect("none");
        assert_eq!(conditions.of_cells, OfCells::default());
    }

    #[test]
    fn variables_of_a_model_are_watched() {
        let mut conditions = Conditions::default();
        let set = |conditions: &mut Conditions, all: Value| {
            conditions.watch(json!({"breakpoints": all}).as_object().expect("an object"))
        };
        assert_eq!(conditions.code(), None);
        assert_eq!(
            data_of(Some("model.dense.weight"))["dataId"],
            "dense.weight"
        );
        for part in [
            None,
            Some("history.epochs"),
            Some("model.a\"b"),
            Some("model"),
        ] {
            assert!(data_of(part)["dataId"].is_null());
        }
        set(
            &mut conditions,
            json!([{"dataId": "dense.weight", "condition": "0.5"}]),
        )
        .expect("one");
        let filters = json!({"filters": ["nan"]});
        conditions
            .choose(filters.as_object().expect("an object"))
            .expect("one");
        let expected = "Some(stratoscope::prelude::nan() | stratoscope::prelude::update_ratio().above(0.5).of(\"dense.weight\"))";
        assert_eq!(conditions.code().as_deref(), Some(expected));
        assert!(set(&mut conditions, json!([{"dataId": "x\"); drop(run); (\""}])).is_err());
        set(&mut conditions, json!([])).expect("none");
        conditions.choose(&Map::new()).expect("none");
        assert_eq!(
            conditions.code().as_deref(),
            Some("None"),
            "a run may have the former ones"
        );
        assert_eq!(FILTERS[UPDATE_RATIO].id, "update_ratio");
    }

    #[test]
    fn a_filter_that_cannot_be_is_refused() {
        let cases = [
            json!({"filters": ["raised"]}),
            json!({"filters": [1]}),
            json!({"filters": "nan"}),
            json!({"filterOptions": [{"filterId": "spike", "condition": "1; drop(run)"}]}),
            json!({"filterOptions": [{"filterId": "spike", "condition": "0.5"}]}),
            json!({"filterOptions": [{"filterId": "grad_norm", "condition": "inf"}]}),
            json!({"filterOptions": [{"filterId": "accuracy_drop", "condition": 1}]}),
            json!({"filterOptions": ["nan"]}),
        ];
        for case in cases {
            assert!(of(case.clone()).is_err_and(|it| it.len() > 10), "{case}");
        }
    }
}
