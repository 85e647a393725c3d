//! Habits on lists, texts, tensors and numbers.

use super::Habit;

pub(super) const LIST: &[Habit] = &[
    Habit(
        "sorted()",
        "{ let mut sorted = {it}.clone(); sorted.sort_by(|a, b| a.partial_cmp(b).expect(\"a number\")); sorted }",
        "`sort` changes the list itself; a copy is sorted",
    ),
    Habit(
        "[-1]",
        "{it}[{it}.len() - 1]",
        "an index counts from the beginning; `last()` is `None` for an empty list",
    ),
    Habit(
        "length | size | length() | size() | count | count() | __len__()",
        "{it}.len()",
        "the number of elements",
    ),
    Habit(
        "append(_) | add(_) | push_back(_)",
        "{it}.push({0})",
        "`push` adds an element to a vector that is `mut`",
    ),
    Habit(
        "sum()",
        "{it}.iter().sum::<{elements}>()",
        "an iterator adds up its elements",
    ),
    Habit(
        "mean() | average() | avg()",
        "{it}.iter().sum::<{elements}>() as f64 / {it}.len() as f64",
        "the sum divided by the number",
    ),
    Habit(
        "max() | max",
        "{it}.iter().copied().reduce({elements}::max)",
        "`reduce` takes the larger of two; it is `None` for an empty list",
    ),
    Habit(
        "min() | min",
        "{it}.iter().copied().reduce({elements}::min)",
        "`reduce` takes the smaller of two; it is `None` for an empty list",
    ),
    Habit(
        "sort() | sort_values()",
        "{it}.sort_by(f64::total_cmp)",
        "floats have no order because of NaN; `total_cmp` is one",
    ),
    Habit(
        "argmax() | argmax(_)",
        "{it}.iter().enumerate().max_by(|a, b| a.1.partial_cmp(b.1).expect(\"a number\")).map(|(index, _)| index)",
        "the place of the largest element; it is `None` for an empty list",
    ),
    Habit(
        "argmin() | argmin(_)",
        "{it}.iter().enumerate().min_by(|a, b| a.1.partial_cmp(b.1).expect(\"a number\")).map(|(index, _)| index)",
        "the place of the smallest element; it is `None` for an empty list",
    ),
    Habit(
        "std() | var() | stdev()",
        "{it}.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / …",
        "with the mean in `mean`; `sqrt()` of that is the standard deviation",
    ),
    Habit(
        "map(_)",
        "{it}.iter().map({0}).collect::<Vec<_>>()",
        "an iterator maps its elements, and `collect` makes a list of them",
    ),
    Habit(
        "filter(_)",
        "{it}.iter().filter({0}).collect::<Vec<_>>()",
        "an iterator filters its elements, and `collect` makes a list of them",
    ),
    Habit(
        "forEach(_) | for_each(_) | each(_)",
        "{it}.iter().for_each({0})",
        "an iterator calls a closure with each element",
    ),
    Habit(
        "enumerate()",
        "{it}.iter().enumerate()",
        "iterators count their elements",
    ),
    Habit("zip(_)", "{it}.iter().zip({0})", "iterators are zipped"),
    Habit(
        "index(_) | index_of(_) | indexOf(_)",
        "{it}.iter().position(|it| *it == {0})",
        "the place of the first one; it is `None` if there is none",
    ),
    Habit(
        "slice(_, _)",
        "{it}[{0}..{1}].to_vec()",
        "a range in square brackets is a part",
    ),
    Habit(
        "head(_) | take(_) | limit(_)",
        "{it}.iter().take({0}).collect::<Vec<_>>()",
        "an iterator takes the first ones",
    ),
    Habit(
        "reversed()",
        "{it}.iter().rev()",
        "an iterator goes backward",
    ),
    Habit("copy()", "{it}.clone()", "`clone` makes a copy"),
    Habit(
        "plot() | plot(..)",
        "plot(&{it})?",
        "`plot` draws a list of numbers",
    ),
    Habit(
        "hist() | hist(..)",
        "histogram(&{it})?",
        "`histogram` counts values in ranges",
    ),
    Habit(
        "unique()",
        "~{it}.iter().collect::<std::collections::BTreeSet<_>>()",
        "a set has each element once",
    ),
    Habit(
        "reshape(..) | view(..) | flatten()",
        "{it}.chunks(…)",
        "`chunks` divides a list into rows, `concat()` makes one list of rows; tensors have `reshape`",
    ),
    Habit(
        "shape | shape() | ndim",
        "{it}.len()",
        "a list has one length; of rows, `rows[0].len()` is the number of columns",
    ),
    Habit(
        "tolist() | numpy() | to_numpy() | to_list() | to_vec",
        "{it}",
        "it is a list already",
    ),
    Habit(
        "any(..) | all(..) | fold(..) | skip(..) | step_by(..)",
        "{it}.iter().{name}({..})",
        "iterators have this method",
    ),
    Habit(
        "pop(0) | shift() | pop_front()",
        "{it}.remove(0)",
        "`remove` takes out the element at a place",
    ),
    Habit(
        "values | keys() | items() | items | values()",
        "{it}.iter().enumerate()",
        "a list has places and elements",
    ),
];

pub(super) const TEXT: &[Habit] = &[
    Habit(
        "upper() | toUpperCase() | to_upper()",
        "{it}.to_uppercase()",
        "the text in capital letters",
    ),
    Habit(
        "lower() | toLowerCase() | to_lower()",
        "{it}.to_lowercase()",
        "the text in small letters",
    ),
    Habit(
        "strip() | trim_spaces()",
        "{it}.trim()",
        "without blanks at both ends",
    ),
    Habit(
        "lstrip()",
        "{it}.trim_start()",
        "without blanks at the beginning",
    ),
    Habit("rstrip()", "{it}.trim_end()", "without blanks at the end"),
    Habit(
        "startswith(_) | startsWith(_)",
        "{it}.starts_with({0})",
        "a name of two words has an underscore",
    ),
    Habit(
        "endswith(_) | endsWith(_)",
        "{it}.ends_with({0})",
        "a name of two words has an underscore",
    ),
    Habit(
        "split()",
        "{it}.split_whitespace().collect::<Vec<_>>()",
        "the words of the text",
    ),
    Habit(
        "length | size | length() | size() | count()",
        "{it}.len()",
        "the number of bytes; `chars().count()` is that of letters",
    ),
    Habit(
        "count(_)",
        "{it}.matches({0}).count()",
        "how often another text is in it",
    ),
    Habit(
        "index(_) | indexOf(_)",
        "{it}.find({0})",
        "where another text begins, in bytes",
    ),
    Habit(
        "append(_) | concat(_) | add(_)",
        "{it}.push_str({0})",
        "`push_str` adds a text to a `String` that is `mut`",
    ),
    Habit(
        "isdigit() | isnumeric()",
        "{it}.chars().all(|it| it.is_ascii_digit())",
        "a text is looked at by its characters",
    ),
    Habit(
        "isalpha()",
        "{it}.chars().all(char::is_alphabetic)",
        "a text is looked at by its characters",
    ),
    Habit(
        "[_] | charAt(_)",
        "{it}.chars().nth({index})",
        "a text is indexed by bytes; `chars()` gives its characters",
    ),
    Habit(
        "format(..)",
        "format!(\"…\", {..})",
        "`format!` puts values into a text",
    ),
    Habit(
        "encode() | encode(_)",
        "{it}.as_bytes()",
        "the bytes of the text",
    ),
    Habit(
        "iter() | enumerate() | map(..)",
        "{it}.chars()",
        "`chars()` gives the characters",
    ),
    Habit("for", "{it}.chars()", "`chars()` gives the characters"),
    Habit(
        "title() | capitalize() | zfill(..) | ljust(..)",
        "format!(\"{:>8}\", {it})",
        "`format!` aligns and fills texts",
    ),
    Habit(
        "save_pretrained(..) | summary() | predict(..)",
        "",
        "it is a text, not a model: models are made by `from_pretrained` or `Sequential`",
    ),
];

pub(super) const TENSOR: &[Habit] = &[
    Habit(
        "[-1]",
        "{it}.clone().narrow(0, {it}.dims()[0] - 1, 1)",
        "`narrow` takes a part of a dimension: the dimension, the first place, how many",
    ),
    Habit(
        "[_]",
        "{it}.clone().narrow(0, {index}, 1)",
        "`narrow` takes a part of a dimension: the dimension, the first place, how many; `slice` takes a range for each dimension",
    ),
    Habit(
        "numpy() | tolist() | to_vec() | data | values | array()",
        "{it}.to_data()",
        "the numbers of a tensor",
    ),
    Habit(
        "item()",
        "{it}.into_scalar::<f32>()",
        "the number of a tensor that has one",
    ),
    Habit(
        "size | size() | size(..)",
        "{it}.shape()",
        "the lengths of all dimensions",
    ),
    Habit(
        "ndim | dim() | rank()",
        "{it}.dims().len()",
        "the number of dimensions",
    ),
    Habit("T | t() | T()", "{it}.transpose()", "rows become columns"),
    Habit(
        "cpu() | cuda() | gpu() | to(..)",
        "{it}.to_device(&Device::default())",
        "`to_device` takes the device",
    ),
    Habit(
        "view(_)",
        "{it}.reshape({0})",
        "`reshape` takes the lengths as a list",
    ),
    Habit(
        "view(_, _) | reshape(_, _) | reshape(_, _, _) | view(_, _, _)",
        "{it}.reshape([{..}])",
        "`reshape` takes the lengths as a list",
    ),
    Habit(
        "sum(_) | sum(..)",
        "{it}.sum_dim({0})",
        "`sum_dim` adds along a dimension, `sum()` all",
    ),
    Habit(
        "mean(_) | mean(..)",
        "{it}.mean_dim({0})",
        "`mean_dim` is along a dimension, `mean()` over all",
    ),
    Habit(
        "max(_) | max(..)",
        "{it}.max_dim({0})",
        "`max_dim` is along a dimension, `max()` over all",
    ),
    Habit(
        "min(_) | min(..)",
        "{it}.min_dim({0})",
        "`min_dim` is along a dimension, `min()` over all",
    ),
    Habit(
        "requires_grad_(..) | detach() | zero_grad() | grad",
        "",
        "gradients are computed by `fit!`, or by hand with `model.gradients(&data)?`",
    ),
    Habit(
        "plot()",
        "{it}.to_data()",
        "`plot` draws lists of numbers: `to_data().to_vec::<f32>()`",
    ),
    Habit(
        "dot(_) | mm(_) | matmul_(_)",
        "{it}.matmul({0})",
        "the product of matrices",
    ),
    Habit(
        "astype(..) | dtype | float() | type(..)",
        "{it}.dtype()",
        "a tensor keeps its type",
    ),
    Habit(
        "unsqueeze(_)",
        "~{it}.unsqueeze_dim::<3>({0})",
        "`unsqueeze_dim` adds a dimension at a place",
    ),
];

pub(super) const NUMBER: &[Habit] = &[Habit(
    "for",
    "0..{it}",
    "a loop goes over a range, its end excluded",
)];
