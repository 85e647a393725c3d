//! The DSL's calls: `compile!`, `fit!` and `evaluate!`. Each argument is a method of the call's
//! builder, so that types, documentation and completion come from there; an argument that does not
//! exist is a method that does not exist. In a notebook the kernel has read the call before and
//! answered in its own words.
//!
//! `macro_rules!` and not proc macros: rust-analyzer sees through them, so a notebook knows the types of
//! what they return.

/// Gives a model its optimizer, loss and metrics: `compile!(model, optimizer = AdamW::new(5e-5), …)?`.
///
/// Returns a [`CompileReceipt`](crate::train::CompileReceipt), which is shown as the placement. The
/// arguments are the methods of [`CompileArgs`](crate::train::CompileArgs).
#[macro_export]
macro_rules! compile {
    ($model:expr $(, $($arguments:tt)*)?) => {{
        $crate::progress::ready();
        ($model).compile($crate::__compile_arguments!(
            ($crate::train::CompileArgs::new()) $($($arguments)*)?
        ))
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
        ($model).fit(&$data, $crate::__fit_arguments!(
            ($crate::train::FitArgs::new()) $($($arguments)*)?
        ))
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
        ($model).evaluate(&$data, $crate::train::EvaluateArgs::new()$(.$name($value))*)
    }};
}

/// The standard library's `print!`, whose text is seen at once. A notebook has it in place of that.
#[doc(hidden)]
#[macro_export]
macro_rules! __print {
    ($($arguments:tt)*) => {{
        ::std::print!($($arguments)*);
        $crate::cell::printed();
    }};
}

/// The standard library's `dbg!`, with the cell's name and line. A notebook has it in place of that.
#[doc(hidden)]
#[macro_export]
macro_rules! __dbg {
    () => {
        ::std::eprintln!("[{}]", $crate::cell::place(::std::file!(), ::std::line!()))
    };
    ($value:expr $(,)?) => {
        // A `match`, so that what the expression borrows lives as long as in the standard library's.
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

/// `strategy` is borrowed, and may be `none`; everything else is taken. An empty list of metrics has no type
/// of its own.
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

/// `validation_data` is borrowed, everything else is taken; callbacks in a list may be of several types.
#[doc(hidden)]
#[macro_export]
macro_rules! __fit_arguments {
    (($written:expr)) => { $written };
    (($written:expr) validation_data = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__fit_arguments!(($written.validation_data(&$value)) $($($rest)*)?)
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
