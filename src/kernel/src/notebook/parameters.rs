//! `--parameter NAME=VALUE`: a cell that follows the one tagged `parameters` and binds the names anew, as papermill does:
//! <https://papermill.readthedocs.io/en/latest/usage-parameterize.html>

use std::str::FromStr;

use anyhow::ensure;
use stratoscope_cell_text::rewrite::rewrite;
use stratoscope_diagnostics::check::suggest;

use super::Notebook;

/// The tag of the cell with the defaults.
const DEFAULTS: &str = "parameters";
/// The tag of the cell that is put in.
const INJECTED: &str = "injected-parameters";

/// A name with its value in Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    name: String,
    value: String,
}

impl FromStr for Parameter {
    type Err = String;

    /// `epochs=3`, `rate=1e-5`, `name=minilm`, `sizes=[1, 2]`. Numbers, `true`, `false` and what stands in brackets or quotes are
    /// Rust; anything else is a string.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
            && !["", "_"].contains(&name)
            && name.chars().all(|it| it.is_alphanumeric() || it == '_');
        if !is_name {
            return Err(format!("`{name}` is not the name of a variable"));
        }
        let enclosed =
            |open, close| value.len() > 1 && value.starts_with(open) && value.ends_with(close);
        let is_number = value.starts_with(|first: char| first == '-' || first.is_ascii_digit())
            && value
                .replace('_', "")
                .parse::<f64>()
                .is_ok_and(f64::is_finite);
        let is_rust = is_number
            || ["true", "false"].contains(&value)
            || enclosed('[', ']')
            || enclosed('"', '"');
        Ok(Self {
            name: name.to_owned(),
            value: match is_rust {
                true => value.to_owned(),
                false => format!("{value:?}"),
            },
        })
    }
}

/// Puts the cell in: behind the cell tagged `parameters`, in the place of one that was put in before, or first.
///
/// # Errors
/// The notebook has a cell `parameters`, and it does not bind one of the names.
pub fn inject(notebook: &mut Notebook, parameters: &[Parameter]) -> anyhow::Result<()> {
    if parameters.is_empty() {
        return Ok(());
    }
    let tagged = |tag| {
        let mut cells = notebook.code_cells().into_iter();
        cells.find(|&index| notebook.tags(index).contains(&tag))
    };
    let (defaults, injected) = (tagged(DEFAULTS), tagged(INJECTED));
    if let Some(index) = defaults {
        let known = rewrite(&notebook.source(index), 1, true).bindings;
        for Parameter { name, .. } in parameters {
            let similar = suggest::similar(name, known.iter().map(String::as_str));
            let hint = match similar.first() {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("it has: {}", known.join(", ")),
            };
            ensure!(
                known.contains(name),
                "the notebook's cell `{DEFAULTS}` has no variable `{name}`; {hint}"
            );
        }
    }
    let mut source = "// Parameters".to_owned();
    for Parameter { name, value } in parameters {
        source += &format!("\nlet {name} = {value};");
    }
    match injected {
        Some(index) => notebook.replace_source(index, &source),
        None => notebook.insert_code(defaults.map_or(0, |index| index + 1), &source, INJECTED),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_rust_or_strings() {
        for (text, expected) in [
            ("epochs=3", Ok("let epochs = 3;")),
            ("rate = 1e-5", Ok("let rate = 1e-5;")),
            ("shift=-0.5", Ok("let shift = -0.5;")),
            ("many=1_000", Ok("let many = 1_000;")),
            ("quick=true", Ok("let quick = true;")),
            ("sizes=[1, 2]", Ok("let sizes = [1, 2];")),
            (
                "name=all-MiniLM-L6-v2",
                Ok("let name = \"all-MiniLM-L6-v2\";"),
            ),
            ("name=\"7\"", Ok("let name = \"7\";")),
            (
                "name=say \"a\\b\"",
                Ok("let name = \"say \\\"a\\\\b\\\"\";"),
            ),
            ("name=", Ok("let name = \"\";")),
            ("name=nan", Ok("let name = \"nan\";")),
            ("date=2020-01-02", Ok("let date = \"2020-01-02\";")),
            ("epochs", Err("write it as NAME=VALUE")),
            ("2x=1", Err("`2x` is not the name of a variable")),
            ("a b=1", Err("`a b` is not the name of a variable")),
            ("a;b=1", Err("`a;b` is not the name of a variable")),
        ] {
            let parsed = Parameter::from_str(text);
            let shown = parsed.map(|it| format!("let {} = {};", it.name, it.value));
            assert_eq!(
                shown,
                expected.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        }
    }

    fn notebook(tags: [&str; 3]) -> Notebook {
        let cell = |(index, tag): (usize, &str)| {
            let source = [
                "println!(\"a\");",
                "let epochs = 1;\nlet rate = 1e-5;",
                "epochs",
            ][index];
            json!({"cell_type": "code", "id": format!("cell-{index}"), "execution_count": null, "metadata": {"tags": [tag]}, "outputs": [], "source": source})
        };
        let cells: Vec<_> = tags.into_iter().enumerate().map(cell).collect();
        let text = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
        Notebook::parse(&text.to_string()).expect("is a notebook")
    }

    fn sources(notebook: &Notebook) -> Vec<String> {
        let all = 0..notebook.cells().len();
        all.map(|index| notebook.source(index)).collect()
    }

    #[test]
    fn the_cell_follows_the_defaults_and_is_replaced_by_the_next() {
        let parameter = |text| Parameter::from_str(text).expect("is one");
        let mut with = notebook(["", DEFAULTS, ""]);
        inject(&mut with, &[parameter("epochs=3"), parameter("rate=0.1")]).expect("both are there");
        assert_eq!(
            sources(&with)[2],
            "// Parameters\nlet epochs = 3;\nlet rate = 0.1;"
        );
        assert_eq!((with.cells().len(), with.tags(2)), (4, vec![INJECTED]));
        let identities: Vec<_> = with.cells().iter().map(|cell| &cell["id"]).collect();
        assert_eq!(identities[2], "injected-parameters");
        inject(&mut with, &[parameter("epochs=4")]).expect("it is there");
        assert_eq!(with.cells().len(), 4);
        assert_eq!(sources(&with)[2], "// Parameters\nlet epochs = 4;");

        let mut without = notebook(["", "", ""]);
        inject(&mut without, &[]).expect("nothing to do");
        assert_eq!(without.cells().len(), 3);
        inject(&mut without, &[parameter("anything=1")]).expect("it goes first");
        assert_eq!(sources(&without)[0], "// Parameters\nlet anything = 1;");
    }

    #[test]
    fn a_name_that_the_notebook_lacks_is_refused() {
        let refused = |text| {
            let mut notebook = notebook(["", DEFAULTS, ""]);
            let parameter = Parameter::from_str(text).expect("is one");
            let error = inject(&mut notebook, &[parameter]).expect_err("no such name");
            assert_eq!(notebook.cells().len(), 3);
            error.to_string()
        };
        assert_eq!(
            refused("epoch=3"),
            "the notebook's cell `parameters` has no variable `epoch`; did you mean `epochs`?"
        );
        assert!(refused("batch=3").ends_with("it has: epochs, rate"));
    }
}
