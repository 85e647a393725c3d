//! Whether the variables of a list of layers fit into memory at all. An allocation that fails ends the process,
//! and with it every variable of a notebook.

use stratoscope_diagnostics::rules::InvalidSize;
use stratoscope_diagnostics::{Place, Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::cpu;

use super::layer::{Kind, Layer};

/// A float32 and its gradient.
const ELEMENT: u128 = 8;
/// What is taken for the machine's memory where it does not say.
const UNKNOWN: u64 = 1 << 40;
/// Outputs of a model; each has a name.
const MOST_OUTPUTS: usize = 1 << 20;

/// Refuses the first layer whose variables, with those of the layers before, are larger than the machine's
/// memory, in which they are made whatever device they then go to. `inputs`: the width of each layer's input.
///
/// # Errors
/// SC0915, with the largest size that would do.
pub(super) fn check(plan: &[Layer], inputs: &[usize]) -> Result<()> {
    let memory = cpu(0).resolve()?.capacity_bytes.unwrap_or(UNKNOWN);
    of_memory(plan, inputs, u128::from(memory))
}

/// # Errors
/// SC0915 for more outputs than there are names for.
pub(super) fn outputs(units: usize) -> Result<()> {
    if units <= MOST_OUTPUTS {
        return Ok(());
    }
    let expects = format!(
        "at most {} in the last layer",
        text::thousands(MOST_OUTPUTS)
    );
    Err(refused("Dense", "units", units, expects))
}

fn of_memory(plan: &[Layer], inputs: &[usize], memory: u128) -> Result<()> {
    let mut used = 0_u128;
    for (layer, &inputs) in plan.iter().zip(inputs) {
        // What each unit takes: a row of weights, and its bias.
        let (what, size, unit) = match layer.kind {
            Kind::Dense { units } => ("units", units, inputs as u128 + 1),
            Kind::Embedding { entries, width } => ("input_dim", entries, width as u128),
            _ => continue,
        };
        let bytes = (size as u128).saturating_mul(unit).saturating_mul(ELEMENT);
        let room = memory.saturating_sub(used);
        if bytes > room {
            let largest = usize::try_from(room / ELEMENT / unit.max(1)).unwrap_or(usize::MAX);
            let expects = format!(
                "at most {} here: weights and gradients of the layer take {}, and of {} of memory {} are left",
                text::thousands(largest),
                in_words(bytes),
                in_words(memory),
                in_words(room)
            );
            return Err(refused(layer.class(), what, size, expects));
        }
        used = used.saturating_add(bytes);
    }
    Ok(())
}

fn refused(
    call: &str,
    what: &str,
    given: usize,
    expects: String,
) -> Box<stratoscope_diagnostics::Diagnostic> {
    let rule = InvalidSize {
        what: what.to_owned(),
        given: text::thousands(given),
        expects,
        place: Some(Place::call(call)),
    };
    rule.error()
}

/// `8.2 GB`.
fn in_words(bytes: u128) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    let mut size = bytes as f64 / 1e3;
    let mut unit = 0;
    while size >= 1e3 && unit + 1 < UNITS.len() {
        size /= 1e3;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::super::{Dense, Embedding, Flatten, Sequential};
    use super::*;
    use stratoscope_arguments::IntoCount;

    #[track_caller]
    fn check(plan: &[Layer], inputs: &[usize], memory: u128, expected: Option<&str>) {
        let found = of_memory(plan, inputs, memory).map_err(|finding| finding.message.clone());
        match (found, expected) {
            (Ok(()), None) => {}
            (Err(message), Some(words)) => assert!(message.contains(words), "{message}"),
            (found, expected) => assert_eq!(found.err().as_deref(), expected),
        }
    }

    #[test]
    fn layers_share_the_memory() {
        // 10 units of 5 weights and a bias, 8 bytes each: 480 bytes.
        let two = [Dense(10), Dense(1)];
        check(&two, &[5, 10], 568, None);
        check(
            &two,
            &[5, 10],
            567,
            Some("`units` is 1, but must be at most 0 here"),
        );
        check(
            &two,
            &[5, 10],
            479,
            Some("`units` is 10, but must be at most 9 here"),
        );
        let table = [Embedding(100, 8)];
        check(&table, &[3], 6400, None);
        check(
            &table,
            &[3],
            6399,
            Some("`input_dim` is 100, but must be at most 99"),
        );
        check(&[Dense(usize::MAX)], &[usize::MAX], u128::MAX, None);
    }

    #[test]
    fn no_size_ends_the_process() {
        let most = [1_000_000_000_000_usize, usize::MAX, i64::MAX as usize];
        for size in most {
            for layers in [
                vec![Dense(size)],
                vec![Dense(size).input_shape((5,))],
                vec![Dense(size), Dense(1)],
                vec![Dense(1_usize << 31), Dense(1_usize << 31), Dense(1)],
                vec![Embedding(size, 4), Flatten(), Dense(1)],
                vec![Embedding(4, size), Flatten(), Dense(1)],
                vec![
                    Embedding(1_usize << 32, 1_usize << 32).input_shape((3,)),
                    Flatten(),
                    Dense(1),
                ],
                vec![Dense(4).input_shape(size), Dense(1)],
                vec![Embedding(4, 4).input_shape(size), Flatten(), Dense(1)],
            ] {
                let finding = Sequential(layers).expect_err("no memory holds it");
                assert_eq!(finding.code, "SC0915", "{finding}");
            }
            let waits = Sequential([Dense(4), Dense(1)]).expect("it waits for its input");
            assert_eq!(waits.build(size).expect_err("too wide").code, "SC0915");
        }
        let finding = Sequential([Dense(u128::MAX)]).expect_err("no such size");
        assert_eq!(finding.code, "SC0915", "{finding}");
        assert_eq!(MOST_OUTPUTS.into_count().value(), Some(1 << 20));
    }
}
