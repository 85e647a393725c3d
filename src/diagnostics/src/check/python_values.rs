//! Values of Python as Rust, as far as their text decides: `len(t)`, `x ** 2`, `a and not b`, `t.lower()`.

use super::python_expressions::{double_quoted, end_of, segments_of};

/// Where one of some words stands outside of brackets between two places, and which. In `code` texts are blank.
pub(super) fn word_between<'w>(
    code: &str,
    start: usize,
    end: usize,
    words: &[&'w str],
) -> Option<(usize, &'w str)> {
    let mut depth = 0_usize;
    let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || "_.".contains(it));
    for (at, sign) in code.get(start..end)?.char_indices() {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let here = start + at;
        if depth > 0 || is_part(code[..here].chars().next_back()) {
            continue;
        }
        let word = words.iter().find(|word| {
            let rest = &code[here..end];
            rest.starts_with(**word) && !is_part(rest[word.len()..].chars().next())
        });
        if let Some(word) = word {
            return Some((here, word));
        }
    }
    None
}

/// The value as Rust: what is not known stays as it is.
pub(super) fn rust_of(value: &str) -> String {
    let value = double_quoted(value.trim());
    let code = super::scan::scan(&value).code;
    if code.len() != value.len() {
        return value;
    }
    conditional(&value, &code)
        .or_else(|| joined(&value, &code))
        .or_else(|| contained(&value, &code))
        .or_else(|| power(&value, &code))
        .unwrap_or_else(|| methods(&called(&value, &code)))
}

/// `a if test else b`.
fn conditional(value: &str, code: &str) -> Option<String> {
    let (test, _) = word_between(code, 0, code.len(), &["if"])?;
    let (other, _) = word_between(code, test, code.len(), &["else"])?;
    let (yes, no) = (&value[..test], &value[other + "else".len()..]);
    let test = &value[test + "if".len()..other];
    Some(format!(
        "if {} {{ {} }} else {{ {} }}",
        rust_of(test),
        rust_of(yes),
        rust_of(no)
    ))
}

/// `a and b`, `a or b`, `not a`.
fn joined(value: &str, code: &str) -> Option<String> {
    for (word, sign) in [("or", "||"), ("and", "&&")] {
        if let Some((at, _)) = word_between(code, 0, code.len(), &[word]) {
            let (left, right) = (&value[..at], &value[at + word.len()..]);
            return Some(format!("{} {sign} {}", rust_of(left), rust_of(right)));
        }
    }
    let rest = value.strip_prefix("not ")?;
    let rest = rust_of(rest);
    let is_simple = rest
        .chars()
        .all(|it| it.is_alphanumeric() || "_.()".contains(it));
    Some(if is_simple {
        format!("!{rest}")
    } else {
        format!("!({rest})")
    })
}

/// `a in b`, `a not in b`.
fn contained(value: &str, code: &str) -> Option<String> {
    let (at, _) = word_between(code, 0, code.len(), &["in"])?;
    let item = value[..at].trim();
    let (item, mark) = match item.strip_suffix(" not") {
        Some(item) => (item.trim(), "!"),
        None => (item, ""),
    };
    let borrow = if item.starts_with('"') { "" } else { "&" };
    let list = rust_of(&value[at + "in".len()..]);
    Some(format!("{mark}{list}.contains({borrow}{})", rust_of(item)))
}

/// `x ** 2`, wherever it stands in the value.
fn power(value: &str, code: &str) -> Option<String> {
    let at = code.find("**")?;
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    let before = code[..at].trim_end();
    let start = match before.strip_suffix(')') {
        Some(inside) => inside.rfind('(')?,
        None => before.trim_end_matches(is_name).len(),
    };
    let behind = at + "**".len() + code[at + 2..].len() - code[at + 2..].trim_start().len();
    let length = code[behind..].find(|it: char| !(it.is_ascii_digit() || it == '.'));
    let end = length.map_or(code.len(), |length| behind + length);
    let (base, exponent) = (&value[start..before.len()], &value[behind..end]);
    if base.is_empty() || exponent.is_empty() || code[..start].ends_with('.') {
        return None;
    }
    let is_all = start == 0 && end == value.len();
    let written = match exponent {
        "2" if base.chars().all(is_name) && is_all => format!("{base} * {base}"),
        "2" if base.chars().all(is_name) => format!("({base} * {base})"),
        it if it.contains('.') => format!("{base}.powf({it})"),
        it => format!("{base}.powi({it})"),
    };
    Some(rust_of(&format!(
        "{}{written}{}",
        &value[..start],
        &value[end..]
    )))
}

/// The functions of Python that are methods or conversions here.
fn called(value: &str, code: &str) -> String {
    const NAMES: [&str; 6] = ["len", "str", "int", "float", "abs", "round"];
    let is_part = |it: char| it.is_alphanumeric() || "_.".contains(it);
    let found = NAMES.iter().filter_map(|name| {
        let call = format!("{name}(");
        let mut places = code.match_indices(call.as_str()).map(|(at, _)| at);
        let at = places.find(|at| !code[..*at].ends_with(is_part))?;
        Some((at, *name))
    });
    let Some((at, name)) = found.min() else {
        return value.to_owned();
    };
    let open = at + name.len() + 1;
    let close = end_of(code, open, &[]);
    let inside = &value[open..close];
    if close >= value.len() || segments_of(code, open, close).len() != 1 {
        return value.to_owned();
    }
    let inner = rust_of(inside);
    let is_simple = !inner.contains(' ') && !inner.starts_with(['-', '!', '&']);
    let inner = if is_simple {
        inner
    } else {
        format!("({inner})")
    };
    let written = match name {
        "len" => format!("{inner}.len()"),
        "str" => format!("{inner}.to_string()"),
        "int" => format!("({inner} as i64)"),
        "float" => format!("({inner} as f64)"),
        name => format!("{inner}.{name}()"),
    };
    let whole = written.trim_start_matches('(');
    let is_all = at == 0 && close + 1 == value.len();
    let written = match whole.strip_suffix(')') {
        Some(bare) if is_all && written.starts_with('(') && bare.contains(" as ") => {
            bare.to_owned()
        }
        _ => written,
    };
    let rest = &value[close + 1..];
    format!("{}{written}{}", &value[..at], rust_of_rest(rest))
}

fn rust_of_rest(rest: &str) -> String {
    let code = super::scan::scan(rest).code;
    match code.len() == rest.len() {
        true => called(rest, &code),
        false => rest.to_owned(),
    }
}

/// Methods of texts and lists, words and signs that have other names here.
fn methods(value: &str) -> String {
    const METHODS: [(&str, &str); 10] = [
        (".lower()", ".to_lowercase()"),
        (".upper()", ".to_uppercase()"),
        (".strip()", ".trim().to_owned()"),
        (".lstrip()", ".trim_start().to_owned()"),
        (".rstrip()", ".trim_end().to_owned()"),
        (".startswith(", ".starts_with("),
        (".endswith(", ".ends_with("),
        (".isdigit()", ".chars().all(|it| it.is_ascii_digit())"),
        (
            ".split()",
            ".split_whitespace().map(str::to_owned).collect::<Vec<_>>()",
        ),
        ("[-1]", ".last().cloned().expect(\"an element\")"),
    ];
    let mut value = value.to_owned();
    for (python, rust) in METHODS {
        value = value.replace(python, rust);
    }
    match value.as_str() {
        "True" => "true".to_owned(),
        "False" => "false".to_owned(),
        _ => formatted(&value).unwrap_or(value),
    }
}

/// `f"{x}"`.
fn formatted(value: &str) -> Option<String> {
    let text = value.strip_prefix('f')?;
    let is_one = text.starts_with('"') && text.ends_with('"') && text.matches('"').count() == 2;
    is_one.then(|| format!("format!({text})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_python_are_written_in_rust() {
        for (python, expected) in [
            ("len(t)", "t.len()"),
            ("len(t) + 1", "t.len() + 1"),
            (
                "len(t.split())",
                "t.split_whitespace().map(str::to_owned).collect::<Vec<_>>().len()",
            ),
            ("str(x)", "x.to_string()"),
            ("int(x)", "x as i64"),
            ("int(x) + 1", "(x as i64) + 1"),
            ("float(x) / 2.0", "(x as f64) / 2.0"),
            ("abs(a - b)", "(a - b).abs()"),
            ("x ** 2", "x * x"),
            ("x ** 3", "x.powi(3)"),
            ("2.0 / x ** 2 + y ** 2", "2.0 / (x * x) + (y * y)"),
            ("(a - b) ** 2", "(a - b).powi(2)"),
            ("x > 1 and not done", "x > 1 && !done"),
            ("'a' in t", "t.contains(\"a\")"),
            ("x not in seen", "!seen.contains(&x)"),
            (
                "t.lower() if t else 'none'",
                "if t { t.to_lowercase() } else { \"none\" }",
            ),
            ("f'{x} of it'", "format!(\"{x} of it\")"),
            ("True", "true"),
            ("x * 2 + y", "x * 2 + y"),
        ] {
            assert_eq!(rust_of(python), expected);
        }
    }
}
