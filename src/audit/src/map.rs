//! A map of the data: its vectors in the two directions in which they differ most.

use std::ops::Range;

use stratoscope_render::chart::{Chart, Content, Series};

use crate::principal::Principal;

/// Points of a picture; of more rows every nth is drawn, and all that are marked.
const MAX_POINTS: usize = 3000;

/// Each row as a point. Near points are rows that the model takes for similar, as far as two directions show it.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingMap {
    /// The place of each row: its first and its second principal component.
    pub points: Vec<[f64; 2]>,
    /// The share of the variance that each of the two directions has.
    pub explained: [f64; 2],
    /// What is marked, each with its rows.
    pub(crate) marks: Vec<(String, Vec<usize>)>,
    /// The class of each row and the names of the classes.
    pub(crate) classes: (Vec<usize>, Vec<String>),
}

impl EmbeddingMap {
    /// The map of these vectors, with their classes and marked rows.
    pub(crate) fn of(
        vectors: &[Vec<f32>],
        classes: (Vec<usize>, Vec<String>),
        marks: Vec<(String, Vec<usize>)>,
    ) -> Self {
        let found = Principal::of(vectors, 2);
        let place = |row: &Vec<f32>| {
            let place = found.project(row);
            [
                place.first().copied().unwrap_or(0.0),
                place.get(1).copied().unwrap_or(0.0),
            ]
        };
        let first = found.explained(1);
        Self {
            points: vectors.iter().map(place).collect(),
            explained: [first, found.explained(2) - first],
            marks,
            classes,
        }
    }

    /// The rows inside of a rectangle, counted from 0: `map.region(-0.2..0.1, 0.3..0.5)`. The numbers are those of the axes.
    pub fn region(&self, x: Range<f64>, y: Range<f64>) -> Vec<usize> {
        let rows = self.points.iter().enumerate();
        let inside = rows.filter(|(_, point)| x.contains(&point[0]) && y.contains(&point[1]));
        inside.map(|(row, _)| row).collect()
    }

    /// The `count` rows that are nearest to a row on the map, the nearest first; none for a row that does not exist.
    pub fn around(&self, row: usize, count: usize) -> Vec<usize> {
        let Some(&[x, y]) = self.points.get(row) else {
            return Vec::new();
        };
        let distance = |other: usize| {
            (self.points[other][0] - x).powi(2) + (self.points[other][1] - y).powi(2)
        };
        let mut rows: Vec<usize> = (0..self.points.len())
            .filter(|&other| other != row)
            .collect();
        rows.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)));
        rows.truncate(count);
        rows
    }

    /// The same map with the rows of these classes marked instead: `map.of_classes(["games", "net"])`. Names that are no class
    /// have no rows.
    #[must_use]
    pub fn of_classes<S: AsRef<str>>(&self, names: impl IntoIterator<Item = S>) -> Self {
        let (classes, all) = &self.classes;
        let mark = |name: S| {
            let class = all.iter().position(|it| it == name.as_ref());
            let rows = (0..classes.len()).filter(|&row| Some(classes[row]) == class);
            (name.as_ref().to_owned(), rows.collect())
        };
        Self {
            marks: names.into_iter().map(mark).collect(),
            ..self.clone()
        }
    }

    /// The picture: marked rows in colors above the others.
    pub fn chart(&self) -> Chart {
        let step = self.points.len().div_ceil(MAX_POINTS).max(1);
        let point = |&row: &usize| self.points.get(row).map(|point| (point[0], point[1]));
        let is_marked = |row: &usize| self.marks.iter().any(|(_, rows)| rows.contains(row));
        let others: Vec<usize> = (0..self.points.len())
            .step_by(step)
            .filter(|row| !is_marked(row))
            .collect();
        let mut series = vec![Series::new(
            "other rows",
            others.iter().filter_map(point).collect(),
        )];
        for (name, rows) in &self.marks {
            series.push(Series::new(
                name.clone(),
                rows.iter().filter_map(point).collect(),
            ));
        }
        let axis = |place: &str, share: f64| {
            format!("{place} component, {:.1} % of the variance", 100.0 * share)
        };
        Chart {
            x: axis("first", self.explained[0]),
            y: axis("second", self.explained[1]),
            size: (560.0, 420.0),
            description: self.title(),
            ..Chart::of(Content::Points(series))
        }
    }

    pub(crate) fn title(&self) -> String {
        let marks: Vec<String> = self
            .marks
            .iter()
            .map(|(name, rows)| format!("{} {name}", rows.len()))
            .collect();
        let marks = if marks.is_empty() {
            String::new()
        } else {
            format!(": {}", marks.join(", "))
        };
        format!(
            "map of {} rows by two principal components{marks}",
            self.points.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> EmbeddingMap {
        let rows: Vec<Vec<f32>> = vec![
            vec![0.0, 0.0],
            vec![4.0, 0.0],
            vec![4.0, 1.0],
            vec![0.0, 1.0],
        ];
        let classes = (
            vec![0, 1, 1, 0],
            vec!["left".to_owned(), "right".to_owned()],
        );
        EmbeddingMap::of(&rows, classes, vec![("outliers".to_owned(), vec![3])])
    }

    #[test]
    fn a_region_gives_rows() {
        let map = map();
        assert_eq!(map.region(0.0..9.0, -9.0..9.0), [1, 2]);
        assert_eq!(map.region(0.0..9.0, 0.0..9.0), [2]);
        assert!(map.region(5.0..9.0, 0.0..9.0).is_empty());
        assert_eq!(map.around(1, 1), [2]);
        assert!(map.around(9, 1).is_empty());
        assert!((map.explained[0] - 16.0 / 17.0).abs() < 1e-9);
    }

    #[test]
    fn marks_are_drawn_above_the_other_rows() {
        let svg = map().chart().svg();
        assert!(
            svg.contains("other rows") && svg.contains("outliers"),
            "{svg}"
        );
        let marked = map().of_classes(["right", "nothing"]);
        assert_eq!(marked.marks[0], ("right".to_owned(), vec![1, 2]));
        assert!(marked.marks[1].1.is_empty());
        assert!(marked.title().contains("2 right"));
    }
}
