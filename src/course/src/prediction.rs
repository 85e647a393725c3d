//! Predictions and answers: a value that the student writes down before seeing the true one.

use crate::attempt::{Fault, attempt};
use crate::verdict::{State, Verdict};

/// A value that can be predicted.
pub trait Predicted {
    /// The value as text.
    fn text(&self) -> String;
    /// Whether a prediction counts as this value.
    fn is_near(&self, prediction: &Self) -> bool;
}

macro_rules! exact {
    ($($kind:ty)*) => {
        $(impl Predicted for $kind {
            fn text(&self) -> String {
                format!("{self:?}")
            }
            fn is_near(&self, prediction: &Self) -> bool {
                self == prediction
            }
        })*
    };
}

exact!(usize u64 i64 i32 bool [usize; 2] [usize; 3] [u64; 2] [u64; 3]);

impl Predicted for f64 {
    fn text(&self) -> String {
        let text = format!("{self:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// Within a fifth: a prediction is no computation.
    fn is_near(&self, prediction: &Self) -> bool {
        (self - prediction).abs() <= 0.2 * self.abs()
    }
}

impl Predicted for &str {
    fn text(&self) -> String {
        (*self).to_owned()
    }

    fn is_near(&self, prediction: &Self) -> bool {
        self.trim().eq_ignore_ascii_case(prediction.trim())
    }
}

fn open(exercise: &str) -> Verdict {
    let what =
        "Write `Some(…)` with your prediction first: the value is shown after it.".to_owned();
    Verdict::new(exercise, State::Open, vec![("to do", what)])
}

/// Compares a prediction with what is measured. A prediction that differs is not wrong: it is made, and both values are shown.
/// Nothing is measured before there is a prediction.
pub fn predicted<T: Predicted>(
    exercise: &str,
    prediction: Option<T>,
    measure: impl FnOnce() -> T,
) -> Verdict {
    let Some(prediction) = prediction else {
        return open(exercise);
    };
    let measured = match attempt("", measure) {
        Ok(measured) => measured,
        Err(Fault::Open) => {
            let what = "An exercise above is still to be filled in, and the measurement uses it."
                .to_owned();
            return Verdict::new(exercise, State::Open, vec![("to do", what)]);
        }
        Err(Fault::Panicked { message, .. }) => {
            return Verdict::new(exercise, State::Wrong, vec![("panicked", message)]);
        }
        Err(_) => return open(exercise),
    };
    let mut lines = vec![
        ("predicted", prediction.text()),
        ("measured", measured.text()),
    ];
    if !measured.is_near(&prediction) {
        lines.push((
            "question",
            "Why do the two differ? The next paragraph has the reason.".to_owned(),
        ));
    }
    Verdict::new(exercise, State::Right, lines)
}

/// Compares an answer with the true one, which is not shown; `hint` says where to look.
pub fn answered<T: Predicted>(exercise: &str, answer: Option<T>, truth: T, hint: &str) -> Verdict {
    let Some(answer) = answer else {
        let what =
            "Write `Some(…)` with your answer, and execute its cell and this one again.".to_owned();
        return Verdict::new(exercise, State::Open, vec![("to do", what)]);
    };
    match truth.is_near(&answer) {
        true => Verdict::new(exercise, State::Right, vec![("answer", answer.text())]),
        false => {
            let lines = vec![("got", answer.text()), ("look at", hint.to_owned())];
            Verdict::new(exercise, State::Wrong, lines)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_value_is_shown_after_a_prediction_only() {
        let hidden = predicted::<f64>("2.3", None, || 4.25);
        assert_eq!(hidden.state, State::Open);
        assert!(!hidden.words().contains("4.25") && !hidden.to_html().contains("4.25"));
        let far = predicted("2.3", Some(2.0), || 4.25);
        assert!(far.is_right() && far.words().contains("Why do the two differ"));
        let near = predicted("2.3", Some(4.0), || 4.25);
        assert!(near.is_right() && !near.words().contains("differ"));
        let unfilled = predicted("1.3", Some("larger"), || todo!());
        assert!(unfilled.words().contains("above is still to be filled in"));
    }

    #[test]
    fn a_wrong_answer_does_not_show_the_right_one() {
        let wrong = answered("10.2", Some(12_usize), 37, "`run.why()?`");
        assert_eq!(wrong.state, State::Wrong);
        assert!(!wrong.words().contains("37"));
        assert!(answered("10.2", Some(37_usize), 37, "").is_right());
        assert_eq!(answered::<usize>("10.2", None, 37, "").state, State::Open);
    }
}
