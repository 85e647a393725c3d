use super::*;

fn axes() -> Vec<Axis> {
    vec![
        Axis::new("rate", &[1e-5, 3e-5, 5e-5]),
        Axis::new("batch", &[8, 16]),
    ]
}

/// The result tells which combination it was.
fn scored(chosen: &[usize]) -> Result<f64> {
    Ok((10 * chosen[0] + chosen[1]) as f64)
}

#[test]
fn a_grid_has_every_combination_once() {
    let found = sweep(&Search::grid(), axes(), scored).unwrap();
    let scores: Vec<f64> = (found.trials.iter())
        .filter_map(|trial| trial.result.as_ref().ok()?.get("score"))
        .collect();
    assert_eq!(scores, [0.0, 1.0, 10.0, 11.0, 20.0, 21.0]);
    let best = found.best("score").unwrap();
    assert_eq!(found.settings(best), "rate = 5e-5, batch = 16");
    let plain = found.to_plain();
    assert!(
        plain.starts_with("6 trials, the best by score: rate = 5e-5, batch = 16\n"),
        "{plain}"
    );
    assert!(
        plain.lines().nth(2).unwrap().starts_with("6 "),
        "the best is first\n{plain}"
    );
}

#[test]
fn of_losses_the_smallest_is_the_best() {
    for name in ["loss", "val_loss", "rmse", "calibration_error"] {
        let found = sweep(&Search::grid(), axes(), |chosen| {
            Ok([(name, (10 * chosen[0] + chosen[1]) as f64)])
        });
        assert_eq!(found.unwrap().best(name).unwrap().number, 1, "{name}");
    }
}

/// What a result says of itself holds, also where the folder remembers it; a file of an earlier version says nothing.
#[test]
fn a_metric_that_is_better_when_it_is_lower_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Search::grid().folder(folder.path());
    let run = |search: &Search, is_smaller_better: bool| {
        sweep(search, axes(), |chosen| {
            let value = (10 * chosen[0] + chosen[1]) as f64;
            let scores = Scores::from(vec![("distance".to_owned(), Some(value))]);
            Ok(scores.with_directions(vec![("distance".to_owned(), is_smaller_better)]))
        })
        .unwrap()
    };
    let number = |found: &Sweep| found.best("distance").unwrap().number;
    assert_eq!(number(&run(&Search::grid(), false)), 6);
    let first = run(&kept, true);
    assert_eq!(number(&first), 1);
    let second = run(&kept, true);
    assert!(second.trials.iter().all(|trial| trial.is_remembered));
    assert_eq!(number(&second), 1);
    let shown = |found: &Sweep| found.to_plain().lines().nth(2).unwrap().to_owned();
    assert!(shown(&second).starts_with("1 "), "{second:?}");
    for trial in ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"] {
        let path = folder.path().join(format!("trial-{trial}.json"));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut file: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(file["scores"][0][0] == "distance", "{text}");
        let known = file.as_object_mut().unwrap();
        known.remove("is_smaller_better").expect("it is written");
        std::fs::write(&path, file.to_string()).unwrap();
    }
    let earlier = run(&kept, true);
    assert!(earlier.trials.iter().all(|trial| trial.is_remembered));
    assert_eq!(number(&earlier), 6);
}

#[test]
fn a_random_search_draws_different_combinations_and_the_same_ones_again() {
    let draw = |seed| Search::random(4, seed).combinations(&axes()).unwrap();
    let mut drawn = draw(7);
    assert_eq!(drawn, draw(7));
    assert!((0..20).any(|seed| draw(seed) != drawn));
    drawn.sort();
    drawn.dedup();
    assert_eq!(drawn.len(), 4);
    assert_eq!(
        Search::random(99, 0).combinations(&axes()).unwrap().len(),
        6
    );
}

#[test]
fn a_trial_that_fails_is_a_row_and_the_others_are_made() {
    let fails = |chosen: &[usize]| match chosen[1] {
        0 => Err(bad_value(
            "fit",
            "batch_size",
            "0".to_owned(),
            "<more>".to_owned(),
        )),
        _ => scored(chosen),
    };
    let found = sweep(&Search::grid(), axes(), fails).unwrap();
    assert_eq!(
        found
            .trials
            .iter()
            .filter(|trial| trial.result.is_err())
            .count(),
        3
    );
    let (plain, html) = (found.to_plain(), found.to_html());
    assert!(
        plain.contains("SC0103") && plain.contains("3 trials ended with an error"),
        "{plain}"
    );
    assert!(
        html.contains("&lt;more&gt;") || !html.contains("<more>"),
        "{html}"
    );
    let all = sweep(&Search::grid(), axes(), |_| {
        let problem: Result<f64> = Err(bad_value("fit", "epochs", "0".to_owned(), "1".to_owned()));
        problem
    });
    assert_eq!(all.unwrap_err().code, "SC0103");
}

#[test]
fn a_folder_keeps_what_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sweeps").join("rate");
    let mut made = 0;
    let mut run = |search: &Search| {
        sweep(search, axes(), |chosen| {
            made += 1;
            scored(chosen)
        })
    };
    let kept = Search::grid().folder(&path);
    let first = run(&Search::random(4, 1).folder(&path)).unwrap();
    let second = run(&kept).unwrap();
    assert_eq!((first.trials.len(), second.trials.len()), (4, 6));
    assert_eq!(
        second
            .trials
            .iter()
            .filter(|trial| trial.is_remembered)
            .count(),
        4
    );
    // A damaged file is made again.
    std::fs::write(path.join("trial-1-1.json"), "{\"settings\": [").unwrap();
    let third = run(&kept).unwrap();
    assert_eq!(made, 4 + 2 + 1);
    assert!(third.to_plain().contains("5 trials read from the folder"));
    assert_eq!(
        third.best("score"),
        second
            .best("score")
            .map(|best| Trial {
                is_remembered: true,
                ..best.clone()
            })
            .as_ref()
    );
}

#[test]
fn results_that_cannot_be_written_are_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sweep");
    let found = sweep(&Search::grid().folder(&path), axes(), |chosen| {
        if chosen[0] == 1 && path.exists() {
            std::fs::remove_dir_all(&path).unwrap();
        }
        scored(chosen)
    });
    let found = found.unwrap();
    assert_eq!(found.trials.len(), 6);
    let plain = found.to_plain();
    assert!(
        plain.contains("not every result is in the folder: "),
        "{plain}"
    );
}

#[test]
fn the_folder_of_another_sweep_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Search::grid().folder(folder.path());
    sweep(&kept, axes(), scored).unwrap();
    let other = vec![Axis::new("rate", &[1e-5]), Axis::new("batch", &[8])];
    let problem = sweep(&kept, other, scored).unwrap_err();
    assert!(
        problem
            .message
            .contains("folder of a sweep over `rate` and `batch`"),
        "{}",
        problem.message
    );
    std::fs::write(folder.path().join("sweep.json"), "[]").unwrap();
    assert_eq!(sweep(&kept, axes(), scored).unwrap_err().code, "SC0103");
    let file = folder.path().join("sweep.json");
    assert_eq!(
        sweep(&Search::grid().folder(file), axes(), scored)
            .unwrap_err()
            .code,
        "SC0103"
    );
}

#[test]
fn what_cannot_be_searched_is_an_error() {
    let none = vec![Axis::new::<f64>("rate", &[])];
    let many = vec![
        Axis::new("a", &vec![0; 1000]),
        Axis::new("b", &vec![0; 1000]),
    ];
    for (search, axes) in [
        (Search::grid(), none),
        (Search::random(0, 0), axes()),
        (Search::grid(), many),
    ] {
        assert_eq!(
            sweep(&search, axes, |_| Ok(0.0)).unwrap_err().code,
            "SC0103"
        );
    }
}

#[test]
fn the_picture_has_a_line_for_each_result() {
    let found = sweep(&Search::grid(), axes(), scored).unwrap();
    let (svg, words) = picture::parallel_coordinates(&found).unwrap();
    assert_eq!(svg.matches("<polyline").count(), 6);
    assert!(
        words.starts_with("parallel coordinates of 6 trials"),
        "{words}"
    );
    assert!(
        svg.contains(">rate<") && svg.contains(">21.0000<") && svg.contains(">3e-5<"),
        "{svg}"
    );
    let undefined = sweep(&Search::grid(), axes(), |_| Ok(f64::NAN)).unwrap();
    assert_eq!(picture::parallel_coordinates(&undefined), None);
    assert!(undefined.best("score").is_none());
}
