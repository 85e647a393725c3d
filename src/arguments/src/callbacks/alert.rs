//! Tells somebody of a run when something happens: in the notebook, by a command, by a webhook or by a closure.
//!
//! ```no_run
//! use stratoscope_arguments::FitArgs;
//! use stratoscope_arguments::callbacks::{AlertTo, Callbacks, on_alert};
//! use stratoscope_arguments::context::alert::Alert;
//!
//! let args = FitArgs::new().callbacks(
//!     Callbacks::new()
//!         .and(on_alert(AlertTo::command("notify-send", ["training"])))
//!         .and(on_alert(|alert: &Alert| println!("{alert}"))),
//! );
//! ```

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use stratoscope_diagnostics::Result;

use super::Callback;
use crate::context::RunContext;
use crate::context::alert::Alert;
use stratoscope_diagnostics::problem;

/// Where alerts go.
#[derive(Debug)]
pub struct AlertTo(Way);

#[derive(Debug)]
enum Way {
    Notebook,
    Command {
        program: String,
        arguments: Vec<String>,
    },
    Webhook {
        url: String,
    },
}

/// A command that runs longer is ended, and a webhook is given up.
const LIMIT: Duration = Duration::from_secs(10);
/// How often an ended command is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Alerts of one callback that are on their way; more are dropped.
const MAX_UNDER_WAY: usize = 8;

impl AlertTo {
    /// A card below the cell.
    pub fn notebook() -> Self {
        Self(Way::Notebook)
    }

    /// Runs a program, without a shell. The last argument is the alert as a line; the environment variable
    /// `STRATOSCOPE_ALERT` has it as JSON. The run does not wait for it.
    pub fn command<A: Into<String>>(
        program: impl Into<String>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let program = program.into();
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self(Way::Command { program, arguments })
    }

    /// Sends the alert as JSON to a URL by `POST`: the fields of [`Alert`], and `text`, the alert as a line, which Slack and
    /// Mattermost show. The run does not wait for it. The URL appears in no message, because it often contains a secret.
    ///
    /// # Errors
    /// SC0103 for what is no URL of HTTP.
    pub fn webhook(url: impl Into<String>) -> Result<Self> {
        let url = url.into();
        let has_host = ["https://", "http://"]
            .iter()
            .any(|scheme| url.strip_prefix(scheme).is_some_and(|it| !it.is_empty()));
        match has_host && !url.contains(|it: char| it.is_whitespace() || it.is_control()) {
            true => Ok(Self(Way::Webhook { url })),
            false => {
                let expects = "a URL that begins with https:// or http://";
                Err(Box::new(problem::bad_value("webhook", "url", "…", expects)))
            }
        }
    }
}

/// What [`on_alert`] takes.
#[diagnostic::on_unimplemented(
    message = "`on_alert` takes what to do, not `{Self}`",
    label = "`|alert: &Alert| …`, `AlertTo::notebook()`, `AlertTo::command(…)` or `AlertTo::webhook(…)?`"
)]
pub trait IntoAlertHandler<'a> {
    /// The handler.
    fn into_handler(self) -> AlertHandler<'a>;
}

impl<'a, F: FnMut(&Alert) + 'a> IntoAlertHandler<'a> for F {
    fn into_handler(self) -> AlertHandler<'a> {
        AlertHandler::Call(Box::new(self))
    }
}

impl<'a> IntoAlertHandler<'a> for AlertTo {
    fn into_handler(self) -> AlertHandler<'a> {
        AlertHandler::Send(self)
    }
}

/// A closure, or where alerts are sent.
pub enum AlertHandler<'a> {
    /// A closure.
    Call(Box<dyn FnMut(&Alert) + 'a>),
    /// Where alerts are sent.
    Send(AlertTo),
}

/// The callback of [`on_alert`].
pub struct OnAlert<'a> {
    handler: AlertHandler<'a>,
    under_way: Mutex<Vec<JoinHandle<()>>>,
}

/// Tells of warnings, breakpoints, errors and the end of a run: `on_alert(AlertTo::notebook())`, or a closure that gets an
/// [`Alert`].
pub fn on_alert<'a>(to: impl IntoAlertHandler<'a>) -> OnAlert<'a> {
    OnAlert {
        handler: to.into_handler(),
        under_way: Mutex::default(),
    }
}

impl Callback for OnAlert<'_> {
    fn on_alert(&mut self, alert: &Alert) {
        match &mut self.handler {
            AlertHandler::Call(call) => call(alert),
            AlertHandler::Send(AlertTo(Way::Notebook)) => {
                RunContext::current().observer().alert(alert);
            }
            AlertHandler::Send(AlertTo(Way::Command { program, arguments })) => {
                let mut command = Command::new(&*program);
                command
                    .args(&*arguments)
                    .arg(alert.to_string())
                    .env("STRATOSCOPE_ALERT", json(alert));
                let program = program.clone();
                self.begin(move || run(command, &program));
            }
            AlertHandler::Send(AlertTo(Way::Webhook { url })) => {
                let (url, body) = (url.clone(), json(alert));
                self.begin(move || post(&url, &body));
            }
        }
    }
}

/// The fields, and the line.
fn json(alert: &Alert) -> String {
    let mut fields = serde_json::to_value(alert).unwrap_or_default();
    fields["text"] = alert.to_string().into();
    fields.to_string()
}

impl OnAlert<'_> {
    /// Does something beside the run. What goes wrong is printed.
    fn begin(&self, work: impl FnOnce() -> std::result::Result<(), String> + Send + 'static) {
        let mut under_way = self.under_way.lock().unwrap_or_else(|it| it.into_inner());
        under_way.retain(|it| !it.is_finished());
        if under_way.len() >= MAX_UNDER_WAY {
            eprintln!("an alert was dropped: {MAX_UNDER_WAY} others are on their way");
            return;
        }
        let work = move || {
            if let Err(reason) = work() {
                eprintln!("an alert was not sent: {reason}");
            }
        };
        let thread = thread::Builder::new().name("alert".to_owned());
        match thread.spawn(work) {
            Ok(handle) => under_way.push(handle),
            Err(error) => eprintln!("an alert was not sent: {error}"),
        }
    }
}

impl Drop for OnAlert<'_> {
    /// Waits for what is on its way: a program may end with the run. Each has its time limit.
    fn drop(&mut self) {
        let under_way = self
            .under_way
            .get_mut()
            .unwrap_or_else(|it| it.into_inner());
        for handle in under_way.drain(..) {
            let _ = handle.join();
        }
    }
}

fn run(mut command: Command, program: &str) -> std::result::Result<(), String> {
    let failed = |error| format!("`{program}`: {error}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let end = Instant::now() + LIMIT;
    loop {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("`{program}`: {status}")),
            None if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("`{program}` took longer than {LIMIT:?}"));
            }
            None => thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Errors name no URL.
fn post(url: &str, body: &str) -> std::result::Result<(), String> {
    let agent = ureq::AgentBuilder::new()
        .timeout(LIMIT)
        .redirects(0)
        .build();
    let sent = agent
        .post(url)
        .set("Content-Type", "application/json")
        .send_string(body);
    match sent {
        // A redirection is not followed: the other place may be anyone's.
        Ok(response) if response.status() < 300 => Ok(()),
        Ok(response) => Err(format!("the webhook answers {}", response.status())),
        Err(ureq::Error::Status(status, _)) => Err(format!("the webhook answers {status}")),
        Err(ureq::Error::Transport(error)) => Err(format!("the webhook: {}", error.kind())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::context::alert::AlertKind;

    fn alert() -> Alert {
        Alert {
            kind: AlertKind::Warning,
            run: 3,
            step: 40,
            code: Some("SC0506".to_owned()),
            message: "the loss \"grows\"".to_owned(),
        }
    }

    #[test]
    fn a_command_gets_the_line_and_the_json() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("heard");
        let script = "printf '%s\\n%s' \"$2\" \"$STRATOSCOPE_ALERT\" > \"$1\"";
        let file_name = file.to_string_lossy().into_owned();
        let mut callback = on_alert(AlertTo::command("sh", ["-c", script, "sh", &file_name]));
        callback.on_alert(&alert());
        drop(callback);
        let heard = std::fs::read_to_string(&file).expect("the command has written it");
        let (line, fields) = heard.split_once('\n').expect("two lines");
        assert_eq!(line, "run 3, step 40: warning SC0506: the loss \"grows\"");
        let fields: serde_json::Value = serde_json::from_str(fields).expect("JSON");
        assert_eq!(
            (&fields["kind"], &fields["step"]),
            (&"warning".into(), &40.into())
        );
        assert_eq!(fields["text"], line);
    }

    #[test]
    fn a_webhook_gets_the_json() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/secret", listener.local_addr().expect("bound"));
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut heard = String::new();
            let mut bytes = [0; 4096];
            while !heard.contains("}") {
                let count = stream.read(&mut bytes).expect("bytes");
                heard += std::str::from_utf8(&bytes[..count]).expect("text");
            }
            let answer = "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).expect("writes");
            heard
        });
        let mut callback = on_alert(AlertTo::webhook(url).expect("a URL"));
        callback.on_alert(&alert());
        let heard = server.join().expect("no panic");
        drop(callback);
        assert!(heard.starts_with("POST /secret HTTP/1.1"), "{heard}");
        let (_, body) = heard.split_once("\r\n\r\n").expect("a body");
        assert_eq!(body, json(&alert()));
    }

    #[test]
    fn what_goes_wrong_names_no_secret() {
        let refused = post("http://127.0.0.1:1/secret", "{}").expect_err("nobody listens");
        assert!(!refused.contains("secret"), "{refused}");
        let problem = AlertTo::webhook("ftp://host/secret").expect_err("no HTTP");
        assert!(problem.code == "SC0103" && !problem.to_string().contains("secret"));
        let failed = run(Command::new("false"), "false").expect_err("it fails");
        assert!(failed.contains("exit status: 1"), "{failed}");
    }
}
