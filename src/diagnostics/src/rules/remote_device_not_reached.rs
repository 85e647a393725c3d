//! SC0715 `remote-device-not-reached`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A device of another machine that cannot be used.
#[derive(Clone, Debug)]
pub struct RemoteDeviceNotReached {
    /// Where it was looked for: `gpu-box:4433`.
    pub address: String,
    /// The key file.
    pub key: String,
    /// What is wrong.
    pub what: NotReached,
    /// What the system or the other end said, in a line.
    pub reason: String,
}

/// What keeps a device of another machine from being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReached {
    /// The address is none.
    Address,
    /// The key file cannot be read, or the server has another.
    Key,
    /// This machine has no port for it.
    Network,
    /// Nobody answers.
    Nobody,
    /// The other end is another build.
    Build,
    /// The device of the other end does not compute.
    Failed,
}

impl Rule for RemoteDeviceNotReached {
    const PAGE: RulePage = RulePage {
        code: "SC0715",
        name: "remote-device-not-reached",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A device of another machine, `remote(\"gpu-box:4433\", \"job.pem\")`, whose server does not answer, has another \
                key, is another build, or whose device does not compute.",
        why: "Nothing was placed there yet. The key file names the server and opens it, so that the same file must be on both \
              machines.",
        bad: "let strategy = OneDeviceStrategy::new(remote(\"gpu-box:4433\", \"job.pem\"))?; // nobody serves there",
        good: "let strategy = OneDeviceStrategy::new(cpu(0))?;",
        tensorflow: tensorflow::page("SC0715"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs another machine");

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            address,
            key,
            what,
            reason,
        } = self;
        let serve =
            "start `stratoscope serve --listen ADDRESS --key FILE` on the machine of the device";
        let (message, fix) = match what {
            NotReached::Address => (
                format!("`{address}` is no address of a device"),
                "write the host and the port: `remote(\"gpu-box:4433\", \"job.pem\")`".to_owned(),
            ),
            NotReached::Key => (
                format!("the key `{key}` does not open the device at {address}"),
                format!(
                    "copy the key file of `stratoscope serve` to this machine as `{key}`, readable by you alone (`chmod 600`)"
                ),
            ),
            NotReached::Network => (
                format!("there is no connection to the device at {address}"),
                "see what keeps this machine from opening a port for UDP".to_owned(),
            ),
            NotReached::Nobody => (
                format!("no device answers at {address}"),
                format!("{serve}, with the key file `{key}`; it is reached by UDP"),
            ),
            NotReached::Build => (
                format!("the server at {address} does not understand this kernel"),
                "use the same version of stratoscope on both machines: `stratoscope --version`"
                    .to_owned(),
            ),
            NotReached::Failed => (
                format!("the device at {address} does not compute"),
                "run `stratoscope doctor` on the machine of the device".to_owned(),
            ),
        };
        let start = Self::start(message);
        let start = match reason.is_empty() {
            true => start,
            false => start.why(reason.clone()),
        };
        start.fix(fix)
    }
}
