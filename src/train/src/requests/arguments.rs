//! The arguments of an action: their types and bounds, as JSON Schema describes them, and as they are checked.

use serde_json::{Map, Value, json};

use stratoscope_arguments::context::requests::Refusal;

/// An argument of an action.
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// It may be left out.
    pub is_optional: bool,
    /// What it is, without a final dot.
    pub means: &'static str,
}

/// What an argument can be. All numbers are finite.
#[derive(Clone, Copy)]
pub enum Kind {
    /// At least 0.
    Number,
    /// Above 0.
    Positive,
    /// From 0 to less than 1.
    Share,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A text of at most this many bytes.
    Text(usize),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// At least one whole number ≥ 0, and at most so many.
    Rows(usize),
}

impl Argument {
    /// An argument that must be given.
    pub const fn new(name: &'static str, kind: Kind, means: &'static str) -> Self {
        Self {
            name,
            kind,
            is_optional: false,
            means,
        }
    }

    pub(crate) const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    /// As JSON Schema describes it.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        schema["description"] = self.means.into();
        schema
    }
}

impl Kind {
    fn schema(self) -> Value {
        match self {
            Self::Number => json!({"type": "number", "minimum": 0}),
            Self::Positive => json!({"type": "number", "exclusiveMinimum": 0}),
            Self::Share => json!({"type": "number", "minimum": 0, "exclusiveMaximum": 1}),
            Self::Whole(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Self::Text(bytes) => json!({"type": "string", "minLength": 1, "maxLength": bytes}),
            Self::OneOf(names) => json!({"type": "string", "enum": names}),
            Self::Rows(most) => json!({
                "type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1, "maxItems": most,
            }),
        }
    }

    /// Whether a value is one.
    fn admits(self, value: &Value) -> bool {
        let number = value.as_f64().filter(|it| it.is_finite());
        match self {
            Self::Number => number.is_some_and(|it| it >= 0.0),
            Self::Positive => number.is_some_and(|it| it > 0.0),
            Self::Share => number.is_some_and(|it| (0.0..1.0).contains(&it)),
            Self::Whole(least, most) => {
                (value.as_u64()).is_some_and(|it| (least..=most).contains(&it))
            }
            Self::Text(bytes) => {
                (value.as_str()).is_some_and(|it| !it.is_empty() && it.len() <= bytes)
            }
            Self::OneOf(names) => value.as_str().is_some_and(|it| names.contains(&it)),
            Self::Rows(most) => value.as_array().is_some_and(|all| {
                (1..=most).contains(&all.len()) && all.iter().all(|it| it.as_u64().is_some())
            }),
        }
    }

    fn in_words(self) -> String {
        match self {
            Self::Number => "a finite number ≥ 0".to_owned(),
            Self::Positive => "a finite number above 0".to_owned(),
            Self::Share => "a number from 0 to less than 1".to_owned(),
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::Text(bytes) => format!("a text of 1 to {bytes} bytes"),
            Self::OneOf(names) => format!("one of {}", names.join(", ")),
            Self::Rows(most) => format!("a list of 1 to {most} whole numbers ≥ 0"),
        }
    }
}

/// Arguments that were checked.
#[derive(Debug)]
pub struct Given<'g>(&'g Map<String, Value>);

impl<'g> Given<'g> {
    /// Checks arguments against those of an action.
    ///
    /// # Errors
    /// `bad_argument`: one is missing, unknown, of another type or out of bounds.
    pub fn check(given: &'g Map<String, Value>, arguments: &[Argument]) -> Result<Self, Refusal> {
        let bad = |message| Err(Refusal::new("bad_argument", message));
        if let Some(name) = given
            .keys()
            .find(|it| arguments.iter().all(|a| a.name != **it))
        {
            let known: Vec<&str> = arguments.iter().map(|it| it.name).collect();
            let name: String = name.chars().take(40).collect();
            let known = match known.is_empty() {
                true => "it takes none".to_owned(),
                false => format!("it takes {}", known.join(", ")),
            };
            return bad(format!("the action has no argument {name:?}: {known}"));
        }
        for argument in arguments {
            let Argument { name, kind, .. } = argument;
            match given.get(*name) {
                None if argument.is_optional => {}
                None => return bad(format!("`{name}` is missing: {}", kind.in_words())),
                Some(value) if kind.admits(value) => {}
                Some(_) => return bad(format!("`{name}` must be {}", kind.in_words())),
            }
        }
        Ok(Self(given))
    }

    /// A number; 0 where it was left out.
    pub fn number(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// A whole number, if it was given.
    pub fn whole(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// A text; empty where it was left out.
    pub fn text(&self, name: &str) -> &'g str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whole numbers.
    pub fn rows(&self, name: &str) -> Vec<u64> {
        let all = self.0.get(name).and_then(Value::as_array);
        let all = all.into_iter().flatten();
        all.filter_map(Value::as_u64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Argument = Argument::new("rate", Kind::Number, "the rate");
    const SIDE: Argument =
        Argument::new("side", Kind::OneOf(&["left", "right"]), "a side").optional();
    const ROWS: Argument = Argument::new("rows", Kind::Rows(2), "rows").optional();

    fn check(given: Value) -> Result<(), String> {
        let given = given.as_object().expect("an object").clone();
        Given::check(&given, &[RATE, SIDE, ROWS])
            .map(|_| ())
            .map_err(|it| it.message)
    }

    #[test]
    fn types_and_bounds_are_checked() {
        assert_eq!(
            check(json!({"rate": 1e-5, "side": "left", "rows": [3, 4]})),
            Ok(())
        );
        assert_eq!(check(json!({"rate": 0})), Ok(()));
        for (given, message) in [
            (json!({}), "`rate` is missing: a finite number ≥ 0"),
            (json!({"rate": -1.0}), "`rate` must be a finite number ≥ 0"),
            (json!({"rate": "1"}), "`rate` must be a finite number ≥ 0"),
            (json!({"rate": null}), "`rate` must be a finite number ≥ 0"),
            (
                json!({"rate": 1, "side": "up"}),
                "`side` must be one of left, right",
            ),
            (
                json!({"rate": 1, "rows": []}),
                "`rows` must be a list of 1 to 2 whole numbers ≥ 0",
            ),
            (
                json!({"rate": 1, "rows": [1, 2, 3]}),
                "`rows` must be a list of 1 to 2 whole numbers ≥ 0",
            ),
            (
                json!({"rate": 1, "rows": [-1]}),
                "`rows` must be a list of 1 to 2 whole numbers ≥ 0",
            ),
            (
                json!({"rate": 1, "x\n": 1}),
                "the action has no argument \"x\\n\": it takes rate, side, rows",
            ),
        ] {
            assert_eq!(check(given), Err(message.to_owned()));
        }
    }

    #[test]
    fn the_schema_has_the_bounds() {
        assert_eq!(
            RATE.schema(),
            json!({"type": "number", "minimum": 0, "description": "the rate"})
        );
        assert_eq!(SIDE.schema()["enum"], json!(["left", "right"]));
        assert_eq!(ROWS.schema()["maxItems"], 2);
    }
}
