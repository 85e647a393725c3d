//! Checks a cell from a file or from standard input: `cargo run --example check -- cell.rs
//! [text|html|ansi|json]`.

use std::process::ExitCode;

use stratoscope_diagnostics::check::{CellContext, check_cell};
use stratoscope_diagnostics::render::{self, Source};

const USAGE: &str = "usage: check [FILE] [text|html|ansi|json]

FILE holds the text of a cell; without it, or as `-`, standard input does.";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next();
    if path
        .as_deref()
        .is_some_and(|it| ["-h", "--help"].contains(&it))
    {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let path = path.unwrap_or_else(|| "-".to_owned());
    let text = match path.as_str() {
        "-" => std::io::read_to_string(std::io::stdin()),
        path => std::fs::read_to_string(path),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            eprintln!("check: {path} cannot be read: {error}");
            return ExitCode::FAILURE;
        }
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
    ExitCode::SUCCESS
}
