//! Requests to a run that stands between two cells: the kernel evaluates a call of [`request`].

use serde_json::{Map, Value};
use stratoscope_models::Run;
use stratoscope_models::requests::{Answer, Refusal, Request};
use stratoscope_wire::MimeBundle;

use crate::display::{IntoBundle, plain};

/// The answer to a request, which the kernel sends to the one who asks.
#[derive(Debug)]
pub struct Answered(Answer);

impl IntoBundle for Answered {
    fn bundle(&self) -> MimeBundle {
        let answer = self.0.to_json();
        let mut bundle = plain(answer.to_string());
        bundle.insert("application/json".to_owned(), answer);
        bundle
    }
}

/// Does what a request asks of a run. `from`: how it came; `arguments`: a JSON object as text.
pub fn request(run: &Run, from: &str, action: &str, arguments: &str) -> Answered {
    let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(arguments) else {
        let refusal = Refusal::new("bad_argument", "the arguments are not a JSON object");
        return Answered(refusal.into());
    };
    Answered(run.request(&Request {
        from: from.to_owned(),
        action: action.to_owned(),
        arguments,
    }))
}
