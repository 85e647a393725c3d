//! Habits on data sets.

use super::Habit;

pub(super) const DATASET: &[Habit] = &[
    Habit(
        "::from_vec(_, _) | ::from_lists(_, _) | ::from_vecs(_, _) | ::from_pairs(_, _) | ::from_data(_, _) | ::new(_, _)",
        "Dataset::from_rows({0}, {1})?",
        "a list of texts or of rows of numbers, and a list of their labels",
    ),
    Habit(
        "data iter() | data into_iter() | data as_numpy_iterator() | data iterrows() | data itertuples() | \
           data enumerate() | data [\"label\"] | data [\"labels\"] | data [\"target\"] | data [\"y\"] | data labels | \
           data y | data targets | data target | data label | data labels() | data label() | data get_labels() | \
           data [\"text\"] | data [\"sentence\"] | data [\"review\"] | data texts | data text | data sentences | \
           data x | data X | data inputs | data features[_] | data values",
        "{it}",
        "the data set has the labels, too",
    ),
    Habit(
        "in batch(_)",
        "{it}.examples.chunks({0})",
        "a data set has no batches: `fit!`, `evaluate!` and `start!` take `batch_size = {0}`; `chunks` goes through the examples in parts",
    ),
    Habit(
        "batch(_) | padded_batch(_)",
        "~fit!(…, {it}, batch_size = {0})?",
        "a data set has no batches: `fit!`, `evaluate!` and `start!` take `batch_size`; `examples.chunks({0})` are its parts",
    ),
    Habit(
        "batch(..) | batch_size | batch_size = _ | unbatch() | padded_batch(..)",
        "~fit!(…, {it}, batch_size = 32)?",
        "a data set has no batches: `fit!`, `evaluate!` and `start!` take `batch_size`",
    ),
    Habit(
        "shuffle(seed = _) | shuffle(_, seed = _) | shuffle(buffer_size = _, seed = _)",
        "{it}.shuffled({seed})",
        "`shuffled` takes the seed of the order; `fit!` shuffles the examples of each epoch by itself",
    ),
    Habit(
        "sample(frac = _, random_state = _)",
        "{it}.shuffled({random_state}).take(({it}.len() as f64 * {frac}) as usize)",
        "the first ones in a random order that the seed fixes",
    ),
    Habit(
        "sample(_, random_state = _)",
        "{it}.shuffled({random_state}).take({0})",
        "the first ones in a random order that the seed fixes",
    ),
    Habit(
        "train_test_split(_, stratify_by_column = _) | train_test_split(_, stratify = _)",
        "{it}.stratified_split({0}, 0)?",
        "`stratified_split` keeps the shares of the classes; its second value is the seed",
    ),
    Habit(
        "shuffle(..) | shuffle()",
        "{it}.shuffled(0)",
        "`shuffled` takes the seed of the order; `fit!` shuffles the examples of each epoch by itself",
    ),
    Habit(
        "cache() | prefetch(..) | with_options(..) | set_format(..) | with_format(..) | cache(..) | to_tf_dataset(..) | compute()",
        "{it}",
        "leave the call out: the data is in memory, and the next batches are prepared meanwhile",
    ),
    Habit(
        "into_iter() | as_numpy_iterator() | iterrows() | itertuples()",
        "{it}.iter()",
        "the examples are a list",
    ),
    Habit(
        "for",
        "{it}.iter()",
        "the examples are a list: `example.text`, `example.features`, `example.label`",
    ),
    Habit(
        "enumerate()",
        "{it}.iter().enumerate()",
        "the examples are a list",
    ),
    Habit(
        "train_test_split(_) | random_split(_) | split_off(_)",
        "{it}.split({0})?",
        "`split` returns two data sets, the second with the last share of the examples; `stratified_split` keeps the shares of classes",
    ),
    Habit(
        "train_test_split(_, _)",
        "{it}.shuffled({1}).split({0})?",
        "`split` returns two data sets, the second with the last share of the examples",
    ),
    Habit(
        "train_test_split(..) | random_split(..) | train | test | validation | valid | dev | [\"train\"] | [\"test\"] | [\"validation\"]",
        "~let (train, dev) = {it}.split(0.2)?;",
        "a data set is one part; `split` returns two, the second with the last share of the examples",
    ),
    Habit(
        "shape | shape() | features.shape | features.shape() | x.shape | X.shape | x.shape() | X.shape()",
        "[{it}.len(), {it}.num_features()]",
        "the number of examples and the number of columns",
    ),
    Habit(
        "y.shape | y.shape() | labels.shape | labels.shape() | y.len() | labels.len() | targets.shape | x.len() | X.len() | texts.len()",
        "{it}.len()",
        "the number of examples",
    ),
    Habit(
        "describe() | info() | describe(..) | summary() | show() | print()",
        "display(&{it})",
        "a data set as the last line of a cell, or `display`, shows its size, classes and first rows",
    ),
    Habit(
        "value_counts() | value_counts(..) | class_distribution() | counts() | label.value_counts() | labels.value_counts() \
           | y.value_counts() | [\"label\"].value_counts() | [\"labels\"].value_counts()",
        "{it}.class_counts()",
        "the number of examples of each class",
    ),
    Habit(
        "[\"text\"][..].to_vec() | [\"text\"][..].tolist() | [\"text\"][..] | [\"sentence\"][..] | [\"review\"][..]",
        "{it}.examples[{second}].iter().map(|example| example.text.clone()).collect::<Vec<_>>()",
        "each of `examples` has its text",
    ),
    Habit(
        "[\"label\"][..].to_vec() | [\"label\"][..].tolist() | [\"label\"][..] | [\"labels\"][..] | [\"target\"][..]",
        "{it}.examples[{second}].iter().map(|example| example.class()).collect::<Vec<_>>()",
        "each of `examples` has its label",
    ),
    Habit(
        "text[..].to_vec() | texts[..].to_vec() | text[..] | texts[..] | sentences[..]",
        "{it}.examples[{index}].iter().map(|example| example.text.clone()).collect::<Vec<_>>()",
        "each of `examples` has its text",
    ),
    Habit(
        "labels[..].to_vec() | y[..].to_vec() | labels[..] | label[..] | y[..] | targets[..]",
        "{it}.examples[{index}].iter().map(|example| example.class()).collect::<Vec<_>>()",
        "each of `examples` has its label",
    ),
    Habit(
        "features[..].to_vec() | x[..].to_vec() | features[..] | x[..] | X[..]",
        "{it}.examples[{index}].iter().map(|example| example.features.to_vec()).collect::<Vec<_>>()",
        "each of `examples` has its numbers, `features`",
    ),
    Habit(
        "[\"text\"][_] | [\"sentence\"][_] | [\"review\"][_]",
        "{it}[{second}].text.clone()",
        "an index gives an example, with its `text`",
    ),
    Habit(
        "[\"label\"][_] | [\"labels\"][_] | [\"target\"][_]",
        "{it}[{second}].class()",
        "an index gives an example, with its label",
    ),
    Habit(
        "features.mean(..) | features.mean() | mean() | mean(..)",
        "(0..{it}.num_features()).map(|column| {it}.examples.iter().map(|example| example.features[column]).sum::<f32>() / {it}.len() as f32).collect::<Vec<f32>>()",
        "the numbers are in the examples: the mean of each column",
    ),
    Habit(
        "text[_] | texts[_] | sentences[_]",
        "{it}[{index}].text.clone()",
        "an index gives an example, with its `text`",
    ),
    Habit(
        "labels[_] | label[_] | y[_] | targets[_]",
        "{it}[{index}].class()",
        "an index gives an example, with its label",
    ),
    Habit(
        "features[_] | x[_] | X[_]",
        "{it}[{index}].features.to_vec()",
        "an index gives an example, with its numbers",
    ),
    Habit(
        "[\"label\"] | [\"labels\"] | [\"target\"] | [\"y\"] | labels | y | targets | target | label | labels() | label() | get_labels()",
        "{it}.examples.iter().map(|example| example.class()).collect::<Vec<_>>()",
        "each of `examples` has its label",
    ),
    Habit(
        "[\"text\"] | [\"sentence\"] | [\"review\"] | texts | text | sentences",
        "{it}.examples.iter().map(|example| example.text.clone()).collect::<Vec<_>>()",
        "each of `examples` has its text",
    ),
    Habit(
        "x | X | inputs | values",
        "{it}.examples.iter().map(|example| example.features.to_vec()).collect::<Vec<_>>()",
        "each of `examples` has its numbers, `features`",
    ),
    Habit(
        "columns | column_names | keys() | dtypes | feature_names | columns.tolist() | columns.to_list()",
        "~{it}.head(3)",
        "a data set has no columns with names: it has texts or numbers, and labels; `num_features()` counts the columns of numbers",
    ),
    Habit(
        "[\"_\"] | rename(..) | rename_column(..) | drop(..) | map_columns(..) | remove_columns(..) | add_column(..)",
        "Dataset::csv_with(\"…\", &Columns::new().text(\"…\").label(\"…\"))?",
        "columns are chosen when a file is read; a data set has texts or numbers, and labels",
    ),
    Habit(
        "features | num_columns | ncols | n_features",
        "{it}.num_features()",
        "the number of columns of numbers",
    ),
    Habit(
        "unique() | drop_duplicates() | distinct()",
        "{it}.dedupe()",
        "without the examples that are there twice",
    ),
    Habit(
        "sample(_)",
        "{it}.shuffled(0).take({0})",
        "the first ones in a random order that the seed fixes",
    ),
    Habit(
        "tail(_)",
        "{it}.skip({it}.len() - {0})",
        "`skip` leaves out the first examples",
    ),
    Habit(
        "select(_) | take_rows(_)",
        "{it}.rows({0})?",
        "`rows` takes the places of examples: a list or a range",
    ),
    Habit(
        "[..] | iloc[..] | loc[..] | examples[..]",
        "{it}.rows({range})?",
        "an index is of one example; `rows` makes a data set of those at the places of a range or a list",
    ),
    Habit(
        "op +(_)",
        "{it}.concatenate(&{0})?",
        "the examples of both, in a new data set",
    ),
    Habit(
        "tail() | select(..) | sample(..) | query(..) | where(..)",
        "{it}.skip(…).take(…)",
        "`skip` and `take` choose by place, `filter` by a condition",
    ),
    Habit(
        "class_names | label_list | names | classes | label_names() | features[\"_\"].names | features.names \
           | label.unique() | labels.unique() | [\"label\"].unique()",
        "{it}.label_names",
        "the names of the classes",
    ),
    Habit(
        "count() | size | length | size() | length() | cardinality() | num_rows | nrows | num_examples",
        "{it}.len()",
        "the number of examples",
    ),
    Habit(
        "num_classes | num_classes() | n_classes | nunique()",
        "{it}.num_labels()",
        "the number of classes",
    ),
    Habit(
        "append(_) | concat(_) | extend(_) | union(_) | merge(_)",
        "{it}.concatenate({0})?",
        "the examples of both, in a new data set",
    ),
    Habit(
        "iloc[_] | loc[_] | at[_] | get(_)",
        "{it}[{index}]",
        "an index gives an example",
    ),
    Habit(
        "isnull() | isna() | dropna() | fillna(..)",
        "Dataset::csv_with(\"…\", &Columns::new().drop_missing())?",
        "missing values are decided when a file is read",
    ),
    Habit(
        "apply(_) | transform(_)",
        "{it}.map({0})",
        "`map` makes a changed data set",
    ),
    Habit(
        "head() | to_pandas().head() | to_df().head()",
        "{it}.head(5)",
        "`head` takes the number of rows, which is 5 in pandas",
    ),
    Habit(
        "to_pandas().head(_) | to_df().head(_)",
        "{it}.head({next})",
        "there are no data frames: the data set itself has `head`",
    ),
    Habit(
        "to_pandas() | to_df() | to_dataframe() | to_polars() | as_dataframe()",
        "{it}.clone()",
        "there are no data frames: the data set itself has `head`, `filter` and `class_counts`, and the last line of a cell shows it",
    ),
    Habit(
        "to_csv(..) | to_numpy() | save_to_disk(..) | numpy() | to_dict() | tolist() | to_list() | to_parquet(..) | save(..) | push_to_hub(..)",
        "~{it}.examples",
        "the examples are a list that any code can write: `text`, `features`, `label`",
    ),
    Habit(
        "sort(\"text\") | sort_values(\"text\") | sort_by(\"text\")",
        "{ let mut sorted = {it}.clone(); sorted.examples.sort_by(|a, b| a.text.cmp(&b.text)); sorted }",
        "the examples are a list, and lists are sorted in place: here those of a copy",
    ),
    Habit(
        "sort(\"label\") | sort_values(\"label\") | sort_by(\"label\")",
        "{ let mut sorted = {it}.clone(); sorted.examples.sort_by_key(|it| it.class()); sorted }",
        "the examples are a list, and lists are sorted in place: here those of a copy",
    ),
    Habit(
        "sort(..) | sort_values(..) | sort_by(..)",
        "{ let mut sorted = {it}.clone(); sorted.examples.sort_by_key(|example| …); sorted }",
        "the examples are a list, and lists are sorted in place: here those of a copy",
    ),
    Habit(
        "groupby(\"label\").size() | groupby(\"label\").count() | groupby(\"labels\").size() | groupby(\"labels\").count() \
           | groupby(\"target\").size() | groupby(\"target\").count() | groupby(\"class\").size() | groupby(\"class\").count() \
           | group_by(\"label\").count() | group_by(\"label\").size() | groupby(\"y\").size() | groupby(\"y\").count()",
        "{it}.class_counts()",
        "data sets are not grouped; the number of examples of each class, in the order of `label_names`",
    ),
    Habit(
        "groupby(\"label\").mean() | groupby(\"label\").mean(..) | groupby(\"labels\").mean() | groupby(\"target\").mean() \
           | groupby(\"class\").mean() | groupby(\"y\").mean() | group_by(\"label\").mean()",
        "(0..{it}.num_labels()).map(|class| { let part = {it}.filter(|it| it.class() == Some(class)); \
           (0..part.num_features()).map(|column| part.examples.iter().map(|it| it.features[column]).sum::<f32>() / part.len() as f32)\
           .collect::<Vec<f32>>() }).collect::<Vec<_>>()",
        "data sets are not grouped; `filter` chooses the examples of a class, and the mean of each column is computed from their \
           numbers",
    ),
    Habit(
        "groupby(..) | group_by(..)",
        "~{it}.filter(|example| …)",
        "data sets are not grouped; `filter` chooses examples, `class_counts()` counts those of each class",
    ),
    Habit(
        "plot() | plot(..) | hist()",
        "plot(&{it}.class_counts())?",
        "`plot`, `histogram` and `scatter` draw lists of numbers",
    ),
    Habit(
        "::from_csv(_) | ::read_csv(_) | ::load_csv(_)",
        "Dataset::csv({0})?",
        "the reader is called like the format",
    ),
    Habit(
        "::from_json(_) | ::read_json(_) | ::json(_)",
        "Dataset::jsonl({0})?",
        "the reader is called like the format: an object a line",
    ),
    Habit(
        "::from_parquet(_) | ::read_parquet(_)",
        "Dataset::parquet({0})?",
        "the reader is called like the format",
    ),
    Habit(
        "::from_text(_) | ::from_file(_) | ::read_text(_)",
        "Dataset::text({0})?",
        "the reader is called like the format",
    ),
    Habit(
        "::load(_) | ::load_from_disk(_) | ::from_disk(_)",
        "Dataset::arrow(\"…/*.arrow\")?",
        "a folder of `save_to_disk` is read as Arrow files",
    ),
    Habit(
        "::from_tensor_slices(_, _) | ::from_tensors(_, _) | ::new(_, _)",
        "Dataset::from_arrays({0}, {1})?",
        "`from_arrays` takes rows of numbers and their labels",
    ),
    Habit(
        "::from_tensor_slices(_) | ::from_vec(_) | ::from_tensors(_)",
        "Dataset::from_features({0})?",
        "`from_features` takes rows of numbers; with labels it is `from_arrays(rows, labels)`",
    ),
    Habit(
        "::from_dict(..) | ::from_list(..) | ::from_pandas(..) | ::new(..) | ::from_generator(..) | ::range(..)",
        "~Dataset::from_rows(texts, labels)?",
        "`from_rows` takes texts and labels, `from_arrays` rows of numbers and labels",
    ),
];

pub(super) const EXAMPLE: &[Habit] = &[
    Habit(
        "[\"text\"] | [\"sentence\"] | [\"review\"] | [\"sentence1\"] | sentence | review | get(\"text\") | text()",
        "{it}.text",
        "an example has fields: `text`, `pair`, `features`, `label`",
    ),
    Habit(
        "[\"sentence2\"] | [\"text_pair\"] | sentence2 | text_pair",
        "{it}.pair",
        "an example has fields: `text`, `pair`, `features`, `label`",
    ),
    Habit(
        "[\"label\"] | [\"labels\"] | [\"target\"] | [\"y\"] | labels | target | y | get(\"label\") | label()",
        "{it}.class()",
        "`class()` is the number of its class, `label_name` its name, `label` either a class or a number",
    ),
    Habit(
        "[\"features\"] | [\"x\"] | [\"inputs\"] | x | inputs",
        "{it}.features",
        "an example has fields: `text`, `pair`, `features`, `label`",
    ),
    Habit(
        "[0]",
        "{it}.text",
        "an example has fields: `text`, `pair`, `features`, `label`",
    ),
    Habit(
        "[1]",
        "{it}.class()",
        "an example has fields: `text`, `pair`, `features`, `label`",
    ),
];
