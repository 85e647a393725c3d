//! The first frames of a connection: who dials, what for, and whether both sides are the same program.

use std::fmt;
use std::net::SocketAddr;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Outcome};
use crate::frame::Kind;
use crate::key::JobKey;
use crate::link::Link;
use crate::settings::Settings;

/// Changed with every change of what processes say to each other.
const PROTOCOL: u32 = 1;

/// A greeting is a few hundred bytes.
const LARGEST: usize = 8 << 10;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// From the chief to a worker.
    Commands,
    /// From a worker to the chief.
    Answers,
    /// From a member to the one behind it.
    Hop,
}

/// A process, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The name of its machine.
    pub host: String,
    /// Its number there.
    pub number: u32,
}

impl Process {
    /// This one.
    pub fn own() -> Self {
        Self {
            host: own_host().to_owned(),
            number: std::process::id(),
        }
    }

    /// Whether it is a process of this machine.
    pub fn is_here(&self) -> bool {
        self.host == own_host()
    }

    /// `this machine`, or the name of another one.
    pub fn machine(&self) -> &str {
        match self.is_here() {
            true => "this machine",
            false => &self.host,
        }
    }
}

/// The name of this machine.
fn own_host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        host.trim().chars().take(64).collect()
    })
}

impl fmt::Display for Process {
    /// `process 4711 on node1`, `process 4711 on this machine`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.number, self.machine())
    }
}

/// What who dials says first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    protocol: u32,
    build: String,
    /// What the connection is for.
    pub role: Role,
    /// The worker's number in the job; for a hop, that of the sender.
    pub member: u64,
    /// The membership of a hop.
    pub generation: u64,
    /// Who dials.
    pub process: Process,
    /// Where the worker accepts hops.
    pub hop: Option<SocketAddr>,
}

/// What is answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    /// Why not.
    pub refused: Option<String>,
    /// Who was dialed.
    pub process: Process,
    /// Where it accepts hops.
    pub hop: Option<SocketAddr>,
}

impl Hello {
    /// A greeting of this process.
    pub fn new(settings: &Settings, role: Role, member: u64, generation: u64) -> Self {
        Self {
            protocol: PROTOCOL,
            build: settings.build.clone(),
            role,
            member,
            generation,
            process: Process::own(),
            hop: None,
        }
    }

    /// The same, with the address at which hops are accepted.
    #[must_use]
    pub fn reached_at(self, hop: Option<SocketAddr>) -> Self {
        Self { hop, ..self }
    }

    /// Dials, greets, and returns the connection and what was answered.
    ///
    /// # Errors
    /// Nobody is there, it has another key, is another program, or refuses.
    pub fn dial(
        &self,
        address: SocketAddr,
        key: &JobKey,
        settings: &Settings,
    ) -> Outcome<(Link, Welcome)> {
        let link = Link::dial(address, key, settings.patience)?;
        self.greet(link)
    }

    /// Greets over a connection that was made.
    ///
    /// # Errors
    /// As [`Self::dial`].
    pub fn greet(&self, mut link: Link) -> Outcome<(Link, Welcome)> {
        link.send(Kind::Hello, 0, &json(self)?)?;
        let welcome: Welcome = read(&mut link, Kind::Welcome)?;
        match welcome.refused {
            Some(why) => Err(Fault::Refused(why)),
            None => {
                link.belongs_to(self.generation);
                Ok((link, welcome))
            }
        }
    }

    /// The other side of [`Self::greet`].
    ///
    /// # Errors
    /// No greeting comes, or it is of another program: then the answer says so.
    pub fn receive(mut link: Link, settings: &Settings) -> Outcome<(Link, Self)> {
        let hello: Self = read(&mut link, Kind::Hello)?;
        let refused = if hello.protocol != PROTOCOL {
            Some("it speaks another version of the protocol".to_owned())
        } else if hello.build != settings.build {
            let (theirs, ours) = (&hello.build, &settings.build);
            Some(format!("it is another build: {theirs}, not {ours}"))
        } else {
            None
        };
        let welcome = Welcome {
            refused: refused.clone(),
            process: Process::own(),
            hop: link.local(),
        };
        link.send(Kind::Welcome, 0, &json(&welcome)?)?;
        match refused {
            Some(why) => Err(Fault::Refused(why)),
            None => {
                link.belongs_to(hello.generation);
                Ok((link, hello))
            }
        }
    }
}

fn json(value: &impl Serialize) -> Outcome<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Fault::Failed(error.to_string()))
}

fn read<T: for<'de> Deserialize<'de>>(link: &mut Link, kind: Kind) -> Outcome<T> {
    let frame = link.receive()?;
    if frame.kind != kind || frame.more || frame.payload.len() > LARGEST {
        return Err(Fault::refused(
            "a connection that begins without a greeting",
        ));
    }
    serde_json::from_slice(&frame.payload).map_err(|error| Fault::refused(error.to_string()))
}
