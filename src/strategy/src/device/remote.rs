//! A device of another machine: burn-remote sends the operations there, and reads back what is asked for.
//!
//! [`server::serve`] gives a device of this machine to notebooks on others, `connect` reaches one. Both have the same key file, as
//! the processes of a job have: from it come the identity of the server, by which iroh encrypts and authenticates the
//! connection (QUIC with TLS 1.3), and the word that opens a session. Relays and the lookup of addresses on the internet are
//! off, so that no other machine learns of the two.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use burn::remote::{ConnectError, IrohHost, RemoteHost};
use burn::tensor::Device;
use iroh::endpoint::{Builder, PortmapperConfig, QuicTransportConfig, presets};
use iroh::{Endpoint, RelayMode, SecretKey};
use stratoscope_diagnostics::rules::{NotReached, RemoteDeviceNotReached};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_workers::JobKey;
use tokio::runtime::Runtime;

use super::start::{first_operation, guarded};

pub mod server;

/// How long a server may take to answer, and how long a connection may be silent.
const PATIENCE: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(5);
/// How often a connection says that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// What comes from a key file.
struct Access {
    identity: SecretKey,
    /// Opens a session.
    word: String,
}

impl Access {
    fn of(key: &JobKey) -> Self {
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            identity: SecretKey::from_bytes(&key.derived("the identity of a served device")),
            word: hex(key.derived("the word that opens a session of a served device")),
        }
    }
}

/// The devices that this process has reached, by address and key file.
static DEVICES: LazyLock<Mutex<HashMap<(String, PathBuf), Device>>> = LazyLock::new(Mutex::default);

/// The device that `stratoscope serve` gives at this address: the session that is open, or a new one where there is none or
/// the last one was lost.
///
/// # Errors
/// SC0715.
pub(super) fn connect(address: &str, key: &Path) -> Result<Device> {
    let place = (address.to_owned(), key.to_owned());
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = devices.get(&place)
        && works(device).is_ok()
    {
        return Ok(device.clone());
    }
    let device = open(address, key).map_err(|(what, reason)| {
        let rule = RemoteDeviceNotReached {
            address: address.to_owned(),
            key: key.display().to_string(),
            what,
            reason,
        };
        rule.error()
    })?;
    devices.insert(place, device.clone());
    Ok(device)
}

fn open(address: &str, key: &Path) -> std::result::Result<Device, (NotReached, String)> {
    let addresses: Vec<SocketAddr> = match address.to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(error) => return Err((NotReached::Address, error.to_string())),
    };
    let key = JobKey::read(key).map_err(|error| (NotReached::Key, error.to_string()))?;
    let access = Access::of(&key);
    let endpoint = endpoint_towards(&addresses).map_err(|reason| (NotReached::Network, reason))?;
    let mut host = IrohHost::new(access.identity.public()).with_endpoint(endpoint.clone());
    for address in addresses {
        host = host.with_address(address);
    }
    let host = RemoteHost::iroh(host).with_credential(access.word);
    let connected = guarded(PATIENCE, move || {
        let device = Device::remote_options(&host).init();
        Ok(device.map_err(|error| (cause(&error), error.to_string())))
    });
    let device = connected.unwrap_or_else(|reason| Err((NotReached::Nobody, reason)));
    let device = device.and_then(|device| match works(&device) {
        Ok(()) => Ok(device),
        Err(reason) => Err((NotReached::Failed, reason)),
    });
    if device.is_err()
        && let Ok(runtime) = runtime()
    {
        // burn tries for longer than we wait.
        runtime.spawn(async move { endpoint.close().await });
    }
    device
}

/// Whether a device computes and answers.
fn works(device: &Device) -> std::result::Result<(), String> {
    let device = device.clone();
    guarded(PATIENCE, move || first_operation(&device))
}

fn cause(error: &ConnectError) -> NotReached {
    match error {
        ConnectError::Unauthorized => NotReached::Key,
        ConnectError::IncompatibleProtocol { .. } | ConnectError::Handshake { .. } => {
            NotReached::Build
        }
        ConnectError::NoAddress => NotReached::Address,
        ConnectError::Bind { .. } => NotReached::Network,
        _ => NotReached::Nobody,
    }
}

/// Where the connections of this process are worked on.
fn runtime() -> std::result::Result<&'static Runtime, String> {
    static RUNTIME: LazyLock<std::result::Result<Runtime, String>> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let builder = builder.worker_threads(2).thread_name("remote-device");
        builder
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    });
    RUNTIME.as_ref().map_err(Clone::clone)
}

/// This end of a connection to a server of this machine, or of another: only the latter is reached from outside. Each
/// connection has its own. burn keeps a session for the life of the process, lost or not, by the identities of both ends: so
/// another connection is another session, and two servers with the same key file are not taken for one.
fn endpoint_towards(addresses: &[SocketAddr]) -> std::result::Result<Endpoint, String> {
    let is_here = addresses.iter().all(|address| address.ip().is_loopback());
    let (v4, v6) = match is_here {
        true => (Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST),
        false => (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED),
    };
    bound(builder(), &[(v4, 0).into(), (v6, 0).into()])
}

/// An end of connections without relays, which notices within seconds that the other end is gone.
fn builder() -> Builder {
    let transport = QuicTransportConfig::builder()
        .max_idle_timeout(SILENCE.try_into().ok())
        .keep_alive_interval(SIGN_OF_LIFE)
        .default_path_max_idle_timeout(SILENCE)
        .default_path_keep_alive_interval(SIGN_OF_LIFE)
        // As burn does, for iroh's issue 4555.
        .enable_segmentation_offload(false);
    Endpoint::builder(presets::Minimal)
        .relay_mode(RelayMode::Disabled)
        // No router is asked to open a port to the internet.
        .portmapper_config(PortmapperConfig::Disabled)
        .transport_config(transport.build())
        .clear_ip_transports()
}

/// Opens it at these addresses. One of IPv6 may fail where there is none of its kind.
fn bound(mut builder: Builder, addresses: &[SocketAddr]) -> std::result::Result<Endpoint, String> {
    for &address in addresses {
        let options = iroh::endpoint::BindOpts::default().set_is_required(address.is_ipv4());
        builder = builder
            .bind_addr_with_opts(address, options)
            .map_err(|error| error.to_string())?;
    }
    let endpoint = runtime()?.block_on(builder.bind());
    endpoint.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_has_one_identity_and_one_word() {
        let (key, other) = (JobKey::new().expect("a key"), JobKey::new().expect("a key"));
        let (one, same) = (Access::of(&key), Access::of(&key.clone()));
        assert_eq!(one.identity.public(), same.identity.public());
        assert_eq!((one.word.len(), &one.word), (64, &same.word));
        let other = Access::of(&other);
        assert_ne!(one.identity.public(), other.identity.public());
        assert_ne!(one.word, other.word);
    }

    #[test]
    fn each_way_of_not_being_reached_has_its_words() {
        let folder = std::env::temp_dir().join(format!("remote-device-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let key = folder.join("job.pem");
        JobKey::new().expect("a key").write(&key).expect("written");
        let check = |address: &str, key: &Path, words: &str| {
            let problem = connect(address, key).expect_err(words);
            assert_eq!(problem.code, "SC0715");
            let said = format!("{problem:?}");
            assert!(said.contains(words), "{words}: {said}");
        };
        check("no address", &key, "is no address");
        check("127.0.0.1:9", &folder.join("none.pem"), "none.pem");
        check("127.0.0.1:9", &key, "stratoscope serve");
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
