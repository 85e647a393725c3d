//! What a data set of N texts costs: to hold, to tokenize, to shuffle and batch for one epoch; time, and the bytes that the
//! allocator gave out.
//!
//! `cargo run --example data_growth -- N` and, of rows that stay in a file of comma-separated values,
//! `cargo run --example data_growth -- N streamed`
//!
//! One JSON line. The texts have 4 to 35 words of the checkpoint's vocabulary, as descriptions of packages do.

#[path = "../tests/memory/counted.rs"]
mod counted;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use stratoscope_bert::{BertTokenizer, source};
use stratoscope_data::{Dataset, Stream, StreamTokens, TokensOf, encode_example};

#[global_allocator]
static ALLOCATOR: counted::Counted = counted::Counted;

const MAX_LENGTH: usize = 64;
const BATCH: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let count: usize = count.ok_or("usage: data_growth N [streamed]")?;
    let tokenizer = BertTokenizer::from_folder(&source::find("all-MiniLM-L6-v2")?.folder)?;
    if std::env::args()
        .nth(2)
        .is_some_and(|word| word == "streamed")
    {
        return streamed(count, tokenizer);
    }

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

/// The same of a stream: to look through its file, to count its tokens, and the batches of an epoch.
fn streamed(count: usize, tokenizer: BertTokenizer) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.csv");
    let mut file = BufWriter::new(File::create(&path)?);
    writeln!(file, "text,label")?;
    for row in 0..count {
        writeln!(file, "{},label {}", text(row), row % 8)?;
    }
    drop(file);
    let tokenizer = Arc::new(tokenizer);
    let own = Arc::clone(&tokenizer);

    let (empty, begun) = (counted::live(), Instant::now());
    counted::peak();
    let stream = Stream::csv(&path)?;
    let looked = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let tokens = StreamTokens {
        encode: Arc::new(move |example| {
            encode_example(&*own, example, MAX_LENGTH, TokensOf::Texts)
        }),
        tokenizer: &*tokenizer,
        max_length: MAX_LENGTH,
        masking: None,
        keeps_lengths: false,
    };
    let encoded = stream.tokenize(tokens, &mut |_, _| Ok(()))?;
    let tokenized = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let mut tokens = 0;
    for batch in encoded.shuffle(7, 0).batch(BATCH)? {
        tokens += batch?.ids.len();
    }
    let epoch = begun.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({
            "examples": count, "tokens": tokens, "file_bytes": stream.bytes(), "looked_seconds": looked,
            "tokenized_seconds": tokenized, "epoch_seconds": epoch, "peak_bytes": counted::peak() - empty,
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
