//! Progress of long operations as a line with a bar: tokenizing, downloading, predicting.

use std::sync::{Mutex, PoisonError};

use stratoscope_diagnostics::work::Seen;

use super::{Shown, unique};
use crate::connection;
use crate::display::{display_as, display_update};

use super::table::line_bundle;

/// The lines being drawn: ID of the operation, and display ID.
static DRAWN: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

/// Draws the progress of an operation; nothing in a terminal.
pub(super) fn draw(seen: &Seen) {
    if !connection::is_open() {
        return;
    }
    let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    let bundle = Shown(line_bundle(&seen.words, seen.share));
    match drawn.iter().position(|(id, _)| *id == seen.id) {
        Some(at) => {
            display_update(&drawn[at].1, &bundle);
            if seen.is_over {
                drawn.swap_remove(at);
            }
        }
        None => {
            let display_id = unique("work", seen.id);
            display_as(&display_id, &bundle);
            if !seen.is_over {
                drawn.push((seen.id, display_id));
            }
        }
    }
}
