//! Slurm's lists of machines: `node[1-3,07],other`.

/// No cluster of ours is larger.
const MOST: usize = 65_536;

/// The machines of a list, in their order; `None` for what is no list.
pub(super) fn expanded(list: &str) -> Option<Vec<String>> {
    let mut hosts = Vec::new();
    for item in items(list)? {
        let item = item.trim();
        match item.split_once('[') {
            None if item.is_empty() || item.contains(']') => return None,
            None => hosts.push(item.to_owned()),
            Some((prefix, rest)) => {
                let (inside, suffix) = rest.split_once(']')?;
                if suffix.contains('[') {
                    return None;
                }
                for range in inside.split(',') {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    let numbers: std::ops::RangeInclusive<usize> =
                        first.parse().ok()?..=last.parse().ok()?;
                    if numbers.is_empty() || numbers.end() - numbers.start() > MOST {
                        return None;
                    }
                    let width = first.len();
                    hosts.extend(numbers.map(|number| format!("{prefix}{number:0width$}{suffix}")));
                }
            }
        }
        if hosts.len() > MOST {
            return None;
        }
    }
    (!hosts.is_empty()).then_some(hosts)
}

/// The parts between commas that are not in brackets.
fn items(list: &str) -> Option<Vec<&str>> {
    let (mut items, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, sign) in list.char_indices() {
        match sign {
            '[' if inside => return None,
            '[' => inside = true,
            ']' if !inside => return None,
            ']' => inside = false,
            ',' if !inside => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[start..]);
    (!inside).then_some(items)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_machines() {
        let hosts = |list: &str| expanded(list).map(|hosts| hosts.join(" "));
        let all = "n1 n2 n5 gpu07-a gpu08-a x";
        assert_eq!(hosts("n[1-2,5],gpu[07-08]-a,x").as_deref(), Some(all));
        for wrong in [
            "",
            "n[1-",
            "n[2-1]",
            "n[a]",
            "n1,",
            "n]1[",
            "n[1[2]]",
            "n[1-99999999]",
        ] {
            assert_eq!(hosts(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_list_or_none(text in "[n0-9,\\[\\]-]{0,24}") {
            let _ = expanded(&text);
        }
    }
}
