//! No text ends the kernel: any text, and cells that are cut, doubled and shuffled, have an answer or none.

use proptest::prelude::*;
use stratoscope_python::{Known, Sign, answer, cells, reading};

/// All cells of the tables.
fn tables() -> Vec<String> {
    let text = concat!(include_str!("articles.md"), include_str!("cells.md"));
    let blocks = text.split("```python\n").skip(1);
    blocks
        .filter_map(|block| Some(block.split_once("\n```")?.0.to_owned()))
        .collect()
}

fn check(text: &str) {
    if let Some(answer) = answer(text, &Known::default()) {
        let count = text.lines().count();
        for left in &answer.translation.left {
            assert!(left.lines.1 <= count.max(1), "{text}");
        }
        let _ = (answer.cell(), answer.as_note());
    }
}

/// `play` calls itself; each `f` calls the one before twice, so that there are 2⁴⁰ calls.
#[test]
fn functions_that_call_functions_end() {
    check("def play():\n    print(1)\n    play()\nplay()");
    check("def a():\n    b()\ndef b():\n    a()\na()");
    let mut text = "def f0():\n    print(1)\n".to_owned();
    for number in 1..=40 {
        let before = number - 1;
        text += &format!("def f{number}():\n    f{before}()\n    f{before}()\n");
    }
    let answer = answer(&(text + "f40()\nf2()"), &Known::default()).expect("it is Python");
    assert!(answer.translation.lines.len() < 1000);
}

/// Deeper than any program: it is Python, and the card says why it is not translated.
#[test]
fn deep_python_is_python() {
    const DEPTH: usize = 20_000;
    for value in [
        "not ".repeat(DEPTH) + "True",
        "lambda: ".repeat(DEPTH) + "1",
        "-".repeat(DEPTH) + "y",
        "(".repeat(DEPTH) + "1" + &")".repeat(DEPTH),
        "[".repeat(DEPTH) + "1" + &"]".repeat(DEPTH),
        "y".to_owned() + &".z".repeat(DEPTH),
        "y".to_owned() + &"(1)".repeat(DEPTH),
    ] {
        let text = format!("import tensorflow as tf\nx = {value}");
        let known = Known::default();
        let sign = reading(&text, &known).map(|it| it.sign);
        assert_eq!(sign, Some(Sign::Syntax));
        let answer = answer(&text, &known).expect("it is Python");
        // Brackets around a number are the number.
        let is_plain = value.starts_with('(');
        assert_eq!(answer.translation.left.is_empty(), is_plain);
    }
}

/// A block that starts with a letter of several bytes.
#[test]
fn letters_of_several_bytes_begin_a_block() {
    check("if True:\n    x = 1\nelse:\n    écart = 2");
    check("for é in range(3):\n    ü = é");
}

/// A function in a block: what is around it is not around its statements.
#[test]
fn functions_stand_in_loops_and_conditions() {
    check(
        "import tensorflow as tf\nif True:\n    for _ in range(2):\n        def build(units=8):\n            \
         opt = tf.keras.optimizers.SGD(0.1)\n            \
         model = tf.keras.Sequential([tf.keras.layers.Dense(units)])\n            \
         model.compile(optimizer=opt, loss=\"mse\")\n            return model\n",
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn any_lines(lines in prop::collection::vec("[ ]{0,4}(model|x|with|for|def|tf\\.|\\.fit|\\(|\\)|\\[|=|:|'a'|\"|#|1|,| ){0,12}", 0..12)) {
        check(&lines.join("\n"));
    }

    #[test]
    fn cells_that_are_cut(index in 0..10_000_usize, from in 0.0..1.0_f64, to in 0.0..1.0_f64) {
        let cells = tables();
        let cell = &cells[index % cells.len()];
        let place = |share: f64| {
            let mut at = (cell.len() as f64 * share) as usize;
            while !cell.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (from, to) = (place(from.min(to)), place(from.max(to)));
        check(&cell[..from]);
        check(&format!("{}{}", &cell[..from], &cell[to..]));
    }

    #[test]
    fn lines_that_are_left_out_or_doubled(index in 0..10_000_usize, picks in prop::collection::vec(any::<bool>(), 40)) {
        let cells = tables();
        let cell = &cells[index % cells.len()];
        let kept = |wanted: bool| -> String {
            let lines = cell.lines().zip(picks.iter().cycle());
            lines.filter(|(_, pick)| **pick == wanted).map(|(line, _)| line.to_owned() + "\n").collect()
        };
        check(&kept(true));
        check(&(kept(true) + &kept(false)));
    }

    #[test]
    fn cells_of_a_notebook(a in 0..10_000_usize, b in 0..10_000_usize, other in "\\PC{0,60}") {
        let tables = tables();
        let given = [tables[a % tables.len()].clone(), other, tables[b % tables.len()].clone()];
        assert_eq!(cells(&given).cells.len(), 3);
    }
}
