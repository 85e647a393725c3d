//! What a debugger for machine code needs to know of Rust and of the protocol's texts: hit counts, log messages, the names
//! of functions and types, and the conditions that its evaluator, which speaks C++, understands.

/// When a breakpoint with a hit count stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitCondition {
    /// `3`, `== 3`: the third time.
    Equal(u64),
    /// `>= 3`: from the third time on.
    AtLeast(u64),
    /// `> 3`
    Above(u64),
    /// `< 3`
    Below(u64),
    /// `<= 3`
    AtMost(u64),
    /// `% 3`: every third time.
    Every(u64),
}

impl HitCondition {
    /// Reads a condition.
    ///
    /// # Errors
    /// It is none; the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text
            .find(|it: char| it.is_ascii_digit())
            .unwrap_or(text.len());
        let (sign, number) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| not_a_count(text))?;
        match sign.trim() {
            "" | "=" | "==" => Ok(Self::Equal(number)),
            ">=" => Ok(Self::AtLeast(number)),
            ">" => Ok(Self::Above(number)),
            "<=" => Ok(Self::AtMost(number)),
            "<" => Ok(Self::Below(number)),
            "%" if number > 0 => Ok(Self::Every(number)),
            _ => Err(not_a_count(text)),
        }
    }

    /// Whether it stops at this hit, counted from 1.
    pub fn stops(self, hit: u64) -> bool {
        match self {
            Self::Equal(count) => hit == count,
            Self::AtLeast(count) => hit >= count,
            Self::Above(count) => hit > count,
            Self::AtMost(count) => hit <= count,
            Self::Below(count) => hit < count,
            Self::Every(count) => hit.is_multiple_of(count),
        }
    }
}

fn not_a_count(text: &str) -> String {
    let text: String = text.chars().take(100).collect();
    format!("`{text}` is no hit count: write `3`, `>= 3`, `> 3`, `<= 3`, `< 3` or `% 3`")
}

/// A piece of the message of a log point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it is.
    Text(String),
    /// An expression in braces.
    Expression(String),
}

/// The pieces of `x is {x}`. Two braces stand for one.
pub fn message(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        plain += &rest[..at];
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            plain += brace;
            rest = after;
        } else if let ("{", Some((expression, after))) = (brace, rest.split_once('}')) {
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Expression(expression.trim().to_owned()));
            rest = after;
        } else {
            plain += brace;
        }
    }
    plain += rest;
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    pieces
}

/// Why an expression is refused that calls or assigns.
const CALLS: &str =
    "calls and assignments are not evaluated, since they would run code of the stopped program";

/// A Rust expression as the debugger's evaluator reads it: `list.len()` is a field of a `Vec` there.
///
/// # Errors
/// It calls something or assigns, which would run code of the program or change it; the reason.
pub fn expression(rust: &str) -> Result<String, String> {
    let text = rust.trim().replace(".len()", ".len");
    let bytes = text.as_bytes();
    let before = |at: usize| at.checked_sub(1).map_or(b' ', |at| bytes[at]);
    let is_call = |at: usize| {
        // A macro has its mark behind the name; without a name it is a `!` of logic.
        let name = text[..at].trim_end();
        let name = name.strip_suffix('!').unwrap_or(name).as_bytes().last();
        name.is_some_and(|it| it.is_ascii_alphanumeric() || b"_>)]".contains(it))
    };
    let assigns = |at: usize| {
        let is_comparison = bytes.get(at + 1) == Some(&b'=') || b"=!<>".contains(&before(at));
        let is_shift = text[..at].ends_with("<<") || text[..at].ends_with(">>");
        !is_comparison || is_shift
    };
    let is_refused = bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'(' => is_call(at),
        b'=' => assigns(at),
        b'+' | b'-' => before(at) == *byte,
        b';' | b'{' | b'}' => true,
        _ => false,
    });
    match is_refused {
        true => Err(CALLS.to_owned()),
        false => Ok(text),
    }
}

/// Whether the value of a condition, as the debugger prints it, says that it holds.
pub fn holds(value: &str) -> bool {
    !matches!(value.trim(), "false" | "0")
}

/// Integers and the like, of which the debugger knows C's names.
const TYPES: [(&str, &str); 11] = [
    ("unsigned char", "u8"),
    ("unsigned short", "u16"),
    ("unsigned int", "u32"),
    ("unsigned long", "u64"),
    ("unsigned __int128", "u128"),
    ("signed char", "i8"),
    ("short", "i16"),
    ("int", "i32"),
    ("long", "i64"),
    ("float", "f32"),
    ("double", "f64"),
];

/// The type as Rust writes it, as far as the debugger's name tells.
pub fn type_name(name: &str) -> String {
    let known = TYPES.iter().find(|(theirs, _)| *theirs == name);
    let name = known.map_or(name, |(_, rust)| rust);
    let short = [
        ("alloc::string::", ""),
        ("alloc::vec::", ""),
        (", alloc::alloc::Global", ""),
        ("core::option::", ""),
        ("core::result::", ""),
        ("ctx::", ""),
    ];
    let name = short.iter().fold(name.to_owned(), |name, (long, short)| {
        name.replace(long, short)
    });
    TYPES.iter().fold(name, |name, (theirs, rust)| {
        ["<", ", ", "&", "("].iter().fold(name, |name, before| {
            [">", ",", ")"].iter().fold(name, |name, behind| {
                name.replace(
                    &format!("{before}{theirs}{behind}"),
                    &format!("{before}{rust}{behind}"),
                )
            })
        })
    })
}

/// The name of a function as a user knows it: without the crate of the cell and without a hash.
pub fn function_name(name: &str) -> String {
    let name = name.rsplit_once("::h").map_or(name, |(front, hash)| {
        let is_hash = hash.len() == 16 && hash.chars().all(|it| it.is_ascii_hexdigit());
        if is_hash { front } else { name }
    });
    let name = name.replace("_$u7b$$u7b$closure$u7d$$u7d$", "{{closure}}");
    name.strip_prefix("ctx::").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_counts_are_read() {
        let stops = |text: &str| -> Vec<u64> {
            let condition = HitCondition::parse(text).expect(text);
            (1..=6).filter(|hit| condition.stops(*hit)).collect()
        };
        assert_eq!(stops(" 3 "), [3]);
        assert_eq!(stops("== 2"), [2]);
        assert_eq!(stops(">=5"), [5, 6]);
        assert_eq!(stops("> 5"), [6]);
        assert_eq!(stops("<= 2"), [1, 2]);
        assert_eq!(stops("<2"), [1]);
        assert_eq!(stops("% 2"), [2, 4, 6]);
        for text in ["", "often", "% 0", "3 times", "!= 2", "-1"] {
            assert!(
                HitCondition::parse(text).is_err_and(|it| it.contains(">= 3")),
                "{text}"
            );
        }
    }

    #[test]
    fn messages_have_expressions_in_braces() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let value = |text: &str| Piece::Expression(text.to_owned());
        assert_eq!(
            message("x is { x }, y {y}"),
            [text("x is "), value("x"), text(", y "), value("y")]
        );
        assert_eq!(message("{{x}} } {"), [text("{x} } {")]);
        assert_eq!(message("plain"), [text("plain")]);
        assert_eq!(message(""), []);
    }

    #[test]
    fn conditions_are_those_of_the_debugger() {
        let read = |rust: &str| expression(rust).unwrap_or_else(|_| "refused".to_owned());
        assert_eq!(read(" list.len() > 3 "), "list.len > 3");
        for plain in [
            "a == 3 && (b - -1) <= c[0]",
            "a >= 1 || !(x != y)",
            "a << 2 > 1",
        ] {
            assert_eq!(read(plain), plain);
        }
        for refused in [
            "double(3)",
            "f (3)",
            "x = 3",
            "x += 1",
            "x <<= 1",
            "x++",
            "a; b",
            "list.iter().sum()",
            "f::<u8>(1)",
            "{ x }",
            "vec!(1)",
        ] {
            assert_eq!(read(refused), "refused", "{refused}");
        }
        assert!(holds("true") && holds("7") && !holds("false\n") && !holds("0"));
    }

    #[test]
    fn names_are_those_of_rust() {
        for (theirs, rust) in [
            ("unsigned long", "u64"),
            ("alloc::string::String", "String"),
            ("alloc::vec::Vec<int, alloc::alloc::Global>", "Vec<i32>"),
            (
                "core::option::Option<alloc::vec::Vec<float, alloc::alloc::Global>>",
                "Option<Vec<f32>>",
            ),
            ("ctx::Point", "Point"),
            ("bool", "bool"),
        ] {
            assert_eq!(type_name(theirs), rust);
        }
        for (theirs, rust) in [
            ("ctx::double::h1979f26dcd65b4b0", "double"),
            ("ctx::half::h1979f26dcd65b4b0", "half"),
            (
                "ctx::f::_$u7b$$u7b$closure$u7d$$u7d$::ha1979f26dcd65b4b",
                "f::{{closure}}",
            ),
            ("ctx::hello::hide", "hello::hide"),
            ("run_user_code_3", "run_user_code_3"),
        ] {
            assert_eq!(function_name(theirs), rust);
        }
    }
}
