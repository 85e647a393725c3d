//! The numbers by which a front end asks for the parts of a value (`variablesReference`). A number stands for a path and not
//! for a value, so that it stays true when the cell runs again, and nothing is kept alive by it.

use std::collections::HashMap;

use stratoscope_wire::{ValuePath, Window};

/// The number of the list of all variables.
pub const VARIABLES: u64 = 1;

/// With more numbers than this, the old ones are void.
const MOST: usize = 100_000;

/// What a number stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    /// The value.
    pub path: ValuePath,
    /// Only these of its indexed children: a long list is divided.
    pub window: Option<Window>,
}

/// A number's value, as it was when the number was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referred {
    /// What it stands for.
    pub parts: Parts,
    /// The value as an expression.
    pub expression: String,
    /// How many named children the value had.
    pub named: usize,
    /// How many indexed ones.
    pub indexed: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub struct References {
    /// The number before the first one in the list.
    before: u64,
    known: Vec<Referred>,
    numbers: HashMap<Parts, u64>,
    /// Whether the client shows the type of a value in its place.
    pub shows_types_as_values: bool,
}

impl References {
    /// The number of these parts, which is the same as before if they had one.
    pub fn number(&mut self, referred: Referred) -> u64 {
        if let Some(&number) = self.numbers.get(&referred.parts) {
            let place = self.place(number);
            if let Some(known) = place.and_then(|place| self.known.get_mut(place)) {
                *known = referred;
            }
            return number;
        }
        if self.known.len() >= MOST {
            self.before += self.known.len() as u64;
            self.known.clear();
            self.numbers.clear();
        }
        let number = VARIABLES + self.before + self.known.len() as u64 + 1;
        self.numbers.insert(referred.parts.clone(), number);
        self.known.push(referred);
        number
    }

    /// What a number stands for; `None`: it was never given, or is void.
    pub fn get(&self, number: u64) -> Option<&Referred> {
        self.known.get(self.place(number)?)
    }

    fn place(&self, number: u64) -> Option<usize> {
        let place = number.checked_sub(VARIABLES + self.before + 1)?;
        usize::try_from(place).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn referred(name: &str) -> Referred {
        Referred {
            parts: Parts {
                path: ValuePath::of(name),
                window: None,
            },
            expression: name.to_owned(),
            named: 0,
            indexed: 3,
        }
    }

    #[test]
    fn a_number_stays_that_of_its_path() {
        let mut references = References::default();
        let first = references.number(referred("a"));
        let second = references.number(referred("b"));
        assert!(first > VARIABLES && second != first);
        let longer = Referred {
            indexed: 4,
            ..referred("a")
        };
        assert_eq!(references.number(longer.clone()), first);
        assert_eq!(references.get(first), Some(&longer));
        for unknown in [0, VARIABLES, second + 1, u64::MAX] {
            assert_eq!(references.get(unknown), None);
        }
    }

    #[test]
    fn old_numbers_are_void_and_are_not_given_twice() {
        let mut references = References::default();
        let first = references.number(referred("first"));
        let numbers: Vec<u64> = (0..MOST)
            .map(|it| references.number(referred(&it.to_string())))
            .collect();
        assert_eq!(references.get(first), None);
        assert!(references.known.len() <= MOST);
        let last = numbers[MOST - 1];
        assert_eq!(
            references.get(last),
            Some(&referred(&(MOST - 1).to_string()))
        );
        assert!(numbers.is_sorted_by(|a, b| a < b));
    }
}
