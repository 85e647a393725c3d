//! Integers as they are written in a cell: of any integer type, checked when they are used.

use crate::rules::InvalidArgumentValue;
use crate::{Place, Result, Rule, arguments};

/// An integer as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(i128);

/// Defines the trait `IntoCount`, by which an argument takes integers of any type. Each crate has a trait of its own: other
/// traits are implemented for all that have it and for lists, which rustc allows only beside a trait of the same crate.
#[macro_export]
macro_rules! into_count {
    () => {
        $crate::into_count!(
            i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize
        );
    };
    ($($integer:ty),*) => {
        /// A number of things, of whatever integer type it was written in, so that a 0 or a −1 that only
        /// run time knows is answered by us.
        #[diagnostic::on_unimplemented(
            message = "expected an integer, got `{Self}`",
            label = "a whole number, such as 16"
        )]
        pub trait IntoCount {
            /// The number as written.
            fn into_count(self) -> $crate::count::Count;
        }

        $(impl IntoCount for $integer {
            fn into_count(self) -> $crate::count::Count {
                $crate::count::Count::of(i128::try_from(self).unwrap_or(i128::MAX))
            }
        })*
    };
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Count {
    /// This number.
    pub fn of(number: i128) -> Self {
        Self(number)
    }

    /// The number if it is not negative.
    pub fn value(self) -> Option<u64> {
        u64::try_from(self.0).ok()
    }

    /// The number if it is in the range that the table of arguments has for the argument of the call, else SC0103.
    pub fn checked(self, call: &str, argument: &str) -> Result<u64> {
        let least = arguments::least_integer(call, argument);
        self.at_least(least.unwrap_or(0), call, argument)
    }

    /// The number if it is at least `least`, else SC0103 for the argument of the call.
    pub fn at_least(self, least: u64, call: &str, argument: &str) -> Result<u64> {
        let found = self.value().filter(|&number| number >= least);
        found.ok_or_else(|| {
            let rule = InvalidArgumentValue {
                call: call.to_owned(),
                argument: argument.to_owned(),
                given: self.0.to_string(),
                expects: format!("an integer ≥ {least}"),
                place: Place::argument(call, argument),
                replacement: None,
                arguments: Vec::new(),
            };
            rule.error()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::into_count!();

    #[test]
    fn ranges_are_those_of_the_table() {
        let is_accepted =
            |number: i32, call, argument| number.into_count().checked(call, argument).is_ok();
        for (call, argument) in [
            ("compile", "steps_per_execution"),
            ("compile", "gradient_accumulation_steps"),
            ("compile", "sync_every"),
            ("fit", "batch_size"),
            ("fit", "max_length"),
            ("evaluate", "batch_size"),
            ("evaluate", "max_length"),
        ] {
            assert!(is_accepted(1, call, argument), "{call}: {argument}");
            assert!(!is_accepted(0, call, argument), "{call}: {argument}");
        }
        assert!(is_accepted(0, "fit", "seed") && !is_accepted(-1, "fit", "seed"));
    }

    #[test]
    fn counts_are_checked_when_they_are_used() {
        let check = |count: Count, least, message: &str| {
            let finding = count
                .at_least(least, "fit", "epochs")
                .expect_err("too small");
            assert_eq!(
                (finding.code.as_str(), finding.message.as_str()),
                ("SC0103", message)
            );
        };
        check(0.into_count(), 1, "`epochs = 0`: expected an integer ≥ 1");
        check(
            (-3_i64).into_count(),
            0,
            "`epochs = -3`: expected an integer ≥ 0",
        );
        assert_eq!(
            u64::MAX.into_count().at_least(1, "fit", "epochs").ok(),
            Some(u64::MAX)
        );
    }
}
