//! `BatchLossLogger` in a run: the mean loss of the batches of an epoch is the loss of the epoch.

use stratoscope_arguments::callbacks::BatchLossLogger;
use stratoscope_data::make_regression;
use stratoscope_models::{CompileArgs, Dense, FitArgs, MeanSquaredError, SGD, Sequential};

#[test]
fn the_loss_of_an_epoch_is_the_mean_over_its_batches() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("losses.csv");
    let data = make_regression(24, 3, 1).expect("rows");
    let model = Sequential([Dense(1).input_shape(3).seed(7)]).expect("layers");
    let args = CompileArgs::new()
        .optimizer(SGD::new(0.01))
        .loss(MeanSquaredError);
    model.compile(args).expect("it fits");

    let mut logger = BatchLossLogger::new(&path).expect("it is new");
    let args = FitArgs::new().epochs(2).batch_size(8).verbose(false);
    let history = model.fit(&data, args.callbacks(&mut logger));
    let history = history.expect("it trains");

    let text = std::fs::read_to_string(&path).expect("it was written");
    let rows: Vec<Vec<f64>> = text
        .lines()
        .map(|line| line.split(',').map(|it| it.parse().expect(line)).collect())
        .collect();
    let numbers: Vec<_> = rows.iter().map(|row| (row[0], row[1])).collect();
    let batches = |epoch: f64| [0.0, 1.0, 2.0].map(|batch| (epoch, batch));
    assert_eq!(numbers, [batches(0.0), batches(1.0)].concat());
    // Batches of 8 of 24 examples, so that they count alike.
    for (epoch, batches) in history.epochs.iter().zip(rows.chunks(3)) {
        let mean = batches.iter().map(|row| row[2]).sum::<f64>() / 3.0;
        assert!((epoch.loss - mean).abs() < 1e-6 * mean, "{mean}, {epoch:?}");
    }
}
