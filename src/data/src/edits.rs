//! Edits of single rows: another class, or no place in the data at all. Rows are positions in the data set, counted from 0,
//! as a run and an audit count them; [`Example::row`](crate::Example::row), the row in the source, may differ after a shuffle.

use std::collections::BTreeSet;

use stratoscope_diagnostics::rules::{ClassNotInData, RowsNotInData};
use stratoscope_diagnostics::{Result, Rule};

use crate::dataset::Dataset;
use crate::example::Label;

impl Dataset {
    /// Gives rows another class: `data.relabel([(17, "games")])?`. Of a row that is there twice, the last class counts.
    ///
    /// ```
    /// use stratoscope_data::Dataset;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let data = Dataset::from_rows(["a chess game", "a mail server"], ["net", "net"])?;
    /// assert!(data.relabel([(0, "games")]).is_err()); // no class of this data
    /// let more = data.concatenate(&Dataset::from_rows(["a puzzle"], ["games"])?)?;
    /// assert_eq!(more.relabel([(0, "games")])?.class_counts(), [2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0720 for a row that does not exist and for no row; SC0721 for a class that does not exist.
    pub fn relabel<L: AsRef<str>>(
        &self,
        changes: impl IntoIterator<Item = (usize, L)>,
    ) -> Result<Self> {
        let changes: Vec<(usize, L)> = changes.into_iter().collect();
        self.has_rows("relabel", changes.iter().map(|change| change.0))?;
        let mut data = self.clone();
        for (row, name) in changes {
            let class = self.label_names.iter().position(|it| it == name.as_ref());
            let Some(class) = class else {
                let rule = ClassNotInData {
                    call: "relabel".to_owned(),
                    given: name.as_ref().to_owned(),
                    known: self.label_names.clone(),
                };
                return Err(rule.error());
            };
            data.examples[row].label = Some(Label::Class(class));
        }
        Ok(data.with_names_in_examples())
    }

    /// The data without these rows: `data.drop_examples([17, 203])?`. The later ones move up; their
    /// [`row`](crate::Example::row) in the source stays.
    ///
    /// # Errors
    /// SC0720 for a row that does not exist and for no row.
    pub fn drop_examples(&self, rows: impl IntoIterator<Item = usize>) -> Result<Self> {
        let dropped: BTreeSet<usize> = rows.into_iter().collect();
        self.has_rows("drop_examples", dropped.iter().copied())?;
        let rest = self.examples.iter().enumerate();
        let rest = rest.filter(|(row, _)| !dropped.contains(row));
        Ok(self.with_examples(rest.map(|(_, example)| example)))
    }

    /// The rows in this order: `data.rows([17, 203])?`.
    ///
    /// # Errors
    /// SC0720 for a row that does not exist and for no row.
    pub fn rows(&self, rows: impl IntoIterator<Item = usize>) -> Result<Self> {
        let rows: Vec<usize> = rows.into_iter().collect();
        self.has_rows("rows", rows.iter().copied())?;
        Ok(self.with_examples(rows.iter().map(|&row| &self.examples[row])))
    }

    /// SC0720 unless there is a row and each exists.
    fn has_rows(&self, call: &str, rows: impl Iterator<Item = usize>) -> Result<()> {
        let rows: Vec<usize> = rows.collect();
        let unknown = rows.iter().filter(|&&row| row >= self.len());
        let unknown: Vec<String> = unknown.map(usize::to_string).collect();
        if unknown.is_empty() && !rows.is_empty() {
            return Ok(());
        }
        let rule = RowsNotInData {
            call: call.to_owned(),
            unknown,
            rows: self.len(),
        };
        Err(rule.error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Dataset {
        Dataset::from_rows(["a", "b", "c"], ["no", "yes", "yes"]).expect("three rows")
    }

    #[test]
    fn a_relabelled_row_has_the_name_of_its_class() {
        let changed = data()
            .relabel([(1, "no"), (2, "no"), (2, "yes")])
            .expect("classes");
        let names = changed.examples.iter().map(|it| it.label_name.as_deref());
        assert_eq!(
            names.collect::<Vec<_>>(),
            [Some("no"), Some("no"), Some("yes")]
        );
        assert_eq!(changed.class_counts(), [2, 1]);
        assert_eq!(data().class_counts(), [1, 2], "the data itself stays");
    }

    #[test]
    fn rows_are_positions_and_keep_their_place_in_the_source() {
        let rest = data().drop_examples([0]).expect("a row");
        assert_eq!(rest.examples[0].row, 1);
        let last = rest.drop_examples([0, 0]).expect("a row");
        assert_eq!((last.len(), last.examples[0].text.as_str()), (1, "c"));
        let turned = data().rows([2, 0]).expect("rows");
        assert_eq!((turned.examples[0].row, turned.examples[1].row), (2, 0));
    }

    #[test]
    fn unknown_rows_and_classes_are_errors() {
        let codes = [
            data().relabel([(3, "no")]).expect_err("three rows").code,
            data()
                .relabel([(0, "maybe")])
                .expect_err("two classes")
                .code,
            data().drop_examples([]).expect_err("no row").code,
            data().rows([1, 7, 8]).expect_err("three rows").code,
            Dataset::from_texts(["a"])
                .relabel([(0, "a")])
                .expect_err("no label")
                .code,
        ];
        assert_eq!(codes, ["SC0720", "SC0721", "SC0720", "SC0720", "SC0721"]);
    }
}
