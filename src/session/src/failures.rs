//! What a session reports where there is no evaluator.

use stratoscope_diagnostics::Diagnostic;
use stratoscope_diagnostics::render::{self, Source};
use stratoscope_wire::MimeBundle;

use crate::evaluate::{CellError, OutputSink};
use crate::session::OwnedCell;

/// Displays why there is no evaluator, and makes the cell's error of the diagnostic.
pub(crate) fn start_error(
    diagnostic: &Diagnostic,
    cell: &OwnedCell,
    outputs: &dyn OutputSink,
) -> CellError {
    let name = format!("Cell In[{}]", cell.number);
    let source = Source {
        text: &cell.code,
        name: &name,
    };
    let mut data = MimeBundle::new();
    data.insert(
        "text/html".to_owned(),
        render::html(diagnostic, &source).into(),
    );
    data.insert(
        "text/plain".to_owned(),
        render::plain(diagnostic, &source).into(),
    );
    data.insert(render::MIME.to_owned(), render::json(diagnostic, &source));
    outputs.display(data, MimeBundle::new(), None, false);
    CellError {
        ename: diagnostic.code.clone(),
        evalue: diagnostic.one_line(),
        traceback: render::traceback(std::slice::from_ref(diagnostic), &source),
    }
}

/// The text of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// The error of an expression where there is no evaluator.
pub(crate) fn not_started(diagnostic: &Diagnostic) -> CellError {
    CellError {
        ename: diagnostic.code.clone(),
        evalue: diagnostic.one_line(),
        traceback: vec![diagnostic.to_string()],
    }
}
