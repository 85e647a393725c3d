//! Checks a cell from a file or from standard input: `cargo run -p stratoscope-diagnostics --example check
//! -- cell.rs [text|html|ansi|json]`.

use std::io::Read;

use stratoscope_diagnostics::check::{CellContext, check_cell};
use stratoscope_diagnostics::render::{self, Source};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let text = match arguments.next().as_deref() {
        None | Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        Some(path) => std::fs::read_to_string(path)?,
    };
    let form = arguments.next().unwrap_or_else(|| "text".to_owned());
    let started = std::time::Instant::now();
    let found = check_cell(&text, &CellContext::default());
    let elapsed = started.elapsed();
    let source = Source {
        text: &text,
        name: "Cell In[1]",
    };
    for diagnostic in &found {
        println!(
            "{}",
            match form.as_str() {
                "html" => render::html(diagnostic, &source),
                "ansi" => render::ansi(diagnostic, &source),
                "json" => render::json(diagnostic, &source).to_string(),
                _ => render::plain(diagnostic, &source),
            }
        );
    }
    eprintln!("{} found in {elapsed:?}", found.len());
    Ok(())
}
