//! What calls expand to.

use syn::Block;

use super::*;

fn statements(code: &str) -> Vec<Stmt> {
    Block::parse_within.parse_str(code).expect("parses")
}

/// The items of the last statement, in the way `expected` is written.
#[track_caller]
fn check(definitions: &str, call: &str, expected: Option<&str>) {
    let macros = Macros::among(&statements(definitions));
    let call = statements(call);
    let called = match call.last() {
        Some(Stmt::Macro(call)) => &call.mac,
        Some(Stmt::Expr(syn::Expr::Macro(call), _)) => &call.mac,
        other => panic!("{other:?}"),
    };
    let items = macros.items_of(called);
    let items = items.map(|code| syn::parse_file(&code).expect("parses").items);
    let expected = expected.map(|code| syn::parse_file(code).expect("parses").items);
    assert_eq!(items, expected, "{definitions} {call:?}");
}

#[test]
fn items_are_written_out() {
    let make = "macro_rules! make { ($n:ident) => { #[derive(Debug)] struct $n { x: i32 } }; }";
    check(
        make,
        "make!(Q);",
        Some("#[derive(Debug)] struct Q { x: i32 }"),
    );
    check(
        make,
        "make! { Q }",
        Some("#[derive(Debug)] struct Q { x: i32 }"),
    );
    check(
        make,
        "make!(Q)",
        Some("#[derive(Debug)] struct Q { x: i32 }"),
    );
    check(
        "macro_rules! both { ($n:ident, $v:expr) => { const $n: i32 = $v * 2; fn two() -> i32 { 2 } } }",
        "both!(N, 1 + 1);",
        Some("const N: i32 = (1 + 1) * 2; fn two() -> i32 { 2 }"),
    );
    check(
        "macro_rules! choice { ($n:ident { $($v:ident = $i:literal),* $(,)? }) => \
         { enum $n { $($v),* } impl $n { fn of(&self) -> u8 { match self { $($n::$v => $i),* } } } } }",
        "choice!(E { A = 1, B = 2, });",
        Some(
            "enum E { A, B } impl E { fn of(&self) -> u8 { match self { E::A => 1, E::B => 2 } } }",
        ),
    );
    check(
        "macro_rules! empty { ($($t:ty),+) => { $( impl Empty for $t { fn empty() -> Self { $t::new() } } )+ } }",
        "empty!(String, Vec<u8>);",
        Some(
            "impl Empty for String { fn empty() -> Self { String::new() } } \
             impl Empty for Vec<u8> { fn empty() -> Self { <Vec<u8>>::new() } }",
        ),
    );
}

#[test]
fn rules_are_tried_in_order_and_macros_call_each_other() {
    check(
        "macro_rules! all { () => {}; ($n:ident $($rest:ident)*) => { struct $n; all!($($rest)*); } }",
        "all!(A B C);",
        Some("struct A; struct B; struct C;"),
    );
    check(
        "macro_rules! inner { ($v:vis $n:ident: $($t:tt)*) => { $v type $n = $($t)*; } } \
         macro_rules! outer { ($n:ident) => { inner!(pub $n: Vec<u8>); } }",
        "outer!(Bytes);",
        Some("pub type Bytes = Vec<u8>;"),
    );
    check(
        "macro_rules! matrix { ($($n:ident: [$($v:expr),*]);*) => { $( const $n: &[i32] = &[$($v),*]; )* } }",
        "matrix!(A: [1, 2]; B: []);",
        Some("const A: &[i32] = &[1, 2]; const B: &[i32] = &[];"),
    );
}

#[test]
fn what_is_more_than_items_stays_a_call() {
    check("", "println!(\"x\");", None);
    check(
        "macro_rules! say { () => { println!(\"x\") } }",
        "say!();",
        None,
    );
    check(
        "macro_rules! value { ($x:expr) => { $x + 1 } }",
        "value!(1);",
        None,
    );
    check(
        "macro_rules! local { ($n:ident) => { let $n = 1; } }",
        "local!(x);",
        None,
    );
    check("macro_rules! none { () => {} }", "none!();", None);
    check(
        "macro_rules! one { (a) => { struct A; } }",
        "one!(b);",
        None,
    );
    check(
        "macro_rules! ever { () => { struct A; ever!(); } }",
        "ever!();",
        None,
    );
    check(
        "macro_rules! odd { ($x:odd) => { struct A; } }",
        "odd!(b);",
        None,
    );
}
