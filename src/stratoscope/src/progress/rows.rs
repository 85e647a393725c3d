//! The epochs of a run as a table. A long one is folded when the run is over.

use stratoscope_models::html::escape;
use stratoscope_render::html::{DATA_TABLE_STYLE, DENSE_CELL};

const HEAD: &str = "padding:3px 7px;text-align:right;white-space:nowrap;font-weight:600;\
                    border-bottom:1px solid #808080b3";

/// A table of more rows is folded.
const MAX_ROWS: usize = 20;
/// The rows at the end that stay in view, beside the best one.
const LAST_ROWS: usize = 5;

/// The table, with the best epoch and the last ones in view if it is folded.
pub(super) fn html(
    columns: &[String],
    rows: &[Vec<String>],
    best: Option<usize>,
    is_over: bool,
) -> String {
    let all: Vec<&Vec<String>> = rows.iter().collect();
    if !is_over || rows.len() <= MAX_ROWS {
        return table(columns, &all);
    }
    let first = rows.len() - LAST_ROWS;
    let best = best.filter(|best| *best < first).map(|best| all[best]);
    let in_view: Vec<&Vec<String>> = best.into_iter().chain(all[first..].to_vec()).collect();
    format!(
        "{}<details style=\"font-size:13px;margin:4px 0\"><summary style=\"cursor:pointer\">all {} rows</summary>{}</details>",
        table(columns, &in_view),
        rows.len(),
        table(columns, &all)
    )
}

fn table(columns: &[String], rows: &[&Vec<String>]) -> String {
    let cells = |cells: &[String], tag: &str, style: &str| -> String {
        let cell = |text: &String| format!("<{tag} style=\"{style}\">{}</{tag}>", escape(text));
        format!("<tr>{}</tr>", cells.iter().map(cell).collect::<String>())
    };
    let rows: String = rows
        .iter()
        .map(|row| cells(row, "td", DENSE_CELL))
        .collect();
    let head = cells(columns, "th", HEAD);
    format!("<table style=\"{DATA_TABLE_STYLE}\">{head}{rows}</table>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_table_is_folded_when_the_run_is_over() {
        let columns = vec!["epoch".to_owned()];
        let rows = |count: usize| -> Vec<Vec<String>> {
            (1..=count).map(|it| vec![format!("e{it};")]).collect()
        };
        let whole = html(&columns, &rows(20), None, true);
        assert!(!whole.contains("<details") && whole.contains("e20;"));
        assert!(!html(&columns, &rows(60), Some(3), false).contains("<details"));
        let folded = html(&columns, &rows(60), Some(3), true);
        let (in_view, all) = folded.split_once("<details").expect("it is folded");
        for row in ["e4;", "e56;", "e60;"] {
            assert!(in_view.contains(row), "{row}");
        }
        assert!(!in_view.contains("e5;") && !in_view.contains("e55;"));
        assert!((1..=60).all(|it| all.contains(&format!(">e{it};"))));
        // The best one is among the last ones.
        let folded = html(&columns, &rows(60), Some(58), true);
        let (in_view, _) = folded.split_once("<details").expect("it is folded");
        assert_eq!(in_view.matches("e59;").count(), 1);
    }
}
