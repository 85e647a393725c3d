//! The Unix socket that the two ends meet on.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use crate::{Reader, SOCKET_VARIABLE, WireError, Writer, handshake};

/// Listens on a new socket at `path`, which only this user may open. The folder must be private
/// already: between creation and the change of mode, it is what protects the socket.
pub fn listen(path: &Path) -> Result<UnixListener, WireError> {
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Both directions of one connection.
pub type Connection = (Reader<UnixStream>, Writer<UnixStream>);

/// Splits a connected socket.
pub fn split(stream: UnixStream) -> Result<Connection, WireError> {
    Ok((Reader::new(stream.try_clone()?), Writer::new(stream)))
}

/// The cell process's side: connects to the socket that [`SOCKET_VARIABLE`] names and shakes
/// hands. `None` when the variable is not set, that is, when no kernel listens.
pub fn connect() -> Option<Result<Connection, WireError>> {
    let path = std::env::var_os(SOCKET_VARIABLE)?;
    Some(connect_to(Path::new(&path)))
}

/// As [`connect`], to a given socket.
pub fn connect_to(path: &Path) -> Result<Connection, WireError> {
    let (mut reader, mut writer) = split(UnixStream::connect(path)?)?;
    handshake::offer(&mut reader, &mut writer)?;
    Ok((reader, writer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToCells, ToKernel};

    #[test]
    fn a_message_each_way_over_a_private_socket() {
        let folder = std::env::temp_dir().join(format!("stratoscope-wire-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let path = folder.join("wire");
        let listener = listen(&path).expect("listens");
        let mode = std::fs::metadata(&path)
            .expect("is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);

        let cells = std::thread::spawn({
            let path = path.clone();
            move || {
                let (mut reader, mut writer) = connect_to(&path)?;
                let question: ToCells = reader.receive()?;
                writer.send(&ToKernel::Synced { id: 5 })?;
                Ok::<_, WireError>(question)
            }
        });
        let (mut reader, mut writer) =
            split(listener.accept().expect("accepts").0).expect("splits");
        handshake::accept(&mut reader, &mut writer).expect("shakes hands");
        writer.send(&ToCells::Sync { id: 5 }).expect("asks");
        assert_eq!(
            reader.receive::<ToKernel>().expect("answers"),
            ToKernel::Synced { id: 5 }
        );
        assert_eq!(
            cells.join().expect("no panic").expect("works"),
            ToCells::Sync { id: 5 }
        );
        std::fs::remove_dir_all(&folder).expect("cleans up");
    }
}
