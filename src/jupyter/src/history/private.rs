//! Which cells the file of the history never holds: those that the user marks, and those that name a secret.

/// Words in the name of a variable whose value is a secret.
const NAMES: [&str; 7] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "API_KEY",
    "ACCESS_KEY",
];

/// What the tokens of well-known services begin with: Hugging Face, GitHub, OpenAI, Slack, Amazon.
const PREFIXES: [&str; 7] = [
    "hf_",
    "ghp_",
    "github_pat_",
    "sk-",
    "xoxb-",
    "xoxp-",
    "AKIA",
];

/// Characters behind a prefix that make it a token, if a digit is among them.
const LONG: usize = 16;
/// Letters and digits without a break that make it a token even without a digit: those of Hugging Face may be 34 letters.
const UNBROKEN: usize = 30;

/// Whether a cell belongs into the file.
pub fn is_kept(code: &str) -> bool {
    let is_marked = code.starts_with([' ', '\t']);
    let is_clear = code.trim() == "%history clear";
    let is_secret = code.lines().any(names_a_secret) || code.split(is_no_token).any(is_token);
    !(is_marked || is_clear || is_secret)
}

/// A line that sets an environment variable for a secret: `%env HF_TOKEN=…`, `!export API_KEY=…`, `set_var("API_KEY", …)`.
fn names_a_secret(line: &str) -> bool {
    let line = line.trim_start();
    let sets = line.starts_with("%env") || line.starts_with('!') || line.contains("set_var");
    let line = line.to_uppercase();
    sets && NAMES.iter().any(|name| line.contains(name))
}

fn is_no_token(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn is_token(word: &str) -> bool {
    let rest = PREFIXES.iter().find_map(|it| word.strip_prefix(it));
    rest.is_some_and(|rest| {
        let has_digit = rest.contains(|c: char| c.is_ascii_digit());
        let longest = rest.split(['_', '-']).map(str::len).max();
        (rest.len() >= LONG && has_digit) || longest >= Some(UNBROKEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_cells_and_secrets_are_not_kept() {
        for code in [
            " let x = 1;",
            "\tx",
            "%history clear",
            "%env HF_TOKEN=abc",
            "let x = 1;\n%env my_password=abc",
            "!export API_KEY=abc && run",
            "unsafe { std::env::set_var(\"SECRET\", \"x\") };",
            "let key = \"hf_AbCdEfGhIjKlMnOpQrSt1\";",
            "let key = \"hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh\";",
            "!curl -H 'Authorization: Bearer sk-abcdef0123456789abcdef'",
        ] {
            assert!(!is_kept(code), "{code}");
        }
        for code in [
            "let x = 1;\n    x",
            "%env RUST_LOG=debug",
            "let token = \"[CLS]\";",
            "let hf_model_of_the_first_layer = 1;",
            "%history -n 3",
            "let task_b1 = 2 - 1;",
        ] {
            assert!(is_kept(code), "{code}");
        }
    }
}
