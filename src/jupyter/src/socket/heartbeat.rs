//! The heartbeat: every message is echoed. It shows a front end that the process is alive, not that it is idle.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#heartbeat-for-kernels>

use zeromq::{RouterSocket, SocketRecv, SocketSend};

use super::log::Log;
use super::router::pause_after;

/// Echoes until the task is dropped. A router, not a `REP` socket: it has no state that a client
/// which vanishes in the middle of a request could leave behind.
pub async fn run(mut socket: RouterSocket) {
    let log = Log::new("heartbeat");
    loop {
        match socket.recv().await {
            Ok(message) => {
                // An error means that the sender has disconnected.
                let _ = socket.send(message).await;
            }
            Err(error) => pause_after(&log, error).await,
        }
    }
}
