//! How long the parts of an audit take by the number of rows: `cargo run -p stratoscope-audit --example time_by_rows`.
//!
//! Texts are made of eight words of the descriptions of Debian packages, drawn by a fixed rule; a tenth are near copies of
//! earlier ones. Vectors have 384 numbers.

use std::time::Instant;

use stratoscope_audit::{by_distance, near_duplicates};
use stratoscope_data::{Dataset, debian_sections, random};

fn main() -> stratoscope_diagnostics::Result<()> {
    let (all, _) = debian_sections()?;
    let texts = all.examples.iter().map(|it| it.text.as_str());
    let words: Vec<&str> = texts.flat_map(str::split_whitespace).collect();
    println!("   rows  near-duplicates  µs/row  groups  outliers  µs/row");
    for rows in [5_000, 10_000, 20_000, 40_000, 80_000_usize] {
        let text = |row: usize| {
            let source = if row % 10 == 9 { row - 7 } else { row };
            let word =
                |at: usize| words[random::mix((source * 8 + at + 1) as u64) as usize % words.len()];
            let text: Vec<&str> = (0..8).map(word).collect();
            text.join(" ") + if source == row { "" } else { "s" }
        };
        let data = Dataset::from_texts((0..rows).map(text));
        let begin = Instant::now();
        let found = near_duplicates(&[("data", &data)])?;
        let of_texts = begin.elapsed().as_secs_f64();
        let number = |row: usize, at: usize| {
            (random::mix((row * 384 + at + 1) as u64) >> 40) as f32 / (1 << 24) as f32
        };
        let vectors: Vec<Vec<f32>> = (0..rows)
            .map(|row| (0..384).map(|at| number(row, at)).collect())
            .collect();
        let begin = Instant::now();
        let far = by_distance(&vectors);
        let of_vectors = begin.elapsed().as_secs_f64();
        let each = |seconds: f64| 1e6 * seconds / rows as f64;
        println!(
            "{rows:7}  {of_texts:13.2} s  {:6.1}  {:6}  {of_vectors:6.2} s  {:6.1}  ({} rows)",
            each(of_texts),
            found.groups.len(),
            each(of_vectors),
            far.len()
        );
    }
    Ok(())
}
