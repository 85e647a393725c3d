//! Parallel coordinates (Inselberg 1985, "The plane with parallel coordinates"): an axis for each setting and one for the
//! result, a line for each trial.

use std::fmt::Write;

use stratoscope_render::html::{attribute, escape};
use stratoscope_render::text::excerpt;

use super::{Sweep, Trial};

/// Texts and axes, on a light and on a dark ground.
const INK: &str = "#7a7a7a";
/// The worst and the best trial, as red, green and blue.
const WORST: [f64; 3] = [176.0, 176.0, 176.0];
const BEST: [f64; 3] = [42.0, 127.0, 192.0];
const HEIGHT: f64 = 190.0;
const TOP: f64 = 34.0;
const SIDE: f64 = 70.0;
const STEP: f64 = 140.0;
/// Values of an axis that have a text.
const MOST_TEXTS: usize = 12;

/// The picture and what it shows in words. `None` where no trial has a finite first result.
pub(super) fn parallel_coordinates(sweep: &Sweep) -> Option<(String, String)> {
    let name = sweep.main_score()?;
    let score = |trial: &Trial| {
        let score = trial.result.as_ref().ok()?.get(&name);
        score.filter(|score| score.is_finite())
    };
    let mut lines: Vec<(&Trial, f64)> = (sweep.trials.iter())
        .filter_map(|trial| Some((trial, score(trial)?)))
        .collect();
    let low = lines.iter().map(|line| line.1).reduce(f64::min)?;
    let high = lines.iter().map(|line| line.1).reduce(f64::max)?;
    let share = |value: f64| {
        if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        }
    };
    let is_smaller_better = sweep.is_smaller_better(&name);
    let goodness = |value: f64| match is_smaller_better {
        true => 1.0 - share(value),
        false => share(value),
    };
    // The best ones are drawn last, above the others.
    lines.sort_by(|a, b| goodness(a.1).total_cmp(&goodness(b.1)));
    let width = SIDE * 2.0 + STEP * sweep.axes.len() as f64;
    let mut body = String::new();
    for (trial, value) in &lines {
        let mut points = String::new();
        // Writing to a string cannot fail.
        for (index, (axis, &chosen)) in sweep.axes.iter().zip(&trial.chosen).enumerate() {
            let _ = write!(
                points,
                "{:.1},{:.1} ",
                x(index),
                place(chosen, axis.values.len())
            );
        }
        let _ = write!(points, "{:.1},{:.1}", x(sweep.axes.len()), y(share(*value)));
        let good = goodness(*value);
        let [red, green, blue]: [f64; 3] =
            std::array::from_fn(|it| WORST[it] + good * (BEST[it] - WORST[it]));
        let _ = write!(
            body,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"rgb({red:.0},{green:.0},{blue:.0})\" stroke-width=\"{:.1}\"/>",
            1.0 + 1.5 * good
        );
    }
    let last = sweep.axes.len();
    for (index, axis) in sweep.axes.iter().enumerate() {
        axis_line(&mut body, index, &axis.name);
        let stride = axis.values.len().div_ceil(MOST_TEXTS);
        for (at, value) in axis.values.iter().enumerate().step_by(stride) {
            label(&mut body, index, last, place(at, axis.values.len()), value);
        }
    }
    axis_line(&mut body, last, &name);
    label(&mut body, last, last, y(share(low)), &format!("{low:.4}"));
    if high > low {
        label(&mut body, last, last, y(1.0), &format!("{high:.4}"));
    }
    let title = format!(
        "parallel coordinates of {} trials; the best lines are blue and thick",
        lines.len()
    );
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{HEIGHT:.0}\" viewBox=\"0 0 {width:.0} \
         {HEIGHT:.0}\" role=\"img\" font-family=\"sans-serif\" aria-label=\"{}\"><title>{}</title>{body}</svg>",
        attribute(&title),
        escape(&title)
    );
    Some((svg, title))
}

fn x(axis: usize) -> f64 {
    SIDE + STEP * axis as f64
}

/// From the bottom (0) to the top (1).
fn y(share: f64) -> f64 {
    HEIGHT - 14.0 - share * (HEIGHT - 14.0 - TOP)
}

/// The first value is at the bottom; a single one in the middle.
fn place(value: usize, values: usize) -> f64 {
    match values {
        0 | 1 => y(0.5),
        _ => y(value as f64 / (values - 1) as f64),
    }
}

fn axis_line(body: &mut String, axis: usize, name: &str) {
    let (x, top, bottom) = (x(axis), y(1.0), y(0.0));
    let name = shown(name, 20);
    let _ = write!(
        body,
        "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" stroke=\"{INK}\"/>\
         <text x=\"{x:.1}\" y=\"14\" font-size=\"12\" font-weight=\"600\" text-anchor=\"middle\" fill=\"{INK}\">{name}</text>"
    );
}

/// A value beside its place on an axis: outside of the lines at the first and the last axis, above its place at those
/// between them.
fn label(body: &mut String, axis: usize, last: usize, y: f64, value: &str) {
    let (dx, dy, anchor) = match axis {
        0 => (-5.0, 4.0, "end"),
        _ if axis == last => (5.0, 4.0, "start"),
        _ => (5.0, -5.0, "start"),
    };
    let (x, y, value) = (x(axis) + dx, y + dy, shown(value, 14));
    let _ = write!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"11\" text-anchor=\"{anchor}\" fill=\"{INK}\">{value}</text>"
    );
}

/// A dollar in an element of its own would be no text of a picture.
fn shown(text: &str, most: usize) -> String {
    escape(&excerpt(text, most)).replace("<span>$</span>", "$")
}
