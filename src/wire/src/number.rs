//! Numbers that JSON cannot write.

use serde_json::Value;

/// A number as JSON: itself when finite, else `"nan"`, `"inf"` or `"-inf"`. `serde_json` alone
/// would write `null` for all three.
pub fn number(value: f64) -> Value {
    match serde_json::Number::from_f64(value) {
        Some(finite) => Value::Number(finite),
        None if value.is_nan() => Value::from("nan"),
        None if value > 0.0 => Value::from("inf"),
        None => Value::from("-inf"),
    }
}

/// The inverse of [`number`]; `None` for anything else.
pub fn from_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(finite) => finite.as_f64(),
        Value::String(text) => match text.as_str() {
            "nan" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, expected: &str) {
        let written = number(value);
        assert_eq!(written.to_string(), expected);
        let read = from_number(&written).expect("reads back");
        assert!(
            read == value || (read.is_nan() && value.is_nan()),
            "{value} became {read}"
        );
    }

    #[test]
    fn every_number_survives() {
        check(0.5, "0.5");
        check(-3e-12, "-3e-12");
        check(f64::NAN, r#""nan""#);
        check(f64::INFINITY, r#""inf""#);
        check(f64::NEG_INFINITY, r#""-inf""#);
        assert_eq!(from_number(&Value::from("1.0")), None);
        assert_eq!(from_number(&Value::Null), None);
    }
}
