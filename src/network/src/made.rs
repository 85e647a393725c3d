//! A network that a function makes, so that another process can make it, too. What travels is the library that has the
//! function: a notebook compiles each cell to one. The other process must have the same library of stratoscope, which the
//! cell's library was compiled for.

use std::ffi::{CStr, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use stratoscope_strategy::Checksum;

use super::Blueprint;

/// The largest library of a cell that travels.
const MOST_BYTES: u64 = 64 << 20;

/// The family of such a blueprint.
pub const FAMILY: &str = "made by a function";

/// How a network is made: by a function, which another one calls that is compiled for the network's type.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    host: usize,
    make: usize,
    /// The width of its input, where it was built for one.
    pub width: Option<usize>,
}

/// What travels.
#[derive(Serialize, Deserialize)]
struct Description {
    /// The checksum of the library, or the program, that has this function.
    ours: u64,
    /// The bytes of the library that has the functions; none where that is ours.
    library: Option<Vec<u8>>,
    /// Where it has them, counted from its beginning in memory.
    host: u64,
    make: u64,
    width: Option<usize>,
}

/// A library in this process.
struct Library {
    path: PathBuf,
    begin: usize,
}

impl Made {
    /// By these functions, which must be compiled code: `host` for the network's type, `make` for the network.
    pub fn by(host: *const (), make: *const ()) -> Self {
        Self {
            host: host as usize,
            make: make as usize,
            width: None,
        }
    }

    /// What another process makes it from.
    ///
    /// # Errors
    /// In words: the library cannot be read, or does not have both functions.
    pub fn blueprint(&self) -> Result<Blueprint, String> {
        let (ours, theirs) = (ours()?, library_of(self.make)?);
        if library_of(self.host)?.begin != theirs.begin {
            return Err("its function belongs to another library than its type".to_owned());
        }
        let library = match theirs.begin == ours.begin {
            true => None,
            false => Some(bytes_of(&theirs.path)?),
        };
        let offset = |function: usize| (function - theirs.begin) as u64;
        let description = Description {
            ours: our_checksum()?,
            library,
            host: offset(self.host),
            make: offset(self.make),
            width: self.width,
        };
        Blueprint::of(FAMILY, &description).ok_or_else(|| "it cannot be written".to_owned())
    }

    /// The same in the process that gets the blueprint. The library stays loaded: what it has made is used until the
    /// process ends.
    ///
    /// # Errors
    /// In words: this process has another library of stratoscope, or cannot load that of the network.
    pub fn of(blueprint: &Blueprint) -> Result<Self, String> {
        let Description {
            ours: theirs,
            library,
            host,
            make,
            width,
        } = blueprint.read()?;
        if theirs != our_checksum()? {
            return Err(
                "this machine has another build of stratoscope, and a network of a cell needs the very same: copy the \
                 library, or install the same wheel"
                    .to_owned(),
            );
        }
        let begin = match library {
            Some(bytes) => loaded(&bytes)?,
            None => ours()?.begin,
        };
        let at = |offset: u64| usize::try_from(offset).ok()?.checked_add(begin);
        match (at(host), at(make)) {
            (Some(host), Some(make)) if library_of(host)?.begin == begin => {
                library_of(make)?;
                Ok(Self { host, make, width })
            }
            _ => Err("its functions are not in its library".to_owned()),
        }
    }

    /// The two functions.
    pub fn functions(&self) -> (*const (), *const ()) {
        (self.host as *const (), self.make as *const ())
    }
}

/// The library that this code is in.
fn ours() -> Result<Library, String> {
    library_of(ours as *const () as usize)
}

/// Of the file that this code was loaded from; read once.
fn our_checksum() -> Result<u64, String> {
    static SUM: OnceLock<Result<u64, String>> = OnceLock::new();
    let read = || {
        let path = ours()?.path;
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Checksum::of(&bytes).0)
    };
    SUM.get_or_init(read).clone()
}

fn bytes_of(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let read = || {
        let length = std::fs::metadata(path)?.len();
        match length <= MOST_BYTES {
            true => std::fs::read(path),
            false => Err(std::io::Error::other("it is too large to be sent")),
        }
    };
    read().map_err(|error| format!("the library of its cell, {}: {error}", path.display()))
}

/// The library of an address.
#[cfg(target_os = "linux")]
fn library_of(address: usize) -> Result<Library, String> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is only looked up, and the structure is ours; all zeros are valid for it.
    let found = unsafe {
        match libc::dladdr(address as *const c_void, found.as_mut_ptr()) {
            0 => return Err("a function that is in no library".to_owned()),
            _ => found.assume_init(),
        }
    };
    // SAFETY: a library that is loaded has a name, which ends with 0.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    let path = PathBuf::from(name.to_string_lossy().into_owned());
    Ok(Library {
        // The main program has the name that it was called by.
        path: match path.is_absolute() {
            true => path,
            false => std::env::current_exe().map_err(|error| error.to_string())?,
        },
        begin: found.dli_fbase as usize,
    })
}

/// Loads a library from memory and returns where it begins.
#[cfg(target_os = "linux")]
fn loaded(bytes: &[u8]) -> Result<usize, String> {
    use std::io::Write as _;
    use std::os::fd::{AsRawFd as _, FromRawFd as _};

    let failed = |error: std::io::Error| format!("the library of the cell: {error}");
    // SAFETY: the name ends with 0.
    let file = unsafe { libc::memfd_create(c"cell".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(failed(std::io::Error::last_os_error()));
    }
    // SAFETY: it was opened just now, and nothing else has it.
    let mut file = unsafe { std::fs::File::from_raw_fd(file) };
    file.write_all(bytes).map_err(failed)?;
    let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
    // SAFETY: the text ends with 0. The library's own initialization runs here: whoever has the key of the job may run code
    // in a worker.
    let library = unsafe { libc::dlopen(path.as_ptr().cast(), libc::RTLD_NOW) };
    if library.is_null() {
        // SAFETY: after a failure there is a text, which ends with 0, of this thread.
        let reason = unsafe { CStr::from_ptr(libc::dlerror()) };
        return Err(format!(
            "the library of the cell: {}",
            reason.to_string_lossy()
        ));
    }
    let mut map: *const usize = std::ptr::null();
    // SAFETY: it asks for the library's `link_map` and gets a pointer to it, which is valid while the library is loaded. The
    // first field of it is the difference between addresses in the file and in memory; a library's file begins with 0.
    let found = unsafe {
        let into: *mut *const usize = &raw mut map;
        libc::dlinfo(library, libc::RTLD_DI_LINKMAP, into.cast())
    };
    if found != 0 || map.is_null() {
        return Err("the library of the cell has no place in memory".to_owned());
    }
    // SAFETY: as above.
    Ok(unsafe { *map })
}

#[cfg(not(target_os = "linux"))]
fn library_of(_: usize) -> Result<Library, String> {
    Err("networks of cells travel between machines with Linux only".to_owned())
}

#[cfg(not(target_os = "linux"))]
fn loaded(_: &[u8]) -> Result<usize, String> {
    Err("networks of cells travel between machines with Linux only".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seven() -> u64 {
        7
    }

    fn eight() -> u64 {
        8
    }

    fn made() -> Made {
        let functions = [seven, eight].map(|function: fn() -> u64| function as *const ());
        let mut made = Made::by(functions[0], functions[1]);
        made.width = Some(5);
        made
    }

    #[test]
    fn functions_are_found_again_from_a_blueprint() {
        let blueprint = made().blueprint().expect("the test's own program");
        let found = Made::of(&blueprint).expect("the same program");
        assert_eq!(found.functions(), made().functions());
        assert_eq!(found.width, Some(5));
    }

    /// What a worker gets is not believed.
    #[test]
    fn another_build_damaged_libraries_and_places_outside_are_refused() {
        let blueprint = made().blueprint().expect("the test's own program");
        let changed = |change: &dyn Fn(&mut Description)| {
            let mut description: Description = blueprint.read().expect("it was just written");
            change(&mut description);
            let blueprint = Blueprint::of(FAMILY, &description).expect("it can be written");
            Made::of(&blueprint).expect_err("it is not what it was")
        };
        let other = changed(&|it| it.ours ^= 1);
        assert!(other.contains("another build"), "{other}");
        let damaged = changed(&|it| it.library = Some(b"no library".to_vec()));
        assert!(damaged.contains("the library of the cell"), "{damaged}");
        changed(&|it| it.host = u64::MAX);
        changed(&|it| it.make = u64::MAX - 1);
    }
}
