//! Where variables are between two cells.

use std::any::Any;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use super::describe;

/// The map that evcxr keeps variables in, by name. The calls that every cell makes are compiled
/// here, once, and not in every cell.
#[derive(Default)]
pub struct Variables(HashMap<String, Box<dyn Any>>);

impl Variables {
    /// No variable yet.
    #[inline(never)]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`HashMap::insert`].
    #[inline(never)]
    pub fn insert(&mut self, name: String, value: Box<dyn Any>) -> Option<Box<dyn Any>> {
        describe::note(&name, value.as_ref());
        self.0.insert(name, value)
    }

    /// As [`HashMap::get`].
    #[inline(never)]
    pub fn get(&self, name: &str) -> Option<&Box<dyn Any>> {
        self.0.get(name)
    }

    /// As [`HashMap::remove`].
    #[inline(never)]
    pub fn remove(&mut self, name: &str) -> Option<Box<dyn Any>> {
        describe::forget(name);
        self.0.remove(name)
    }
}

/// For the rest of what evcxr does with it.
impl Deref for Variables {
    type Target = HashMap<String, Box<dyn Any>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Variables {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
