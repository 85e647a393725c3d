//! Labels that have a column each, with 1 where the label holds and 0 elsewhere, as `pd.get_dummies` and many data sets on the
//! web have them.

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::{Columns, Table};
use crate::problem;

/// The column that the labels of a row are joined in.
const JOINED: &str = "labels of one-hot columns";

impl Table {
    /// Adds a column with the labels of each row, and says how it is read: as a class, if each row has exactly one, else as
    /// several labels.
    ///
    /// # Errors
    /// SC0911 for a value that is neither 0 nor 1.
    pub(super) fn join_one_hot(&mut self, names: &[String], columns: &Columns) -> Result<Columns> {
        let place = |name: &String| {
            let at = self.header.iter().position(|column| column == name);
            at.ok_or_else(|| problem::missing_column(self.call, &self.source, name, &self.header))
        };
        let places = names.iter().map(place).collect::<Result<Vec<_>>>()?;
        let header = self.header.clone();
        let of_row = |_: &[String], fields: &[String]| {
            let holds = |&at: &usize| match is_set(&fields[at]) {
                Some(true) => Some(Ok(header[at].clone())),
                Some(false) => None,
                None => Some(Err(format!(
                    "`{}` in column `{}` is neither 0 nor 1",
                    text::excerpt(&fields[at], 40),
                    header[at]
                ))),
            };
            places.iter().filter_map(holds).collect()
        };
        let all: Vec<Vec<String>> = self.read_from_rows(columns, of_row)?;
        let is_class = all.iter().all(|labels| labels.len() == 1);
        for (row, labels) in self.rows.iter_mut().zip(all) {
            row.fields.push(match is_class {
                true => labels.concat(),
                false => serde_json::Value::from(labels).to_string(),
            });
        }
        self.header.push(JOINED.to_owned());
        Ok(match is_class {
            true => columns.clone().label(JOINED),
            false => columns.clone().labels(JOINED, ","),
        })
    }
}

/// Whether a value says yes; `None` for one that says neither yes nor no.
fn is_set(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "1.0" | "true" => Some(true),
        "0" | "0.0" | "false" | "" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;

    fn read(content: &str) -> Result<Dataset> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.csv");
        std::fs::write(&path, content).expect("room");
        Dataset::csv_with(
            &path,
            &Columns::new().text("text").one_hot(["toxic", "kind"]),
        )
    }

    #[test]
    fn a_column_for_each_label_makes_classes_or_sets() {
        let classes = read("id,text,toxic,kind\n1,a,1,0\n2,b,0,1\n").expect("classes");
        assert_eq!(classes.label_names, ["kind", "toxic"]);
        assert_eq!((classes[0].class(), classes[1].class()), (Some(1), Some(0)));
        let sets = read("id,text,toxic,kind\n1,a,True,1.0\n2,b,0,False\n").expect("sets");
        assert_eq!(sets[0].classes(), Some(&[0, 1][..]));
        assert_eq!(sets[1].classes(), Some(&[][..]));
        let code = |content: &str| read(content).expect_err("it is refused").code;
        assert_eq!(code("text,toxic,kind\na,2,0\n"), "SC0911");
        assert_eq!(code("text,toxic\na,1\n"), "SC0313");
    }
}
