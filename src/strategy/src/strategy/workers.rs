//! The workers of a strategy as a table: who they are, what each has done for the run, when it was last heard.

use std::fmt::{self, Write as _};
use std::time::Duration;

use stratoscope_render::html::{DATA_TABLE_STYLE, DENSE_CELL, NOTE_STYLE, escape};
use stratoscope_render::units::bytes;
use stratoscope_workers::{Done, SeatView, Tally, Team, Transport, mpi, nccl};

/// The workers of a strategy at a moment. Worker 0 is this process.
#[derive(Clone, Debug)]
pub struct Workers {
    seats: Vec<SeatView>,
    tally: Tally,
    /// What carries gradients, where that is not TCP: `Open MPI v4.1.4`.
    carrier: Option<String>,
}

/// The heads of the columns.
const COLUMNS: [&str; 8] = [
    "worker", "process", "step", "examples", "seq/s", "waiting", "sent", "heard",
];

impl Workers {
    /// Those of a job, now.
    pub fn of(team: &Team) -> Self {
        Self {
            seats: team.seats(),
            tally: team.tally(),
            carrier: match team.communication().transport {
                Transport::Tcp => None,
                Transport::Mpi => mpi::version(),
                Transport::Nccl => nccl::version(),
            },
        }
    }

    /// Worker 1 and those after it.
    pub fn seats(&self) -> &[SeatView] {
        &self.seats
    }

    /// What each worker has done since the run began, worker 0 first.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The table of a run that is going on: heads, then a row for each worker. The speed is that at which a worker
    /// computes; `waiting` is the share of the time of all steps in which it does not, because it waits for others or
    /// exchanges gradients.
    pub fn table(&self) -> Vec<Vec<String>> {
        let heads = COLUMNS.map(str::to_owned).to_vec();
        let rows = (0..=self.seats.len()).map(|worker| self.row(worker));
        std::iter::once(heads).chain(rows).collect()
    }

    /// The table with what each worker does now.
    fn with_doing(&self) -> Vec<Vec<String>> {
        let mut table = self.table();
        for (index, row) in table.iter_mut().enumerate() {
            let seat = index.checked_sub(2).map(|index| &self.seats[index]);
            row.push(match (index, seat.and_then(|seat| seat.heard.as_ref())) {
                (0, _) => "does".to_owned(),
                (1, _) => "runs the notebook".to_owned(),
                (_, Some((_, pulse))) => pulse.doing.clone(),
                (_, None) => "–".to_owned(),
            });
        }
        table
    }

    fn row(&self, worker: usize) -> Vec<String> {
        let seat = worker.checked_sub(1).map(|index| &self.seats[index]);
        let (process, heard) = match seat {
            None => (format!("{}, this one", std::process::id()), "–".to_owned()),
            Some(seat) => (
                match &seat.process {
                    Some(process) => format!("{} on {}", process.number, process.machine()),
                    None => "lost".to_owned(),
                },
                match &seat.heard {
                    Some((ago, _)) => format!("{:.1} s ago", ago.as_secs_f64()),
                    None => "–".to_owned(),
                },
            ),
        };
        let done = self.tally.members.get(worker).copied();
        let done = done.unwrap_or_default();
        let waiting = self.tally.waiting(worker);
        vec![
            worker.to_string(),
            process,
            done.steps.to_string(),
            done.examples.to_string(),
            speed(&done),
            waiting.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
            bytes(done.bytes),
            heard,
        ]
    }

    /// Whom the others wait for: `worker 2 is the slowest: it computes 61 ms in a step, the others at most 30 ms`.
    pub fn straggler(&self) -> Option<String> {
        let found = self.tally.straggler()?;
        let milliseconds = |time: Duration| format!("{:.0} ms", 1000.0 * time.as_secs_f64());
        Some(format!(
            "worker {} is the slowest: it computes {} in a step, the others at most {}, and they wait for it",
            found.member,
            milliseconds(found.busy),
            milliseconds(found.others)
        ))
    }

    /// What is said below the table.
    fn notes(&self) -> impl Iterator<Item = String> {
        let carrier = self.carrier.as_ref();
        let carrier = carrier.map(|it| format!("gradients and weights travel over {it}"));
        carrier.into_iter().chain(self.straggler())
    }

    /// The table as HTML.
    pub fn to_html(&self) -> String {
        let mut html = html_of(&self.with_doing());
        for note in self.notes() {
            let _ = write!(html, "<div style=\"{NOTE_STYLE}\">{}</div>", escape(&note));
        }
        html
    }
}

/// A table of [`Workers::table`] as HTML.
pub fn html_of(table: &[Vec<String>]) -> String {
    let mut html = format!("<table style=\"{DATA_TABLE_STYLE}\">");
    for (index, row) in table.iter().enumerate() {
        let (tag, weight) = match index {
            0 => ("th", ";font-weight:600"),
            _ => ("td", ""),
        };
        html.push_str("<tr>");
        for cell in row {
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<{tag} style=\"{DENSE_CELL}{weight}\">{}</{tag}>",
                escape(cell)
            );
        }
        html.push_str("</tr>");
    }
    html + "</table>"
}

/// The same as lines of text.
pub fn text_of(table: &[Vec<String>]) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = table.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let padded = row.iter().zip(&widths);
        let padded: Vec<String> = padded
            .map(|(cell, &width)| format!("{cell:>width$}"))
            .collect();
        padded.join("  ")
    };
    table.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Examples in a second of computing.
fn speed(done: &Done) -> String {
    let seconds = done.busy.as_secs_f64();
    match done.examples > 0 && seconds > 0.0 {
        true => format!("{:.1}", done.examples as f64 / seconds),
        false => "–".to_owned(),
    }
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(&self.with_doing()))?;
        self.notes().try_for_each(|note| write!(f, "\n{note}"))
    }
}
