//! Habits on functions, values and types that stand alone.

use super::Habit;

pub(super) const FUNCTION: &[Habit] = &[
    // Python.
    Habit(
        "print(..)",
        "{print}",
        "`println!` is a macro, with a text that has places for the values",
    ),
    Habit("len(_)", "{0}.len()", "the length is a method"),
    Habit(
        "range(_)",
        "0..{0}",
        "a range is written with two dots, its end excluded",
    ),
    Habit(
        "range(_, _)",
        "{0}..{1}",
        "a range is written with two dots, its end excluded",
    ),
    Habit(
        "range(_, _, _)",
        "({0}..{1}).step_by({2})",
        "a range is written with two dots, its end excluded",
    ),
    Habit(
        "str(_) | string(_)",
        "format!(\"{}\", {0})",
        "`format!` makes a text of values; `to_string()` makes one of a value",
    ),
    Habit("int(\"\")", "{0}.parse::<i32>()?", "a text is parsed"),
    Habit("float(\"\")", "{0}.parse::<f64>()?", "a text is parsed"),
    Habit("int(_)", "{0} as i32", "a number is converted by `as`"),
    Habit(
        "float(_) | double(_)",
        "{0} as f64",
        "a number is converted by `as`",
    ),
    Habit("bool(_)", "{0} != 0", "a number is compared"),
    Habit(
        "abs(1)",
        "i32::abs({0})",
        "the absolute value is a method of the type",
    ),
    Habit(
        "abs(1.0) | fabs(1.0)",
        "f64::abs({0})",
        "the absolute value is a method of the type",
    ),
    Habit(
        "abs(_) | fabs(_)",
        "{0}.abs()",
        "the absolute value is a method",
    ),
    Habit(
        "sum(_)",
        "{0}.iter().sum::<{elements}>()",
        "an iterator adds up its elements",
    ),
    Habit(
        "mean(_) | average(_)",
        "{0}.iter().sum::<{elements}>() as f64 / {0}.len() as f64",
        "the sum divided by the number",
    ),
    Habit(
        "max(_)",
        "{0}.iter().copied().reduce({elements}::max)",
        "`reduce` takes the larger of two; it is `None` for an empty list",
    ),
    Habit(
        "min(_)",
        "{0}.iter().copied().reduce({elements}::min)",
        "`reduce` takes the smaller of two; it is `None` for an empty list",
    ),
    Habit(
        "max(_, _)",
        "std::cmp::max({0}, {1})",
        "of two floats it is `f64::max(a, b)`",
    ),
    Habit(
        "min(_, _)",
        "std::cmp::min({0}, {1})",
        "of two floats it is `f64::min(a, b)`",
    ),
    Habit(
        "pow(_, _)",
        "f64::powf({0}, {1})",
        "powers are methods: `powi` and `powf` of floats, `pow` of integers",
    ),
    Habit(
        "round(_, _)",
        "format!(\"{:.2}\", {0})",
        "`format!` rounds for a text; `round()` rounds to an integer",
    ),
    Habit(
        "reversed(_)",
        "{0}.iter().rev()",
        "an iterator goes backward",
    ),
    Habit(
        "enumerate(_)",
        "{0}.iter().enumerate()",
        "iterators count their elements",
    ),
    Habit("zip(_, _)", "{0}.iter().zip(&{1})", "iterators are zipped"),
    Habit(
        "map(_, _)",
        "{1}.iter().map({0})",
        "iterators map their elements",
    ),
    Habit(
        "filter(_, _)",
        "{1}.iter().filter({0})",
        "iterators filter their elements",
    ),
    Habit(
        "any(_) | all(_)",
        "{0}.iter().{name}(|it| *it)",
        "iterators have this method, with a condition",
    ),
    Habit("list(_)", "{0}.to_vec()", "a list is a `Vec`"),
    Habit(
        "sorted(_)",
        "{ let mut sorted = {0}.clone(); sorted.sort_by(|a, b| a.partial_cmp(b).expect(\"a number\")); sorted }",
        "a copy is sorted",
    ),
    Habit(
        "list() | tuple() | set() | dict() | dict(..) | set(..) | defaultdict(..)",
        "std::collections::HashMap::<String, f64>::new()",
        "a list is `Vec::new()`, a set a `HashSet`, a dictionary a `HashMap`, with the types of what they hold",
    ),
    Habit(
        "open(_) | read(_)",
        "std::fs::read_to_string({0})?",
        "a text file is read as a whole",
    ),
    Habit(
        "open(_, _)",
        "std::fs::write({0}, \"…\")?",
        "a text file is written as a whole; `read_to_string` reads one",
    ),
    Habit(
        "isinstance(..) | type(_) | dir(_) | id(_) | vars(..) | globals() | locals()",
        "%vars",
        "`%vars` lists the variables with their types; each has one type for good",
    ),
    Habit(
        "exit() | quit() | exit(..)",
        "",
        "restart the kernel in the menu, or `%reset` the variables",
    ),
    Habit("chr(_)", "char::from({0})", "a byte as a character"),
    Habit("ord(_)", "{0} as u32", "a character as its number"),
    Habit("divmod(_, _)", "({0} / {1}, {0} % {1})", "both results"),
    Habit(
        "raise(..) | throw(..)",
        "panic!(\"…\")",
        "`panic!` ends the cell; `Err(…)?` returns an error",
    ),
    // Training.
    Habit(
        "load_dataset(..) | load_dataset(_)",
        "Dataset::csv(\"….csv\")?",
        "data sets are files: `csv`, `jsonl`, `parquet`, `arrow`, `Glue::sst2(\"folder\")`; `debian_sections()` is one to try",
    ),
    Habit(
        "tqdm(_)",
        "track({0})",
        "`track` draws the progress of a loop",
    ),
    Habit(
        "trange(_)",
        "track(0..{0})",
        "`track` draws the progress of a loop",
    ),
    Habit(
        "set_seed(..) | manual_seed(..) | set_random_seed(..) | seed(..) | seed_everything(..) | seed_all(..)",
        "~fit!(…, seed = {..})?",
        "there is no global seed: `fit!` takes `seed`, layers have `.seed(1)`, and a run is repeated bit for bit",
    ),
    Habit(
        "train_test_split(_, _, _)",
        "{0}.shuffled({2}).split({1})?",
        "`shuffled` takes the seed of the order, and `split` returns two data sets, the second with the last share of the examples",
    ),
    Habit(
        "train_test_split(_, _)",
        "{0}.split({1})?",
        "`split` returns two data sets, the second with the last share of the examples",
    ),
    Habit(
        "train_test_split(..) | random_split(..)",
        "~let (train, dev) = data.split(0.2)?;",
        "`split` returns two data sets, the second with the last share of the examples",
    ),
    Habit(
        "time() | now() | perf_counter()",
        "std::time::Instant::now()",
        "`start.elapsed()` is the time since then",
    ),
    Habit(
        "classification_report(_, _) | precision_score(_, _) | recall_score(_, _) | precision_recall_fscore_support(_, _)",
        "{predictions}.assess(&{data})?.classes()",
        "an assessment compares predictions with their data: `classes()` has precision, recall and F1 of each class",
    ),
    Habit(
        "accuracy_score(..) | f1_score(..) | classification_report(..) | roc_auc_score(..) | precision_score(..) | mean_squared_error(..)",
        "~evaluate!(model, data)?",
        "`evaluate!` computes the metrics of `compile!`, and `predictions.assess(&data)?` more, with intervals",
    ),
    Habit(
        "confusion_matrix(_, _)",
        "{predictions}.confusion_matrix(&{data})?",
        "predictions compare themselves with the data",
    ),
    Habit(
        "to_categorical(..) | one_hot(..) | get_dummies(..)",
        "~loss = SparseCategoricalCrossentropy { from_logits: true }",
        "labels stay numbers: the sparse loss takes them",
    ),
    Habit(
        "summary(_) | count_params(_)",
        "{0}.summary()",
        "the summary is a method of the model",
    ),
    Habit(
        "plot_model(_) | plot_model(..)",
        "{0}.summary()",
        "the summary shows the layers",
    ),
    Habit(
        "plot_history(_) | plot_loss(_)",
        "{0}.plot()",
        "a history draws itself",
    ),
    Habit(
        "sigmoid(1) | sigmoid(1.0)",
        "1.0 / (1.0 + f64::exp(-{0}))",
        "of a tensor it is `stratoscope::burn::tensor::activation::sigmoid(tensor)`",
    ),
    Habit(
        "relu(1.0)",
        "f64::max({0}, 0.0)",
        "of a tensor it is `stratoscope::burn::tensor::activation::relu(tensor)`",
    ),
    Habit(
        "sigmoid(_) | relu(_) | gelu(_)",
        "~stratoscope::burn::tensor::activation::{name}({0})",
        "activations take a tensor; a layer names its own: `Dense(8).activation(\"relu\")`",
    ),
    Habit(
        "softmax(_) | softmax(..)",
        "~stratoscope::burn::tensor::activation::softmax({0}, 1)",
        "activations take a tensor and the dimension; `predict` returns probabilities already",
    ),
    Habit(
        "evaluate(..) | fit(..) | compile(..) | start(..)",
        "{name}!({..})?",
        "it is a macro, which is called with a `!`",
    ),
    Habit(
        "load_model(..) | save_model(..) | load_checkpoint(..) | load(..)",
        "~Sequential::load(\"folder\")?",
        "`save` writes a model as a folder, and `Sequential::load` or `BertFor…::from_pretrained` reads it",
    ),
    Habit(
        "is_available() | device_count() | list_physical_devices(..)",
        "devices()",
        "the devices of this machine",
    ),
    Habit(
        "device(\"cuda\") | device(\"cuda:0\") | device(\"gpu\")",
        "%device cuda:0",
        "`cpu(0)`, `cuda(0)` and `wgpu(0)` are devices; `%device` chooses the default one",
    ),
    Habit(
        "device(..)",
        "%device cpu:0",
        "`cpu(0)`, `cuda(0)` and `wgpu(0)` are devices; `%device` chooses the default one",
    ),
    Habit(
        "Input(_) | InputLayer(_) | Input(..) | InputLayer(..)",
        "~Dense(8).input_shape({0})",
        "the first layer has `.input_shape(columns)`; there is no layer for the input",
    ),
    Habit(
        "Activation(_)",
        "~Dense(8).activation({0})",
        "a layer has its activation",
    ),
    Habit(
        "Sequential() | Sequential(..)",
        "~Sequential([Dense(8).activation(\"relu\").input_shape(4), Dense(3)])?",
        "`Sequential` takes all its layers at once, as a list",
    ),
    Habit(
        "Dense(_, \"relu\") | Dense(_, _)",
        "Dense({0}).activation({1})",
        "settings of a layer are methods",
    ),
    Habit(
        "Conv1D(..) | Conv2D(..) | LSTM(..) | GRU(..) | MaxPooling2D(..) | BatchNormalization(..) | LayerNormalization(..) | Bidirectional(..) \
           | Lambda(..) | Concatenate(..) | SimpleRNN(..) | MultiHeadAttention(..) | MaxPooling1D(..) | Reshape(..) | Linear(..)",
        "Model::of(network, Outputs::new(…))?",
        "the layers of `Sequential` are Dense, Dropout, Embedding, Flatten and GlobalAveragePooling1D; others are written as a module of burn",
    ),
    Habit(
        "WandbCallback(..)",
        "~WandbLogger::new(\"wandb\", \"project\")?",
        "`WandbLogger` writes an offline run, which `wandb sync` uploads",
    ),
    Habit(
        "MlflowCallback(..)",
        "~MlflowLogger::new(\"mlruns\", \"project\")?",
        "`MlflowLogger` writes a run that `mlflow ui` shows",
    ),
    Habit(
        "CSVLogger(..)",
        "~CsvLogger::new(\"log.csv\")?",
        "`CsvLogger` and `TensorBoard` write what was measured to files",
    ),
    Habit(
        "ModelCheckpoint(..)",
        "~fit!(…, checkpoint = \"folder\")?",
        "checkpoints are an argument of `fit!`, not a callback",
    ),
    Habit(
        "LearningRateScheduler(..) | ReduceLROnPlateau(..)",
        "~Adam::new(CosineDecay::new(0.01, 100))",
        "no callback changes the rate: a schedule is the optimizer's rate, and in a run of `start!` `run.set_learning_rate(scale(0.5))?` \
           changes it between two steps",
    ),
    Habit(
        "EarlyStopping(_)",
        "EarlyStopping::new().patience({0})",
        "settings of a callback are methods",
    ),
    Habit(
        "EarlyStopping() | EarlyStopping(..)",
        "EarlyStopping::new()",
        "a callback is created by `new`, and its settings are methods",
    ),
    Habit(
        "MirroredStrategy(_)",
        "MirroredStrategy::logical({0})?",
        "a strategy is created by one of its functions, which finds the devices and can fail",
    ),
    Habit(
        "pipeline(..) | Trainer(..) | TrainingArguments(..) | DataLoader(..) | DataCollatorWithPadding(..)",
        "~fit!(model, data, epochs = 3)?",
        "`compile!` has the settings, `fit!` trains and makes the batches, `predict` takes texts",
    ),
    Habit(
        "DataFrame(..) | Series(..)",
        "~Dataset::from_rows(texts, labels)?",
        "`from_rows` takes texts and labels, `from_arrays` rows of numbers and labels; `Table` shows a table",
    ),
    Habit(
        "area_under_curve(..) | cross_val_score(..) | GridSearchCV(..)",
        "~sweep!(rate = [1e-3, 1e-4] => { … })?",
        "`sweep!` tries settings, `over_seeds` several seeds",
    ),
    Habit("array(_)", "vec!{0}", "a list of numbers is a `Vec`"),
    Habit("zeros(_)", "vec![0.0; {0}]", "a list of equal numbers"),
    Habit("ones(_)", "vec![1.0; {0}]", "a list of equal numbers"),
];

pub(super) const VALUE: &[Habit] = &[
    Habit("True", "true", "`true` and `false` are written small"),
    Habit("False", "false", "`true` and `false` are written small"),
    Habit(
        "null | nil | NULL | undefined | NoneType",
        "~None",
        "there is no null: a value that may be missing is an `Option`, `Some(value)` or `None`",
    ),
    Habit("NaN", "f64::NAN", "the value of the type"),
    Habit(
        "relu | tanh | sigmoid | softmax | linear",
        "\"{name}\"",
        "activations are named by a text",
    ),
    Habit("inf | Infinity", "f64::INFINITY", "the value of the type"),
    Habit(
        "pi | PI",
        "std::f64::consts::PI",
        "constants have their module",
    ),
    Habit("print", "println!(…)", "`println!` is a macro"),
    Habit(
        "trainer",
        "~fit!(model, data, epochs = 3)?",
        "there is no trainer: `compile!` has the settings, and `fit!` trains",
    ),
    Habit(
        "optimizer | criterion | loss_fn | scheduler",
        "~compile!(model, optimizer = AdamW::new(1e-3), loss = …)?",
        "the optimizer with its schedule and the loss are arguments of `compile!`; `fit!` makes the steps",
    ),
    Habit(
        "train_loader | test_loader | val_loader | train_dataloader | dataloader | loader",
        "~fit!(model, data, batch_size = 32)?",
        "there are no loaders: `fit!` and `evaluate!` take the data set and make the batches",
    ),
    Habit(
        "df | train_df | test_df | val_df | df_train | df_test",
        "~Dataset::csv(\"….csv\")?",
        "there are no data frames here: `Dataset::csv` reads a table with labels, `head`, `filter` and `class_counts` look at it",
    ),
    Habit(
        "ls | pwd | cat | whoami | head | nvidia_smi",
        "!{name}",
        "a line that begins with `!` is a command; its output is shown, and is no value",
    ),
];

pub(super) const TYPE: &[Habit] = &[
    Habit(
        "int | Integer | long",
        "i32",
        "integers are `i32`, `i64`, or `usize` for places and lengths",
    ),
    Habit(
        "float | double | Float",
        "f64",
        "floats are `f64` and `f32`",
    ),
    Habit(
        "string | Str",
        "String",
        "a text is a `String`, or `&str` where it is borrowed",
    ),
    Habit("boolean | Bool", "bool", "`true` or `false`"),
    Habit(
        "list | List | array",
        "Vec<f64>",
        "a list is a `Vec` of the type of its elements",
    ),
    Habit(
        "dict | Dict | HashMap_",
        "std::collections::HashMap<String, f64>",
        "a dictionary is a `HashMap` of two types",
    ),
    Habit(
        "DataFrame | Optional | Any | object",
        "Dataset",
        "a table of examples is a `Dataset`; a value that may be missing is an `Option`",
    ),
];
