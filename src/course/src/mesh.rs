//! Lesson 14: which of several ways to use more devices fits into their memory, and which of those is the fastest.

use crate::attempt::{Fault, attempt, judged};
use crate::random::Random;
use crate::verdict::{State, Verdict};

const TRIES: usize = 200;
/// Bytes of a float32.
const FLOAT: usize = 4;
/// Weights, gradients and two moments, in float32.
const STATE: usize = 4 * FLOAT;

/// A way to train on several devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A copy of all on each device.
    Mirrored,
    /// Copies that divide the moments.
    Zero1,
    /// Copies that divide moments, gradients and weights.
    Zero3,
    /// Slices of each layer.
    Slices,
    /// Some layers on each device.
    Pipeline,
}

/// The parameters of a network, by where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// In the embeddings, before the first layer.
    pub embeddings: usize,
    /// How many layers there are.
    pub layers: usize,
    /// In each layer.
    pub layer: usize,
    /// Those of each layer that `ModelParallel` cuts.
    pub cut: usize,
    /// In pooler and head, behind the last layer.
    pub head: usize,
}

impl Sizes {
    /// All parameters.
    pub fn all(&self) -> usize {
        self.embeddings + self.layers * self.layer + self.head
    }
}

/// The fullest device's weights, gradients and moments.
fn state(way: Way, devices: usize, sizes: &Sizes) -> usize {
    let all = sizes.all();
    match way {
        Way::Mirrored => STATE * all,
        Way::Zero1 => 2 * FLOAT * all + 2 * FLOAT * all / devices,
        Way::Zero3 => STATE * all / devices,
        Way::Slices => {
            STATE * (all - sizes.layers * sizes.cut + sizes.layers * sizes.cut / devices)
        }
        Way::Pipeline => {
            let layers = sizes.layers / devices * sizes.layer;
            STATE * (layers + sizes.embeddings.max(sizes.head))
        }
    }
}

/// What all devices together send in a step.
fn sent(way: Way, devices: usize, sizes: &Sizes, between: usize) -> usize {
    let others = devices - 1;
    match way {
        Way::Mirrored => 2 * others * FLOAT * sizes.all(),
        Way::Zero1 => 3 * others * FLOAT * sizes.all(),
        Way::Zero3 => {
            others * FLOAT * (3 * sizes.layers * sizes.layer + 2 * (sizes.embeddings + sizes.head))
        }
        Way::Slices => 8 * others * FLOAT * sizes.layers * between,
        Way::Pipeline => 2 * others * FLOAT * between,
    }
}

/// A network whose layers the devices divide.
fn random_sizes(random: &mut Random, devices: usize) -> Sizes {
    let mut number = |low, high| devices * random.integer(low, high);
    let (layer, cut) = (number(50, 100), number(20, 49));
    // The embeddings are large as a rule, and sometimes the head is.
    let (mut embeddings, mut head) = (number(200, 400), number(2, 9));
    if number(1, 3) == devices {
        std::mem::swap(&mut embeddings, &mut head);
    }
    Sizes {
        embeddings,
        layers: number(1, 4),
        layer,
        cut,
        head,
    }
}

const WAYS: [Way; 5] = [
    Way::Mirrored,
    Way::Pipeline,
    Way::Zero1,
    Way::Slices,
    Way::Zero3,
];

/// A function `state_bytes(way, devices, sizes)`: the bytes of weights, gradients and two moments in float32 on the device that has the
/// most. The stages of a pipeline have as many layers each. Sources: Rajbhandari et al. 2020, "ZeRO", section 3; Shoeybi et al.
/// 2019, "Megatron-LM", section 3.
pub fn check_state_bytes(bytes: impl Fn(Way, usize, &Sizes) -> usize) -> Verdict {
    judged("14.1", "state_bytes", || of_state(&bytes))
}

fn of_state(bytes: &dyn Fn(Way, usize, &Sizes) -> usize) -> Result<String, Fault> {
    let mut random = Random::new(141);
    for attempted in 0..TRIES {
        let (way, devices) = (WAYS[attempted % WAYS.len()], random.integer(2, 8));
        let sizes = random_sizes(&mut random, devices);
        let call = format!("state_bytes({way:?}, {devices}, &{sizes:?})");
        let got = attempt(call.clone(), || bytes(way, devices, &sizes))?;
        if got == state(way, devices, &sizes) {
            continue;
        }
        let (violated, look_at) = wrong_state(way, devices, &sizes, got);
        return Err(Fault::wrong(call, got, violated, look_at));
    }
    Ok(format!(
        "{TRIES} networks on 2 to 8 devices, in all five ways"
    ))
}

fn wrong_state(
    way: Way,
    devices: usize,
    sizes: &Sizes,
    got: usize,
) -> (&'static str, &'static str) {
    let (truth, all) = (state(way, devices, sizes), sizes.all());
    let is = |other: usize| got == other;
    if is(truth / 4) || is(truth / 16) {
        return (
            "weights, gradients and two moments are four numbers of 4 bytes for each parameter",
            "numbers and bytes",
        );
    }
    let cut = sizes.layers * sizes.cut;
    let stage = sizes.layers / devices * sizes.layer;
    match way {
        Way::Mirrored => (
            "each device has a copy of everything",
            "what the number of devices changes",
        ),
        Way::Zero1 if is(STATE * all / devices) || is(FLOAT * all + 3 * FLOAT * all / devices) => (
            "ZeRO-1 divides the moments alone",
            "lesson 11: which numbers are whole at level 1",
        ),
        Way::Zero1 => (
            "weights and gradients are whole, two moments are in pieces",
            "lesson 11",
        ),
        Way::Zero3 => ("ZeRO-3 divides all four kinds of numbers", "lesson 11"),
        Way::Slices if is(STATE * all / devices) => (
            "embeddings, LayerNorms and the head are not cut: they are whole on the first device",
            "`sizes.cut`, the parameters of a layer that are cut",
        ),
        Way::Slices if is(STATE * cut / devices) => (
            "this is the memory of the other devices; the first one has all that is not cut besides",
            "which device has the most",
        ),
        Way::Slices
            if is(
                STATE * (sizes.embeddings + sizes.head + sizes.layers * sizes.layer / devices)
            ) =>
        {
            (
                "not all of a layer is cut: LayerNorms and the biases behind the sums are whole on the first device",
                "`sizes.cut` and `sizes.layer`",
            )
        }
        Way::Slices => (
            "the first device has its slices and all that is not cut",
            "all parameters, without what the other devices have",
        ),
        Way::Pipeline if is(STATE * all / devices) => (
            "the embeddings are on the first stage and the head on the last one; they are not divided",
            "which stage has the most",
        ),
        Way::Pipeline
            if is(STATE * (stage + sizes.embeddings.min(sizes.head)))
                || is(STATE * (stage + sizes.embeddings)) =>
        {
            (
                "the fullest stage may be the first one or the last one",
                "embeddings and head: the larger of them",
            )
        }
        Way::Pipeline => (
            "a stage has its share of the layers, the first one also the embeddings, the last one also the head",
            "which stage has the most",
        ),
    }
}

/// A function `step_bytes(way, devices, sizes, between)`: the bytes that all devices together send in an optimizer step, for `between`
/// numbers between two layers (examples · tokens · hidden size).
pub fn check_step_bytes(bytes: impl Fn(Way, usize, &Sizes, usize) -> usize) -> Verdict {
    judged("14.2", "step_bytes", || of_step(&bytes))
}

fn of_step(bytes: &dyn Fn(Way, usize, &Sizes, usize) -> usize) -> Result<String, Fault> {
    let mut random = Random::new(142);
    for attempted in 0..TRIES {
        let (way, devices) = (WAYS[attempted % WAYS.len()], random.integer(2, 8));
        let sizes = random_sizes(&mut random, devices);
        // No multiple of the parameters.
        let between = devices * (4 * random.integer(100, 900) + 1);
        let call = format!("step_bytes({way:?}, {devices}, &{sizes:?}, {between})");
        let got = attempt(call.clone(), || bytes(way, devices, &sizes, between))?;
        if got == sent(way, devices, &sizes, between) {
            continue;
        }
        let (violated, look_at) = wrong_step(way, devices, &sizes, between, got);
        return Err(Fault::wrong(call, got, violated, look_at));
    }
    Ok(format!(
        "{TRIES} networks on 2 to 8 devices, in all five ways"
    ))
}

fn wrong_step(
    way: Way,
    devices: usize,
    sizes: &Sizes,
    between: usize,
    got: usize,
) -> (&'static str, &'static str) {
    let truth = sent(way, devices, sizes, between);
    let is = |other: usize| got == other;
    if is(truth / FLOAT) {
        return ("a float32 has 4 bytes", "numbers and bytes");
    }
    if is(truth / devices) {
        return (
            "it is what all devices send together; this is what one sends on average",
            "the factor (R − 1)/R",
        );
    }
    let gathered_by_layer = 3 * (devices - 1) * FLOAT * sizes.all();
    match way {
        Way::Mirrored => (
            "an all-reduce sends the gradients around twice: 2 · (R − 1) times their bytes in all",
            "lesson 3: the transfers of a ring",
        ),
        Way::Zero1 if is(2 * truth / 3) => (
            "ZeRO-1 as it is done here sends all gradients to all replicas, and the new weights after them",
            "lesson 11: level 1 is dearer than level 2",
        ),
        Way::Zero1 => (
            "an all-reduce of the gradients, and an all-gather of the weights",
            "lesson 11",
        ),
        Way::Zero3 if is(gathered_by_layer) => (
            "layers are gathered for the forward and for the backward pass; embeddings and head are gathered once, for both",
            "which parameters are in a layer",
        ),
        Way::Zero3 => (
            "gathers of the weights of a layer for its forward and its backward pass, one gather of all others, a reduce-scatter of all gradients",
            "an all-gather and a reduce-scatter send R − 1 times the bytes each",
        ),
        Way::Slices if is(truth / 2) => (
            "each half of a layer exchanges in its forward and in its backward pass",
            "four exchanges of a layer, each of which goes to the others and back",
        ),
        Way::Slices => (
            "each of four exchanges of a layer sends `between` numbers to each other device and gets as many back",
            "the devices besides the first one",
        ),
        Way::Pipeline if is(truth / 2) => (
            "activations go forward, and their gradients go back",
            "both directions of a border",
        ),
        Way::Pipeline => (
            "over each border between two stages go the activations of the whole batch, and their gradients",
            "the number of borders; micro-batches are parts of the batch",
        ),
    }
}

/// The ways that lesson 14 compares, with their numbers of devices.
pub const CANDIDATES: [(Way, usize); 6] = [
    (Way::Mirrored, 4),
    (Way::Zero1, 4),
    (Way::Zero3, 4),
    (Way::Slices, 2),
    (Way::Slices, 4),
    (Way::Pipeline, 3),
];

/// The time of a step in seconds, if one device computes for a second and all devices share a network of 1 GB in a second: the
/// computing is divided among the devices, ZeRO-3 computes each layer's forward pass again, the stages of a pipeline wait with 8
/// micro-batches, and nothing is sent while a device computes.
pub fn seconds(way: Way, devices: usize, sent_bytes: usize) -> f64 {
    let count = devices as f64;
    let computing = match way {
        Way::Zero3 => 4.0 / 3.0 / count,
        // (p − 1)/(m + p − 1) of the time is waiting.
        Way::Pipeline => (8.0 + count - 1.0) / 8.0 / count,
        _ => 1.0 / count,
    };
    computing + sent_bytes as f64 / 1e9
}

/// Checks the choices among [`CANDIDATES`], by their places: for each limit in bytes and number of values between two layers, the
/// fastest one whose state fits.
pub fn check_choices<const N: usize>(
    choices: Option<[usize; N]>,
    sizes: &Sizes,
    cases: [(usize, usize); N],
) -> Verdict {
    const EXERCISE: &str = "14.5";
    let Some(choices) = choices else {
        let what = "Write `Some([…])` with a place of `candidates` for each case, and execute its cell and this one again.".to_owned();
        return Verdict::new(EXERCISE, State::Open, vec![("to do", what)]);
    };
    for (case, (&choice, &(limit, between))) in choices.iter().zip(&cases).enumerate() {
        let time = |(way, devices): (Way, usize)| {
            seconds(way, devices, sent(way, devices, sizes, between))
        };
        let fits = |&(way, devices): &(Way, usize)| state(way, devices, sizes) <= limit;
        let wrong = |what: String, look_at: &str| {
            let lines = vec![
                ("got", format!("case {case}: {what}")),
                ("look at", look_at.to_owned()),
            ];
            Verdict::new(EXERCISE, State::Wrong, lines)
        };
        let Some(&chosen) = CANDIDATES.get(choice) else {
            return wrong(
                format!("{choice} is no place of `candidates`"),
                "places are counted from 0",
            );
        };
        let name = format!("{:?} on {} devices", chosen.0, chosen.1);
        if !fits(&chosen) {
            return wrong(
                format!("{name} does not fit"),
                "`state_bytes` and the limit",
            );
        }
        let is_faster = |it: &(Way, usize)| fits(it) && time(*it) < time(chosen);
        if CANDIDATES.iter().any(is_faster) {
            return wrong(
                format!("{name} fits, and another candidate that fits is faster"),
                "`step_bytes` and `course::seconds`",
            );
        }
    }
    let names: Vec<String> = choices
        .iter()
        .map(|&it| format!("{:?} on {} devices", CANDIDATES[it].0, CANDIDATES[it].1))
        .collect();
    Verdict::new(EXERCISE, State::Right, vec![("answer", names.join("; "))])
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINI_LM: Sizes = Sizes {
        embeddings: 11_918_592,
        layers: 6,
        layer: 1_774_464,
        cut: 1_772_160,
        head: 150_920,
    };

    #[test]
    fn mistakes_of_memory_are_distinguished() {
        assert!(check_state_bytes(state).is_right());
        type Bytes = fn(Way, usize, &Sizes) -> usize;
        let cases: [(Bytes, &str); 8] = [
            (
                |way, d, it| state(way, d, it) / 4,
                "four numbers of 4 bytes",
            ),
            (
                |way, d, it| {
                    if way == Way::Mirrored {
                        1
                    } else {
                        state(way, d, it)
                    }
                },
                "a copy of everything",
            ),
            (
                |way, d, it| state(if way == Way::Zero1 { Way::Zero3 } else { way }, d, it),
                "the moments alone",
            ),
            (
                |way, d, it| state(if way == Way::Zero3 { Way::Zero1 } else { way }, d, it),
                "all four kinds",
            ),
            (
                |way, d, it| {
                    if way == Way::Slices {
                        STATE * it.all() / d
                    } else {
                        state(way, d, it)
                    }
                },
                "whole on the first device",
            ),
            (
                |way, d, it| {
                    if way == Way::Slices {
                        STATE * it.layers * it.cut / d
                    } else {
                        state(way, d, it)
                    }
                },
                "the other devices",
            ),
            (
                |way, d, it| {
                    if way == Way::Pipeline {
                        STATE * it.all() / d
                    } else {
                        state(way, d, it)
                    }
                },
                "not divided",
            ),
            (
                |way, d, it| {
                    let first = STATE * (it.layers / d * it.layer + it.embeddings);
                    if way == Way::Pipeline {
                        first
                    } else {
                        state(way, d, it)
                    }
                },
                "the first one or the last one",
            ),
        ];
        for (bytes, expected) in cases {
            let verdict = check_state_bytes(bytes);
            assert_eq!(verdict.state, State::Wrong);
            assert!(verdict.words().contains(expected), "{}", verdict.words());
        }
        assert_eq!(check_state_bytes(|_, _, _| todo!()).state, State::Open);
    }

    #[test]
    fn mistakes_of_bytes_are_distinguished() {
        assert!(check_step_bytes(sent).is_right());
        type Bytes = fn(Way, usize, &Sizes, usize) -> usize;
        let cases: [(Bytes, &str); 7] = [
            (|way, d, it, b| sent(way, d, it, b) / 4, "4 bytes"),
            (|way, d, it, b| sent(way, d, it, b) / d, "on average"),
            (
                |way, d, it, b| sent(way, d, it, b) * if way == Way::Mirrored { 2 } else { 1 },
                "around twice",
            ),
            (
                |way, d, it, b| {
                    if way == Way::Zero1 {
                        sent(Way::Mirrored, d, it, b)
                    } else {
                        sent(way, d, it, b)
                    }
                },
                "the new weights after them",
            ),
            (
                |way, d, it, b| {
                    if way == Way::Zero3 {
                        sent(Way::Zero1, d, it, b)
                    } else {
                        sent(way, d, it, b)
                    }
                },
                "gathered once",
            ),
            (
                |way, d, it, b| sent(way, d, it, b) / if way == Way::Slices { 2 } else { 1 },
                "forward and in its backward",
            ),
            (
                |way, d, it, b| sent(way, d, it, b) / if way == Way::Pipeline { 2 } else { 1 },
                "their gradients go back",
            ),
        ];
        for (bytes, expected) in cases {
            let verdict = check_step_bytes(bytes);
            assert_eq!(verdict.state, State::Wrong);
            assert!(verdict.words().contains(expected), "{}", verdict.words());
        }
    }

    /// The cases of the notebook: each has another answer, and no other is called right.
    #[test]
    fn only_the_fastest_one_that_fits_is_right() {
        let cases = [
            (300 << 20, 32 * 8 * 384),
            (300 << 20, 32 * 128 * 384),
            (210 << 20, 32 * 8 * 384),
        ];
        let right = [4, 5, 2];
        assert!(check_choices(Some(right), &MINI_LM, cases).is_right());
        for case in 0..3 {
            for other in 0..9 {
                let mut choices = right;
                choices[case] = other;
                let verdict = check_choices(Some(choices), &MINI_LM, cases);
                assert_eq!(verdict.is_right(), other == right[case], "{case}: {other}");
            }
        }
        let small = check_choices(Some([0, 5, 2]), &MINI_LM, cases);
        assert!(small.words().contains("does not fit"), "{}", small.words());
        let slow = check_choices(Some([1, 5, 2]), &MINI_LM, cases);
        assert!(slow.words().contains("is faster"), "{}", slow.words());
        assert_eq!(check_choices(None, &MINI_LM, cases).state, State::Open);
    }
}
