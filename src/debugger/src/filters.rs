//! Where a run that the panel drives stops by itself: the protocol's exception filters are conditions of
//! `run.break_when(…)`, with a number that can be changed.

use serde_json::{Map, Value, json};

/// A condition that can be chosen.
struct Filter {
    id: &'static str,
    label: &'static str,
    /// The condition with `#` for its number, and the number where none is given. `None`: it has no number.
    number: Option<f64>,
    about_number: &'static str,
    written: &'static str,
}

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
    announced.collect()
}

/// The names of the filters.
pub fn names() -> Vec<&'static str> {
    FILTERS.iter().map(|it| it.id).collect()
}

/// The filters that `setExceptionBreakpoints` chooses, as Rust conditions.
///
/// # Errors
/// A filter that there is not, or a number that cannot be one; the reason.
pub fn chosen(arguments: &Map<String, Value>) -> Result<Vec<String>, String> {
    let list = |name: &str| match arguments.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list.clone()),
        Some(_) => Err(format!("`{name}` is to be a list")),
    };
    let plain = list("filters")?.into_iter().map(|id| (id, Value::Null));
    let with_numbers = list("filterOptions")?
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
