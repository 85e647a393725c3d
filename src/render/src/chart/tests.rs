use super::axis::{Axis, short};
use super::*;

fn series(values: &[f64]) -> Vec<Series> {
    let points = values.iter().enumerate();
    vec![Series {
        name: String::new(),
        points: points.map(|(at, value)| (at as f64, *value)).collect(),
    }]
}

/// The attributes `name="…"` of a picture as numbers.
fn numbers(svg: &str, name: &str) -> Vec<f64> {
    let attribute = format!(" {name}=\"");
    let values = svg.split(&attribute).skip(1);
    let values = values.filter_map(|rest| rest.split('"').next()?.parse().ok());
    values.collect()
}

#[test]
fn higher_values_are_higher_in_the_picture() {
    let chart = Chart::of(Content::Points(series(&[1.0, 5.0, 3.0])));
    let heights = numbers(&chart.svg(), "cy");
    assert_eq!(heights.len(), 3);
    assert!(
        heights[0] > heights[2] && heights[2] > heights[1],
        "{heights:?}"
    );
    let places = numbers(&chart.svg(), "cx");
    assert!(places[0] < places[1] && places[1] < places[2], "{places:?}");
}

#[test]
fn every_value_is_in_one_bar() {
    let values: Vec<f64> = (0..1000).map(|it| f64::from(it % 97)).collect();
    for bins in [1, 2, 7, 60, 1000] {
        let Some(Content::Bars { bars, missing: 0 }) = histogram(&values, bins) else {
            panic!("bars");
        };
        assert_eq!(bars.len(), bins);
        assert_eq!(
            bars.iter().map(|bar| bar.count).sum::<usize>(),
            values.len()
        );
        for bar in &bars {
            let is_last = bar.high == 96.0;
            let inside =
                |it: &&f64| bar.low <= **it && (**it < bar.high || is_last && **it == 96.0);
            assert_eq!(values.iter().filter(inside).count(), bar.count, "{bar:?}");
        }
    }
    assert_eq!(histogram(&[f64::NAN, f64::INFINITY], 3), None);
    let constant = histogram(&[2.0; 5], 4);
    assert!(
        matches!(constant, Some(Content::Bars { bars, .. }) if bars.iter().map(|it| it.count).sum::<usize>() == 5)
    );
}

#[test]
fn no_number_spoils_a_chart() {
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::MIN,
        f64::MAX,
        -0.0,
        f64::MIN_POSITIVE,
        1e-320,
    ];
    let lists: Vec<Vec<f64>> = vec![
        vec![],
        vec![f64::NAN; 3],
        vec![0.0],
        vec![7.0; 4],
        vec![1.0, f64::NAN, 2.0],
        vec![f64::MIN, f64::MAX],
        odd.to_vec(),
        (0..5000).map(|it| f64::from(it).sin()).collect(),
    ];
    for values in &lists {
        let mut charts = vec![
            Chart::of(Content::Lines(series(values))),
            Chart::of(Content::Points(series(values))),
            Chart::of(Content::Cells(vec![values.clone(), vec![1.0]])),
        ];
        charts.extend(histogram(values, 5).map(Chart::of));
        for chart in charts {
            let svg = chart.svg();
            assert!(
                !svg.contains("NaN") && !svg.contains("inf"),
                "{values:?}\n{svg}"
            );
            assert!(svg.len() < 800_000, "{}", svg.len());
            let plain = chart.plain();
            assert!(
                plain.lines().all(|line| line.chars().count() <= 100),
                "{plain}"
            );
        }
    }
}

#[test]
fn a_missing_value_interrupts_the_line_and_is_counted() {
    let chart = Chart::of(Content::Lines(series(&[1.0, 2.0, f64::NAN, 3.0, 4.0])));
    let svg = chart.svg();
    let path = svg
        .split("<path d=\"")
        .find(|it| it.contains("stroke-width=\"2\""));
    assert_eq!(path.map(|path| path.matches('M').count()), Some(2));
    assert!(chart.plain().contains("1 value is no number and left out"));
}

#[test]
fn words_are_escaped() {
    let mut chart = Chart::of(Content::Lines(series(&[1.0, 2.0])));
    chart.title = "a < b & \"c\" \u{1b}[31m".to_owned();
    chart.x = "<script>".to_owned();
    let svg = chart.svg();
    assert!(
        !svg.contains("<script>") && svg.contains("a &lt; b &amp; &quot;c&quot;"),
        "{svg}"
    );
    assert!(!chart.plain().contains('\u{1b}'));
}

#[test]
fn large_grids_are_averaged() {
    let rows: Vec<Vec<f64>> = (0..300).map(|row| vec![f64::from(row); 200]).collect();
    let cells = svg::averaged(&rows);
    assert!(cells.len() <= svg::MOST_CELLS && cells[0].len() <= svg::MOST_CELLS);
    assert_eq!(cells[0][0], 2.0, "the mean of rows 0 to 4");
    let text = Chart::of(Content::Cells(rows)).plain();
    assert!(
        text.contains("300 × 200, from 2 (' ') to 297 ('█')"),
        "{text}"
    );
}

#[test]
fn the_numbers_of_an_axis_are_round_and_different() {
    for (low, high) in [
        (0.0, 5e-5),
        (-3.0, 12.5),
        (0.675, 0.681),
        (0.0, 3e7),
        (1.0, 90_000.0),
    ] {
        let axis = Axis::of([low, high].into_iter(), 0.05);
        let mut texts: Vec<String> = axis.ticks().iter().map(|tick| axis.number(*tick)).collect();
        assert!((3..=12).contains(&texts.len()), "{texts:?}");
        texts.dedup();
        assert_eq!(texts.len(), axis.ticks().len(), "{texts:?}");
    }
    let texts = [0.5, 1234.567, 1e-7, 123_456_789.0, -0.25, 100.0].map(short);
    assert_eq!(texts, ["0.5", "1235", "1e-7", "1.235e8", "-0.25", "100"]);
}
