"""Common beginner's mistakes in Rust, one per cell: the error has rustc's code or ours, names the line, explains the
mistake in simple words, and shows none of the code that the kernel or evcxr adds around the cell."""

import json
import re

import pytest

from kernel_client import check_error, without_ansi

GIVEN = """let n = 5;
let v = vec![1, 2, 3];
let name = String::from("Ada");
let point = Point { x: 1.0, y: 2.0 };
let mut counts: std::collections::HashMap<String, u32> = std::collections::HashMap::new();
struct Point { x: f64, y: f64 }
#[derive(Debug)]
enum Shape { Circle(f64), Square(f64) }
fn area(width: f64, height: f64) -> f64 { width * height }
fn shout(text: &str) -> String { text.to_uppercase() }
fn total(numbers: Vec<i32>) -> i32 { numbers.iter().sum() }
mod shop {
    pub struct Till { cents: u64 }
    impl Till {
        pub fn new() -> Self { Till { cents: 0 } }
        fn count(&self) -> u64 { self.cents }
    }
    fn hidden() {}
}"""

# Generated code: names of evcxr and of the kernel, crates, paths of the build.
GENERATED = re.compile(
    r"evcxr|EVCXR|Evcxr|run_user_code|variable_store|CellError|catch_unwind|AssertUnwind|stratoscope::__|stratoscope::cell"
    r"|__compile_arguments|__fit_arguments|`ctx`|ctx::|src/lib\.rs|/tmp/|\$crate|end of input|keyword `fn`"
)

# The source, the error's name, parts of the output, the line.
MISTAKES = {
    # Ends and signs.
    "no semicolon between": ("let a = 1\nlet b = 2;", "CompilationError", ["expected `;`", "let a = 1;"], 1),
    "no semicolon at the end": ("let a = 1", "SC1012", ["no `;` at its end"], 1),
    "no semicolon after a call": ('println!("a")\nprintln!("b");', "CompilationError", ["expected `;`"], 1),
    "unfinished value": ("let a =", "SC1012", ["ends in the middle of a statement"], 1),
    "unfinished sum": ("let a = 1;\nn +", "SC1012", ["ends in the middle of a statement"], 2),
    "unfinished condition": ("if n > 3", "SC1012", ["block"], 1),
    "unfinished function": ("fn twice(x: i32) -> i32", "SC1012", [], 1),
    "unclosed round bracket": ("let a = (1 + 2;", "SC1012", ["`(` is not closed"], 1),
    "unclosed call": ('println!("{}", n;', "SC1012", ["`(` is not closed"], 1),
    "unclosed square bracket": ("let a = vec![1, 2, 3;", "SC1012", ["`[` is not closed"], 1),
    "unclosed brace": ("fn twice(x: i32) -> i32 {\n    2 * x", "SC1012", ["`{` is not closed"], 1),
    "unclosed inner brace": ("for i in 0..3 {\n    if i > 1 {\n        println!(\"{i}\");\n}", "SC1012", ["`{` is not closed"], 2),
    "a bracket too many": ("let a = (1 + 2));", "SC1012", ["`)` has no opening bracket"], 1),
    "the wrong bracket": ("let a = vec![1, 2);", "SC1012", ["`[` is not closed"], 1),
    "unclosed text": ('let a = "hello;', "SC1012", ["not closed"], 1),
    "unclosed text in a call": ('let a = 1;\nprintln!("hello);', "SC1012", ["not closed"], 2),
    "unclosed comment": ("let a = 1; /* one", "SC1012", ["comment is not closed"], 1),
    "single quotes": ("let a = 'hello';", "SC0127", ["double quotes", 'let a = "hello";'], 1),
    "a comment of Python": ("# add\nlet a = 1;", "SC0127", ["`//`"], 1),
    "and": ("if n > 1 and n < 9 { n } else { 0 }", "SC0127", ["&&"], 1),
    # Variables of earlier cells and of this one.
    "no mut, earlier cell": ("n += 1;", "E0594", ["In[1], line 1", "let mut n = 5;"], 1),
    "no mut, earlier vector": ("v.push(4);", "E0596", ["In[1], line 2", "let mut v = vec![1, 2, 3];"], 1),
    "no mut, earlier field": ("point.x = 3.0;", "E0594", ["In[1], line 4", "let mut point = Point"], 1),
    "no mut, this cell": ("let a = 1;\na += 1;", "E0384", ["let mut a = 1;"], 2),
    "no mut, borrowed": ("let words = vec![1];\nlet all = &mut words;\nall.push(2);", "E0596", ["let mut words"], 2),
    "moved": ("let a = name;\nlet b = name;", "E0382", ["use of moved value: `name`"], 2),
    "moved into a function": ("let a = vec![1];\ntotal(a);\nprintln!(\"{:?}\", a);", "E0382", ["borrow of moved value: `a`"], 3),
    "moved by a loop": ("let a = vec![1];\nfor i in a {}\nprintln!(\"{}\", a.len());", "E0382", ["for i in &a {}"], 3),
    "moved into a closure": ("let a = String::new();\nlet b = std::thread::spawn(|| println!(\"{a}\"));\nb.join().unwrap();", "E0373", ["move"], 2),
    "borrowed twice": ("{\n    let mut a = vec![1];\n    let first = &a[0];\n    a.push(2);\n    println!(\"{first}\");\n}", "E0502", ["borrow `a` as mutable"], 4),
    "two mutable borrows": ("{\n    let mut a = 1;\n    let b = &mut a;\n    let c = &mut a;\n    *b += *c;\n}", "E0499", ["more than once"], 4),
    "assigned while borrowed": ("{\n    let mut a = 1;\n    let b = &a;\n    a = 2;\n    println!(\"{b}\");\n}", "E0506", ["borrowed"], 4),
    "a borrow that is kept": ("let a = vec![1];\nlet first = &a[0];", "SC1011", ["refers to what ends with its cell"], 2),
    "moved out of a borrow": ("let all = vec![String::new()];\nlet one = all[0];", "E0507", ["cannot move out of index"], 2),
    "unknown name": ("let a = m + 1;", "E0425", ["`m`"], 1),
    "misspelt name": ("let a = naame.len();", "E0425", ["`naame`", "`name`"], 1),
    "misspelt function": ("let a = shuot(\"x\");", "E0425", ["`shout`"], 1),
    "no let": ("fresh = 3;", "E0425", ["let fresh = 3;"], 1),
    "used before set": ("let a: i32;\nprintln!(\"{a}\");", "E0381", ["`a`"], 2),
    # Types.
    "a text for a number": ('let a: i32 = "5";', "E0308", ["expected `i32`, found `&str`"], 1),
    "a &str for a String": ('let a: String = "x";', "E0308", ["expected `String`, found `&str`", ".to_string()"], 1),
    "a String for a &str": ("let a = shout(name);", "E0308", ["expected `&str`, found `String`", "shout(&name)"], 1),
    "texts added": ('let a = "x" + "y";', "E0369", ["cannot add `&str` to `&str`"], 1),
    "integer and float": ("let a = n * 2.5;", "E0277", ["cannot multiply", "as in `n as f64`"], 1),
    "float and integer in one": ("let a = 1.5 + 1;", "E0277", ["cannot add", "as in `1.0`"], 1),
    "two integers": ("let a = 1_u8;\nlet b = 1_i32;\nlet c = a + b;", "E0308", ["expected `u8`, found `i32`"], 3),
    "indexed by an i32": ("let i = 1_i32;\nv[i]", "E0277", ["cannot be indexed by `i32`"], 2),
    "an Option for its value": ("let a: i32 = v.first();", "E0308", ["expected `i32`, found `Option<&i32>`"], 1),
    "an Option is added to": ("let a = v.iter().max() + 1;", "E0369", ["Option"], 1),
    "a Result for its value": ('let a: i32 = "5".parse::<i32>();', "E0308", ["found `Result<"], 1),
    "no question mark": ('let a = std::fs::read_to_string("x").len();', "E0599", ["no method named `len`"], 1),
    "if is not a bool": ("if n { 1 } else { 2 }", "E0308", ["expected `bool`"], 1),
    "= for ==": ("if n = 5 { 1 } else { 2 }", "E0308", ["n == 5"], 1),
    "arms of two types": ('let a = if n > 1 { 1 } else { "one" };', "E0308", ["`if` and `else` have incompatible types"], 1),
    "if without else": ("let a = if n > 1 { 1 };", "E0317", ["else"], 1),
    "nothing is returned": ("fn twice(x: i32) -> i32 {\n    2 * x;\n}", "E0308", ["expected `i32`, found `()`", "remove this semicolon"], 1),
    "another type is returned": ("fn half(x: i32) -> i32 {\n    x as f64 / 2.0\n}", "E0308", ["expected `i32`, found `f64`"], 2),
    "no return type": ("fn twice(x: i32) {\n    2 * x\n}", "E0308", ["-> i32"], 2),
    "no parameter type": ("fn twice(x) -> i32 { 2 * x }", "CompilationError", ["expected one of"], 1),
    "unknown type": ("let a: Strng = String::new();", "E0425", ["`Strng`", "`String`"], 1),
    "a type that cannot be worked out": ("let a = Vec::new();", "E0282", ["type annotations needed"], 1),
    "an overflow": ("let a: u8 = 300;", "overflowing_literals", ["out of range for `u8`"], 1),
    "printed without Display": ("println!(\"{}\", v);", "E0277", ["`Vec<i32>` doesn't implement", "{:?}"], 1),
    "printed without Debug": ("println!(\"{:?}\", point);", "E0277", ["`Point` doesn't implement `std::fmt::Debug`", "derive(Debug)"], 1),
    "one value too few in a format": ('println!("{} {}", n);', "CompilationError", ["2 positional arguments"], 1),
    # Functions, methods, fields.
    "too few values": ("area(2.0)", "E0061", ["takes 2 arguments but 1"], 1),
    "too many values": ("area(2.0, 3.0, 4.0)", "E0061", ["takes 2 arguments but 3"], 1),
    "values by name": ("area(width = 2.0, height = 3.0)", "SC0125", ["area(2.0, 3.0)"], 1),
    "an integer for a float": ("area(2, 3.0)", "E0308", ["expected `f64`, found integer"], 1),
    "unknown method": ("v.lenght()", "E0599", ["no method named `lenght`"], 1),
    "a field for a method": ("v.len", "E0616", ["len"], 1),
    "unknown field": ("point.z", "E0609", ["no field `z` on type `Point`"], 1),
    "a field is missing": ("let p = Point { x: 1.0 };", "E0063", ["missing field `y`"], 1),
    "unknown field is given": ("let p = Point { x: 1.0, y: 1.0, z: 1.0 };", "E0560", ["no field named `z`"], 1),
    "private function": ("shop::hidden()", "E0603", ["function `hidden` is private"], 1),
    "private field": ("let t = shop::Till::new();\nt.cents", "E0616", ["field `cents` of struct `Till` is private"], 2),
    "private method": ("shop::Till::new().count()", "E0624", ["method `count` is private"], 1),
    "trait not in scope": ("let mut text = String::new();\nstd::io::stdin().lock().read_line(&mut text);", "E0599", ["BufRead"], 2),
    "no import": ("let m: HashMap<String, i32> = HashMap::new();", "E0425", ["`use std::collections::HashMap;`"], 1),
    "unknown module": ("use std::colections::HashMap;", "E0432", ["colections"], 1),
    "unknown macro": ('prinln!("x");', "CompilationError", ["cannot find macro `prinln`", "println"], 1),
    "no ! of a macro": ('println("x");', "E0423", ["macro"], 1),
    "a type's function as a method": ("let s = String.new();", "E0423", ["String"], 1),
    # Patterns, lifetimes, traits.
    "a match is not exhaustive": ("let shape = Shape::Circle(1.0);\nmatch shape {\n    Shape::Circle(r) => r,\n}", "E0004", ["Square"], 2),
    "an integer's match": ("match n {\n    1 => \"one\",\n    2 => \"two\",\n}", "E0004", ["not covered"], 1),
    "arms of a match": ("match n {\n    1 => \"one\",\n    _ => 2,\n}", "E0308", ["`match` arms have incompatible types"], 3),
    "no lifetime": ("fn longer(a: &str, b: &str) -> &str {\n    if a.len() > b.len() { a } else { b }\n}", "E0106", ["missing lifetime specifier"], 1),
    "returns what ends": ("fn make() -> &'static str {\n    let s = String::from(\"x\");\n    &s\n}", "E0515", ["cannot return reference to local variable `s`"], 3),
    "a method is missing": ("struct Dog;\nimpl Iterator for Dog {\n    type Item = u8;\n}", "E0046", ["missing: `next`"], 2),
    "no Clone": ("let p = point.clone();", "E0599", ["no method named `clone`"], 1),
    "not comparable": ("struct Cat;\nCat == Cat", "E0369", ["`==` cannot be applied to type `Cat`"], 2),
    "a trait bound": ("fn most<T>(a: T, b: T) -> T { if a > b { a } else { b } }", "E0369", ["PartialOrd"], 1),
    "a closure that is kept": ("let f = |x| x + n;", "SC1011", ["fn f(x: i32, n: i32) -> i32 { x + n }",
                               "Box::new(move |x| x + n)"], 1),
    "question mark in a function": ("fn read() -> usize {\n    let s = std::fs::read_to_string(\"x\")?;\n    s.len()\n}", "SC1014",
                                    ["`read` does not", "Result<usize, Box<dyn std::error::Error>>"], 2),
    "question mark in a closure": ("fn size() -> usize {\n    let read = || { std::fs::read_to_string(\"x\")?.len() };\n    read()\n}",
                                   "E0277", ["can only be used in a closure that returns"], 2),
    "an Option's question mark": ("let a = v.first()?;", "E0277", ["on `Result`s, not `Option`s, in a cell"], 1),
    "increment": ("let mut a = 1;\na++;", "CompilationError", ["+= 1"], 2),
    "ternary": ("let a = n > 1 ? 2 : 3;", "CompilationError", [], 1),
    "null": ("let a = null;", "E0425", ["`null`", "`use std::ptr::null;`"], 1),
    "True": ("let a = True;", "E0425", ["true"], 1),
    "a loop over a number": ("for i in 5 { }", "E0277", ["is not an iterator"], 1),
    "a negative unsigned": ("let a: u32 = -1;", "E0600", ["cannot apply unary operator `-` to type `u32`"], 1),
    "a call of a variable": ("n(3)", "E0618", ["expected function, found `i32`"], 1),
    "index of a map": ("counts[\"a\"] = 1;", "E0594", ["insert"], 1),
}


def shown(cell):
    """Everything that a front end receives for a cell, except its source."""
    texts = []
    for message in cell.messages:
        if message.kind != "execute_input":
            texts.append(json.dumps(message.content, ensure_ascii=False))
    reply = dict(cell.reply)
    return without_ansi("\n".join([*texts, json.dumps(reply, ensure_ascii=False)]).replace("\\u001b", "\x1b"))


def messages(cell):
    """The visible text, on one line."""
    error = cell.errors[0]
    parts = [error["evalue"], *error["traceback"], cell.shown()]
    return " ".join(without_ansi("\n".join(parts)).split())


@pytest.fixture(scope="module", autouse=True)
def given(kernel):
    kernel.run(GIVEN)


@pytest.mark.sampled
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained_in_the_words_of_the_cell(kernel, mistake):
    code, ename, words, line = MISTAKES[mistake]
    cell = kernel.execute(code)
    assert cell.errors, f"{code!r} is no error"
    everything = shown(cell)
    generated = GENERATED.search(everything)
    assert not generated, everything[max(0, generated.start() - 200):generated.end() + 200]
    check_error(cell, ename, line=line)
    for word in words:
        assert " ".join(word.split()) in messages(cell), f"{word!r} is not in: {messages(cell)}"


def test_a_fix_for_a_missing_mut_works(kernel):
    kernel.run("let mut n = n;")
    assert kernel.run("n += 1;\nn").shown() == "6"
    assert kernel.run("n += 1;\nn").shown() == "7"
    kernel.run("let n = 5;")


def test_a_fix_for_a_closure_works(kernel):
    kernel.run("let f: Box<dyn Fn(i32) -> i32> = Box::new(move |x| x + n);")
    assert kernel.run("f(1)").shown() == "6"


def test_variables_are_kept_through_all_mistakes(kernel):
    assert kernel.run('format!("{n} {v:?} {name}")').shown() == '"5 [1, 2, 3] Ada"'
