//! Lesson 12: layers on several devices, and micro-batches that follow each other through them (a pipeline).

use crate::attempt::{Fault, attempt, judged};
use crate::random::Random;
use crate::verdict::Verdict;

const TRIES: usize = 200;
/// How far a share of a whole may be from the true one.
const TOLERANCE: f64 = 1e-9;

/// A pass of a micro-batch through a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Forward, of this micro-batch.
    Forward(usize),
    /// Backward, of this micro-batch.
    Backward(usize),
}

use Pass::{Backward, Forward};

/// A function `bubble(stages, micro_batches)`: the share of their time in which stages wait, for passes of equal length. Source:
/// Huang et al. 2019, "GPipe", section 2.3.
pub fn check_bubble(bubble: impl Fn(usize, usize) -> f64) -> Verdict {
    judged("12.1", "bubble", || of_bubble(&bubble))
}

fn of_bubble(bubble: &dyn Fn(usize, usize) -> f64) -> Result<String, Fault> {
    let mut random = Random::new(121);
    for _ in 0..TRIES {
        let (stages, micro_batches) = (random.integer(1, 16), random.integer(1, 64));
        let call = format!("bubble({stages}, {micro_batches})");
        let got = attempt(call.clone(), || bubble(stages, micro_batches))?;
        let (p, m) = (stages as f64, micro_batches as f64);
        let is = |other: f64| (got - other).abs() <= TOLERANCE;
        if is((p - 1.0) / (m + p - 1.0)) {
            continue;
        }
        let (violated, look_at) = if stages == 1 {
            ("a single stage never waits", "the number of stages − 1")
        } else if is((p - 1.0) / m) {
            (
                "it is a share of the whole time; this is the waiting over the time in which a stage computes",
                "the denominator: a stage computes and waits",
            )
        } else if is(m / (m + p - 1.0)) {
            (
                "the more micro-batches, the smaller the share; this is the share in which a stage computes",
                "1 − this",
            )
        } else if is((p - 1.0) / (m + p)) || is(p / (m + p)) || is(p / (m + p - 1.0)) {
            (
                "with 2 stages and 1 micro-batch each stage waits half of the time",
                "slots of the drawing above: count one row, from the first pass to the end of the last one",
            )
        } else {
            (
                "it is the slots in which a stage waits over all slots of a step",
                "the drawing above: how many slots one row has, and in how many of them its stage computes",
            )
        };
        return Err(Fault::wrong(call, got, violated, look_at));
    }
    Ok(format!(
        "{TRIES} pipelines of 1 to 16 stages, with 1 to 64 micro-batches"
    ))
}

/// The passes of all stages in time, where each takes one slot and begins when its stage is free and its input is there.
struct Timeline {
    /// For each stage the pass of each slot.
    slots: Vec<Vec<Option<Pass>>>,
    /// The first stage that waits for a pass that never comes, and its own pass.
    stuck: Option<(usize, Pass)>,
}

impl Timeline {
    fn of(orders: &[Vec<Pass>]) -> Self {
        let stages = orders.len();
        let mut done: Vec<Vec<Pass>> = vec![Vec::new(); stages];
        let mut slots: Vec<Vec<Option<Pass>>> = vec![Vec::new(); stages];
        loop {
            let is_ready = |stage: usize, pass: Pass| match pass {
                Forward(_) => stage == 0 || done[stage - 1].contains(&pass),
                Backward(_) if stage + 1 < stages => done[stage + 1].contains(&pass),
                Backward(index) => done[stage].contains(&Forward(index)),
            };
            let next = |stage: usize| orders[stage].get(done[stage].len()).copied();
            let now: Vec<Option<Pass>> = (0..stages)
                .map(|stage| next(stage).filter(|&pass| is_ready(stage, pass)))
                .collect();
            if now.iter().all(Option::is_none) {
                let waits = (0..stages)
                    .rev()
                    .find_map(|stage| Some((stage, next(stage)?)));
                return Self {
                    slots,
                    stuck: waits,
                };
            }
            for (stage, pass) in now.into_iter().enumerate() {
                slots[stage].push(pass);
                done[stage].extend(pass);
            }
        }
    }

    fn len(&self) -> usize {
        self.slots.first().map_or(0, Vec::len)
    }
}

fn orders(
    order: &dyn Fn(usize, usize, usize) -> Vec<Pass>,
    stages: usize,
    micro_batches: usize,
) -> Vec<Vec<Pass>> {
    (0..stages)
        .map(|stage| order(stage, stages, micro_batches))
        .collect()
}

/// For a heat map: a row for each stage and a column for each slot, 0 where the stage waits, 1 for a forward pass and 2 for a
/// backward pass. It ends where no stage can go on.
pub fn timeline(
    order: impl Fn(usize, usize, usize) -> Vec<Pass>,
    stages: usize,
    micro_batches: usize,
) -> Vec<Vec<usize>> {
    let found = Timeline::of(&orders(&order, stages, micro_batches));
    let number = |pass: &Option<Pass>| match pass {
        None => 0,
        Some(Forward(_)) => 1,
        Some(Backward(_)) => 2,
    };
    let rows = found.slots.iter();
    rows.map(|row| row.iter().map(number).collect()).collect()
}

/// Of how many micro-batches a stage with these passes stores activations at most: those whose forward pass is done and whose
/// backward pass is not.
pub fn stored(order: &[Pass]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for pass in order {
        match pass {
            Forward(_) => now += 1,
            Backward(_) => now = now.saturating_sub(1),
        }
        most = most.max(now);
    }
    most
}

/// A function `one_f_one_b(stage, stages, micro_batches)`: the passes of a stage in their order, with as few stored activations
/// and as little waiting as 1F1B has. Source: Narayanan et al. 2021, section 2.2.
pub fn check_one_f_one_b(order: impl Fn(usize, usize, usize) -> Vec<Pass>) -> Verdict {
    judged("12.2", "one_f_one_b", || {
        for (stages, micro_batches) in [(2, 4), (3, 4), (4, 8), (2, 1), (4, 2), (5, 16)] {
            of_order(&order, stages, micro_batches)?;
        }
        Ok("2 to 5 stages with 1 to 16 micro-batches: nothing waits longer than in GPipe, and each stage stores as little as it can".to_owned())
    })
}

fn of_order(
    order: &dyn Fn(usize, usize, usize) -> Vec<Pass>,
    stages: usize,
    micro_batches: usize,
) -> Result<(), Fault> {
    let mut all = Vec::new();
    for stage in 0..stages {
        let call = format!("one_f_one_b({stage}, {stages}, {micro_batches})");
        let passes = attempt(call.clone(), || order(stage, stages, micro_batches))?;
        of_stage(&call, &passes, stage, stages, micro_batches)?;
        all.push(passes);
    }
    let call =
        format!("the stages together, for {stages} stages and {micro_batches} micro-batches");
    let found = Timeline::of(&all);
    if let Some((stage, pass)) = found.stuck {
        return Err(Fault::wrong(
            call,
            format!("stage {stage} waits forever before {pass:?}"),
            "a stage gets its input from its neighbor, so no two stages may wait for each other",
            "how many forward passes each stage makes before its first backward pass",
        ));
    }
    if found.len() > 2 * (micro_batches + stages - 1) {
        return Err(Fault::wrong(
            call,
            format!("a step of {} slots", found.len()),
            "a step is as short as one of GPipe; here stages run out of work while they wait for gradients",
            "the forward passes before the first backward pass: the first stage makes the most of them",
        ));
    }
    Ok(())
}

/// What one stage must do, whatever the others do.
fn of_stage(
    call: &str,
    passes: &[Pass],
    stage: usize,
    stages: usize,
    micro_batches: usize,
) -> Result<(), Fault> {
    let got = || {
        let words: Vec<String> = passes.iter().take(12).map(short).collect();
        let more = if passes.len() > 12 { " …" } else { "" };
        format!("{}{more}", words.join(" "))
    };
    let wrong = |violated: &str, look_at: &str| Err(Fault::wrong(call, got(), violated, look_at));
    let forward: Vec<usize> = (passes.iter())
        .filter_map(|pass| match pass {
            Forward(index) => Some(*index),
            Backward(_) => None,
        })
        .collect();
    let backward: Vec<usize> = (passes.iter())
        .filter_map(|pass| match pass {
            Backward(index) => Some(*index),
            Forward(_) => None,
        })
        .collect();
    let mut sorted = [forward.clone(), backward.clone()];
    sorted.iter_mut().for_each(|it| it.sort_unstable());
    let each: Vec<usize> = (0..micro_batches).collect();
    if sorted[0] != each || sorted[1] != each {
        return wrong(
            "each micro-batch passes a stage once forward and once backward",
            "the number of passes, and what is left at the end: the last micro-batches have only backward passes to come",
        );
    }
    let at = |wanted: Pass| passes.iter().position(|&pass| pass == wanted);
    if (0..micro_batches).any(|index| at(Backward(index)) < at(Forward(index))) {
        return wrong(
            "the backward pass of a micro-batch needs the activations of its forward pass",
            "which of the two is pushed first",
        );
    }
    if forward != each || backward != each {
        return wrong(
            "micro-batches keep their order in both directions, so that gradients are added as one device adds them",
            "the index of each pass",
        );
    }
    let most = stored(passes);
    if most > (stages - stage).min(micro_batches) {
        let (violated, look_at) = if most == micro_batches {
            (
                "this is GPipe: the stage stores the activations of all micro-batches",
                "a backward pass as soon as its gradient can be there, then one forward pass, and so on",
            )
        } else {
            (
                "a stage needs as many micro-batches under way as there are stages from it to the end, itself among them; here it stores more",
                "the number of forward passes before the first backward pass",
            )
        };
        return wrong(violated, look_at);
    }
    Ok(())
}

fn short(pass: &Pass) -> String {
    match pass {
        Forward(index) => format!("F{index}"),
        Backward(index) => format!("B{index}"),
    }
}

/// A function `balanced(costs, stages)`: how many consecutive layers each stage gets, so that the most expensive stage costs as
/// little as possible. Every stage has a layer.
pub fn check_balanced(balanced: impl Fn(&[f64], usize) -> Vec<usize>) -> Verdict {
    judged("12.4", "balanced", || of_balance(&balanced))
}

fn of_balance(balanced: &dyn Fn(&[f64], usize) -> Vec<usize>) -> Result<String, Fault> {
    let mut random = Random::new(124);
    for attempted in 0..TRIES {
        let layers = random.integer(2, 8);
        let stages = random.integer(2, layers.min(4));
        // First layers of equal cost, where each division by counts is right; then a head as expensive as some layers.
        let mut costs: Vec<f64> = (0..layers).map(|_| 1.0).collect();
        if attempted >= 5 {
            costs = costs.iter().map(|_| random.short(1.0, 9.0)).collect();
        }
        if attempted % 3 == 2 {
            costs[layers - 1] = random.short(9.0, 20.0);
        }
        let call = format!("balanced(&{costs:?}, {stages})");
        let counts = attempt(call.clone(), || balanced(&costs, stages))?;
        let wrong = |violated: &str, look_at: &str| {
            Err(Fault::wrong(
                call.clone(),
                format!("{counts:?}"),
                violated,
                look_at,
            ))
        };
        if counts.len() != stages {
            return wrong(
                "there is one number for each stage",
                "the length of the result",
            );
        }
        let sum = counts
            .iter()
            .fold(0_usize, |sum, &count| sum.saturating_add(count));
        if sum != layers {
            return wrong("each layer is on one stage", "the sum of the numbers");
        }
        if counts.contains(&0) {
            return wrong("every stage has a layer", "stages that got nothing");
        }
        if most_expensive(&costs, &counts) <= least(&costs, stages) + TOLERANCE {
            continue;
        }
        let even = layers / stages;
        if counts
            .iter()
            .all(|&count| count == even || count == even + 1)
        {
            return wrong(
                "a step lasts as long as its most expensive stage; stages with as many layers each need not cost the same",
                "the costs: the first argument",
            );
        }
        return wrong(
            "no other division has a cheaper most expensive stage; here one has",
            "all ways to divide: for few layers they can be tried, one end after the other",
        );
    }
    Ok(format!(
        "{TRIES} networks of 2 to 8 layers on 2 to 4 stages"
    ))
}

fn most_expensive(costs: &[f64], counts: &[usize]) -> f64 {
    let mut rest = costs;
    let mut most: f64 = 0.0;
    for &count in counts {
        let (own, others) = rest.split_at(count);
        most = most.max(own.iter().sum());
        rest = others;
    }
    most
}

/// The cost of the most expensive stage in the best division.
fn least(costs: &[f64], stages: usize) -> f64 {
    if stages == 1 {
        return costs.iter().sum();
    }
    let first = 1..=costs.len() + 1 - stages;
    first
        .map(|count| {
            let own: f64 = costs[..count].iter().sum();
            own.max(least(&costs[count..], stages - 1))
        })
        .fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::State;

    fn words(verdict: &Verdict) -> String {
        let plain = verdict.to_plain();
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn mistakes_of_the_bubble_are_distinguished() {
        let right = |p: usize, m: usize| (p - 1) as f64 / (m + p - 1) as f64;
        assert_eq!(check_bubble(right).state, State::Right);
        type Bubble = fn(usize, usize) -> f64;
        let cases: [(Bubble, &str); 5] = [
            (
                |p, m| (p as f64 - 1.0) / m as f64,
                "share of the whole time",
            ),
            (|p, m| m as f64 / (m + p - 1) as f64, "smaller the share"),
            (|p, m| (p as f64 - 1.0) / (m + p) as f64, "half of the time"),
            (|_, _| 0.25, "over all slots"),
            (|_, _| f64::NAN, "over all slots"),
        ];
        for (bubble, expected) in cases {
            // A single stage is tried by chance; then the mistake has that stage's hint.
            let wrong = check_bubble(|p, m| if p == 1 { 0.0 } else { bubble(p, m) });
            assert_eq!(wrong.state, State::Wrong);
            assert!(words(&wrong).contains(expected), "{}", words(&wrong));
        }
        assert!(words(&check_bubble(|p, m| p as f64 / (m + p) as f64)).contains("stage"));
        assert_eq!(check_bubble(|_, _| todo!()).state, State::Open);
    }

    /// `ahead` forward passes, then a backward and a forward pass in turn.
    fn ahead(count: usize, micro_batches: usize) -> Vec<Pass> {
        let count = count.clamp(1, micro_batches);
        let mut passes: Vec<Pass> = (0..count).map(Forward).collect();
        for index in 0..micro_batches {
            passes.push(Backward(index));
            if count + index < micro_batches {
                passes.push(Forward(count + index));
            }
        }
        passes
    }

    #[test]
    fn mistakes_of_an_order_are_distinguished() {
        let right = |stage: usize, stages: usize, m: usize| ahead(stages - stage, m);
        assert!(
            check_one_f_one_b(right).is_right(),
            "{:?}",
            check_one_f_one_b(right)
        );
        type Order = fn(usize, usize, usize) -> Vec<Pass>;
        let cases: [(Order, &str); 8] = [
            (|_, _, m| ahead(m, m), "this is GPipe"),
            (
                |stage, stages, m| ahead(stages - stage + 1, m),
                "it stores more",
            ),
            (
                |stage, stages, m| ahead(stages - stage - 1, m),
                "run out of work",
            ),
            (|_, _, m| ahead(1, m), "run out of work"),
            (
                |stage, stages, m| ahead(stages - stage, m)[..2 * m - 1].to_vec(),
                "once forward and once backward",
            ),
            (
                |_, _, m| (0..m).flat_map(|it| [Backward(it), Forward(it)]).collect(),
                "needs the activations",
            ),
            (
                |_, _, m| {
                    (0..m)
                        .rev()
                        .flat_map(|it| [Forward(it), Backward(it)])
                        .collect()
                },
                "keep their order",
            ),
            (
                |stage, stages, m| ahead(if stage == 0 { 2.min(m) } else { stages - stage }, m),
                "run out of work",
            ),
        ];
        for (order, expected) in cases {
            let wrong = check_one_f_one_b(order);
            assert_eq!(wrong.state, State::Wrong, "{expected}");
            assert!(
                words(&wrong).contains(expected),
                "{expected}: {}",
                words(&wrong)
            );
        }
        assert_eq!(check_one_f_one_b(|_, _, _| todo!()).state, State::Open);
    }

    /// The waiting of both orders is that of the formula; stages that wait for each other end the drawing.
    #[test]
    fn a_timeline_shows_waiting_and_ends_where_nothing_moves() {
        for order in [
            |_: usize, _: usize, m: usize| ahead(m, m),
            |stage: usize, stages: usize, m: usize| ahead(stages - stage, m),
        ] {
            let rows = timeline(order, 3, 4);
            assert_eq!(rows[0].len(), 2 * (4 + 3 - 1));
            let waiting = rows.iter().flatten().filter(|&&it| it == 0).count();
            assert_eq!(waiting, 3 * 2 * (3 - 1));
        }
        // Stage 0 wants a gradient for which stage 1 would need another activation.
        let stuck = Timeline::of(&[
            vec![Forward(0), Backward(0), Forward(1), Backward(1)],
            vec![Forward(0), Forward(1), Backward(0), Backward(1)],
        ]);
        assert_eq!(stuck.stuck, Some((1, Forward(1))));
        assert_eq!(stored(&ahead(3, 8)), 3);
    }

    #[test]
    fn mistakes_of_a_division_are_distinguished() {
        // The first of all divisions with the smallest most expensive stage.
        fn best(costs: &[f64], stages: usize) -> Vec<usize> {
            if stages == 1 {
                return vec![costs.len()];
            }
            let divided = |count: usize| {
                let mut counts = vec![count];
                counts.extend(best(&costs[count..], stages - 1));
                counts
            };
            let all = (1..=costs.len() + 1 - stages).map(divided);
            let cost = |counts: &Vec<usize>| most_expensive(costs, counts);
            all.min_by(|one, other| cost(one).total_cmp(&cost(other)))
                .unwrap_or_default()
        }
        assert!(
            check_balanced(best).is_right(),
            "{:?}",
            check_balanced(best)
        );
        type Division = fn(&[f64], usize) -> Vec<usize>;
        let cases: [(Division, &str); 5] = [
            (
                |costs, stages| {
                    let (each, more) = (costs.len() / stages, costs.len() % stages);
                    (0..stages)
                        .map(|stage| each + usize::from(stage < more))
                        .collect()
                },
                "need not cost the same",
            ),
            (
                |costs, stages| {
                    let mut counts = vec![1; stages];
                    counts[0] = costs.len() + 1 - stages;
                    counts
                },
                "here one has",
            ),
            (
                |costs, stages| vec![costs.len(); stages],
                "each layer is on one stage",
            ),
            (|costs, _| vec![costs.len()], "one number for each stage"),
            (
                |costs, stages| {
                    let mut counts = vec![0; stages];
                    counts[0] = costs.len();
                    counts
                },
                "every stage has a layer",
            ),
        ];
        for (division, expected) in cases {
            let wrong = check_balanced(division);
            assert_eq!(wrong.state, State::Wrong, "{expected}");
            assert!(
                words(&wrong).contains(expected),
                "{expected}: {}",
                words(&wrong)
            );
        }
        assert_eq!(check_balanced(|_, _| todo!()).state, State::Open);
    }
}
