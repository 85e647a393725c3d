//! Lists and maps: their elements are read one by one, so that a long one is not formatted as a whole.

use std::any::Any;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::ops::Range;

use super::text::{Parsed, debug};
use super::{LINE, View, types};

/// A key of a map is cut here.
const KEY: usize = 60;
/// Elements that are named in the one line of a list.
const SHOWN: usize = 8;

/// A value that has a `Debug` and a known type.
pub trait Element: Debug + Any {}

impl<T: Debug + Any> Element for T {}

/// A list or a map.
pub trait Listed {
    /// How many elements it has.
    fn length(&self) -> usize;

    /// Calls `each` with the elements at these positions, and their keys in a map.
    fn elements<'a>(
        &'a self,
        range: Range<usize>,
        each: &mut dyn FnMut(Option<&'a dyn Element>, &'a dyn Element),
    );
}

/// Implements [`Listed`] for types that have `len` and `iter`.
macro_rules! listed {
    ($($item:pat => $key:expr, $value:expr; ($($parameter:ident),*) $({$size:ident})? for $kind:ty;)*) => {
        $(impl<$($parameter: Element,)* $(const $size: usize)?> Listed for $kind {
            fn length(&self) -> usize {
                self.len()
            }

            fn elements<'a>(
                &'a self,
                range: Range<usize>,
                each: &mut dyn FnMut(Option<&'a dyn Element>, &'a dyn Element),
            ) {
                for $item in self.iter().skip(range.start).take(range.len()) {
                    each($key, $value);
                }
            }
        })*
    };
}

listed! {
    it => None, it; (T) for Vec<T>;
    it => None, it; (T) for Box<[T]>;
    it => None, it; (T) for VecDeque<T>;
    it => None, it; (T) for HashSet<T>;
    it => None, it; (T) for BTreeSet<T>;
    it => None, it; (T) {N} for [T; N];
    (key, it) => Some(key), it; (K, V) for HashMap<K, V>;
    (key, it) => Some(key), it; (K, V) for BTreeMap<K, V>;
}

/// A value as its type is known, or by its `Debug`.
fn element<'a>(value: &'a dyn Element) -> Box<dyn View + 'a> {
    types::view(value).unwrap_or_else(|| Box::new(ByDebug::new(value)))
}

/// A list or a map as a view.
pub(crate) struct List<'a>(pub &'a dyn Listed);

impl View for List<'_> {
    fn line(&self) -> String {
        let mut parts = Vec::new();
        let mut is_map = false;
        self.0.elements(0..SHOWN, &mut |key, value| {
            is_map |= key.is_some();
            let key = key.map(|key| debug(&key, KEY) + ": ").unwrap_or_default();
            parts.push(key + &element(value).line());
        });
        let length = self.0.length();
        if length > parts.len() {
            parts.push("…".to_owned());
        }
        let mut elements = parts.join(", ");
        if elements.len() > LINE {
            elements.truncate(elements.floor_char_boundary(LINE));
            elements += "…";
        }
        let elements = match is_map {
            true => format!("{{{elements}}}"),
            false => format!("[{elements}]"),
        };
        match length > SHOWN {
            true => format!("{length} elements: {elements}"),
            false => elements,
        }
    }

    fn indexed(&self) -> usize {
        self.0.length()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let mut found = None;
        let range = position..position.saturating_add(1);
        self.0.elements(range, &mut |key, value| {
            let name = match key {
                Some(key) => format!("[{}]", debug(&key, KEY)),
                None => format!("[{position}]"),
            };
            found = Some((name, element(value)));
        });
        found
    }

    fn children(&self, range: Range<usize>, each: &mut dyn FnMut(String, &dyn View)) {
        let mut position = range.start;
        self.0.elements(range, &mut |key, value| {
            let name = match key {
                Some(key) => format!("[{}]", debug(&key, KEY)),
                None => format!("[{position}]"),
            };
            position += 1;
            each(name, element(value).as_ref());
        });
    }
}

/// A value by its `Debug`.
pub(crate) struct ByDebug<'a> {
    value: &'a dyn Debug,
    parsed: OnceCell<Parsed>,
}

impl<'a> ByDebug<'a> {
    pub(crate) fn new(value: &'a dyn Debug) -> Self {
        Self {
            value,
            parsed: OnceCell::new(),
        }
    }

    fn parsed(&self) -> &Parsed {
        self.parsed.get_or_init(|| Parsed::of(self.value))
    }
}

impl View for ByDebug<'_> {
    fn line(&self) -> String {
        // More bytes than characters of the line.
        debug(self.value, 4 * LINE)
    }

    fn named(&self) -> usize {
        self.parsed().named()
    }

    fn indexed(&self) -> usize {
        self.parsed().indexed()
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        self.parsed().child(position)
    }
}
