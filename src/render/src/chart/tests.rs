use super::axis::{Axis, short};
use super::*;

fn series(values: &[f64]) -> Vec<Series> {
    let points = values.iter().enumerate();
    let points = points.map(|(at, value)| (at as f64, *value));
    vec![Series::new("", points.collect())]
}

/// The places of the dots of a scatter plot.
fn dots(svg: &str) -> Vec<(f64, f64)> {
    let dots = svg.split('M').filter_map(|part| {
        let (x, y) = part.split_once("h0")?.0.split_once(' ')?;
        Some((x.parse().ok()?, y.parse().ok()?))
    });
    dots.collect()
}

#[test]
fn higher_values_are_higher_in_the_picture() {
    let chart = Chart::of(Content::Points(series(&[1.0, 5.0, 3.0])));
    let [first, second, third] = dots(&chart.svg())[..] else {
        panic!("three dots: {}", chart.svg());
    };
    assert!(first.1 > third.1 && third.1 > second.1);
    assert!(first.0 < second.0 && second.0 < third.0);
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
    assert_eq!(svg.matches("<polyline").count(), 2);
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
    let cells = cells::averaged(&rows);
    assert!(cells.len() <= cells::MAX_CELLS && cells[0].len() <= cells::MAX_CELLS);
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
        let mut texts: Vec<String> = axis.ticks.iter().map(|tick| axis.number(*tick)).collect();
        assert!((3..=12).contains(&texts.len()), "{texts:?}");
        texts.dedup();
        assert_eq!(texts.len(), axis.ticks.len(), "{texts:?}");
    }
    let texts = [0.5, 1234.567, 1e-7, 123_456_789.0, -0.25, 100.0].map(short);
    assert_eq!(texts, ["0.5", "1235", "1e-7", "1.235e8", "-0.25", "100"]);
}

#[test]
fn a_legend_names_series_and_markers_in_rows_that_fit() {
    let mut all = series(&[1.0, 2.0, 3.0]);
    all.extend(series(&[3.0, 2.0, 1.0]));
    all[0].name = "training".to_owned();
    all[1].name = "validation".to_owned();
    let marker = |at: f64, kind| Marker { at, kind };
    let chart = Chart {
        title: "loss".to_owned(),
        markers: vec![
            marker(0.5, MarkerKind::Change),
            marker(1.5, MarkerKind::Change),
            marker(1.0, MarkerKind::Best),
            marker(90.0, MarkerKind::Change),
        ],
        size: (300.0, 200.0),
        ..Chart::of(Content::Lines(all))
    };
    let svg = chart.svg();
    for name in ["training", "validation", "change", "best"] {
        assert_eq!(
            svg.matches(&format!(">{name}</text>")).count(),
            1,
            "{name}: {svg}"
        );
    }
    // Three markers are on the axis, and the legend has a dashed line of each kind.
    assert_eq!(svg.matches("stroke-dasharray").count(), 3 + 2);
    let row = |name: &str| {
        let before = svg.split(&format!(">{name}</text>")).next()?;
        before.rsplit(" y=\"").next()?.split('"').next()
    };
    assert_ne!(
        row("training"),
        row("best"),
        "300 pixels hold no row of four"
    );
    let expected = "loss: 2 lines of 6 points; training from 1 to 3; validation from 3 to 1; change at 0.5; \
                    change at 1.5; best at 1; change at 90";
    assert_eq!(chart.summary(), expected);
    assert!(
        chart
            .plain()
            .ends_with("change at 0.5, change at 1.5, best at 1, change at 90")
    );
}

#[test]
fn marks_are_drawn_where_points_are_few() {
    let mut all = series(&[1.0, 2.0, 3.0]);
    assert!(
        !Chart::of(Content::Lines(all.clone()))
            .svg()
            .contains("<circle")
    );
    all[0].has_marks = true;
    assert_eq!(
        Chart::of(Content::Lines(all))
            .svg()
            .matches("<circle")
            .count(),
        3
    );
    // A line of one point cannot be seen.
    let svg = Chart::of(Content::Lines(series(&[1.0, f64::NAN, 3.0, 4.0]))).svg();
    assert_eq!(
        (
            svg.matches("<circle").count(),
            svg.matches("<polyline").count()
        ),
        (1, 1)
    );
}

#[test]
fn a_figure_has_an_image_for_each_chart_and_one_picture() {
    let chart = |title: &str| Chart {
        title: title.to_owned(),
        size: (400.0, 270.0),
        ..Chart::of(Content::Lines(series(&[1.0, 2.0])))
    };
    let figure = Figure(vec![chart("loss"), chart("<b>"), chart("rate")]);
    let html = figure.html();
    assert!(
        html.starts_with("<div") && html.ends_with("</div>"),
        "{html}"
    );
    assert_eq!(html.matches("<img").count(), 3);
    assert!(
        html.contains("alt=\"loss: 1 line of 2 points; from 1 to 2\""),
        "{html}"
    );
    assert!(!html.contains("<svg") && !html.contains("<b>"), "{html}");
    let svg = figure.svg("a run");
    assert!(svg.contains("width=\"800\" height=\"540\""), "{svg}");
    assert!(svg.contains("translate(0 270)") && svg.matches("<svg").count() == 1);
    assert!(svg.contains("<title>a run. loss: 1 line"), "{svg}");
    let empty = Figure::default();
    assert!(empty.svg("a run").is_empty() && empty.html().is_empty());
}

/// The grounds of JupyterLab, of nbconvert and of VS Code. WCAG asks for 3 to 1 of graphics; no color has more than 4.35
/// to 1 on white and on JupyterLab's dark ground.
#[test]
fn every_color_is_seen_on_light_and_on_dark_ground() {
    use super::elements::{ALARM, INK, SERIES};
    use super::grid::contrast;
    for ground in ["#ffffff", "#111111", "#1e1e1e"] {
        for color in [INK, SERIES[0], SERIES[1]] {
            assert!(contrast(color, ground) > 3.8, "{color} {ground}");
        }
        for color in SERIES.into_iter().chain([ALARM]) {
            assert!(
                contrast(color, ground) > 3.0,
                "{color} {ground}: {}",
                contrast(color, ground)
            );
        }
    }
    // A chart has no ground of its own.
    let svg = Chart::of(Content::Lines(series(&[2.0, 1.0]))).svg();
    assert!(
        !svg.to_lowercase().contains("#ffffff") && !svg.contains("<rect"),
        "{svg}"
    );
}

#[test]
fn texts_are_large_enough() {
    let chart = Chart {
        title: "loss".to_owned(),
        x: "step".to_owned(),
        ..Chart::of(Content::Lines(series(&[2.0, 1.0])))
    };
    let svg = chart.svg();
    let sizes = svg.split("font-size=\"").skip(1);
    let sizes = sizes.filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
    let sizes: Vec<f64> = sizes.collect();
    assert!(
        !sizes.is_empty() && sizes.iter().all(|size| *size >= 12.5),
        "{sizes:?}"
    );
    // A browser measures each text by its own attribute.
    assert_eq!(sizes.len(), svg.matches("<text").count());
}

#[test]
fn the_numbers_of_a_grid_can_be_read_on_every_cell() {
    use super::elements::SERIES;
    use super::grid::{contrast, ink_on, on_white};
    for color in &SERIES[..2] {
        for step in 0..=20 {
            let cell = on_white(color, f64::from(step) / 20.0);
            let ink = ink_on(&cell);
            assert!(contrast(ink, &cell) > 4.5, "{ink} on {cell}");
        }
    }
    let names = ["a".to_owned(), "b".to_owned()];
    let grid = |has_texts| {
        let grid = Grid {
            rows: &names[..1],
            columns: &names,
            cell: &|_, column| (column as f64, "n".to_owned()),
            has_texts,
            title: "t",
        };
        grid.svg()
    };
    let svg = grid(true);
    let ground = svg.find("fill=\"#ffffff\"").expect("a ground");
    assert!(ground < svg.find("<rect").expect("cells"), "{svg}");
    // Dark on the empty cell, and on the full one what is read better.
    assert!(svg.contains("style=\"fill:#000000\">n"), "{svg}");
    assert!(!grid(false).contains("#ffffff"));
}

#[test]
fn what_is_not_finite_is_not_drawn() {
    let names = ["a<b>".to_owned()];
    let grid = Grid {
        rows: &names,
        columns: &names,
        cell: &|_, _| (f64::NAN, "n".to_owned()),
        has_texts: true,
        title: "t",
    };
    let svg = grid.svg();
    assert!(
        !svg.contains("NaN") && svg.contains("<title>a&lt;b&gt; → a&lt;b&gt;: n</title>"),
        "{svg}"
    );
    for values in [
        &[][..],
        &[f64::NAN],
        &[1.0, f64::INFINITY],
        &[f64::NAN, 3.0],
        &[2.0, 2.0],
    ] {
        for is_last_planned in [false, true] {
            let sparkline = Sparkline {
                series: &series(values)[0],
                size: (160.0, 28.0),
                color: 0,
                is_last_planned,
                title: "t",
            };
            let svg = sparkline.svg();
            assert!(
                !svg.contains("NaN") && !svg.contains("inf"),
                "{values:?}: {svg}"
            );
        }
    }
    let svg = bars(&[0, 3, 1_000_000], 1, "w<1>: bars");
    assert!(
        svg.contains("<title>w&lt;1&gt;: bars") && svg.matches("h3v").count() == 2,
        "{svg}"
    );
}

#[test]
fn a_planned_point_is_beside_the_line() {
    let drawn = |values: &[f64]| {
        let sparkline = Sparkline {
            series: &series(values)[0],
            size: (300.0, 84.0),
            color: 1,
            is_last_planned: true,
            title: "losses",
        };
        sparkline.svg()
    };
    let places = |svg: &str| {
        svg.split("points=\"").nth(1).map_or(0, |it| {
            it.split('"').next().unwrap_or("").split(' ').count()
        })
    };
    let svg = drawn(&[1.0, 2.0, 9.0]);
    assert!(
        places(&svg) == 2 && svg.contains("<circle") && !svg.contains("l8 8"),
        "{svg}"
    );
    let svg = drawn(&[1.0, 2.0, f64::NAN]);
    assert!(
        places(&svg) == 2 && svg.contains("l8 8") && !svg.contains("<circle"),
        "{svg}"
    );
}
