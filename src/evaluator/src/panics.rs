//! What a panic of the standard library means: an index below 0, a list that is empty, a division by 0.

/// Numbers from here on are below 0: integers without a sign begin again at the other end.
const FIRST_NEGATIVE: u64 = 1 << 63;

/// A panic's message, with a line that explains it where that is known.
pub fn explained(message: &str) -> String {
    match explanation(message) {
        Some(why) => format!("{message}\n{why}"),
        None => message.to_owned(),
    }
}

fn explanation(message: &str) -> Option<String> {
    let numbers: Vec<u64> = message
        .split(|it: char| !it.is_ascii_digit())
        .filter_map(|it| it.parse().ok())
        .collect();
    let begins = |words: &str| message.starts_with(words);
    let below_zero = numbers.iter().find(|it| **it >= FIRST_NEGATIVE);
    let is_index = begins("index out of bounds: ") || begins("range ") || begins("slice index ");
    if let Some(wrapped) = below_zero.filter(|_| is_index) {
        return Some(format!(
            "{wrapped} is -{}, as a `usize` has it: it has no numbers below 0, and `0 - 1` is the largest one. \
             `a.checked_sub(b)` is `None` below 0, `a.saturating_sub(b)` is 0, and `last()` is the last element",
            wrapped.wrapping_neg()
        ));
    }
    if begins("index out of bounds: ") {
        let [length, index] = numbers.as_slice() else {
            return None;
        };
        return Some(match length {
            0 => {
                "the list is empty; `first()` and `get(0)` return an `Option`, which is `None` then"
                    .to_owned()
            }
            _ if index == length => format!(
                "indices count from 0: the last one of {length} is {}; `get({index})` returns an `Option`, which is `None` here",
                length - 1
            ),
            _ => format!(
                "the last index is {}; `get({index})` returns an `Option`, which is `None` here",
                length - 1
            ),
        });
    }
    let why = match message {
        _ if begins("range end index ") || begins("range start index ") => {
            "a range ends at the length of the list, `list.len()`, at most; `list.iter().take(n)` takes fewer where there are no more"
        }
        _ if begins("slice index starts at ") => {
            "a range begins before its end; `(a..b).rev()` counts down"
        }
        "capacity overflow" => {
            "a list of a huge length was asked for: a length below 0 is one, since `0 - 1` of a `usize` is its largest number; \
             `a.saturating_sub(b)` is 0 then"
        }
        _ if begins("attempt to subtract with overflow") => {
            "a `usize` has no numbers below 0; `a.checked_sub(b)` is `None` then, `a.saturating_sub(b)` is 0, and `a as i64 - b as i64` \
             is negative"
        }
        _ if begins("attempt to divide by zero")
            || begins("attempt to calculate the remainder with a divisor of zero") =>
        {
            "integers have no infinity; `a.checked_div(b)` is `None` then, and floats, `a as f64 / b as f64`, are infinite or NaN"
        }
        "called `Option::unwrap()` on a `None` value" => {
            "there is no value: `unwrap_or(0)` takes another one, `if let Some(value) = …` goes on only with one, and \
             `expect(\"…\")` says what is missing"
        }
        _ if begins("byte index ") && message.contains("is not a char boundary") => {
            "texts are indexed by bytes, and letters such as `é` have several; `text.chars().take(n).collect::<String>()` takes letters"
        }
        _ if begins("chunk size must be non-zero") || begins("window size must be non-zero") => {
            "parts of a list have at least one element"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_of_lists_and_numbers_are_explained() {
        for (message, expected) in [
            (
                "index out of bounds: the len is 3 but the index is 18446744073709551615",
                "18446744073709551615 is -1, as a `usize` has it",
            ),
            (
                "index out of bounds: the len is 3 but the index is 18446744073709551613",
                "18446744073709551613 is -3,",
            ),
            (
                "index out of bounds: the len is 3 but the index is 3",
                "the last one of 3 is 2",
            ),
            (
                "index out of bounds: the len is 3 but the index is 7",
                "the last index is 2; `get(7)`",
            ),
            (
                "index out of bounds: the len is 0 but the index is 0",
                "the list is empty",
            ),
            (
                "range end index 18446744073709551615 out of range for slice of length 0",
                "18446744073709551615 is -1",
            ),
            (
                "range end index 9 out of range for slice of length 4",
                "`list.len()`, at most",
            ),
            ("slice index starts at 3 but ends at 1", "counts down"),
            ("capacity overflow", "a length below 0"),
            ("attempt to divide by zero", "`a.checked_div(b)`"),
            (
                "called `Option::unwrap()` on a `None` value",
                "`unwrap_or(0)`",
            ),
        ] {
            let shown = explained(message);
            let (first, why) = shown.split_once('\n').expect("an explanation");
            assert_eq!(first, message);
            assert!(why.contains(expected), "{why}");
        }
        for message in ["mine", "18446744073709551615", "index out of bounds: mine"] {
            assert_eq!(explained(message), message);
        }
    }
}
