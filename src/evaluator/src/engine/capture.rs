//! What stands in place of a front end for an expression that a front end asks for.

use std::sync::Mutex;

use stratoscope_session::{OutputSink, Stream};
use stratoscope_wire::MimeBundle;

/// Takes the value of an expression instead of showing it.
#[derive(Default)]
pub(super) struct Capture(Mutex<MimeBundle>);

impl Capture {
    pub(super) fn take(&self) -> MimeBundle {
        self.0
            .lock()
            .map(|mut bundle| std::mem::take(&mut *bundle))
            .unwrap_or_default()
    }
}

impl OutputSink for Capture {
    fn stream(&self, _: Stream, _: &str) {}
    fn display(&self, _: MimeBundle, _: MimeBundle, _: Option<String>, _: bool) {}
    fn result(&self, data: MimeBundle) {
        if let Ok(mut bundle) = self.0.lock() {
            *bundle = data;
        }
    }
    fn clear(&self, _: bool) {}
    fn input(&self, _: &str, _: bool) -> Option<String> {
        None
    }
}
