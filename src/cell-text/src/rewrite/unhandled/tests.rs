use super::calls::DSL;
use super::{DROPPED, ENDS, LOOKED_AT, LOOKS, RAISES};
use crate::ParsedCell;
use crate::rewrite::rewrite;

/// What becomes of a cell, without what else is written around it.
fn rewritten(cell: &str) -> String {
    let text = rewrite(cell, 7, false).text;
    let (_, text) = text.split_once("/*at ").expect("a statement is marked");
    let mut statements = text.split("0/*at ").map(|statement| {
        let (_, rest) = statement.split_once("*/;").expect("a whole mark");
        rest.trim().to_owned()
    });
    let first = statements.next().unwrap_or_default();
    let all = statements.fold(first, |all, next| format!("{all} § {next}"));
    all.replace("::stratoscope::__result!", "show")
        .replace(LOOKS, "looks();")
        .replace(DROPPED, "dropped(")
        .replace(LOOKED_AT.0, "⟨")
        .replace(&format!("{}{ENDS}", LOOKED_AT.1), "⟩ends")
        .replace(&format!("{}{RAISES}", LOOKED_AT.1), "⟩raises")
}

fn check(cell: &str, expected: &str) {
    assert_eq!(rewritten(cell), expected, "{cell}");
}

#[test]
fn a_dropped_call_of_the_dsl_gets_a_question_mark() {
    for name in DSL {
        check(&format!("{name}!(m, d);"), &format!("{name}!(m, d)?;"));
    }
    check("stratoscope::fit!(m, d);", "stratoscope::fit!(m, d)?;");
    check("fit!(m, d)?;", "fit!(m, d)?;");
    check("let _ = fit!(m, d);", "let _ = fit!(m, d)?;");
    check("_ = fit!(m, d);", "_ = fit!(m, d)?;");
    check("drop(fit!(m, d));", "drop(fit!(m, d)?);");
    check("(fit!(m, d));", "(fit!(m, d)?);");
    check("fit!(m, d)", "show(fit!(m, d)?);");
    check(
        "for e in 0..3 { fit!(m, d, epochs = 1); }",
        "show(for e in 0..3 { fit!(m, d, epochs = 1)?; });",
    );
    check(
        "if a { fit!(m, d); } else { let _ = evaluate!(m, d); }\nb();",
        "if a { fit!(m, d)?; } else { let _ = evaluate!(m, d)?; } § ⟨b()⟩ends;",
    );
    check(
        "loop { { unsafe { fit!(m, d); } } break; }",
        "loop { { unsafe { fit!(m, d)?; } } break; };",
    );
    check(
        "match a { 1 => fit!(m, d), _ => fit!(m, e) };",
        "match a { 1 => fit!(m, d)?, _ => fit!(m, e)? };",
    );
}

#[test]
fn an_answer_that_nobody_reads_is_no_answer() {
    check("fit!(m, d).ok();", "looks();fit!(m, d)?;");
    check(
        "let _ = fit!(m, d).is_err();",
        "looks();let _ = fit!(m, d)?;",
    );
    check(
        "let f = || { fit!(m, d).ok(); };",
        "looks();let f = || {looks(); dropped(fit!(m, d)); };",
    );
    check("m.predict(&d).ok();", "looks();⟨m.predict(&d)⟩ends.ok();");
}

#[test]
fn a_bound_value_is_the_good_one_unless_it_is_asked_for_its_error() {
    check(
        "let h = fit!(m, d);\nh.plot()",
        "let h = fit!(m, d)?; § show(h.plot());",
    );
    check(
        "let (a, b) = (fit!(m, d), fit!(m, e));",
        "let (a, b) = (fit!(m, d)?, fit!(m, e)?);",
    );
    check(
        "let h: History = fit!(m, d);",
        "let h: History = fit!(m, d)?;",
    );
    check("h = fit!(m, d);", "h = fit!(m, d)?;");
    check(
        "let h = if a { fit!(m, d) } else { fit!(m, e) };",
        "let h = if a { fit!(m, d)? } else { fit!(m, e)? };",
    );
    check("fit!(m, d).plot()", "show(fit!(m, d)?.plot());");
    check("fit!(m, d)[\"loss\"];", "fit!(m, d)?[\"loss\"];");
    check("evaluate!(m, d).loss", "show(evaluate!(m, d)?.loss);");
    for (cell, asks) in [
        ("let h = fit!(m, d); if let Err(e) = h { f(e) }", true),
        ("let h = fit!(m, d); if let Err(e) = &h { f(e) }", true),
        (
            "let h = fit!(m, d); match h { Ok(h) => f(h), Err(e) => g(e) }",
            true,
        ),
        ("let h = fit!(m, d); assert!(h.is_err());", true),
        ("let h = fit!(m, d); assert!(matches!(h, Err(_)));", true),
        ("let h = fit!(m, d); let h = h?;", false),
        ("let h = fit!(m, d); h.unwrap();", false),
        ("let h: Result<History, _> = fit!(m, d);", false),
        ("let Ok(h) = fit!(m, d) else { panic!() };", true),
    ] {
        let text = rewritten(cell);
        assert!(!text.contains("d)?"), "{text}");
        assert_eq!(text.contains("looks()"), asks, "{text}");
    }
}

#[test]
fn what_is_asked_at_once_stays() {
    for cell in [
        "if fit!(m, d).is_err() { f() }",
        "match fit!(m, d) { Ok(_) => 1, Err(_) => 2 }",
        "let h = fit!(m, d).unwrap();",
        "let h = fit!(m, d).map_err(f)?;",
        "let all = vec![fit!(m, d)];",
        "f(fit!(m, d))?;",
        "println!(\"{:?}\", fit!(m, d));",
    ] {
        let text = rewritten(cell);
        let text = text
            .replace("looks();", "")
            .replace("show(", "")
            .replace(");", "")
            .replace(';', "");
        let cell = cell.replace(");", "").replace(';', "");
        assert_eq!(text, cell);
    }
}

#[test]
fn a_closure_and_a_function_end_the_cell() {
    check(
        "let f = || { fit!(m, d); 1 };",
        "let f = || { dropped(fit!(m, d)); 1 };",
    );
    check(
        "v.iter().for_each(|d| { let _ = fit!(m, d); });",
        "v.iter().for_each(|d| { let _ = dropped(fit!(m, d)); });",
    );
    check("let f = |d| fit!(m, d);", "let f = |d| fit!(m, d);");
    check(
        "let f = async { fit!(m, d); };",
        "let f = async { dropped(fit!(m, d)); };",
    );
    let item = |cell: &str, expected: &str| {
        let text = rewrite(cell, 7, false).text;
        let text = text.replace(DROPPED, "dropped(").replace(LOOKS, "looks();");
        assert!(text.ends_with(expected), "{text}");
    };
    item("fn f() { fit!(m, d); }", "fn f() { dropped(fit!(m, d)); }");
    item(
        "impl A { fn f() { for d in v { fit!(m, d); } } }",
        "impl A { fn f() { for d in v { dropped(fit!(m, d)); } } }",
    );
    item(
        "fn f() -> bool { g().is_ok() }",
        "fn f() -> bool {looks(); g().is_ok() }",
    );
    item(
        "fn f() { scope!(s, { fit!(m, d); }) }",
        "fn f() { scope!(s, { dropped(fit!(m, d)); }) }",
    );
    item(
        "const fn f() -> u8 { g(); 1 }",
        "const fn f() -> u8 { g(); 1 }",
    );
    item(
        "fn f() -> Result<()> { fit!(m, d)?; Ok(()) }",
        "fn f() -> Result<()> { fit!(m, d)?; Ok(()) }",
    );
}

#[test]
fn calls_of_unknown_types_are_looked_at() {
    check("train(&m);", "⟨train(&m)⟩ends;");
    check("let _ = train(&m);", "let _ = ⟨train(&m)⟩ends;");
    check("m.predict(&d);", "⟨m.predict(&d)⟩ends;");
    check(
        "run.step(10);\nrun.finish()?;",
        "⟨run.step(10)⟩ends; § run.finish()?;",
    );
    check(
        "let f = || { m.predict(&d); };",
        "let f = || { ⟨m.predict(&d)⟩raises; };",
    );
    for cell in [
        "v.push(1);",
        "drop(x);",
        "Some(1);",
        "text.replace(a, b);",
        "std::process::exit(1);",
        "let _ = x;",
    ] {
        check(cell, cell);
    }
}

#[test]
fn scopes_trials_and_repeated_code_are_looked_into() {
    check(
        "scope!(s, { fit!(m, d); });",
        "::stratoscope::cell::enter(&(s))?; § fit!(m, d)?; ::stratoscope::cell::leave();",
    );
    check(
        "let h = scope!(s, { compile!(m); fit!(m, d)});",
        "let h = { let _scope = ::stratoscope::cell::guard(&(s))?; compile!(m)?; fit!(m, d)?};",
    );
    check(
        "sweep!(a = [1] => { fit!(m, d); evaluate!(m, d)? })",
        "show(sweep!(a = [1] => { fit!(m, d)?; evaluate!(m, d)? })?);",
    );
    let text = rewrite("%timeit fit!(m, d)", 1, false).text;
    assert!(text.contains("fit!(m, d)?\n})"), "{text}");
}

#[test]
fn other_macros_of_these_names_stay() {
    check("macro_rules! fit { () => {} }\nfit!();", "fit!();");
    check("mine::fit!(m, d);", "mine::fit!(m, d);");
    let earlier = ParsedCell::of("macro_rules! start { () => {} }").rewrite(1, false);
    let parsed = ParsedCell::of("start!();").with_session_macros(earlier.macros);
    let text = parsed.rewrite(1, false).rewritten.text;
    assert!(text.ends_with("start!();"), "{text}");
}

#[test]
fn places_lead_back_to_the_cell() {
    let cell = "let _ = train(&m);\nfit!(m, d)";
    let rewritten = rewrite(cell, 1, false);
    let around = rewritten.text.find("(match").expect("it is looked at");
    assert_eq!(
        rewritten.original_start(around),
        cell.find("train").expect("it is there")
    );
    for word in ["train", "fit!"] {
        let at = rewritten.text.find(word).expect("it is there");
        assert_eq!(rewritten.original_start(at), rewritten.original_offset(at));
        assert_eq!(
            rewritten.original_offset(at),
            cell.find(word).expect("it is there")
        );
    }
}
