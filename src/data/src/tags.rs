//! Tags of words and the entities that they make: `B-PER I-PER O`. Source of the rules: the script `conlleval` of
//! the CoNLL-2000 shared task; seqeval in its default mode counts the same way.

use std::collections::HashSet;
use std::ops::Range;

/// Where in an entity a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// `O`: in none.
    Outside,
    /// `B-`: the first word.
    Begin,
    /// `I-`, or a tag without such a prefix.
    Inside,
    /// `E-` or `L-`: the last word.
    End,
    /// `S-` or `U-`: the only word.
    Single,
}

/// What each tag says: where in an entity, and of what type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagScheme {
    /// By tag.
    parts: Vec<(Part, usize)>,
    /// The names of the types of entities, sorted.
    types: Vec<String>,
    /// Whether some tag that is not `O` has no prefix.
    is_plain: bool,
}

/// Words of a sentence that are an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// The words, counted from 0.
    pub words: Range<usize>,
    /// Its type, an index into [`TagScheme::types`].
    pub of_type: usize,
}

/// A tag as its part and the name of its type; `O` has none.
fn part_of(tag: &str) -> (Part, Option<&str>) {
    let split = tag.split_once(['-', '_']);
    match (tag, split) {
        ("O", _) => (Part::Outside, None),
        (_, Some(("B", name))) => (Part::Begin, Some(name)),
        (_, Some(("I", name))) => (Part::Inside, Some(name)),
        (_, Some(("E" | "L", name))) => (Part::End, Some(name)),
        (_, Some(("S" | "U", name))) => (Part::Single, Some(name)),
        _ => (Part::Inside, Some(tag)),
    }
}

/// The distinct tags: `O` first, then by type, `B-` before `I-`.
pub(crate) fn sorted_tags<'a>(tags: impl Iterator<Item = &'a str>) -> Vec<String> {
    let distinct: HashSet<&str> = tags.collect();
    let mut names: Vec<&str> = distinct.into_iter().collect();
    names.sort_by(|a, b| (part_of(a).1, a).cmp(&(part_of(b).1, b)));
    names.into_iter().map(str::to_owned).collect()
}

impl TagScheme {
    /// What the names of the tags say.
    pub fn of(names: &[String]) -> Self {
        let types: HashSet<&str> = names.iter().filter_map(|name| part_of(name).1).collect();
        let mut types: Vec<String> = types.into_iter().map(str::to_owned).collect();
        types.sort();
        let part = |name: &String| {
            let (part, of_type) = part_of(name);
            let of_type = types
                .iter()
                .position(|known| Some(known.as_str()) == of_type);
            (part, of_type.unwrap_or(usize::MAX))
        };
        Self {
            parts: names.iter().map(part).collect(),
            is_plain: names.iter().any(|name| !Self::has_prefix(name)),
            types,
        }
    }

    /// Whether a tag is `O` or has one of the prefixes `B-`, `I-`, `E-`, `L-`, `S-` and `U-`.
    pub fn has_prefix(tag: &str) -> bool {
        part_of(tag).1 != Some(tag)
    }

    /// The names of the types of entities, sorted.
    pub fn types(&self) -> &[String] {
        &self.types
    }

    /// Whether some tag has no prefix that says where an entity begins.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The entities of a sentence by the tags of its words. An `I-` that continues nothing begins an entity.
    pub fn entities(&self, tags: &[usize]) -> Vec<Entity> {
        let mut found: Vec<Entity> = Vec::new();
        let mut open: Option<Entity> = None;
        let mut before = (Part::Outside, usize::MAX);
        for (at, &tag) in tags.iter().enumerate() {
            let now = self.parts.get(tag).copied();
            let now = now.unwrap_or((Part::Outside, usize::MAX));
            if continues(before, now) {
                if let Some(open) = &mut open {
                    open.words.end = at + 1;
                }
            } else {
                found.extend(open.take());
                if now.0 != Part::Outside {
                    let (words, of_type) = (at..at + 1, now.1);
                    open = Some(Entity { words, of_type });
                }
            }
            before = now;
        }
        found.extend(open);
        found
    }

    /// Whether a tag is in an entity.
    pub fn is_in_entity(&self, tag: usize) -> bool {
        self.parts
            .get(tag)
            .is_some_and(|(part, _)| *part != Part::Outside)
    }

    /// Words whose tag is `I-` (or `E-`) and that continue no entity: their places.
    pub fn without_begin(&self, tags: &[usize]) -> Vec<usize> {
        let part = |tag: &usize| self.parts.get(*tag).copied();
        let none = (Part::Outside, usize::MAX);
        let is_lost = |at: &usize| {
            let now = part(&tags[*at]).unwrap_or(none);
            let before = at.checked_sub(1).and_then(|before| part(&tags[before]));
            matches!(now.0, Part::Inside | Part::End) && !continues(before.unwrap_or(none), now)
        };
        (0..tags.len()).filter(is_lost).collect()
    }
}

/// Whether a word belongs to the entity of the word before it.
fn continues(before: (Part, usize), now: (Part, usize)) -> bool {
    let open = matches!(before.0, Part::Begin | Part::Inside);
    let follows = matches!(now.0, Part::Inside | Part::End);
    open && follows && before.1 == now.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entities(tags: &[&str]) -> Vec<(Range<usize>, String)> {
        let names = sorted_tags(tags.iter().copied());
        let scheme = TagScheme::of(&names);
        let tags = tags
            .iter()
            .map(|tag| names.iter().position(|name| name == tag));
        let tags: Vec<usize> = tags.flatten().collect();
        let named = |it: Entity| (it.words, scheme.types()[it.of_type].clone());
        scheme.entities(&tags).into_iter().map(named).collect()
    }

    #[test]
    fn tags_are_sorted_by_entity() {
        let names = sorted_tags(["I-PER", "O", "B-PER", "B-LOC", "I-LOC", "O"].into_iter());
        assert_eq!(names, ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]);
    }

    /// The cases in which the schemes differ; the results are those of seqeval 1.2.2's `get_entities`.
    #[test]
    fn entities_are_those_of_seqeval() {
        let check = |tags: &[&str], expected: &[(Range<usize>, &str)]| {
            let expected = expected
                .iter()
                .map(|(words, name)| (words.clone(), (*name).to_owned()));
            assert_eq!(entities(tags), expected.collect::<Vec<_>>(), "{tags:?}");
        };
        check(
            &["B-PER", "I-PER", "O", "B-LOC"],
            &[(0..2, "PER"), (3..4, "LOC")],
        );
        check(&["B-PER", "B-PER"], &[(0..1, "PER"), (1..2, "PER")]);
        // Without a begin: IOB1.
        check(
            &["I-PER", "I-PER", "O", "I-LOC"],
            &[(0..2, "PER"), (3..4, "LOC")],
        );
        check(&["B-PER", "I-LOC"], &[(0..1, "PER"), (1..2, "LOC")]);
        check(
            &["S-PER", "S-PER", "B-LOC", "E-LOC", "E-LOC"],
            &[(0..1, "PER"), (1..2, "PER"), (2..4, "LOC"), (4..5, "LOC")],
        );
        check(&["PER", "PER", "LOC"], &[(0..2, "PER"), (2..3, "LOC")]);
        check(&["O", "O"], &[]);
    }

    #[test]
    fn words_that_continue_nothing_are_found() {
        let names: Vec<String> = ["O", "B-PER", "I-PER", "I-LOC"].map(str::to_owned).to_vec();
        let scheme = TagScheme::of(&names);
        assert_eq!(scheme.without_begin(&[1, 2, 0, 2, 3]), [3, 4]);
        assert!(!scheme.is_plain());
        assert!(TagScheme::of(&["O".to_owned(), "PER".to_owned()]).is_plain());
    }
}
