//! What a data set of N texts costs: to hold, to tokenize, to shuffle and batch for one epoch; time, and the bytes that the
//! allocator gave out.
//!
//! `cargo run --example data_growth -- N`
//!
//! One JSON line. The texts have 4 to 35 words of the checkpoint's vocabulary, as descriptions of packages do.

#[path = "../tests/memory/counted.rs"]
mod counted;

use std::error::Error;
use std::time::Instant;

use serde_json::json;
use stratoscope_bert::{BertTokenizer, source};
use stratoscope_data::Dataset;

#[global_allocator]
static ALLOCATOR: counted::Counted = counted::Counted;

const MAX_LENGTH: usize = 64;
const BATCH: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let count: usize = count.ok_or("usage: data_growth N")?;
    let tokenizer = BertTokenizer::from_folder(&source::find("all-MiniLM-L6-v2")?.folder)?;

    let (empty, begun) = (counted::live(), Instant::now());
    let rows = (0..count).map(|row| (text(row), format!("label {}", row % 8)));
    let data = Dataset::from_labelled(rows);
    let held = (begun.elapsed().as_secs_f64(), counted::live() - empty);

    let (before, begun) = (counted::live(), Instant::now());
    counted::peak();
    let encoded = data.tokenize(&tokenizer, MAX_LENGTH)?;
    let tokenized = (begun.elapsed().as_secs_f64(), counted::live() - before);

    let (before, begun) = (counted::live(), Instant::now());
    counted::peak();
    let shuffled = encoded.shuffle(7, 0);
    let shuffling = begun.elapsed().as_secs_f64();
    let mut tokens = 0;
    for batch in shuffled.batch(BATCH)?.prefetch(2) {
        tokens += batch.ids.len();
    }
    let epoch = (begun.elapsed().as_secs_f64(), counted::peak() - before);
    println!(
        "{}",
        json!({
            "examples": count, "tokens": tokens, "held_seconds": held.0, "held_bytes": held.1,
            "tokenized_seconds": tokenized.0, "tokenized_bytes": tokenized.1,
            "shuffled_seconds": shuffling, "epoch_seconds": epoch.0, "epoch_bytes": epoch.1,
        })
    );
    Ok(())
}

/// A text that is a function of its row.
fn text(row: usize) -> String {
    const WORDS: [&str; 24] = [
        "library",
        "for",
        "the",
        "fast",
        "analysis",
        "of",
        "large",
        "graphs",
        "and",
        "images",
        "tools",
        "to",
        "convert",
        "music",
        "files",
        "in",
        "a",
        "shell",
        "with",
        "python",
        "bindings",
        "development",
        "server",
        "documentation",
    ];
    let words = 4 + row * 13 % 32;
    let words = (0..words).map(|word| WORDS[(row * 7 + word * (row % 11 + 1)) % WORDS.len()]);
    words.collect::<Vec<_>>().join(" ")
}
