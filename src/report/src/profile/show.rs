//! A [`Profile`] as text and as HTML.

use std::fmt::Write;

use stratoscope_render::html::{DATA_TABLE_STYLE, code, data_table, escape, picture, prose};
use stratoscope_render::text;
use stratoscope_render::units::bytes;

use super::numbers::{duration, percent, rate};
use super::{Profile, flame};
use crate::html::{CELL, HEAD};
use crate::inspection::{notes_html, title_html};

/// Layers that the table shows; the others are counted.
const MAX_LAYERS: usize = 60;

impl Profile {
    fn title(&self) -> String {
        format!(
            "profile: {} of {}",
            text::count(self.steps, "step"),
            duration(self.seconds)
        )
    }

    fn all_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let roof = &self.roofline;
        if roof.flops_per_second > 0.0 {
            notes.push(format!(
                "the roofline of `{}`: {} in a large product of float32, {} in a copy",
                roof.device,
                rate(roof.flops_per_second, "FLOP/s"),
                rate(roof.bytes_per_second, "B/s")
            ));
        }
        if self.replicas.len() > 1 {
            let each = self.replicas.iter().map(|it| {
                format!(
                    "`{}` {} for {:.0} positions",
                    it.device,
                    duration(it.seconds),
                    it.positions
                )
            });
            let each: Vec<String> = each.collect();
            let each = each.join(", ");
            notes.push(match &self.stages {
                Some(_) => format!("the stages without their waits: {each}"),
                None => format!("passes of the replicas: {each}"),
            });
        }
        if self.exchanged_bytes > 0.0 {
            let moved = bytes(self.exchanged_bytes as u64);
            notes.push(format!("{moved} went between devices in a step"));
        }
        if let Some(first) = self.first {
            let first = duration(first);
            notes.push(format!(
                "the first step took {first} and does not count: it waits for the first batch"
            ));
        }
        if self.layers.len() > MAX_LAYERS {
            let more = text::count(self.layers.len() - MAX_LAYERS, "layer");
            notes.push(format!("{more} more; `.layers` has all"));
        }
        notes.extend(self.notes.iter().cloned());
        notes
    }

    /// The columns of the phases; that of the device only where it was measured.
    fn phase_head(&self) -> Vec<&'static str> {
        let mut head = vec!["phase", "seconds", "share", "most of it"];
        if self.device_seconds().is_some() {
            head.insert(2, "on the device");
        }
        head
    }

    fn phase_rows(&self) -> Vec<Vec<String>> {
        let row = |name: &str, seconds: f64, device: Option<f64>, detail: &str| {
            let (share, detail) = (percent(seconds / self.seconds), detail.to_owned());
            let mut row = vec![name.to_owned(), duration(seconds), share, detail];
            if self.device_seconds().is_some() {
                row.insert(2, device.map_or_else(|| "–".to_owned(), duration));
            }
            row
        };
        let phases = self.phases.iter();
        let phases =
            phases.map(|it| row(it.phase.words(), it.seconds, it.device_seconds, &it.detail));
        let sum: f64 = self.phases.iter().map(|it| it.seconds).sum();
        let together = row("together", sum, self.device_seconds(), "");
        phases.chain([together]).collect()
    }

    fn layer_rows(&self) -> Vec<Vec<String>> {
        let row = |it: &super::LayerTime| {
            let both = it.forward + it.backward;
            vec![
                it.name.clone(),
                duration(it.forward),
                duration(it.backward),
                percent(both / self.seconds),
                rate(it.flops, "FLOP"),
                rate(it.flops / both, "FLOP/s"),
                match it.bytes > 0.0 {
                    true => bytes(it.bytes as u64),
                    false => "–".to_owned(),
                },
            ]
        };
        self.layers.iter().take(MAX_LAYERS).map(row).collect()
    }

    /// As static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        let mut html = title_html(&self.title());
        // Writing to a string cannot fail.
        let _ = write!(
            html,
            "<div style=\"font-size:13px;margin:4px 0\"><b>{}</b></div>",
            prose(&self.verdict.sentence)
        );
        table(&mut html, &self.phase_head(), &self.phase_rows(), false);
        let words = "where the time of a step goes: the step, its phases, the parts of the network";
        html += &picture(&flame::svg(self), words);
        if !self.layers.is_empty() {
            let head = [
                "layer",
                "forward",
                "backward",
                "share",
                "FLOPs",
                "FLOP/s",
                "bytes moved",
            ];
            table(&mut html, &head, &self.layer_rows(), true);
        }
        html + &notes_html(&self.all_notes())
    }

    /// As text.
    pub fn to_plain(&self) -> String {
        let mut plain = format!("{}\n{}\n", self.title(), self.verdict.sentence);
        if self.device_seconds().is_some() {
            plain += "phases: seconds, on the device, share, most of it\n";
        }
        for row in self.phase_rows() {
            let [name, numbers @ .., detail] = &row[..] else {
                continue;
            };
            // Writing to a string cannot fail.
            let _ = write!(plain, "  {name:<22}");
            for number in numbers {
                let _ = write!(plain, " {number:>8}");
            }
            let gap = if detail.is_empty() { "" } else { "  " };
            let _ = writeln!(plain, "{gap}{detail}");
        }
        plain += "where the time goes:\n";
        plain += &flame::plain(self);
        if !self.layers.is_empty() {
            plain += "layers: forward, backward, share, FLOPs, FLOP/s, bytes moved\n";
        }
        for row in self.layer_rows() {
            let [name, forward, backward, share, flops, speed, moved] = &row[..] else {
                continue;
            };
            let _ = writeln!(
                plain,
                "  {name:<26} {forward:>8} {backward:>8} {share:>7} {flops:>11} {speed:>13} {moved:>9}"
            );
        }
        for note in self.all_notes() {
            plain.push_str(&note);
            plain.push('\n');
        }
        plain
    }
}

fn table(html: &mut String, head: &[&str], rows: &[Vec<String>], is_code: bool) {
    *html += &(data_table(DATA_TABLE_STYLE) + "<thead><tr>");
    for name in head {
        // Writing to a string cannot fail.
        let _ = write!(html, "<th scope=\"col\" style=\"{HEAD}\">{name}</th>");
    }
    *html += "</tr></thead><tbody>";
    for row in rows {
        *html += "<tr>";
        for (index, cell) in row.iter().enumerate() {
            let _ = match (index, is_code) {
                (0, true) => write!(
                    html,
                    "<th scope=\"row\" style=\"{CELL};font-weight:400;text-align:left\">{}</th>",
                    code(cell)
                ),
                (0, false) => write!(
                    html,
                    "<th scope=\"row\" style=\"{CELL};font-weight:400;text-align:left\">{}</th>",
                    escape(cell)
                ),
                _ => write!(html, "<td style=\"{CELL}\">{}</td>", escape(cell)),
            };
        }
        *html += "</tr>";
    }
    *html += "</tbody></table>";
}
