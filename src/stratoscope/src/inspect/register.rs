//! Types of cells. The kernel compiles a cell with [`crate::__register_types!`] for the types that are not known. Which of
//! `Debug`, [`IntoBundle`] and `Sync` a type has is decided while that cell compiles, by method lookup, as in
//! [`crate::result`].

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stratoscope_wire::MimeBundle;

use super::lists::{ByDebug, List, Listed};
use super::types::{Known, Make};
use super::{Leaf, View};
use crate::display::IntoBundle;

/// Registers types, so that the debugger shows their values.
#[doc(hidden)]
#[macro_export]
macro_rules! __register_types {
    ($($kind:ty),* $(,)?) => {{
        #[allow(unused_imports)]
        use $crate::inspect::register::{
            Bundled as _, ByFormat as _, ByList as _, ByName as _, Local as _, Probe, Shared as _, Unbundled as _,
        };
        $({
            let probe = Probe::<$kind>::new();
            let look = (&&&probe).look();
            let bundle = (&&probe).bundle();
            let is_shared = (&&probe).is_shared();
            $crate::inspect::register::register::<$kind>(look, bundle, is_shared);
        })*
    }};
}

/// Stands for a type.
#[doc(hidden)]
#[derive(Debug)]
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    /// Without a value.
    #[allow(clippy::new_without_default, reason = "only a macro calls it")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// How a value is looked into.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// By its elements.
    List(for<'a> fn(&'a dyn Any) -> Option<&'a dyn Listed>),
    /// By its `Debug`.
    Debug(for<'a> fn(&'a dyn Any) -> Option<&'a dyn Debug>),
    /// It shows the name of its type only.
    Name(&'static str),
}

/// What a cell displays of a value.
#[doc(hidden)]
pub type Bundle = fn(&dyn Any) -> Option<MimeBundle>;

macro_rules! probes {
    ($($name:ident: $method:ident -> $result:ty;)*) => {
        $(#[doc(hidden)]
        #[allow(missing_docs, reason = "only a macro calls it")]
        pub trait $name {
            fn $method(&self) -> $result;
        })*
    };
}

probes! {
    ByList: look -> Look;
    ByFormat: look -> Look;
    ByName: look -> Look;
    Bundled: bundle -> Option<Bundle>;
    Unbundled: bundle -> Option<Bundle>;
    Shared: is_shared -> bool;
    Local: is_shared -> bool;
}

impl<T: Listed + 'static> ByList for &&Probe<T> {
    fn look(&self) -> Look {
        Look::List(|value| Some(value.downcast_ref::<T>()?))
    }
}

impl<T: Debug + 'static> ByFormat for &Probe<T> {
    fn look(&self) -> Look {
        Look::Debug(|value| Some(value.downcast_ref::<T>()?))
    }
}

impl<T> ByName for Probe<T> {
    fn look(&self) -> Look {
        Look::Name(std::any::type_name::<T>())
    }
}

impl<T: IntoBundle + 'static> Bundled for &Probe<T> {
    fn bundle(&self) -> Option<Bundle> {
        Some(|value| Some(value.downcast_ref::<T>()?.bundle()))
    }
}

impl<T> Unbundled for Probe<T> {
    fn bundle(&self) -> Option<Bundle> {
        None
    }
}

impl<T: Sync> Shared for &Probe<T> {
    fn is_shared(&self) -> bool {
        true
    }
}

impl<T> Local for Probe<T> {
    fn is_shared(&self) -> bool {
        false
    }
}

#[derive(Clone, Copy)]
struct Registered {
    look: Look,
    bundle: Option<Bundle>,
    is_shared: bool,
}

#[derive(Default)]
struct Types {
    /// How often types were redefined. A type of the same name and fields is the same to Rust, whatever its layout, so what
    /// was registered before is void.
    generation: u32,
    known: HashMap<TypeId, Registered>,
}

static TYPES: Mutex<Option<Types>> = Mutex::new(None);

fn types() -> MutexGuard<'static, Option<Types>> {
    TYPES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The generation of types that a question is about.
pub(super) fn begin(generation: u32) {
    let mut types = types();
    let types = types.get_or_insert_default();
    if types.generation != generation {
        types.known.clear();
        types.generation = generation;
    }
}

/// Registers a type.
#[doc(hidden)]
pub fn register<T: 'static>(look: Look, bundle: Option<Bundle>, is_shared: bool) {
    note(
        TypeId::of::<T>(),
        Registered {
            look,
            bundle,
            is_shared,
        },
    );
}

/// Not generic: compiled once, in the facade.
fn note(id: TypeId, registered: Registered) {
    types().get_or_insert_default().known.insert(id, registered);
}

/// What is known of a type that was registered.
pub(super) fn registered(id: TypeId) -> Option<Known> {
    let found = of(id)?;
    let view: Make = |value| {
        let Registered { look, bundle, .. } = of(value.type_id())?;
        let inner: Box<dyn View + '_> = match look {
            Look::List(list) => Box::new(List(list(value)?)),
            Look::Debug(debug) => Box::new(ByDebug::new(debug(value)?)),
            Look::Name(name) => Box::new(Leaf {
                line: WITHOUT_DEBUG.to_owned(),
                type_name: name,
            }),
        };
        Some(Box::new(OfCell {
            value,
            inner,
            bundle,
        }))
    };
    Some(Known {
        view,
        is_shared: found.is_shared,
        has_own_code: true,
    })
}

/// Shown of a value whose type has no `Debug`.
const WITHOUT_DEBUG: &str = "(its type has no `Debug`: write `#[derive(Debug)]` above it)";

fn of(id: TypeId) -> Option<Registered> {
    types().as_ref()?.known.get(&id).copied()
}

/// A value of a type that was registered: its children by `Debug` or by its elements, its display by its bundle.
struct OfCell<'a> {
    value: &'a dyn Any,
    inner: Box<dyn View + 'a>,
    bundle: Option<Bundle>,
}

impl OfCell<'_> {
    fn displayed(&self) -> Option<MimeBundle> {
        let bundle = self.bundle?;
        guarded(|| bundle(self.value)).ok().flatten()
    }
}

impl View for OfCell<'_> {
    fn line(&self) -> String {
        self.inner.line()
    }

    fn named(&self) -> usize {
        self.inner.named()
    }

    fn indexed(&self) -> usize {
        self.inner.indexed()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        self.inner.child(position)
    }

    fn children(&self, range: Range<usize>, each: &mut dyn FnMut(String, &dyn View)) {
        self.inner.children(range, each);
    }

    fn rich(&self) -> MimeBundle {
        self.displayed().unwrap_or_else(|| self.inner.rich())
    }
}

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread is one of a value's own code that a debugger has called. It is shown in place of the
/// value, and belongs to no cell.
pub(crate) fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// Calls code of a value.
///
/// # Errors
/// It panicked, with this message.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    let before = IS_GUARDED.replace(true);
    let called = catch_unwind(AssertUnwindSafe(call));
    IS_GUARDED.set(before);
    called.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        text.unwrap_or_else(|| "without a message".to_owned())
    })
}
