//! Habits on modules of Python: `np.array([1.0])`, `plt.show()`, `tf.random.set_seed(42)`.

use super::Habit;

/// The names that a module is known by here, and its habits: those of the functions that follow its name.
pub(super) struct Module {
    /// As it is imported, and as it is usually called.
    pub names: &'static [&'static str],
    pub habits: &'static [Habit],
    /// Of all other names.
    pub otherwise: &'static str,
}

pub(super) const MODULES: &[Module] = &[
    Module {
        names: &["np", "numpy", "jnp"],
        habits: &[
            Habit(
                "array(_) | asarray(_) | float32(_)",
                "vec!{0}",
                "a list of numbers is a `Vec`, a matrix a `Vec` of rows or a `Tensor`",
            ),
            Habit(
                "zeros((..))",
                "vec![vec![0.0; …]; …]",
                "a matrix is a list of rows, or `Tensor::zeros([2, 3], &device)`",
            ),
            Habit(
                "zeros(_)",
                "vec![0.0; {0}]",
                "a list of equal numbers; a matrix is a list of rows",
            ),
            Habit(
                "ones(_)",
                "vec![1.0; {0}]",
                "a list of equal numbers; a matrix is a list of rows",
            ),
            Habit(
                "arange(_)",
                "(0..{0}).collect::<Vec<_>>()",
                "a range is collected to a list",
            ),
            Habit(
                "arange(_, _)",
                "({0}..{1}).collect::<Vec<_>>()",
                "a range is collected to a list",
            ),
            Habit(
                "linspace(_, _, _)",
                "(0..{2}).map(|i| {0} + ({1} - {0}) * i as f64 / ({2} - 1) as f64).collect::<Vec<_>>()",
                "a range is mapped and collected",
            ),
            Habit(
                "mean(_)",
                "{0}.iter().sum::<{elements}>() as f64 / {0}.len() as f64",
                "the sum divided by the number",
            ),
            Habit(
                "sum(_)",
                "{0}.iter().sum::<{elements}>()",
                "an iterator adds up its elements",
            ),
            Habit(
                "max(_)",
                "{0}.iter().copied().reduce({elements}::max)",
                "`reduce` takes the larger of two",
            ),
            Habit(
                "min(_)",
                "{0}.iter().copied().reduce({elements}::min)",
                "`reduce` takes the smaller of two",
            ),
            Habit(
                "argmax(_) | argmax(..)",
                "{0}.labels()",
                "predictions have `labels()`; of a list it is `iter().enumerate().max_by(…)`",
            ),
            Habit("pi", "std::f64::consts::PI", "constants have their module"),
            Habit("nan", "f64::NAN", "the value of the type"),
            Habit("inf", "f64::INFINITY", "the value of the type"),
            Habit(
                "seed(..)",
                "~fit!(…, seed = 42)?",
                "there is no global seed: `fit!` takes `seed`, `make_classification` has one",
            ),
            Habit(
                "rand(..) | randn(..) | randint(..) | random(..) | normal(..)",
                "~make_classification(64, 4, 3, 0)?",
                "`make_classification` and `make_regression` make data to try; `%dep rand = \"0.9\"` adds random numbers",
            ),
            Habit(
                "save(..) | load(..) | loadtxt(..) | genfromtxt(..)",
                "Dataset::csv(\"….csv\")?",
                "data sets are read from CSV, JSON Lines, Parquet and Arrow files",
            ),
        ],
        otherwise: "there is no NumPy here, and nothing to import: a list of numbers is a `Vec`, its methods are those of iterators, and a `Tensor` is burn's",
    },
    Module {
        names: &["pd", "pandas"],
        habits: &[
            Habit(
                "read_csv(_) | read_csv(..)",
                "Dataset::csv({0})?",
                "a file is read as a data set; `csv_with` names its columns",
            ),
            Habit(
                "read_table(_)",
                "Dataset::tsv({0})?",
                "a file is read as a data set",
            ),
            Habit(
                "read_json(_) | read_json(..)",
                "Dataset::jsonl({0})?",
                "a file is read as a data set, an object a line",
            ),
            Habit(
                "read_parquet(_)",
                "Dataset::parquet({0})?",
                "a file is read as a data set",
            ),
            Habit(
                "read_feather(_) | read_ipc(_)",
                "Dataset::arrow({0})?",
                "a file is read as a data set",
            ),
            Habit(
                "DataFrame(..) | Series(..)",
                "~Dataset::from_rows(texts, labels)?",
                "`from_rows` takes texts and labels, `from_arrays` rows of numbers and labels",
            ),
            Habit(
                "concat(..)",
                "….concatenate(&…)?",
                "data sets are put together by `concatenate`",
            ),
        ],
        otherwise: "there are no data frames here: `Dataset::csv(\"file.csv\")?` reads a table with labels, and `head`, `filter`, `class_counts` look at it",
    },
    Module {
        names: &["plt", "matplotlib", "sns", "seaborn", "px"],
        habits: &[
            Habit(
                "plot(_)",
                "plot(&{0})?",
                "the chart is shown as the last line of a cell, or by `display`",
            ),
            Habit(
                "plot(_, _)",
                "plot_xy(&{0}, &{1})?",
                "the chart is shown as the last line of a cell, or by `display`",
            ),
            Habit(
                "scatter(_, _) | scatterplot(_, _)",
                "scatter(&{0}, &{1})?",
                "the chart is shown as the last line of a cell, or by `display`",
            ),
            Habit(
                "hist(_) | hist(_, _) | histplot(_)",
                "histogram(&{0})?",
                "the chart is shown as the last line of a cell, or by `display`",
            ),
            Habit(
                "imshow(_) | heatmap(_) | matshow(_)",
                "heatmap(&{0})?",
                "the chart is shown as the last line of a cell, or by `display`",
            ),
        ],
        otherwise: "leave the line out: a chart of `plot`, `scatter`, `histogram` or `heatmap` is shown as the last line of a cell, and has methods for its title and axes",
    },
    Module {
        names: &[
            "tf",
            "tensorflow",
            "keras",
            "layers",
            "tfa",
            "torch",
            "nn",
            "F",
            "optim",
            "jax",
        ],
        habits: &[
            Habit(
                "set_seed(..) | manual_seed(..) | set_random_seed(..) | seed(..)",
                "~fit!(…, seed = 42)?",
                "there is no global seed: `fit!` takes `seed`, and a run is repeated bit for bit",
            ),
            Habit(
                "list_physical_devices(..) | is_available() | device_count() | list_logical_devices(..)",
                "devices()",
                "the devices of this machine",
            ),
            Habit(
                "constant(_) | tensor(_) | convert_to_tensor(_)",
                "Tensor::<1>::from_floats({0}, &Device::default())",
                "the number of dimensions is part of the type: `Tensor<2>` for rows",
            ),
            Habit(
                "zeros(_) | ones(_)",
                "Tensor::<2>::{name}({0}, &Device::default())",
                "the number of dimensions is part of the type, and the lengths are a list: `[2, 3]`",
            ),
            Habit(
                "from_tensor_slices(..) | Dataset(..)",
                "~Dataset::from_arrays(x, y)?",
                "`from_arrays` takes rows of numbers and their labels",
            ),
            Habit(
                "load_model(..) | load(..) | save(..)",
                "~Sequential::load(\"folder\")?",
                "`save` writes a model as a folder, and `Sequential::load` or `BertFor…::from_pretrained` reads it",
            ),
            Habit(
                "no_grad() | enable_grad() | GradientTape()",
                "~model.gradients(&data)?",
                "`predict` and `evaluate!` compute no gradients; `gradients` computes those of a step by hand",
            ),
            Habit(
                "to_categorical(..) | one_hot(..)",
                "~loss = SparseCategoricalCrossentropy { from_logits: true }",
                "labels stay numbers: the sparse loss takes them",
            ),
            Habit(
                "device(..)",
                "%device cpu:0",
                "`cpu(0)`, `cuda(0)` and `wgpu(0)` are devices; `%device` chooses the default one",
            ),
            Habit(
                "DataLoader(..)",
                "~fit!(model, data, batch_size = 32)?",
                "`fit!` makes the batches",
            ),
            Habit(
                "Linear(_, _)",
                "Dense({1})",
                "a layer takes the number of its outputs; the first has `.input_shape(columns)`",
            ),
            Habit(
                "ReLU() | Sigmoid() | GELU() | Tanh()",
                "~Dense(8).activation(\"relu\")",
                "a layer has its activation",
            ),
            Habit(
                "CrossEntropyLoss()",
                "~SparseCategoricalCrossentropy { from_logits: true }",
                "the loss of classes from logits",
            ),
            Habit("MSELoss()", "MeanSquaredError", "the loss of numbers"),
            Habit("function(..)", "", "leave it out: everything is compiled"),
        ],
        otherwise: "names have no module here, and nothing is imported: `Sequential`, `Dense`, `Adam`, `compile!` and `fit!` are there from the start",
    },
    Module {
        names: &["math", "cmath"],
        habits: &[
            Habit("pi", "std::f64::consts::PI", "constants have their module"),
            Habit("e", "std::f64::consts::E", "constants have their module"),
            Habit("inf", "f64::INFINITY", "the value of the type"),
            Habit("nan", "f64::NAN", "the value of the type"),
        ],
        otherwise: "the functions of `math` are methods of floats: `2.0_f64.sqrt()`, `x.exp()`, `x.ln()`",
    },
    Module {
        names: &["random"],
        habits: &[Habit(
            "seed(..)",
            "~fit!(…, seed = 42)?",
            "there is no global seed: `fit!` takes `seed`, and `shuffled(seed)` orders a data set",
        )],
        otherwise: "the standard library has no random numbers: `%dep rand = \"0.9\"` adds a crate that has; `data.shuffled(0)` orders a data set",
    },
    Module {
        names: &["time", "datetime"],
        habits: &[
            Habit(
                "time() | perf_counter() | now() | monotonic()",
                "std::time::Instant::now()",
                "`elapsed()` of that is the time since; `%time` measures a cell",
            ),
            Habit(
                "sleep(_)",
                "sleep({0})",
                "`sleep` waits for seconds, and listens to an interrupt",
            ),
        ],
        otherwise: "`std::time::Instant::now()` is a moment, and `elapsed()` the time since; `%time` measures a cell",
    },
    Module {
        names: &["os", "pathlib", "shutil", "glob"],
        habits: &[
            Habit(
                "exists(_) | isfile(_)",
                "std::path::Path::new({0}).exists()",
                "paths have methods",
            ),
            Habit(
                "makedirs(_) | mkdir(_) | makedirs(..)",
                "std::fs::create_dir_all({0})?",
                "with the folders above it",
            ),
            Habit(
                "remove(_) | unlink(_)",
                "std::fs::remove_file({0})?",
                "files are handled by `std::fs`",
            ),
            Habit(
                "listdir(_) | glob(_)",
                "std::fs::read_dir({0})?",
                "the entries of a folder",
            ),
            Habit(
                "getcwd()",
                "std::env::current_dir()?",
                "the folder of the notebook",
            ),
            Habit(
                "join(_, _)",
                "std::path::Path::new({0}).join({1})",
                "paths have methods",
            ),
            Habit(
                "system(_) | popen(_)",
                "!…",
                "a line that begins with `!` is a command",
            ),
            Habit(
                "environ[_] | getenv(_)",
                "%env",
                "`%env NAME=value` sets a variable of the environment, `std::env::var(\"NAME\")?` reads one",
            ),
        ],
        otherwise: "files are handled by `std::fs`, paths by `std::path::Path`, and a line that begins with `!` is a command",
    },
    Module {
        names: &[
            "sys",
            "re",
            "json",
            "csv",
            "pickle",
            "collections",
            "itertools",
            "functools",
            "subprocess",
            "logging",
            "warnings",
            "gc",
            "copy",
        ],
        habits: &[],
        otherwise: "a module of Python's library: Rust's is `std`, and `%dep` adds crates from crates.io, such as `%dep serde_json = \"1\"`",
    },
    Module {
        names: &[
            "sklearn",
            "scipy",
            "datasets",
            "transformers",
            "evaluate",
            "wandb",
            "mlflow",
            "tqdm",
            "accelerate",
            "peft",
            "nltk",
            "spacy",
            "xgboost",
            "lightning",
        ],
        habits: &[
            Habit(
                "load_dataset(..)",
                "Dataset::csv(\"….csv\")?",
                "data sets are files: `csv`, `jsonl`, `parquet`, `arrow`, `Glue::sst2(\"folder\")`",
            ),
            Habit(
                "init(..) | log(..) | autolog(..)",
                "~callbacks = [CsvLogger::new(\"log.csv\")?]",
                "`CsvLogger` and `TensorBoard` write what was measured to files",
            ),
            Habit(
                "tqdm(_)",
                "track({0})",
                "`track` draws the progress of a loop",
            ),
        ],
        otherwise: "this library is Python's; models, data sets, metrics and training are there without an import: `from_pretrained`, `Dataset`, `compile!`, `fit!`",
    },
];
