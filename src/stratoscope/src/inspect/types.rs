//! The types whose values can be shown: those of this project and of the standard library from the start, others when a
//! cell has registered them.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::LazyLock;

use burn::tensor::{Bool, Float, Int, Tensor};
use stratoscope_data::{Dataset, Example};
use stratoscope_models::{Evaluation, History, Run};

use super::data::{DatasetView, ExampleView, HistoryView, Json};
use super::lists::{ByDebug, Element, List, Listed};
use super::numbers::Numbers;
use super::runs::RunView;
use super::{View, register};

/// Makes the view of a value of the type that it is registered for.
pub(crate) type Make = for<'a> fn(&'a dyn Any) -> Option<Box<dyn View + 'a>>;

/// What is known of a type.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub view: Make,
    /// Other threads may read its values.
    pub is_shared: bool,
    /// Code of cells runs when a value is read.
    pub has_own_code: bool,
}

/// What is known of a type; `None`: a cell is to register it.
pub(crate) fn known(id: TypeId) -> Option<Known> {
    let known = FROM_THE_START.get(&id).copied();
    known.or_else(|| register::registered(id))
}

/// The view of a value whose type is known.
pub(crate) fn view(value: &dyn Any) -> Option<Box<dyn View + '_>> {
    (known(value.type_id())?.view)(value)
}

static FROM_THE_START: LazyLock<HashMap<TypeId, Known>> = LazyLock::new(from_the_start);

fn by_debug<T: Element>(value: &dyn Any) -> Option<Box<dyn View + '_>> {
    Some(Box::new(ByDebug::new(value.downcast_ref::<T>()?)))
}

fn by_list<T: Listed + 'static>(value: &dyn Any) -> Option<Box<dyn View + '_>> {
    Some(Box::new(List(value.downcast_ref::<T>()?)))
}

fn from_the_start() -> HashMap<TypeId, Known> {
    let mut known = HashMap::new();
    macro_rules! add {
        ($($kind:ty),* => $view:expr, $is_shared:expr) => {
            $({
                let view: Make = $view;
                known.insert(TypeId::of::<$kind>(), Known { view, is_shared: $is_shared, has_own_code: false });
            })*
        };
    }
    macro_rules! values {
        ($($kind:ty),*) => {
            $(
                add!($kind => by_debug::<$kind>, true);
                add!(Option<$kind> => by_debug::<Option<$kind>>, true);
                add!(Vec<$kind> => by_list::<Vec<$kind>>, true);
                add!(Vec<Vec<$kind>> => by_list::<Vec<Vec<$kind>>>, true);
                add!(HashMap<String, $kind> => by_list::<HashMap<String, $kind>>, true);
            )*
        };
    }
    macro_rules! tensors {
        ($($kind:ty)*; $ranks:tt) => { $(tensors!(@ $kind; $ranks);)* };
        (@ $kind:ty; [$($rank:literal)*]) => {
            $(add!(Tensor<$rank, $kind> => |value| {
                Some(Box::new(Numbers::of_tensor(value.downcast_ref::<Tensor<$rank, $kind>>()?)))
            }, true);)*
        };
    }
    values!(
        u8,
        u16,
        u32,
        u64,
        usize,
        i8,
        i16,
        i32,
        i64,
        isize,
        f32,
        f64,
        bool,
        char,
        String,
        &'static str,
        (),
        (f32, f32),
        (f64, f64),
        (String, f32),
        (String, f64),
        (String, usize)
    );
    tensors!(Float Int Bool; [1 2 3 4 5 6]);
    add!(Dataset => |value| Some(Box::new(DatasetView(value.downcast_ref()?))), true);
    add!(Example => |value| Some(Box::new(ExampleView::new(value.downcast_ref()?, &[]))), true);
    add!(History => |value| Some(Box::new(HistoryView(value.downcast_ref::<History>()?))), true);
    add!(Evaluation => |value| Some(Box::new(Json::of(value.downcast_ref::<Evaluation>()?))), true);
    add!(Run => |value| Some(Box::new(RunView::new(value.downcast_ref()?))), false);
    known
}
