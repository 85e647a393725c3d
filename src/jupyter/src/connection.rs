//! The connection file, in which a front end says where a kernel listens.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/kernels.html#connection-files>

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// Where to listen, and the key that messages are signed with.
#[derive(Clone, Debug)]
pub struct Connection {
    addresses: [Address; 5],
    key: String,
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Ipc(PathBuf),
}

/// In ZeroMQ's notation.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Ipc(path) => write!(f, "ipc://{}", path.display()),
        }
    }
}

/// The file as it is written. Fields that other kernels put there besides are ignored.
#[derive(Deserialize)]
struct File {
    transport: String,
    ip: String,
    shell_port: u32,
    control_port: u32,
    stdin_port: u32,
    iopub_port: u32,
    hb_port: u32,
    #[serde(default)]
    signature_scheme: String,
    #[serde(default)]
    key: String,
}

/// The five sockets of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Channel {
    /// Requests of a front end.
    Shell,
    /// Requests that are answered before those on the shell channel.
    Control,
    /// The kernel's questions to the user.
    Stdin,
    /// Outputs and states, for every front end.
    Iopub,
    /// Echo.
    Heartbeat,
}

impl Channel {
    /// For the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Control => "control",
            Self::Stdin => "stdin",
            Self::Iopub => "iopub",
            Self::Heartbeat => "heartbeat",
        }
    }
}

impl Connection {
    /// Reads and checks a connection file. Addresses other than the loopback are refused unless
    /// `allow_remote`: without encryption, everyone who can connect can read the messages.
    ///
    /// # Errors
    /// The file is missing or malformed, or asks for an address, a transport or a signature scheme that is not
    /// accepted.
    pub fn read(path: &Path, allow_remote: bool) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the connection file {}", path.display()))?;
        Self::parse(&text, allow_remote)
            .with_context(|| format!("the connection file {} is not usable", path.display()))
    }

    /// As [`Connection::read`], from the file's text.
    pub fn parse(text: &str, allow_remote: bool) -> anyhow::Result<Self> {
        let file: File = serde_json::from_str(text)?;
        let addresses = match file.transport.as_str() {
            "tcp" => {
                let ip: IpAddr = match file.ip.as_str() {
                    "localhost" => IpAddr::from([127, 0, 0, 1]),
                    ip => ip
                        .parse()
                        .with_context(|| format!("`{ip}` is not an IP address"))?,
                };
                ensure!(
                    ip.is_loopback() || allow_remote,
                    "it asks to listen on {ip}, which other machines can reach; `--allow-remote` permits that"
                );
                for channel in ALL {
                    let port = file.number(channel);
                    ensure!(
                        (1..=65_535).contains(&port),
                        "{port} is not a port ({channel:?} channel)"
                    );
                }
                ALL.map(|channel| Address::Tcp(SocketAddr::new(ip, file.number(channel) as u16)))
            }
            "ipc" => {
                ensure!(!file.ip.is_empty(), "`ip`, the sockets' path, is empty");
                ALL.map(|channel| {
                    Address::Ipc(format!("{}-{}", file.ip, file.number(channel)).into())
                })
            }
            other => bail!("transport `{other}` is not known; `tcp` and `ipc` are"),
        };
        let signed = !file.key.is_empty();
        ensure!(
            !signed || file.signature_scheme == "hmac-sha256",
            "signature scheme `{}` is not known; `hmac-sha256` is",
            file.signature_scheme
        );
        ensure!(
            signed || !allow_remote,
            "it has no key, and unsigned messages are only accepted from this machine"
        );
        let key = file.key;
        Ok(Self { addresses, key })
    }

    /// The key that messages are signed with; empty: they are not signed.
    pub fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    /// The address of a channel.
    pub fn address(&self, channel: Channel) -> &Address {
        &self.addresses[channel as usize]
    }

    /// The files of the sockets (transport `ipc`), which the kernel removes at its end.
    pub fn socket_files(&self) -> impl Iterator<Item = &Path> {
        self.addresses.iter().filter_map(|address| match address {
            Address::Ipc(path) => Some(path.as_path()),
            Address::Tcp(_) => None,
        })
    }
}

impl File {
    fn number(&self, channel: Channel) -> u32 {
        match channel {
            Channel::Shell => self.shell_port,
            Channel::Control => self.control_port,
            Channel::Stdin => self.stdin_port,
            Channel::Iopub => self.iopub_port,
            Channel::Heartbeat => self.hb_port,
        }
    }
}

/// In the order in which they are declared.
const ALL: [Channel; 5] = [
    Channel::Shell,
    Channel::Control,
    Channel::Stdin,
    Channel::Iopub,
    Channel::Heartbeat,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn file(transport: &str, ip: &str, extra: &str) -> String {
        format!(
            r#"{{"transport": "{transport}", "ip": "{ip}", "shell_port": 1001, "control_port": 1002,
                "stdin_port": 1003, "iopub_port": 1004, "hb_port": 1005, "kernel_name": "x",
                "signature_scheme": "hmac-sha256", "key": "secret"{extra}}}"#
        )
    }

    /// What is wrong, or `""`.
    fn check(text: &str, allow_remote: bool, expected: &str) {
        let found = match Connection::parse(text, allow_remote) {
            Ok(_) => String::new(),
            Err(error) => format!("{error:#}"),
        };
        assert!(
            found.contains(expected) && found.is_empty() == expected.is_empty(),
            "{found}"
        );
    }

    #[test]
    fn loopback_and_ipc_are_accepted() {
        check(&file("tcp", "127.0.0.1", ""), false, "");
        check(&file("tcp", "localhost", ""), false, "");
        check(&file("tcp", "::1", ""), false, "");
        check(&file("ipc", "/run/user/1/kernel", ""), false, "");
        check(&file("tcp", "192.168.0.7", ""), true, "");
    }

    #[test]
    fn the_rest_is_refused_with_its_reason() {
        check(&file("tcp", "192.168.0.7", ""), false, "other machines");
        check(&file("tcp", "0.0.0.0", ""), false, "other machines");
        check(&file("tcp", "example.org", ""), false, "not an IP address");
        check(&file("udp", "127.0.0.1", ""), false, "transport `udp`");
        check(&file("ipc", "", ""), false, "empty");
        check(
            &file("tcp", "127.0.0.1", "").replace("1003", "70000"),
            false,
            "not a port",
        );
        check(
            &file("tcp", "127.0.0.1", "").replace("1003", "0"),
            false,
            "not a port",
        );
        check(
            &file("tcp", "127.0.0.1", "").replace("sha256", "md5"),
            false,
            "scheme `hmac-md5`",
        );
        check(
            &file("tcp", "10.0.0.1", "").replace("secret", ""),
            true,
            "no key",
        );
        check("{}", false, "missing field");
        check("not json", false, "expected");
    }

    #[test]
    fn addresses() {
        let check = |transport, ip, expected: &str| {
            let connection = Connection::parse(&file(transport, ip, ""), false).expect("is valid");
            assert_eq!(connection.address(Channel::Iopub).to_string(), expected);
        };
        check("tcp", "127.0.0.1", "tcp://127.0.0.1:1004");
        check("tcp", "localhost", "tcp://127.0.0.1:1004");
        check("tcp", "::1", "tcp://[::1]:1004");
        check("ipc", "/tmp/k", "ipc:///tmp/k-1004");
    }
}
