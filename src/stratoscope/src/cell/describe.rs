//! Bytes and device of every variable whose type is known, for `%vars`.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::tensor::{Bool, Float, Int, Tensor};
use stratoscope_models::Summary;
use stratoscope_models::held::held;
use stratoscope_strategy::device::name_of;
use stratoscope_wire::Described;

/// By name. Behind a lock, because the connection's thread sends them while the cells' thread owns the variables.
static VARIABLES: Mutex<BTreeMap<String, Described>> = Mutex::new(BTreeMap::new());

/// Notes the value of a variable.
pub fn note(name: &str, value: &dyn Any) {
    if let Some(summary) = value.downcast_ref::<Summary>() {
        // The summary has a name now and can be shown later.
        summary.keep();
    }
    stratoscope_strategy::note_variable(name, value);
    crate::inspect::note(name, value);
    let (owned, device) = owned(value);
    let described = Described {
        name: name.to_owned(),
        bytes: size_of_val(value) as u64 + owned,
        device,
    };
    lock().insert(name.to_owned(), described);
}

/// Removes a variable that is gone or that a cell holds.
pub fn forget(name: &str) {
    lock().remove(name);
}

/// All variables, in order of their names.
pub fn all() -> Vec<Described> {
    lock().values().cloned().collect()
}

fn lock() -> MutexGuard<'static, BTreeMap<String, Described>> {
    VARIABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes that the value points to, and the device they are on.
fn owned(value: &dyn Any) -> (u64, Option<String>) {
    macro_rules! tensors {
        ($($kind:ty)*; $($rank:literal)*) => { tensors!(@ [$($kind)*] [$($rank)*]) };
        (@ [$($kind:ty)*] $ranks:tt) => { $(tensors!(@ $kind; $ranks);)* };
        (@ $kind:ty; [$($rank:literal)*]) => {
            $(if let Some(tensor) = value.downcast_ref::<Tensor<$rank, $kind>>() {
                let bytes = tensor.shape().num_elements() * tensor.dtype().size();
                return (bytes as u64, Some(name_of(&tensor.device())));
            })*
        };
    }
    macro_rules! lists {
        ($($item:ty)*) => {
            $(if let Some(list) = value.downcast_ref::<Vec<$item>>() {
                return (size_of_val(list.as_slice()) as u64, None);
            })*
        };
    }
    if let Some(held) = held(value) {
        return (held.bytes, in_words(&held.devices));
    }
    tensors!(Float Int Bool; 1 2 3 4 5);
    lists!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 bool char);
    if let Some(text) = value.downcast_ref::<String>() {
        return (text.len() as u64, None);
    }
    if let Some(texts) = value.downcast_ref::<Vec<String>>() {
        let inside: usize = texts.iter().map(String::len).sum();
        return ((size_of_val(texts.as_slice()) + inside) as u64, None);
    }
    (0, None)
}

/// `cpu:0, cpu:1`; of many devices the first ones and the number of all.
fn in_words(devices: &[String]) -> Option<String> {
    const MOST: usize = 4;
    let shown = devices.iter().take(MOST).map(String::as_str);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match devices.len() {
        0 => None,
        1..=MOST => Some(shown),
        all => Some(format!("{shown}, … ({all} devices)")),
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn bytes_behind_a_pointer_count() {
        assert_eq!(owned(&vec![0_u32; 10]), (40, None));
        assert_eq!(owned(&"größe".to_owned()), (7, None));
        assert_eq!(owned(&7_u8), (0, None));
        let (bytes, device) = owned(&Tensor::<2>::ones([2, 3], &Device::flex()));
        assert_eq!(bytes, 24);
        assert_eq!(device.as_deref(), Some("cpu:0"));
        let data = stratoscope_data::Dataset::from_texts(["a text"]);
        assert!(owned(&data).0 > 6);
    }

    #[test]
    fn many_devices_are_counted() {
        let names = |count: usize| (0..count).map(|it| format!("cpu:{it}")).collect::<Vec<_>>();
        assert_eq!(in_words(&names(0)), None);
        assert_eq!(in_words(&names(2)).as_deref(), Some("cpu:0, cpu:1"));
        let eight = in_words(&names(8));
        assert_eq!(
            eight.as_deref(),
            Some("cpu:0, cpu:1, cpu:2, cpu:3, … (8 devices)")
        );
    }
}
