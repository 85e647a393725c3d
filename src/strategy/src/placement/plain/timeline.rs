//! The collectives of a step as arrows between lifelines of characters.

use std::fmt::Write;

use super::{PAGE, paragraph};
use crate::placement::parts::SlotState;
use crate::placement::rows::Sheet;
use crate::placement::timeline::{Arrow, Hop, Timeline};

/// Columns left of the first lifeline's share of the page.
const INDENT: usize = 2;
/// Room for one device: enough for the arrow and, of its name, what tells it apart.
const WIDEST: usize = 12;
/// With less room than this an arrow is no arrow any more.
const NARROWEST: usize = 5;

pub(super) fn timelines(out: &mut String, sheet: &Sheet<'_>) {
    let names = sheet.device_names();
    for timeline in sheet.timelines {
        out.push('\n');
        let when = match timeline.state {
            SlotState::Planned => "every optimizer step",
            _ => "the last optimizer step",
        };
        paragraph(out, &format!("{when}: {}", timeline.title()));
        one(out, timeline, &names);
        paragraph(out, &timeline.total(&names));
    }
    if let (Some(so_far), false) = (&sheet.so_far, sheet.timelines.is_empty()) {
        paragraph(out, &format!("so far: {so_far}"));
    }
}

fn one(out: &mut String, timeline: &Timeline, names: &[String]) {
    let count = timeline.devices();
    let width = ((PAGE - INDENT) / count.max(1)).min(WIDEST);
    let drawn = width >= NARROWEST;
    if drawn {
        let _ = write!(out, "{:INDENT$}", "");
        for index in 0..count {
            let name = names.get(index).map_or("?", String::as_str);
            // Of `cuda:0/3` in a narrow column the end says more than the beginning.
            let skip = name.chars().count().saturating_sub(width - 1);
            let name: String = name.chars().skip(skip).collect();
            let _ = write!(out, "{name:^width$}");
        }
        out.push('\n');
    }
    for hop in &timeline.hops {
        let sentence = format!(
            "{}, {}: {}",
            hop.title(),
            hop.amount(),
            timeline.describe(hop, names)
        );
        paragraph(out, &sentence);
        if drawn {
            lanes(out, hop, count, width);
        }
    }
}

/// `│──────►│` from lifeline to lifeline.
fn lanes(out: &mut String, hop: &Hop, count: usize, width: usize) {
    let x = |device: usize| INDENT + device * width + width / 2;
    for lane in hop.lanes() {
        let mut line = vec![' '; INDENT + count * width];
        for device in 0..count {
            line[x(device)] = '│';
        }
        for arrow in lane {
            draw(&mut line, arrow, x);
        }
        let _ = writeln!(out, "{}", line.into_iter().collect::<String>());
    }
}

fn draw(line: &mut [char], arrow: Arrow, x: impl Fn(usize) -> usize) {
    let (left, right) = arrow.ends();
    line[x(left) + 1..x(right)].fill('─');
    match arrow.from < arrow.to {
        true => line[x(right) - 1] = '►',
        false => line[x(left) + 1] = '◄',
    }
}
