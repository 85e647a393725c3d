//! `%steer`: where runs can be read and steered from outside.

use stratoscope_session::{SteerRequest, SteerSocket};

use super::request::Invalid;

/// What the operand asks.
pub(super) fn parse(operand: &str) -> Result<SteerRequest, Invalid> {
    match operand {
        "" => Ok(SteerRequest::Show),
        "socket" => Ok(SteerRequest::Open),
        "off" => Ok(SteerRequest::Close),
        other => Err(Invalid::new(
            "UnknownOption",
            format!(
                "`%steer socket` opens a socket for runs, `%steer off` closes it; there is no `%steer {other}`"
            ),
        )),
    }
}

/// What is shown: the place of the key, and never the key, because outputs are saved with the notebook.
pub(super) fn text(socket: Option<&SteerSocket>) -> String {
    let Some(SteerSocket { url, key_file }) = socket else {
        return "no socket is open; `%steer socket` opens one for programs of this user. Front ends have the comm `stratoscope.runs`"
            .to_owned();
    };
    let file = key_file.display();
    format!(
        "runs can be read and steered at {url} with the key in {file}, which only this user can read; `%steer off` ends it\n\
         curl -H \"Authorization: Bearer $(cat {file})\" {url}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_a_command_that_reads_the_key() {
        let socket = SteerSocket {
            url: "http://127.0.0.1:4711/".to_owned(),
            key_file: "/tmp/x/key".into(),
        };
        let text = text(Some(&socket));
        let command = "curl -H \"Authorization: Bearer $(cat /tmp/x/key)\" http://127.0.0.1:4711/";
        assert_eq!(text.lines().last(), Some(command));
        assert_eq!(parse("off"), Ok(SteerRequest::Close));
        assert!(parse("on").is_err_and(|it| it.evalue.contains("`%steer socket`")));
    }
}
