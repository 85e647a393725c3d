//! Which members of our types can be called from a cell. rust-analyzer offers private ones too, because evcxr declares all
//! sources as the notebook's own. What it offers shows what type a value has: the fields of a struct and the functions of an
//! `impl` block are offered together. So of a block whose public members are all offered, the private ones are left out, and
//! a field `inner` of the notebook's own type stays.
//!
//! The blocks are read from the sources of our crates when they are first needed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use stratoscope_compile::facade;

/// The crates whose types cells have.
const CRATES: [&str; 18] = [
    "stratoscope",
    "models",
    "run",
    "train",
    "inspect",
    "step",
    "arguments",
    "network",
    "metrics",
    "optim",
    "report",
    "bert",
    "course",
    "data",
    "evaluation",
    "strategy",
    "diagnostics",
    "render",
];

/// Methods for the display of values, which the last line of a cell calls.
const OF_DISPLAYS: [&str; 2] = ["bundle", "bundle_of_list"];

/// What of our types is among the members that rust-analyzer offers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recognized {
    /// Names that no cell can use.
    pub hidden: BTreeSet<String>,
    /// The value is a model, which the calls of the DSL take.
    pub is_model: bool,
}

/// Reads what rust-analyzer offers behind a dot, or (`of_path`) behind `Type::`.
pub fn recognize(offered: &BTreeSet<&str>, of_path: bool) -> Recognized {
    static BLOCKS: OnceLock<Blocks> = OnceLock::new();
    let blocks = BLOCKS.get_or_init(|| {
        let mut found = Blocks::default();
        for name in CRATES {
            found.read_folder(&facade::sources().join("src").join(name).join("src"));
        }
        found
    });
    blocks.recognize(offered, of_path)
}

/// The members of a struct, or of an `impl` block that is of no trait.
#[derive(Debug, Default)]
struct Block {
    type_name: String,
    is_struct: bool,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: String,
    is_public: bool,
    /// It can stand behind a dot.
    is_of_value: bool,
}

#[derive(Default)]
struct Blocks(Vec<Block>);

impl Blocks {
    fn recognize(&self, offered: &BTreeSet<&str>, of_path: bool) -> Recognized {
        let is_offered = |member: &&Member| offered.contains(&*member.name);
        let candidates = || {
            self.0
                .iter()
                .filter(|block| !(of_path && block.is_struct))
                .filter(|block| block.members_in(of_path).any(|it| is_offered(&it)))
                .filter(|block| {
                    let mut public = block.members_in(of_path).filter(|it| it.is_public);
                    public.all(|member| is_offered(&member))
                })
        };
        // One name may be that of any type's member.
        let types: BTreeSet<&str> = candidates()
            .filter(|block| block.members_in(of_path).filter(is_offered).count() > 1)
            .filter(|block| block.members_in(of_path).any(|it| it.is_public))
            .map(|block| &*block.type_name)
            .collect();
        // A `ModelOf` has the methods of the model that it dereferences to, and few of its own.
        let is_one =
            |name: &str| types.contains(name) || (name == "ModelOf" && types.contains("Model"));
        let of_them = || candidates().filter(|block| is_one(&block.type_name));
        let names = |is_public: bool| -> BTreeSet<String> {
            let members = of_them().flat_map(|block| block.members_in(of_path));
            let members = members.filter(|member| member.is_public == is_public);
            members.map(|member| member.name.clone()).collect()
        };
        let mut hidden = &names(false) - &names(true);
        hidden.extend(OF_DISPLAYS.map(str::to_owned));
        Recognized {
            hidden,
            is_model: !of_path && types.contains("Model"),
        }
    }

    fn read_folder(&mut self, folder: &Path) {
        // Sources that are not there any more leave everything as rust-analyzer offers it.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                self.read_folder(&path);
            } else if path.extension().is_some_and(|it| it == "rs")
                && let Ok(text) = fs::read_to_string(&path)
            {
                self.read(&text);
            }
        }
    }

    /// Reads formatted source: items begin in the first column, members in the fifth.
    fn read(&mut self, text: &str) {
        let mut block: Option<Block> = None;
        // A head may go on over several lines, and so may the operands of a function.
        let mut in_head = false;
        let mut is_conditional = false;
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let member = line.strip_prefix("    ");
            let member = member.filter(|rest| !rest.starts_with(' '));
            if line.starts_with('{') || line.starts_with("where") {
                in_head &= !line.contains('{');
            } else if !line.starts_with([' ', '}', ')', '\t']) && !line.is_empty() {
                self.0.extend(block.take());
                block = Block::of_item(line);
                in_head = block.is_some() && !line.contains('{');
            } else if in_head {
                // `impl Trait` on one line, `for Type` on the next.
                if line.contains(" for ") {
                    block = None;
                }
                in_head = block.is_some() && !line.contains('{');
            } else if let (Some(block), Some(member)) = (&mut block, member) {
                if member.starts_with("#[cfg") {
                    is_conditional = true;
                } else if !member.starts_with(['#', '/']) {
                    let next = lines.peek().copied().unwrap_or_default();
                    let found = Member::of_line(member, next);
                    block.members.extend(found.filter(|_| !is_conditional));
                    is_conditional = false;
                }
            }
        }
        self.0.extend(block);
    }
}

impl Block {
    /// The block that begins with this line.
    fn of_item(line: &str) -> Option<Self> {
        let bare = without_visibility(line).0;
        let bare = bare.strip_prefix("unsafe ").unwrap_or(bare);
        let (is_struct, rest) = match bare.strip_prefix("struct ") {
            Some(rest) => (true, rest),
            None => (false, bare.strip_prefix("impl")?),
        };
        if !is_struct && (bare.contains(" for ") || rest.starts_with(is_name)) {
            return None;
        }
        let rest = if is_struct {
            rest
        } else {
            behind_generics(rest)
        };
        let path = rest.trim_start();
        let end = path
            .find(|it| !is_name(it) && it != ':')
            .unwrap_or(path.len());
        let type_name = path[..end].rsplit("::").next().unwrap_or_default();
        let is_one = !type_name.is_empty() && !line.trim_end().ends_with(';');
        is_one.then(|| Self {
            type_name: type_name.to_owned(),
            is_struct,
            members: Vec::new(),
        })
    }

    /// Those that can stand behind `Type::`, or behind a dot.
    fn members_in(&self, of_path: bool) -> impl Iterator<Item = &Member> {
        let members = self.members.iter();
        members.filter(move |member| of_path || member.is_of_value)
    }
}

impl Member {
    /// Of a line within a block, and of the next one, where operands may stand.
    fn of_line(line: &str, next: &str) -> Option<Self> {
        let (bare, is_public) = without_visibility(line);
        let bare = ["const ", "async ", "unsafe "]
            .iter()
            .fold(bare, |bare, word| bare.strip_prefix(word).unwrap_or(bare));
        let (is_function, rest) = match bare.strip_prefix("fn ") {
            Some(rest) => (true, rest),
            None => (false, bare),
        };
        let end = rest.find(|it| !is_name(it)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let is_field = !is_function && behind.starts_with(": ");
        if name.is_empty() || !(is_function || is_field) {
            return None;
        }
        let operands = match line.ends_with('(') {
            true => next.trim(),
            false => behind.split_once('(').map_or("", |(_, operands)| operands),
        };
        let receives = ["self", "&self", "mut self", "&mut self", "&'"];
        Some(Self {
            name: name.to_owned(),
            is_public,
            is_of_value: is_field || receives.iter().any(|it| operands.starts_with(it)),
        })
    }
}

/// The rest of a line, and whether it is public to cells.
fn without_visibility(line: &str) -> (&str, bool) {
    if let Some(rest) = line.strip_prefix("pub(") {
        return (rest.split_once(") ").map_or("", |(_, rest)| rest), false);
    }
    match line.strip_prefix("pub ") {
        Some(rest) => (rest, true),
        None => (line, false),
    }
}

/// What stands behind `<…>` at the beginning.
fn behind_generics(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            // Not the end of an arrow.
            '>' if !text[..at].ends_with('-') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if at == 0 { text } else { &text[at + 1..] };
        }
    }
    ""
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
pub struct Model<N: Network> {
    inner: Arc<N>,
    calls: u8,
}

impl<N: Fn() -> u8> Model<N> {
    pub fn new() -> Self {
        let local: u8 = 1;
    }

    pub fn summary(&self) -> Summary {}

    pub fn fit<'d>(
        &self,
        data: u8,
    ) -> u8 {
    }

    #[cfg(test)]
    pub fn only_in_tests(&self) {}

    pub(crate) fn state(&self) {}

    fn with(change: u8) -> Self {}
}

impl Model<u8> {
    fn secret(&self) {}
}

impl<N> Clone
    for Model<N>
{
    fn clone(&self) -> Self {}
}

pub trait Plot {
    fn plot(&self);
}

struct Single(u8);
";

    fn recognized(offered: &[&str], of_path: bool) -> (Vec<String>, bool) {
        let mut blocks = Blocks::default();
        blocks.read(SOURCE);
        let offered = offered.iter().copied().collect();
        let found = blocks.recognize(&offered, of_path);
        let hidden = found.hidden.into_iter();
        let hidden = hidden.filter(|name| !OF_DISPLAYS.contains(&&**name));
        (hidden.collect(), found.is_model)
    }

    #[test]
    fn private_members_of_a_recognized_type_are_hidden() {
        let of_model = [
            "inner", "calls", "summary", "fit", "state", "secret", "clone",
        ];
        let (hidden, is_model) = recognized(&of_model, false);
        assert_eq!(hidden, ["calls", "inner", "secret", "state"]);
        assert!(is_model);
        let of_path = ["new", "summary", "fit", "state", "with"];
        assert_eq!(recognized(&of_path, true).0, ["state", "with"]);
        // A type of the notebook, with a name that is private elsewhere.
        for other in [
            &["inner", "len"][..],
            &["secret"],
            &["state", "fit", "clone"],
        ] {
            assert_eq!(recognized(other, false), (Vec::new(), false), "{other:?}");
        }
    }

    #[test]
    fn our_own_sources_are_read() {
        let mut blocks = Blocks::default();
        for name in CRATES {
            blocks.read_folder(&facade::sources().join("src").join(name).join("src"));
        }
        let of = |type_name: &str, name: &str| {
            let mut of_type = blocks.0.iter().filter(|it| it.type_name == type_name);
            let found = of_type.find_map(|block| block.members.iter().find(|it| it.name == name));
            found.map(|it| (it.is_public, it.is_of_value))
        };
        assert_eq!(of("Model", "shared"), Some((false, true)));
        assert_eq!(of("Model", "free_state"), Some((false, true)));
        assert_eq!(of("Model", "summary"), Some((true, true)));
        assert_eq!(of("MirroredStrategy", "with"), Some((false, false)));
        assert_eq!(of("MirroredStrategy", "logical"), Some((true, false)));
    }
}
