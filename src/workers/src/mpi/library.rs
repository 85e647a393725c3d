//! MPI as a library that is found at run time: Open MPI, MPICH, and what has the binary interface of MPICH (Intel MPI,
//! MVAPICH, Cray MPICH).
//!
//! The two interfaces differ in what a handle is: a pointer in Open MPI, an `int` in MPICH. Both are passed here as
//! [`Handle`], a whole register: the calling conventions of 64-bit Linux pass either in it, and a callee that takes an
//! `int` reads the lower half. Requests are written to memory, where the lower half is first on a little-endian machine.
//! Sources: the files `mpi.h` of Open MPI 4.1 and of MPICH 4.0; <https://www.mpich.org/abi>.

use std::ffi::{OsString, c_char, c_int, c_void};
use std::ptr;

use libloading::os::unix::{Library as Native, RTLD_GLOBAL, RTLD_NOW};

use crate::fault::{Fault, Outcome};

/// Names a library to be used instead of the launcher's.
const VARIABLE: &str = "STRATOSCOPE_MPI";

const OPEN_MPI: &str = "libmpi.so.40";
const MPICH: &str = "libmpich.so.12";
/// What Intel MPI and others with MPICH's interface call theirs.
const MPICH_INTERFACE: &str = "libmpi.so.12";

const FUNNELED: c_int = 1;

type Handle = usize;

/// Room for an `MPI_Status` of any implementation, which have 20 to 32 bytes.
type Status = [u64; 16];

/// An operation that is under way.
pub(super) struct Request(Handle);

type Move =
    unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;

/// A started MPI. All functions are called by the thread that has started it.
pub(super) struct Library {
    send: Move,
    receive: Move,
    test: unsafe extern "C" fn(*mut Handle, *mut c_int, *mut Status) -> c_int,
    cancel: unsafe extern "C" fn(*mut Handle) -> c_int,
    count: unsafe extern "C" fn(*const Status, Handle, *mut c_int) -> c_int,
    words: unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    world: Handle,
    byte: Handle,
    pub rank: usize,
    pub size: usize,
    pub version: String,
    /// Keeps the functions above in memory.
    _native: Native,
}

/// The constants of an implementation.
struct Constants {
    world: Handle,
    byte: Handle,
    returns: Handle,
}

impl Library {
    /// Loads MPI and starts it, together with the other processes.
    pub(super) fn start() -> Outcome<Self> {
        let native = found()?;
        let constants = Constants::of(&native)?;
        type Unary = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
        type SetHandler = unsafe extern "C" fn(Handle, Handle) -> c_int;
        type Init = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int, *mut c_int) -> c_int;
        // SAFETY: each type is that of the function in MPI's C interface, with handles as the module says.
        let (init, rank_of, size_of, set_handler) = unsafe {
            (
                symbol::<Init>(&native, "MPI_Init_thread")?,
                symbol::<Unary>(&native, "MPI_Comm_rank")?,
                symbol::<Unary>(&native, "MPI_Comm_size")?,
                symbol::<SetHandler>(&native, "MPI_Comm_set_errhandler")?,
            )
        };
        let version = version(&native)?;
        // SAFETY: as above.
        let mut library = unsafe {
            Self {
                send: symbol(&native, "MPI_Isend")?,
                receive: symbol(&native, "MPI_Irecv")?,
                test: symbol(&native, "MPI_Test")?,
                cancel: symbol(&native, "MPI_Cancel")?,
                count: symbol(&native, "MPI_Get_count")?,
                words: symbol(&native, "MPI_Error_string")?,
                finalize: symbol(&native, "MPI_Finalize")?,
                world: constants.world,
                byte: constants.byte,
                rank: 0,
                size: 0,
                version,
                _native: native,
            }
        };
        let (mut provided, mut rank, mut size) = (0, 0, 0);
        // SAFETY: the arguments may be null pointers (MPI 3.1, section 8.7); the others are places for numbers.
        let status = unsafe {
            init(
                ptr::null_mut(),
                ptr::null_mut(),
                FUNNELED,
                &raw mut provided,
            )
        };
        library.check(status)?;
        if provided < FUNNELED {
            return Err(Fault::Failed(format!(
                "{} was built for programs of one thread",
                library.version
            )));
        }
        // SAFETY: MPI is started, and the handles are its own.
        let statuses = unsafe {
            [
                set_handler(library.world, constants.returns),
                rank_of(library.world, &raw mut rank),
                size_of(library.world, &raw mut size),
            ]
        };
        statuses
            .into_iter()
            .try_for_each(|status| library.check(status))?;
        (library.rank, library.size) = (rank as usize, size as usize);
        Ok(library)
    }

    /// Begins to send. `bytes` must stay as they are until [`Self::look`] says that it is over.
    pub(super) fn send(&self, bytes: &[u8], to: usize, tag: i32) -> Outcome<Request> {
        let mut request = Request(0);
        // SAFETY: MPI reads the bytes only; the caller keeps them.
        let status = unsafe {
            (self.send)(
                bytes.as_ptr().cast_mut().cast(),
                bytes.len() as c_int,
                self.byte,
                to as c_int,
                tag,
                self.world,
                &raw mut request.0,
            )
        };
        self.check(status).map(|()| request)
    }

    /// Begins to receive at most as many bytes as there are. They must stay where they are until [`Self::look`] says that
    /// it is over.
    pub(super) fn receive(&self, bytes: &mut [u8], from: usize, tag: i32) -> Outcome<Request> {
        let mut request = Request(0);
        // SAFETY: the caller keeps the bytes.
        let status = unsafe {
            (self.receive)(
                bytes.as_mut_ptr().cast(),
                bytes.len() as c_int,
                self.byte,
                from as c_int,
                tag,
                self.world,
                &raw mut request.0,
            )
        };
        self.check(status).map(|()| request)
    }

    /// How many bytes were moved, once an operation is over; `None` while it is under way.
    pub(super) fn look(&self, request: &mut Request) -> Outcome<Option<usize>> {
        let (mut is_over, mut status): (c_int, Status) = (0, [0; 16]);
        // SAFETY: the request is one of MPI's, and the status has room for it.
        let outcome = unsafe { (self.test)(&raw mut request.0, &raw mut is_over, &raw mut status) };
        self.check(outcome)?;
        if is_over == 0 {
            return Ok(None);
        }
        let mut count = 0;
        // SAFETY: the status was written above.
        let outcome = unsafe { (self.count)(&raw const status, self.byte, &raw mut count) };
        self.check(outcome)?;
        Ok(Some(usize::try_from(count).unwrap_or(0)))
    }

    /// Gives up an operation, which is over soon.
    pub(super) fn cancel(&self, request: &mut Request) {
        // SAFETY: the request is one of MPI's that is not over.
        unsafe { (self.cancel)(&raw mut request.0) };
    }

    /// Ends MPI, together with the other processes.
    pub(super) fn end(&self) {
        // SAFETY: MPI is started, and this is its thread.
        unsafe { (self.finalize)() };
    }

    /// What a status says.
    fn check(&self, status: c_int) -> Outcome<()> {
        if status == 0 {
            return Ok(());
        }
        let (mut text, mut length) = ([0 as c_char; 1024], 0);
        // SAFETY: there is room for more than MPI_MAX_ERROR_STRING (at most 512) characters.
        unsafe { (self.words)(status, text.as_mut_ptr(), &raw mut length) };
        let text = words(&text, length);
        Err(Fault::Broken(format!("{}: {text}", self.version)))
    }
}

impl Constants {
    fn of(native: &Native) -> Outcome<Self> {
        let address = |name: &str| {
            // SAFETY: the address of a global is taken, nothing is read there.
            let found = unsafe { native.get::<*const c_void>(name.as_bytes()) };
            found.ok().map(|it| it.into_raw() as Handle)
        };
        if let Some(world) = address("ompi_mpi_comm_world") {
            let missing =
                || Fault::Failed("a library of Open MPI that lacks a constant".to_owned());
            return Ok(Self {
                world,
                byte: address("ompi_mpi_byte").ok_or_else(missing)?,
                returns: address("ompi_mpi_errors_return").ok_or_else(missing)?,
            });
        }
        Ok(Self {
            world: 0x4400_0000,
            byte: 0x4c00_010d,
            returns: 0x5400_0001,
        })
    }
}

/// The library of the launcher that has started this process.
pub(super) fn found() -> Outcome<Native> {
    if cfg!(not(all(
        target_os = "linux",
        target_pointer_width = "64",
        target_endian = "little"
    ))) {
        return Err(Fault::Failed("MPI is used on 64-bit Linux only".to_owned()));
    }
    let is_set = |name| std::env::var_os(name).is_some();
    let candidates: Vec<OsString> = match std::env::var_os(VARIABLE) {
        Some(path) => vec![path],
        None if is_set("OMPI_COMM_WORLD_RANK") => vec![OPEN_MPI.into()],
        None if is_set("MPI_LOCALNRANKS") => vec![MPICH.into(), MPICH_INTERFACE.into()],
        None => vec![OPEN_MPI.into(), MPICH.into(), MPICH_INTERFACE.into()],
    };
    let mut reasons = Vec::new();
    for name in candidates {
        // Open MPI's parts are libraries that look for its functions among the global ones.
        // SAFETY: an MPI library does nothing when it is loaded but to set up its own data.
        match unsafe { Native::open(Some(&name), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(native) => return Ok(native),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(Fault::Failed(format!(
        "no MPI is found ({}); {VARIABLE} names the file of another",
        reasons.join("; ")
    )))
}

/// A function of the library.
///
/// # Safety
/// `F` is its type.
unsafe fn symbol<F: Copy>(native: &Native, name: &str) -> Outcome<F> {
    // SAFETY: the caller knows the type.
    let found = unsafe { native.get::<F>(name.as_bytes()) };
    found
        .map(|it| *it)
        .map_err(|error| Fault::Failed(format!("a library that is no MPI: {error}")))
}

/// The first words of what an MPI says of itself: `Open MPI v4.1.4`, `MPICH 4.0.2`.
fn version(native: &Native) -> Outcome<String> {
    type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    // SAFETY: the type is that of the function, which may be called before MPI is started.
    let version = unsafe { symbol::<Version>(native, "MPI_Get_library_version")? };
    let (mut text, mut length) = ([0 as c_char; 16 << 10], 0);
    // SAFETY: there is room for MPI_MAX_LIBRARY_VERSION_STRING (256 in Open MPI, 8192 in MPICH) characters.
    unsafe { version(text.as_mut_ptr(), &raw mut length) };
    let text = words(&text, length);
    let first = text.lines().next().unwrap_or_default();
    let short = first.split(',').next().unwrap_or_default();
    let short = short.replace("Version:", "");
    let words: Vec<&str> = short.split_whitespace().collect();
    Ok(words.join(" "))
}

/// The text of a C function that says how long it is.
fn words(text: &[c_char], length: c_int) -> String {
    let length = usize::try_from(length).unwrap_or(0).min(text.len());
    let bytes: Vec<u8> = text[..length].iter().map(|&it| it as u8).collect();
    let text = String::from_utf8_lossy(&bytes);
    text.trim_end_matches('\0').trim().to_owned()
}
