//! The other end: a device of this machine, for notebooks on others.

use std::net::SocketAddr;

use burn::server::{AuthorizationRequest, BURN_REMOTE_ALPN, RemoteServer};
use iroh::protocol::Router;
use sha2::{Digest, Sha256};
use stratoscope_workers::JobKey;

use super::{Access, bound, builder, runtime};
use crate::device::LogicalDevice;

/// Serves a device until the process is interrupted or terminated. `ready` gets the address at which it is reached.
///
/// # Errors
/// In words: the port is taken, the device cannot be served.
pub fn serve(
    device: &LogicalDevice,
    address: SocketAddr,
    key: &JobKey,
    ready: &dyn Fn(SocketAddr),
) -> std::result::Result<(), String> {
    let Access { identity, word } = Access::of(key);
    let alpns = vec![BURN_REMOTE_ALPN.to_vec()];
    let endpoint = bound(builder().secret_key(identity).alpns(alpns), &[address])?;
    let expected = Sha256::digest(word);
    // Digests are compared, so that the time it takes says nothing of the word.
    let is_known = move |request: AuthorizationRequest<'_>| match Sha256::digest(
        request.credential.as_bytes(),
    ) == expected
    {
        true => Ok(()),
        false => Err(format!("{} has another key", request.client)),
    };
    let server = RemoteServer::new([device.burn.clone()]).with_authorizer(is_known);
    let protocol = server.into_protocol(&endpoint);
    let protocol = protocol.map_err(|error| error.to_string())?;
    runtime()?.block_on(async {
        let router = Router::builder(endpoint.clone()).accept(BURN_REMOTE_ALPN, protocol);
        let router = router.spawn();
        let at = endpoint.bound_sockets().first().copied().unwrap_or(address);
        ready(at);
        interrupted().await?;
        // Clients learn at once that the device is gone.
        router.shutdown().await.map_err(|error| error.to_string())
    })
}

/// Returns when the process is asked to end.
async fn interrupted() -> std::result::Result<(), String> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut ends = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
        tokio::select! {
            outcome = tokio::signal::ctrl_c() => outcome.map_err(|error| error.to_string()),
            _ = ends.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c()
        .await
        .map_err(|error| error.to_string())
}
