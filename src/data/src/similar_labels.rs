//! Labels that are probably one class: `pos`, `pos ` and `Pos` are three classes, and nobody sees it in a table.

use std::collections::BTreeMap;

/// Groups and names that are listed.
const SHOWN: usize = 5;

/// `labels differ only in blanks or case: "Pos", "pos" and "pos "`; `None` where none do.
///
/// ```
/// use stratoscope_data::similar_labels;
///
/// let names = ["Pos", "neg", "pos", "pos "].map(str::to_owned);
/// let sentence = similar_labels(&names).expect("three of them are alike");
/// assert_eq!(sentence, "labels differ only in blanks or case: \"Pos\", \"pos\" and \"pos \"");
/// ```
pub fn similar_labels(names: &[String]) -> Option<String> {
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names {
        let words: Vec<&str> = name.split_whitespace().collect();
        let quoted = format!("\"{name}\"");
        alike
            .entry(words.join(" ").to_lowercase())
            .or_default()
            .push(quoted);
    }
    let mut groups: Vec<String> = Vec::new();
    for mut group in alike.into_values().filter(|group| group.len() > 1) {
        let more = group.len().saturating_sub(SHOWN);
        group.truncate(SHOWN);
        let last = match more {
            0 => group.pop()?,
            more => format!("{more} more"),
        };
        groups.push(format!("{} and {last}", group.join(", ")));
    }
    if groups.is_empty() {
        return None;
    }
    let more = groups.len().saturating_sub(SHOWN);
    groups.truncate(SHOWN);
    let end = if more > 0 { "; …" } else { "" };
    Some(format!(
        "labels differ only in blanks or case: {}{end}",
        groups.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;

    #[test]
    fn labels_that_look_alike_are_quoted() {
        let sentence = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            similar_labels(&names)
        };
        assert_eq!(sentence(&["0", "1", "good", "not good"]), None);
        let alike = "labels differ only in blanks or case: ";
        assert_eq!(
            sentence(&["a  b", "A b", "x ", "y", "x"]).as_deref(),
            Some(&*format!("{alike}\"a  b\" and \"A b\"; \"x \" and \"x\""))
        );
        let many: Vec<String> = (0..8)
            .map(|blanks| format!("x{}", " ".repeat(blanks)))
            .collect();
        let many = similar_labels(&many).expect("they are alike");
        assert!(many.ends_with("and 3 more"), "{many}");
    }

    #[test]
    fn a_data_set_shows_them() {
        let rows = ["pos", "pos ", "Pos"].map(|label| ("a", label));
        let data = Dataset::from_labelled(rows);
        for shown in [data.to_plain(), data.to_html()] {
            assert!(shown.contains("differ only in blanks or case"), "{shown}");
        }
        let data = Dataset::from_labelled([("a", "pos"), ("b", "neg")]);
        assert!(!data.to_plain().contains("differ"));
    }
}
