//! Texts for a masked language model: whether there is a mask to fill. SC0103.

use stratoscope_data::{Dataset, Encoded};
use stratoscope_diagnostics::Result;

use stratoscope_diagnostics::problem;
use stratoscope_network::Files;

/// Every text has a mask that was not cut off.
///
/// # Errors
/// SC0103 for the first text without.
pub fn has_blanks(files: &dyn Files, data: &Dataset, encoded: &Encoded) -> Result<()> {
    let mask = files.tokenizer().mask_id();
    let mut rows = (0..encoded.len()).filter_map(|at| encoded.get(at));
    let without = rows.find(|row| !row.ids.iter().any(|id| Some(*id) == mask));
    let Some(row) = without else {
        return Ok(());
    };
    let mask = mask.and_then(|id| files.tokenizer().tokens(&[id]).pop());
    let mask = mask.unwrap_or_default();
    let text = data.examples.get(row.index);
    let text = text.map_or("", |example| example.text.as_str());
    let given = format!("{:?}", stratoscope_render::text::excerpt(text, 60));
    let expects = format!("a text with `{mask}` where a token is to be filled in");
    let why = match row.truncated {
        0 => format!("the text of row {} has no `{mask}`", row.index),
        cut => format!(
            "the text of row {} has no `{mask}` among its first {} tokens, and {cut} were cut off",
            row.index,
            row.ids.len()
        ),
    };
    Err(Box::new(
        problem::bad_value("predict", "texts", given, expects).why(why),
    ))
}
