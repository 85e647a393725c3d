//! [`ClassOrder`]: the order of the classes of several files. Hugging Face's `datasets` writes the names of classes into each
//! Arrow and Parquet file; a row has the number of its class, which has to mean the same class in all of them.

use stratoscope_render::text;

/// Names that a message lists.
const SHOWN: usize = 12;

/// The classes that files name, in their order.
#[derive(Default)]
pub(crate) struct ClassOrder {
    /// The longest list, and the file that has it.
    names: Option<(Vec<String>, String)>,
}

impl ClassOrder {
    /// Adds the list of a file.
    ///
    /// # Errors
    /// Why the file does not go with those before: a number would be two classes.
    pub(crate) fn add(&mut self, file: &str, names: &[String]) -> Result<(), String> {
        match &self.names {
            Some((known, _)) if known.starts_with(names) => Ok(()),
            Some((known, first)) if !names.starts_with(known) => Err(format!(
                "its classes are {}, and those of `{first}` are {}: a number would be two classes; write \
                 them again with one `ClassLabel`",
                text::names(names, SHOWN),
                text::names(known, SHOWN),
            )),
            _ => {
                self.names = Some((names.to_vec(), file.to_owned()));
                Ok(())
            }
        }
    }

    /// The classes of all files; `None` where no file names any.
    pub(crate) fn into_names(self) -> Option<Vec<String>> {
        self.names.map(|(names, _)| names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_list_continues_another_or_is_refused() {
        let list = |names: &str| -> Vec<String> { names.chars().map(String::from).collect() };
        let order = |lists: &[&str]| {
            let mut order = ClassOrder::default();
            for (file, names) in lists.iter().enumerate() {
                order.add(&file.to_string(), &list(names))?;
            }
            Ok::<_, String>(order.into_names())
        };
        assert_eq!(order(&[]), Ok(None));
        assert_eq!(order(&["cab", "cab"]), Ok(Some(list("cab"))));
        assert_eq!(order(&["ca", "cab", "c"]), Ok(Some(list("cab"))));
        let reason = order(&["ca", "cab", "cb"]).expect_err("1 would be `a` and `b`");
        assert!(
            reason.contains("`c` and `b`") && reason.contains("`1`"),
            "{reason}"
        );
    }
}
