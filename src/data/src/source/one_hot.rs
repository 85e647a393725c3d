//! Labels that have a column each, with 1 where the label holds and 0 elsewhere, as `pd.get_dummies` and many data sets on the
//! web have them.

use stratoscope_render::text;

/// The labels of a row: the names of the columns that say yes.
///
/// # Errors
/// A value that is neither 0 nor 1.
pub(super) fn written(
    header: &[String],
    fields: &[String],
    columns: &[usize],
) -> Result<Vec<String>, String> {
    let holds = |&at: &usize| match is_set(&fields[at]) {
        Some(true) => Some(Ok(header[at].clone())),
        Some(false) => None,
        None => Some(Err(format!(
            "`{}` in column `{}` is neither 0 nor 1",
            text::excerpt(&fields[at], 40),
            header[at]
        ))),
    };
    columns.iter().filter_map(holds).collect()
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
    use stratoscope_diagnostics::Result;

    use crate::dataset::Dataset;
    use crate::source::Columns;

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
