//! The display of a cell's last expression, which the kernel wraps in [`__result!`]. A value that has a card is shown as
//! one, any other by its `Debug`, a value without `Debug` by the name of its type, and `()` not at all. An error of ours is
//! not shown: the cell fails with it.
//!
//! Which of these applies is decided while the cell compiles, by method lookup: the macro calls
//! `show` on `&&&Shown(value)`, and the compiler takes the first trait that applies while it
//! strips one reference after the other.
//!
//! [`__result!`]: crate::__result

use std::fmt::Debug;

use stratoscope_wire::{MimeBundle, ToKernel};

use crate::connection;
use crate::display::{IntoBundle, plain};

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
    send(plain(format!("{value:?}")));
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
    send(plain(format!("a value of type {name} (it has no `Debug`)")));
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
