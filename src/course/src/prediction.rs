//! Predictions and answers: a value that the student writes down before seeing the true one.

use crate::attempt::{Fault, attempt};
use crate::verdict::{State, Verdict};

/// The words of the predictions that are one of two words.
const WORDS: [(&str, [&str; 2]); 2] = [
    ("1.3", ["smaller", "larger"]),
    ("8.3", ["converges", "diverges"]),
];

/// How far a predicted number may be from the measured one, as a share of it: a measurement has noise. Typical wrong
/// predictions are farther off.
const TOLERANCE: f64 = 0.05;

/// A value that can be predicted.
pub trait Predicted {
    /// The value as text.
    fn text(&self) -> String;
    /// Whether a prediction counts as this value.
    fn is_near(&self, prediction: &Self) -> bool;
    /// What to write instead of a value that cannot be the prediction of an exercise.
    fn instead(&self, _exercise: &str) -> Option<String> {
        None
    }
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

    fn is_near(&self, prediction: &Self) -> bool {
        (self - prediction).abs() <= TOLERANCE * self.abs()
    }

    fn instead(&self, _exercise: &str) -> Option<String> {
        (!self.is_finite()).then(|| "Write a number.".to_owned())
    }
}

impl Predicted for &str {
    fn text(&self) -> String {
        (*self).to_owned()
    }

    fn is_near(&self, prediction: &Self) -> bool {
        self.trim().eq_ignore_ascii_case(prediction.trim())
    }

    fn instead(&self, exercise: &str) -> Option<String> {
        let (_, words) = WORDS.iter().find(|(number, _)| *number == exercise)?;
        let [first, second] = words;
        (!words.iter().any(|word| word.is_near(self)))
            .then(|| format!("Write `Some(\"{first}\")` or `Some(\"{second}\")`."))
    }
}

fn open(exercise: &str) -> Verdict {
    let what =
        "Write `Some(…)` with your prediction first: the value is shown after it.".to_owned();
    Verdict::new(exercise, State::Open, vec![("to do", what)])
}

/// Compares a prediction with what is measured. One that differs is noted, with both values: the exercise is to predict. Nothing
/// is measured before there is a prediction, and another word than those of the exercise is none.
pub fn predicted<T: Predicted>(
    exercise: &str,
    prediction: Option<T>,
    measure: impl FnOnce() -> T,
) -> Verdict {
    let Some(prediction) = prediction else {
        return open(exercise);
    };
    if let Some(instead) = prediction.instead(exercise) {
        let lines = vec![("got", prediction.text()), ("to do", instead)];
        return Verdict::new(exercise, State::Open, lines);
    }
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
    if measured.is_near(&prediction) {
        return Verdict::new(exercise, State::Right, lines);
    }
    lines.push((
        "question",
        "Why do the two differ? The next paragraph has the reason.".to_owned(),
    ));
    Verdict::new(exercise, State::Noted, lines)
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
        let unfilled = predicted("1.3", Some("larger"), || todo!());
        assert!(unfilled.words().contains("above is still to be filled in"));
    }

    #[test]
    fn a_prediction_that_differs_is_noted_and_not_called_right() {
        let state = |exercise, prediction, measured: f64| {
            let verdict = predicted(exercise, Some(prediction), || measured);
            let differs = verdict.words().contains("Why do the two differ");
            assert_eq!(differs, verdict.state == State::Noted, "{verdict:?}");
            assert!(verdict.state.is_done(), "{verdict:?}");
            assert_eq!(verdict.words().contains(": right"), verdict.is_right());
            verdict.state
        };
        // Exercise, what is measured, a right prediction, typical wrong ones.
        let cases: [(&str, f64, f64, &[f64]); 5] = [
            ("2.3", 4.0336, 4.0, &[16.0, 2.0, 8.0, 3.5, -4.0]),
            ("3.3", 4.0, 4.0, &[8.0, 7.0, 3.5, 4.57, 1.0]),
            ("6.1", 4.0, 4.0, &[1.0, 16.0, 0.25, 3.0]),
            ("7.3", 1.0, 1.0, &[-0.64, 0.0, 3.0, -1.0]),
            ("9.3", 1.0, 1.0, &[2.0, 1.5, 1.1]),
        ];
        for (exercise, measured, right, wrong) in cases {
            assert_eq!(state(exercise, right, measured), State::Right);
            for prediction in wrong {
                assert_eq!(state(exercise, *prediction, measured), State::Noted);
            }
        }
        let counted = predicted("5.4", Some([8_u64, 8, 8]), || [2, 8, 8]);
        assert_eq!(counted.state, State::Noted);
    }

    #[test]
    fn another_word_is_no_prediction() {
        for (exercise, words, others) in [
            ("1.3", ["smaller", "larger"], ["bigger", "diverges", ""]),
            (
                "8.3",
                ["converges", "diverges"],
                ["converge", "larger", "?"],
            ),
        ] {
            let state = |word| predicted(exercise, Some(word), || words[1]).state;
            assert_eq!(words.map(state), [State::Noted, State::Right]);
            assert_eq!(state(" Diverges ").is_done(), exercise == "8.3");
            for other in others {
                let verdict = predicted(exercise, Some(other), || -> &str { panic!("measured") });
                assert_eq!(verdict.state, State::Open);
                let shown = verdict.words();
                assert!(words.iter().all(|word| shown.contains(word)), "{shown}");
            }
        }
        let none = predicted("2.3", Some(f64::NAN), || -> f64 { panic!("measured") });
        assert_eq!(none.state, State::Open);
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
