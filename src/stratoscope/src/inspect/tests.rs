use std::any::Any;
use std::collections::HashMap;

use burn::tensor::{Device, Tensor};
use stratoscope_data::Dataset;
use stratoscope_models::Sequential;
use stratoscope_models::sequential::Dense;

use super::*;
use crate::cell::evcxr::VariableStore;

fn window(start: usize, count: usize) -> Window {
    Window { start, count }
}

/// The children of a value: `name: value`.
fn parts(value: &dyn Any, named: Window, indexed: Window) -> Vec<String> {
    let view = types::view(value).expect("a known type");
    let InspectAnswer::Values { values, .. } = children(view.as_ref(), named, indexed) else {
        panic!("no children");
    };
    let shown = |it: InspectedValue| format!("{}: {}", it.name, it.value.unwrap_or_default());
    values.into_iter().map(shown).collect()
}

fn line_of(value: &dyn Any) -> String {
    types::view(value).expect("a known type").line()
}

#[test]
fn lists_are_read_in_pieces() {
    let list: Vec<f32> = (0..1_000_000).map(|it| it as f32).collect();
    assert!(
        line_of(&list).starts_with("1000000 elements: [0.0, 1.0, "),
        "{}",
        line_of(&list)
    );
    assert_eq!(
        parts(&list, window(0, 9), window(999_999, 9)),
        ["[999999]: 999999.0"]
    );
    assert!(parts(&list, window(0, 9), window(1_000_000, 9)).is_empty());
    assert!(
        parts(
            &list,
            window(usize::MAX, usize::MAX),
            window(usize::MAX, usize::MAX)
        )
        .is_empty()
    );
    let nested = vec![vec![1_u8, 2], vec![]];
    assert_eq!(
        parts(&nested, window(0, 9), window(0, 9)),
        ["[0]: [1, 2]", "[1]: []"]
    );
    let map = HashMap::from([("key".to_owned(), 7_i32)]);
    assert_eq!(line_of(&map), "{\"key\": 7}");
    assert_eq!(parts(&map, window(0, 9), window(0, 9)), ["[\"key\"]: 7"]);
}

#[test]
fn tensors_unfold_into_statistics_and_rows() {
    let tensor = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.5]], &Device::flex());
    assert_eq!(line_of(&tensor), "[2, 2] f32 on cpu:0");
    assert_eq!(
        parts(&tensor, window(0, 9), window(0, 9)),
        [
            "statistics: min 1, mean 2.625, max 4.5, standard deviation 1.293",
            "[0]: [1, 2]",
            "[1]: [3, 4.5]"
        ]
    );
    let view = types::view(&tensor).expect("a known type");
    let (_, row) = view.child(2).expect("a row");
    assert_eq!(
        row.child(1).map(|(name, it)| (name, it.line())),
        Some(("[1]".to_owned(), "4.5".to_owned()))
    );
    let empty = Tensor::<2>::zeros([0, 3], &Device::flex());
    assert!(parts(&empty, window(0, 9), window(0, 9)).is_empty());
}

#[test]
fn a_data_set_unfolds_by_rows() {
    let data = Dataset::from_texts(["first", "second"]);
    let rows = parts(&data, window(0, 9), window(0, 9));
    assert!(rows[0].starts_with("label_names: "), "{rows:?}");
    assert_eq!(rows[2..], ["[0]: first", "[1]: second"]);
    let view = types::view(&data).expect("a known type");
    let (_, row) = view.child(2).expect("a row");
    assert_eq!(
        row.child(0).map(|(name, it)| (name, it.line())),
        Some(("text".to_owned(), "\"first\"".to_owned()))
    );
}

#[derive(Debug, Clone)]
#[expect(dead_code, reason = "read by `Debug`")]
struct Point {
    x: i32,
    tags: Vec<&'static str>,
}

/// Neither `Debug` nor `Sync`.
struct Opaque {
    _held: std::rc::Rc<u8>,
}

/// The tests that store variables of the process take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn ask_now(question: &InspectQuestion, is_idle: bool) -> (InspectAnswer, Vec<String>) {
    answer(question, is_idle)
}

fn found(expression: &str) -> (ValuePath, InspectedValue) {
    let question = InspectQuestion::Find {
        expression: expression.to_owned(),
    };
    match ask_now(&question, true).0 {
        InspectAnswer::Found { path, value } => (path, value),
        other => panic!("{expression}: {other:?}"),
    }
}

fn listed(is_idle: bool) -> Vec<String> {
    let InspectAnswer::Values { values, .. } = ask_now(&InspectQuestion::Variables, is_idle).0
    else {
        panic!("no values");
    };
    let shown = |it: InspectedValue| format!("{}: {}", it.name, it.value.unwrap_or_default());
    values.into_iter().map(shown).collect()
}

#[test]
fn types_of_cells_are_registered_and_forgotten_when_they_are_redefined() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut store = VariableStore::default();
    share(store.variables());
    let point = Point {
        x: 3,
        tags: vec!["a"],
    };
    store.put_variable("points", vec![point.clone(); 3]);
    store.put_variable("point", point);
    store.put_variable(
        "opaque",
        Opaque {
            _held: std::rc::Rc::new(0),
        },
    );
    store.put_variable("number", 7_u8);
    register::begin(1);
    let (_, mut unknown) = ask_now(&InspectQuestion::Variables, true);
    unknown.sort();
    assert_eq!(unknown, ["opaque", "point", "points"]);
    crate::__register_types!(Point, Vec<Point>, Opaque);
    let all = listed(true);
    assert_eq!(all[0], "number: 7");
    assert!(
        all[1].starts_with("opaque: (its type has no `Debug`"),
        "{all:?}"
    );
    assert_eq!(all[2], "point: Point { x: 3, tags: [\"a\"] }");
    // While a cell runs, what is not `Sync` is not read.
    assert_eq!(listed(false)[1], "opaque: (shown when the cell has ended)");
    assert_eq!(listed(false)[2], all[2]);
    let (path, value) = found("points[2].tags[0]");
    assert_eq!(
        (path.steps, value.value.as_deref()),
        (vec![2, 1, 0], Some("\"a\""))
    );
    for wrong in [
        "",
        "points[3]",
        "points[",
        "points.x.y",
        "nothing",
        "point.x.x",
        "points[-1]",
        "point x",
        &"[0]".repeat(1000),
    ] {
        let question = InspectQuestion::Find {
            expression: wrong.to_owned(),
        };
        assert!(
            matches!(ask_now(&question, true).0, InspectAnswer::Missing { .. }),
            "{wrong}"
        );
    }
    // A redefinition: nothing that was registered is used.
    register::begin(2);
    assert_eq!(ask_now(&InspectQuestion::Variables, true).1.len(), 3);
    register::begin(1);
    // A variable that a cell has taken.
    let _: u8 = store.take_variable("number");
    assert!(!listed(false).iter().any(|it| it.starts_with("number")));
}

#[test]
fn a_model_unfolds_by_layers_also_while_a_cell_has_it() {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut store = VariableStore::default();
    share(store.variables());
    let model = Sequential([Dense(4).input_shape(2), Dense(1)]).expect("a valid model");
    store.put_variable("net_of_this_test", model);
    let taken: Sequential = store.take_variable("net_of_this_test");
    let (path, value) = found("net_of_this_test.dense");
    assert_eq!((path.steps.len(), value.named), (1, 2), "{value:?}");
    let (_, weight) = found("net_of_this_test.dense.weight");
    assert_eq!(
        (weight.value.as_deref(), weight.indexed),
        (Some("[4, 2] f32, Local"), 4)
    );
    let (_, statistics) = found("net_of_this_test.dense.weight.statistics");
    assert!(
        statistics.value.is_some_and(|it| it.starts_with("min -")),
        "it is read"
    );
    drop(taken);
    let question = InspectQuestion::Find {
        expression: "net_of_this_test".to_owned(),
    };
    assert!(matches!(
        ask_now(&question, true).0,
        InspectAnswer::Missing { .. }
    ));
}

#[test]
fn a_line_is_short_and_has_no_control_characters() {
    let long = "ä".repeat(10_000);
    assert_eq!(line(&long).chars().count(), LINE);
    assert!(!line("a\u{1b}[31mb\nc").contains(['\u{1b}', '\n']));
}
