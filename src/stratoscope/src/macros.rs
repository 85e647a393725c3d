//! The calls of the DSL: `compile!`, `fit!`, `start!`, `evaluate!` and `sweep!`. Each argument is a method of the call's builder, which gives it
//! its type, its documentation and its completion; an unknown argument is a missing method. In a notebook the kernel has
//! checked the call before and reported such an argument in its own words.
//!
//! Each passes its result through [`watched`](crate::diagnostics::watched), so that an error that nobody looks at ends the
//! cell.
//!
//! They are `macro_rules!` and not proc macros, because rust-analyzer expands these without compiling anything, so that it
//! knows the types of the results.

/// Gives a model its optimizer, loss and metrics: `compile!(model, optimizer = AdamW::new(5e-5), …)?`.
///
/// Returns a [`CompileReceipt`](crate::train::CompileReceipt), which is shown as the placement. The
/// arguments are the methods of [`CompileArgs`](crate::train::CompileArgs).
#[macro_export]
macro_rules! compile {
    ($model:expr $(, $($arguments:tt)*)?) => {{
        $crate::progress::ready();
        $crate::diagnostics::watched(($model).compile($crate::__compile_arguments!(
            ($crate::train::CompileArgs::new()) $($($arguments)*)?
        )))
    }};
}

/// Trains a model: `fit!(model, train, epochs = 3, validation_data = dev)?`.
///
/// Borrows model and data, and returns a [`History`](crate::train::History). The arguments are the
/// methods of [`FitArgs`](crate::train::FitArgs).
#[macro_export]
macro_rules! fit {
    ($model:expr, $data:expr $(, $($arguments:tt)*)?) => {{
        $crate::progress::ready();
        $crate::diagnostics::watched(($model).fit(&$data, $crate::__fit_arguments!(
            ($crate::train::FitArgs::new()) $($($arguments)*)?
        )))
    }};
}

/// A run that is driven piece by piece: `let run = start!(model, train, epochs = 3)?;`, then `run.step(10)?`,
/// `run.epoch()?`, `run.until(200)?` and `run.finish()?`.
///
/// Takes what [`fit!`](crate::fit) takes and runs nothing; returns a [`Run`](crate::train::Run), which owns copies of
/// what it needs and lives as long as its variable. Callbacks must not borrow other variables.
#[macro_export]
macro_rules! start {
    ($model:expr, $data:expr $(, $($arguments:tt)*)?) => {{
        $crate::progress::ready();
        $crate::diagnostics::watched(($model).start(&$data, $crate::__start_arguments!(
            ($crate::train::FitArgs::new()) $($($arguments)*)?
        )))
    }};
}

/// Loss and metrics of a data set, without dropout: `evaluate!(model, dev)?`.
///
/// Borrows model and data, and returns an [`Evaluation`](crate::train::Evaluation). The arguments are
/// the methods of [`EvaluateArgs`](crate::train::EvaluateArgs).
#[macro_export]
macro_rules! evaluate {
    ($model:expr, $data:expr $(, $name:ident = $value:expr)* $(,)?) => {{
        $crate::progress::ready();
        $crate::diagnostics::watched(
            ($model).evaluate(&$data, $crate::train::EvaluateArgs::new()$(.$name($value))*)
        )
    }};
}

/// Trains with every combination of some settings, or with some of them, and compares the results:
///
/// ```ignore
/// sweep!(rate = [1e-5, 3e-5], batch_size = [8, 16] => {
///     let model = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", 8)?;
///     compile!(model, optimizer = AdamW::new(rate), loss = "sparse_categorical_crossentropy", metrics = [accuracy()])?;
///     fit!(model, train, batch_size = batch_size)?;
///     evaluate!(model, dev)?
/// })?
/// ```
///
/// In the block each setting is a variable. The block ends with results: an evaluation, a history, an assessment, a number,
/// or numbers with names. Before the settings there may be a [`Search`](crate::evaluation::Search):
/// `sweep!(Search::random(10, 0).folder("sweep"); rate = …)`. Returns a [`Sweep`](crate::evaluation::Sweep).
#[macro_export]
macro_rules! sweep {
    ($search:expr; $($name:ident = $values:expr),+ $(,)? => $body:block) => {{
        $(let $name: ::std::vec::Vec<_> = ::std::iter::IntoIterator::into_iter($values).collect();)+
        let axes = ::std::vec![$($crate::evaluation::Axis::new(::std::stringify!($name), &$name)),+];
        $crate::diagnostics::watched($crate::evaluation::sweep(&$search, axes, |chosen: &[usize]| {
            let mut chosen = chosen.iter().copied();
            $(let $name = ::std::clone::Clone::clone(&$name[chosen.next().unwrap_or_default()]);)+
            ::std::result::Result::Ok($body)
        }))
    }};
    ($($name:ident = $values:expr),+ $(,)? => $body:block) => {
        $crate::sweep!($crate::evaluation::Search::grid(); $($name = $values),+ => $body)
    };
}

/// As the standard library's `print!`, which it replaces in a notebook, but the text is shown at once.
#[doc(hidden)]
#[macro_export]
macro_rules! __print {
    ($($arguments:tt)*) => {{
        ::std::print!($($arguments)*);
        $crate::cell::printed();
    }};
}

/// As the standard library's `dbg!`, which it replaces in a notebook, but with the number and line of the cell.
#[doc(hidden)]
#[macro_export]
macro_rules! __dbg {
    () => {
        ::std::eprintln!("[{}]", $crate::cell::place(::std::file!(), ::std::line!()))
    };
    ($value:expr $(,)?) => {
        // A `match`, so that borrowed temporaries live as long as with the standard library's macro.
        match $value {
            value => {
                ::std::eprintln!(
                    "[{}] {} = {:#?}",
                    $crate::cell::place(::std::file!(), ::std::line!()),
                    ::std::stringify!($value),
                    &value
                );
                value
            }
        }
    };
    ($($value:expr),+ $(,)?) => { ($($crate::cell::dbg!($value)),+,) };
}

/// `strategy` is borrowed and may be `none`; all other values are moved. An empty list of metrics gets its type here.
#[doc(hidden)]
#[macro_export]
macro_rules! __compile_arguments {
    (($written:expr)) => { $written };
    (($written:expr) strategy = none $(, $($rest:tt)*)?) => {
        $crate::__compile_arguments!(($written.strategy($crate::train::NoStrategy)) $($($rest)*)?)
    };
    (($written:expr) strategy = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__compile_arguments!(($written.strategy(&$value)) $($($rest)*)?)
    };
    (($written:expr) metrics = [] $(, $($rest:tt)*)?) => {
        $crate::__compile_arguments!(($written.metrics({
            let none: [$crate::train::Metric; 0] = [];
            none
        })) $($($rest)*)?)
    };
    (($written:expr) metrics = vec![] $(, $($rest:tt)*)?) => {
        $crate::__compile_arguments!(($written.metrics({
            let none: [$crate::train::Metric; 0] = [];
            none
        })) $($($rest)*)?)
    };
    (($written:expr) $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__compile_arguments!(($written.$name($value)) $($($rest)*)?)
    };
}

/// As `__fit_arguments`, with a copy of `validation_data`.
#[doc(hidden)]
#[macro_export]
macro_rules! __start_arguments {
    (($written:expr)) => { $written };
    (($written:expr) validation_data = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__start_arguments!(($written.validation_data_copied(&$value)) $($($rest)*)?)
    };
    (($written:expr) class_weight = {$($class:tt: $weight:expr),+ $(,)?} $(, $($rest:tt)*)?) => {
        $crate::__start_arguments!(($written.class_weight([$(($class, $weight)),+])) $($($rest)*)?)
    };
    (($written:expr) callbacks = [$($callback:expr),* $(,)?] $(, $($rest:tt)*)?) => {
        $crate::__start_arguments!(
            ($written.callbacks($crate::train::Callbacks::new()$(.and($callback))*)) $($($rest)*)?
        )
    };
    (($written:expr) $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__start_arguments!(($written.$name($value)) $($($rest)*)?)
    };
}

/// `validation_data` is borrowed; all other values are moved. Callbacks in a list may be of several types.
#[doc(hidden)]
#[macro_export]
macro_rules! __fit_arguments {
    (($written:expr)) => { $written };
    (($written:expr) validation_data = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__fit_arguments!(($written.validation_data(&$value)) $($($rest)*)?)
    };
    (($written:expr) class_weight = {$($class:tt: $weight:expr),+ $(,)?} $(, $($rest:tt)*)?) => {
        $crate::__fit_arguments!(($written.class_weight([$(($class, $weight)),+])) $($($rest)*)?)
    };
    (($written:expr) callbacks = [$($callback:expr),* $(,)?] $(, $($rest:tt)*)?) => {
        $crate::__fit_arguments!(
            ($written.callbacks($crate::train::Callbacks::new()$(.and($callback))*)) $($($rest)*)?
        )
    };
    (($written:expr) $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__fit_arguments!(($written.$name($value)) $($($rest)*)?)
    };
}
