//! The executed cells, in memory, for `history_request`.

/// Cells and the text of their results, oldest first.
#[derive(Debug, Default)]
pub struct History {
    entries: Vec<HistoryEntry>,
}

/// One executed cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// `In[line]`, counted from 1.
    pub line: u64,
    /// The cell's text.
    pub input: String,
    /// `text/plain` of its result, if it had one.
    pub output: Option<String>,
}

impl History {
    /// Adds a cell.
    pub fn push(&mut self, line: u64, input: String) {
        self.entries.push(HistoryEntry {
            line,
            input,
            output: None,
        });
    }

    /// Adds the result of the cell with that number.
    pub fn set_output(&mut self, line: u64, output: String) {
        if let Some(entry) = self
            .entries
            .iter_mut()
            .rev()
            .find(|entry| entry.line == line)
        {
            entry.output = Some(output);
        }
    }

    /// The last `n` cells, oldest first.
    pub fn tail(&self, n: usize) -> Vec<&HistoryEntry> {
        self.entries[self.entries.len().saturating_sub(n)..]
            .iter()
            .collect()
    }

    /// The cells numbered `start..stop`; without `stop`, all from `start`.
    pub fn range(&self, start: i64, stop: Option<i64>) -> Vec<&HistoryEntry> {
        let last = self.entries.last().map_or(0, |entry| entry.line as i64);
        // As IPython: negative numbers count from the end.
        let absolute = |n: i64| if n < 0 { last + 1 + n } else { n };
        let (start, stop) = (absolute(start), stop.map_or(i64::MAX, absolute));
        let inside = |entry: &&HistoryEntry| (start..stop).contains(&(entry.line as i64));
        self.entries.iter().filter(inside).collect()
    }

    /// The last `n` cells that match a pattern of `*`, `?` and literal text, oldest first;
    /// `unique`: of equal ones only the last.
    pub fn search(&self, pattern: &str, n: Option<usize>, unique: bool) -> Vec<&HistoryEntry> {
        let pattern: Vec<char> = pattern.chars().collect();
        let mut found: Vec<&HistoryEntry> = Vec::new();
        for entry in self.entries.iter().rev() {
            if n.is_some_and(|n| found.len() >= n) {
                break;
            }
            let text: Vec<char> = entry.input.chars().collect();
            let repeated = unique && found.iter().any(|other| other.input == entry.input);
            if matches(&pattern, &text) && !repeated {
                found.push(entry);
            }
        }
        found.reverse();
        found
    }
}

/// Whether all of `text` matches. On a mismatch the last `*` takes one character more, so the
/// time is at most the product of the lengths.
fn matches(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                last_star = Some((p, t));
                p += 1;
            }
            Some(&expected) if expected == '?' || expected == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match last_star {
                Some((star, taken)) => {
                    last_star = Some((star, taken + 1));
                    p = star + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        let mut history = History::default();
        for (line, input) in ["let a = 1;", "a + 1", "let b = 2;", "a + 1"]
            .into_iter()
            .enumerate()
        {
            history.push(line as u64 + 1, input.to_owned());
        }
        history
    }

    fn lines(entries: Vec<&HistoryEntry>) -> Vec<u64> {
        entries.into_iter().map(|entry| entry.line).collect()
    }

    #[test]
    fn tail_and_range() {
        let history = history();
        assert_eq!(lines(history.tail(2)), [3, 4]);
        assert_eq!(lines(history.tail(9)), [1, 2, 3, 4]);
        assert_eq!(lines(history.range(2, Some(4))), [2, 3]);
        assert_eq!(lines(history.range(-1, None)), [4]);
        assert_eq!(lines(history.range(3, None)), [3, 4]);
        assert_eq!(lines(history.range(7, Some(2))), [0u64; 0]);
    }

    #[test]
    fn search() {
        let history = history();
        assert_eq!(lines(history.search("let*", None, false)), [1, 3]);
        assert_eq!(lines(history.search("*a + 1*", None, false)), [2, 4]);
        assert_eq!(lines(history.search("*a + 1*", None, true)), [4]);
        assert_eq!(lines(history.search("*", Some(3), false)), [2, 3, 4]);
        assert_eq!(lines(history.search("let ? = 2;", None, false)), [3]);
        assert_eq!(lines(history.search("let", None, false)), [0u64; 0]);
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let pattern: Vec<char> = "*a".repeat(200).chars().chain(['b']).collect();
        let text: Vec<char> = "a".repeat(5000).chars().collect();
        assert!(!matches(&pattern, &text));
    }

    #[test]
    fn outputs_belong_to_their_cell() {
        let mut history = history();
        history.set_output(2, "2".to_owned());
        assert_eq!(history.range(2, Some(3))[0].output.as_deref(), Some("2"));
        assert_eq!(history.range(1, Some(2))[0].output, None);
    }
}
