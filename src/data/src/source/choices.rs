//! Prompts with choices in a table: a column for each choice, or one with lists of them, and the number of the right one.

use stratoscope_render::text;

use super::columns::Chosen;

/// The choices of a row and the number of the right one, or what is wrong with the row.
pub(super) fn written(
    header: &[String],
    fields: &[String],
    chosen: &Chosen,
) -> Result<(Vec<String>, Option<usize>), String> {
    let choices: Vec<String> = match chosen.choices[..] {
        [list] => serde_json::from_str(&fields[list]).map_err(|_| {
            let (name, given) = (&header[list], text::excerpt(&fields[list], 40));
            format!("`{given}` in column `{name}` is not a JSON list of texts")
        })?,
        _ => (chosen.choices.iter())
            .map(|&column| fields[column].clone())
            .collect(),
    };
    let right = chosen.label.column().map(|column| {
        let given = fields[column].trim();
        given.parse().map_err(|_| {
            let (name, given) = (&header[column], text::excerpt(given, 40));
            format!("`{given}` in column `{name}` is not the number of a choice, from 0")
        })
    });
    Ok((choices, right.transpose()?))
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::Result;

    use crate::dataset::Dataset;
    use crate::source::Columns;

    fn read(text: &str, columns: &Columns) -> Result<Dataset> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.csv");
        std::fs::write(&path, text).expect("room");
        Dataset::csv_with(&path, columns)
    }

    fn columns() -> Columns {
        Columns::new().text("start").choices(["first", "second"])
    }

    #[test]
    fn columns_and_lists_have_the_choices() {
        let data = read(
            "start,first,second,label\nHe,sits,flies,0\nIt,sings,rains,1\n",
            &columns(),
        );
        let data = data.expect("two rows");
        assert_eq!(
            data[1].choices(),
            Some(&["sings", "rains"].map(str::to_owned)[..])
        );
        assert_eq!((data[1].class(), data[1].line), (Some(1), Some(3)));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.jsonl");
        let line = "{\"text\": \"He\", \"endings\": [\"sits\", \"flies\"], \"label\": 1}\n";
        std::fs::write(&path, line).expect("room");
        let columns = Columns::new().choices(["endings"]);
        let data = Dataset::jsonl_with(&path, &columns).expect("a row");
        assert_eq!(
            data[0].choices(),
            Some(&["sits", "flies"].map(str::to_owned)[..])
        );
        assert_eq!(data[0].class(), Some(1));
        let unlabelled = Dataset::jsonl_with(&path, &columns.unlabelled()).expect("a row");
        assert_eq!(unlabelled[0].class(), None);
    }

    #[test]
    fn what_is_no_choice_is_named_with_its_line() {
        let check = |text: &str, columns: &Columns, code: &str, words: &str| {
            let problem = read(text, columns).expect_err("it is refused");
            let shown = format!("{problem:?}");
            assert!(problem.code == code && shown.contains(words), "{shown}");
        };
        let named = "start,first,second,label\nHe,sits,flies,";
        check(
            &format!("{named}B\n"),
            &columns(),
            "SC0911",
            "`B` in column `label`",
        );
        check(&format!("{named}2\n"), &columns(), "SC0913", "data.csv");
        check(&format!("{named}\n"), &columns(), "SC0416", "label");
        check(
            "start,first,label\nHe,sits,0\n",
            &columns(),
            "SC0313",
            "second",
        );
        let list = Columns::new().text("start").choices(["first"]);
        check(&format!("{named}0\n"), &list, "SC0911", "JSON list");
        let skipping = columns().skip_bad_rows();
        let data = read(&format!("{named}B\nIt,sings,rains,1\n"), &skipping).expect("a row");
        assert_eq!((data.len(), data.skipped.rows), (1, 1));
    }
}
