//! The first message in each direction. Its form never changes, so that two ends of different
//! versions can still tell each other so.

use std::io::{Read, Write};

use crate::{Reader, ToCells, ToKernel, VERSION, WireError, Writer};

/// The kernel's side: waits for the cell process, answers, and returns its process id.
///
/// # Errors
/// [`WireError::Version`] when the cell process has another version; ours is sent first.
pub fn accept<R: Read, W: Write>(
    reader: &mut Reader<R>,
    writer: &mut Writer<W>,
) -> Result<u32, WireError> {
    match reader.receive()? {
        ToKernel::Hello { version, pid } => {
            writer.send(&ToCells::Hello { version: VERSION })?;
            check(version)?;
            Ok(pid)
        }
        other => Err(no_handshake(&other)),
    }
}

/// The cell process's side: says hello and waits for the answer.
///
/// # Errors
/// [`WireError::Version`] when the kernel speaks another version.
pub fn offer<R: Read, W: Write>(
    reader: &mut Reader<R>,
    writer: &mut Writer<W>,
) -> Result<(), WireError> {
    writer.send(&ToKernel::Hello {
        version: VERSION,
        pid: std::process::id(),
    })?;
    match reader.receive()? {
        ToCells::Hello { version } => check(version),
        other => Err(no_handshake(&other)),
    }
}

fn check(theirs: u32) -> Result<(), WireError> {
    if theirs == VERSION {
        Ok(())
    } else {
        Err(WireError::Version {
            theirs,
            ours: VERSION,
        })
    }
}

fn no_handshake(message: &impl serde::Serialize) -> WireError {
    let kind = serde_json::to_value(message)
        .ok()
        .and_then(|value| Some(value.get("kind")?.as_str()?.to_owned()))
        .unwrap_or_default();
    WireError::NoHandshake { kind }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn ends() -> [(Reader<UnixStream>, Writer<UnixStream>); 2] {
        let (kernel, cells) = UnixStream::pair().expect("a socket pair");
        [kernel, cells].map(|end| {
            (
                Reader::new(end.try_clone().expect("a second handle")),
                Writer::new(end),
            )
        })
    }

    #[test]
    fn both_ends_agree() {
        let [
            (mut kernel_reader, mut kernel_writer),
            (mut cells_reader, mut cells_writer),
        ] = ends();
        let cells = std::thread::spawn(move || offer(&mut cells_reader, &mut cells_writer));
        let pid = accept(&mut kernel_reader, &mut kernel_writer).expect("accepts");
        assert_eq!(pid, std::process::id());
        cells.join().expect("no panic").expect("is accepted");
    }

    #[test]
    fn another_version_is_refused_and_gets_ours() {
        let [
            (mut kernel_reader, mut kernel_writer),
            (mut cells_reader, mut cells_writer),
        ] = ends();
        cells_writer
            .send(&ToKernel::Hello {
                version: 99,
                pid: 1,
            })
            .expect("writes");
        assert!(matches!(
            accept(&mut kernel_reader, &mut kernel_writer),
            Err(WireError::Version {
                theirs: 99,
                ours: VERSION
            })
        ));
        let answer: ToCells = cells_reader.receive().expect("gets an answer");
        assert_eq!(answer, ToCells::Hello { version: VERSION });
    }

    #[test]
    fn anything_else_first_is_refused() {
        let [
            (mut kernel_reader, mut kernel_writer),
            (_, mut cells_writer),
        ] = ends();
        cells_writer
            .send(&ToKernel::ClearOutput { wait: false })
            .expect("writes");
        let error = accept(&mut kernel_reader, &mut kernel_writer).expect_err("is refused");
        assert_eq!(
            error.to_string(),
            "the first message was `clear_output`, not `hello`"
        );
    }
}
