//! The names of rustc's lints, as `rustc -W help` lists them.

/// Whether there is a lint of this name. Where rustc cannot be asked, there may be.
pub fn is_one(name: &str) -> bool {
    stratoscope_compile::compiler::says(&["-W", "help"])
        .is_none_or(|help| names(&help).any(|it| it == name))
}

/// A line has a name, with dashes, its level and its meaning.
fn names(help: &str) -> impl Iterator<Item = String> {
    help.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, level) = (words.next()?, words.next()?);
        let is_level = ["allow", "warn", "deny", "forbid"].contains(&level);
        is_level.then(|| name.replace('-', "_"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lints_are_read_from_their_list() {
        let help = "Lint checks provided by rustc:\n\n   name  default  meaning\n   ----  -------  -------\n\
                    \x20   dead-code  warn     detect unused, unexported items\n    unused  unused-variables, x\n";
        assert_eq!(names(help).collect::<Vec<_>>(), ["dead_code"]);
        assert!(is_one("unused_variables") && !is_one("unused_varibles"));
    }
}
