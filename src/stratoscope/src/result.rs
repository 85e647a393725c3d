//! The display of a cell's last expression, which the kernel wraps in [`__result!`]. A value that has a card is shown as
//! one, any other by its `Debug`, a value without `Debug` by the name of its type, and `()` not at all. An error of ours is
//! not shown: the cell fails with it.
//!
//! Which of these applies is decided while the cell compiles, by method lookup: the macro calls
//! `show` on `&&&Shown(value)`, and the compiler takes the first trait that applies while it
//! strips one reference after the other.
//!
//! [`__result!`]: crate::__result

use std::fmt::{Debug, Write};

use stratoscope_render::html::cut_text;
use stratoscope_wire::{MimeBundle, ToKernel};

use crate::connection;
use crate::display::{IntoBundle, html_and_plain, plain};

/// Shows a value as the result of the running cell, without moving it.
#[doc(hidden)]
#[macro_export]
macro_rules! __result {
    ($value:expr) => {
        match &($value) {
            value => {
                #[allow(unused_imports)]
                use $crate::cell::unused::{Other as _, Ours as _};
                #[allow(unused_imports)]
                use $crate::result::{ByBundle as _, ByDebug as _, ByName as _};
                if !(&$crate::cell::unused::Unused(value)).fails() {
                    (&&&$crate::result::Shown(value)).show()
                }
            }
        }
    };
}

/// A value about to be shown.
#[doc(hidden)]
pub struct Shown<'a, T: ?Sized>(pub &'a T);

#[doc(hidden)]
pub trait ByBundle {
    fn show(&self);
}

impl<T: IntoBundle + ?Sized> ByBundle for &&Shown<'_, T> {
    fn show(&self) {
        send(self.0.bundle());
    }
}

#[doc(hidden)]
pub trait ByDebug {
    fn show(&self);
}

impl<T: Debug + ?Sized> ByDebug for &Shown<'_, T> {
    fn show(&self) {
        debug(&self.0);
    }
}

/// Not generic: compiled once, in the facade.
fn debug(value: &dyn Debug) {
    let text = debug_text(value);
    send(match text.strip_suffix(&format!("… ({HOW_TO_SEE_ALL})")) {
        Some(beginning) => html_and_plain(cut_text(beginning, HOW_TO_SEE_ALL), text),
        None => plain(text),
    });
}

/// What a value shows at most, about 200 lines of a notebook.
const MAX_BYTES: usize = 20_000;

/// Below a value that was cut.
const HOW_TO_SEE_ALL: &str = "only the beginning is shown; print the value with `{:?}` to see all of it, or show a part of it";

/// The `Debug` of a value, cut at [`MAX_BYTES`]: a notebook stores what it shows, and a front end draws all of it.
fn debug_text(value: &dyn Debug) -> String {
    let mut shown = Cut {
        text: String::new(),
    };
    match write!(shown, "{value:?}") {
        Err(_) if shown.text.len() >= MAX_BYTES => {
            format!("{}… ({HOW_TO_SEE_ALL})", shown.text)
        }
        // A `Debug` of the user's own may fail in the middle.
        _ => shown.text,
    }
}

/// A text that ends at [`MAX_BYTES`]. What is behind it is not even formatted.
struct Cut {
    text: String,
}

impl Write for Cut {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let room = MAX_BYTES - self.text.len();
        if more.len() <= room {
            self.text.push_str(more);
            return Ok(());
        }
        self.text.push_str(&more[..more.floor_char_boundary(room)]);
        // Full, also where a character would not have fitted.
        while self.text.len() < MAX_BYTES {
            self.text.push(' ');
        }
        Err(std::fmt::Error)
    }
}

#[doc(hidden)]
pub trait ByName {
    fn show(&self);
}

impl<T: ?Sized> ByName for Shown<'_, T> {
    fn show(&self) {
        name(std::any::type_name::<T>());
    }
}

fn name(name: &str) {
    let text = match name.strip_prefix("ctx::") {
        // A type of the notebook.
        Some(name) => format!(
            "a value of type {name} (it has no `Debug`: write `#[derive(Debug)]` above its definition to see its fields)"
        ),
        None => format!("a value of type {name} (it has no `Debug`)"),
    };
    send(plain(text));
}

fn send(data: MimeBundle) {
    if data.is_empty() {
        return;
    }
    if !connection::is_open() {
        if let Some(serde_json::Value::String(text)) = data.get("text/plain") {
            println!("{text}");
        }
        return;
    }
    connection::send(&ToKernel::Result { data });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut() {
        assert_eq!(debug_text(&vec![0; 3]), "[0, 0, 0]");
        let text = debug_text(&vec![0_u8; 1_000_000]);
        assert!(text.starts_with("[0, 0, 0"), "{}", &text[..20]);
        let (shown, how) = text.split_at(MAX_BYTES);
        assert!(shown.ends_with("0, ") || shown.ends_with("0,") || shown.ends_with('0'));
        assert!(how.starts_with("… (only the beginning is shown"), "{how}");
        // A character is not cut in two.
        let text = debug_text(&"é".repeat(MAX_BYTES));
        assert!(text.contains("é … (only"), "{}", &text[text.len() - 120..]);
    }
}
