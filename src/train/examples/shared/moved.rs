//! Bytes that a GPU's operations read and write, from the log of burn's fusion (`BURN_FUSION_LOG=full`): a table for each
//! piece of its queue, a row for each operation, with the tensors it takes and makes.
//!
//! Counted is what has to be moved at least: each kernel reads what it takes once and writes what it makes once. A tensor
//! that is made and used up inside of one fused kernel is never written. A change of shape alone moves nothing.

use std::collections::{HashMap, HashSet};

/// Operations that only see memory differently.
const VIEWS: [&str; 8] = [
    "BaseFloat::Reshape",
    "BaseFloat::SwapDims",
    "BaseFloat::Permute",
    "BaseFloat::Expand",
    "BaseFloat::Unfold",
    "BaseInt::Reshape",
    "BaseInt::Expand",
    "BaseBool::Reshape",
];

/// A tensor of the log: `t12:f32[2,3]`.
#[derive(Clone, Copy)]
struct Logged {
    id: u64,
    bytes: u64,
}

/// What one kernel takes and makes.
#[derive(Default)]
struct Kernel {
    takes: Vec<Logged>,
    makes: Vec<Logged>,
}

/// The bytes of all kernels in the log.
pub fn bytes(log: &str) -> u64 {
    let kernels = kernels(log);
    // In which kernels a tensor is read.
    let mut readers: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, kernel) in kernels.iter().enumerate() {
        for tensor in &kernel.takes {
            readers.entry(tensor.id).or_default().push(index);
        }
    }
    let of = |(index, kernel): (usize, &Kernel)| -> u64 {
        let made: HashSet<u64> = kernel.makes.iter().map(|tensor| tensor.id).collect();
        let mut seen = HashSet::new();
        let takes = kernel.takes.iter();
        let read = takes.filter(|it| !made.contains(&it.id) && seen.insert(it.id));
        let read: u64 = read.map(|it| it.bytes).sum();
        let is_kept = |it: &&Logged| match readers.get(&it.id) {
            Some(readers) => readers.iter().any(|&reader| reader != index),
            None => true,
        };
        let written = kernel.makes.iter().filter(is_kept);
        read + written.map(|it| it.bytes).sum::<u64>()
    };
    kernels.iter().enumerate().map(of).sum()
}

/// The kernels of the log: fused operations are one, others are one each.
fn kernels(log: &str) -> Vec<Kernel> {
    let (mut kernels, mut widths, mut fused) = (Vec::new(), Vec::new(), false);
    for line in log.lines() {
        if line.starts_with("---") {
            widths = line.split_whitespace().map(str::len).collect();
            fused = false;
            continue;
        }
        let is_row = line.starts_with(|first: char| first.is_ascii_digit());
        if !is_row || widths.len() != 5 {
            continue;
        }
        let columns = columns(line, &widths);
        let [_, block, operation, takes, makes] = &columns[..] else {
            continue;
        };
        if !block.is_empty() {
            fused = block.contains(" fused ");
        }
        let begins = !fused || !block.is_empty();
        let moves = operation != "Drop" && (fused || !VIEWS.contains(&operation.as_str()));
        if begins {
            kernels.push(Kernel::default());
        }
        if let (true, Some(kernel)) = (moves, kernels.last_mut()) {
            kernel.takes.extend(tensors(takes));
            kernel.makes.extend(tensors(makes));
        }
    }
    kernels
}

/// The cells of a row, of so many characters each, with two spaces in between.
fn columns(line: &str, widths: &[usize]) -> Vec<String> {
    let mut rest = line.chars();
    let cells = widths.iter().map(|&width| {
        let cell: String = rest.by_ref().take(width).collect();
        rest.by_ref().take(2).for_each(drop);
        cell.trim().to_owned()
    });
    cells.collect()
}

/// The tensors of a cell: `t1:f32[2,3], t2:i32[4]`.
fn tensors(cell: &str) -> Vec<Logged> {
    let mut found = Vec::new();
    for part in cell.split("], ") {
        let Some((id, rest)) = part.split_once(':') else {
            continue;
        };
        let Some((kind, shape)) = rest.split_once('[') else {
            continue;
        };
        let Some(Ok(id)) = id.strip_prefix('t').map(str::parse) else {
            continue;
        };
        let size = match kind {
            _ if kind.ends_with("64") => 8,
            _ if kind.ends_with("16") => 2,
            _ if kind.ends_with('8') => 1,
            _ => 4,
        };
        let dimensions = shape.trim_end_matches(']').split(',');
        let count: u64 = dimensions.map(|it| it.parse().unwrap_or(1)).product();
        found.push(Logged {
            id,
            bytes: count * size,
        });
    }
    found
}
