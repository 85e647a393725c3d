//! Patterns for the names of tensors and variables: `encoder.layer.3.*`.

/// Whether a name matches a pattern: `*` stands for any text, `?` for one character. A pattern may also match the end of
/// a name behind a dot, so that `layer.3.*` finds `bert.encoder.layer.3.output`. A pattern without `*` and `?` that is
/// a part of the network stands for all in it.
pub fn matches(pattern: &str, name: &str) -> bool {
    let starts = std::iter::once(0).chain(name.match_indices('.').map(|(at, _)| at + 1));
    let mut ends = starts.map(|at| &name[at..]);
    ends.any(|end| {
        let part = end.strip_prefix(pattern);
        glob(pattern.as_bytes(), end.as_bytes()) || part.is_some_and(|rest| rest.starts_with('.'))
    })
}

/// In time proportional to the product of both lengths: at a `*` only the latest one is tried again.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while position < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, position));
                at += 1;
            }
            Some(&letter) if letter == b'?' || letter == name[position] => {
                at += 1;
                position += 1;
            }
            _ => {
                let Some((back, taken)) = star else {
                    return false;
                };
                star = Some((back, taken + 1));
                at = back + 1;
                position = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|&letter| letter == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_names_and_their_ends() {
        let name = "bert.encoder.layer.3.attention.output.dense";
        for (pattern, expected) in [
            ("bert.encoder.layer.3.attention.output.dense", true),
            ("encoder.layer.3.*", true),
            ("layer.?.*.dense", true),
            ("layer.3", true),
            ("bert", true),
            ("*", true),
            ("*dense", true),
            ("ayer.3.*", false),
            ("layer.4.*", false),
            ("layer.3.*.query", false),
            ("", false),
            ("layer.3.attention.output.dense.more", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn a_glob_is_what_a_search_by_trying_finds(
            pattern in "[ab*?]{0,8}",
            name in "[ab]{0,10}",
        ) {
            fn slow(pattern: &[u8], name: &[u8]) -> bool {
                match (pattern.split_first(), name.split_first()) {
                    (None, _) => name.is_empty(),
                    (Some((b'*', rest)), None) => slow(rest, name),
                    (Some((b'*', rest)), Some((_, others))) => {
                        slow(rest, name) || slow(pattern, others)
                    }
                    (Some(_), None) => false,
                    (Some((letter, rest)), Some((first, others))) => {
                        (*letter == b'?' || letter == first) && slow(rest, others)
                    }
                }
            }
            prop_assert_eq!(
                glob(pattern.as_bytes(), name.as_bytes()),
                slow(pattern.as_bytes(), name.as_bytes())
            );
        }
    }
}
