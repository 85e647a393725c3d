//! All-reduces over NCCL, between CUDA devices of different processes. Commands, signs of life, weights and what is gathered
//! stay on the hops of the group.
//!
//! The driver and NCCL are loaded when a job asks for them, so that a build needs neither. The communicator does not block:
//! every call returns at once and is asked for its end, so that a lost member costs a deadline and not the process.
//! Source: NCCL's user guide, "Creating a communicator with options" and "Error handling and communicator abort".

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cudarc::driver::{self, CudaContext, CudaStream, DevicePtrMut, DriverError};
use cudarc::nccl::result::{self, NcclError, NcclStatus};
use cudarc::nccl::sys;
use parking_lot::Mutex;

use crate::fault::{Fault, Outcome};
use crate::hop::Closer;
use crate::precision::Precision;

/// How long all members may take to meet.
const MEETING: Duration = Duration::from_secs(60);

/// How often who waits looks whether it still must.
const LOOK: Duration = Duration::from_micros(50);

/// The slowest network that is waited for, in bytes in a second.
const SLOWEST: usize = 10_000_000;

/// The first NCCL whose communicators need not block, as NCCL counts: 2.14.
const OLDEST: c_int = 21_400;

/// What marks the options of a communicator, and their values that NCCL chooses (`NCCL_CONFIG_INITIALIZER`).
const MAGIC: c_uint = 0xcafe_beef;
const CHOSEN_BY_NCCL: c_int = c_int::MIN;

/// The NCCL whose options these are: 2.28. An older one reads those that it knows.
const OPTIONS_OF: c_uint = 22_800;

/// This process in a group whose members meet over NCCL.
pub struct Nccl {
    communicator: Arc<Communicator>,
    stream: Arc<CudaStream>,
    patience: Duration,
    bytes: AtomicU64,
}

/// Whether there are a driver of CUDA and an NCCL to use.
///
/// # Errors
/// One of them is not found, or NCCL is too old.
pub fn find() -> Outcome<()> {
    // SAFETY: both load a library of the system by its name, as any program that is linked to it does.
    let (has_driver, has_nccl) =
        unsafe { (driver::sys::is_culib_present(), sys::is_culib_present()) };
    let missing = |what: &str| Err(Fault::Failed(format!("{what} is not found")));
    match (has_driver, has_nccl) {
        (false, _) => missing("the driver of CUDA (`libcuda.so`)"),
        (true, false) => missing("NCCL (`libnccl.so`)"),
        (true, true) => {
            let found = result::get_nccl_version().map_err(|error| failed(&error))?;
            match found >= OLDEST {
                true => Ok(()),
                false => Err(Fault::Failed(format!(
                    "{} is older than {}",
                    title(found),
                    title(OLDEST)
                ))),
            }
        }
    }
}

/// What NCCL is there: `NCCL 2.28.3`.
pub fn version() -> Option<String> {
    find().ok()?;
    result::get_nccl_version().ok().map(title)
}

/// NCCL's number of a version in words (`NCCL_VERSION` in its header, which had smaller numbers before 2.9).
fn title(version: c_int) -> String {
    let unit = if version < 10_000 { 1000 } else { 10_000 };
    let (major, rest) = (version / unit, version % unit);
    format!("NCCL {major}.{}.{}", rest / 100, rest % 100)
}

/// A name for a group, which its first member makes and all others need in order to meet it.
///
/// # Errors
/// See [`find`].
pub fn new_name() -> Outcome<Vec<u8>> {
    find()?;
    let name = result::get_uniqueid().map_err(|error| failed(&error))?;
    Ok(name.internal.map(|it| it as u8).to_vec())
}

impl Nccl {
    /// Begins to meet the other members of a group, as number `position` of `size`, with the CUDA device of this number.
    /// Returns before they have met: see [`Self::wait`]. No two members have the same device.
    ///
    /// # Errors
    /// There is no NCCL, no such device, or the name is none.
    pub fn join(
        name: &[u8],
        (position, size): (usize, usize),
        device: usize,
        patience: Duration,
    ) -> Outcome<Self> {
        find()?;
        let name = <[u8; 128]>::try_from(name)
            .map_err(|_| Fault::refused(format!("a name of {} bytes", name.len())))?;
        let name = sys::ncclUniqueId {
            internal: name.map(|it| it as c_char),
        };
        let number = |it: usize| c_int::try_from(it).map_err(|_| Fault::refused("so many members"));
        let (position, size) = (number(position)?, number(size)?);
        let context = CudaContext::new(device).map_err(|error| of_device(device, error))?;
        let stream = context
            .new_stream()
            .map_err(|error| of_device(device, error))?;
        let (mut pointer, mut options) = (std::ptr::null_mut(), options());
        // SAFETY: both pointers are those of values that live longer than the call, which copies the options; the context of
        // the device is that of this thread since its stream was made.
        let begun = unsafe {
            result::comm_init_rank_config(&raw mut pointer, size, name, position, &raw mut options)
        };
        begun.map_err(|error| failed(&error))?;
        Ok(Self {
            communicator: Arc::new(Communicator(Mutex::new(Some(Pointer(pointer))))),
            stream,
            patience,
            bytes: AtomicU64::new(0),
        })
    }

    /// Waits until all members have met.
    ///
    /// # Errors
    /// They do not within a minute, or NCCL refuses: two members have the same device, no network joins them.
    pub fn wait(&self) -> Outcome<()> {
        self.until(MEETING, || Ok(true))
    }

    /// The sum of the values of all members, in the order that NCCL chooses.
    ///
    /// # Errors
    /// A member is gone or silent, NCCL or the device fails, or the group was aborted. The group is of no use afterwards.
    pub fn all_reduce(&self, values: &mut [f32], precision: Precision) -> Outcome<()> {
        self.wait()?;
        let mut bytes = Vec::new();
        precision.encode(values, &mut bytes);
        let broken = |error| of_device(self.stream.context().ordinal(), error);
        let mut buffer = self.stream.clone_htod(&bytes).map_err(broken)?;
        {
            let (pointer, _in_use) = buffer.device_ptr_mut(&self.stream);
            let kind = match precision {
                Precision::Float32 => sys::ncclDataType_t::ncclFloat32,
                Precision::Bfloat16 => sys::ncclDataType_t::ncclBfloat16,
            };
            self.communicator.call(|communicator| {
                // SAFETY: the buffer has so many elements of the type, and is freed behind this work in the same stream.
                unsafe {
                    result::all_reduce(
                        pointer as *const _,
                        pointer as *mut _,
                        values.len(),
                        kind,
                        sys::ncclRedOp_t::ncclSum,
                        communicator,
                        self.stream.cu_stream() as _,
                    )
                }
            })?;
        }
        let seconds = bytes.len().div_ceil(SLOWEST) as u64;
        let patience = self.patience + Duration::from_secs(seconds);
        // The work is in the stream when the call has settled.
        self.until(patience, || Ok(true))?;
        let done = self.stream.record_event(None).map_err(broken)?;
        self.until(patience, || done.try_is_complete().map_err(broken))?;
        self.stream
            .memcpy_dtoh(&buffer, &mut bytes)
            .map_err(broken)?;
        self.stream.synchronize().map_err(broken)?;
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        match precision.decode(&bytes, values) {
            true => Ok(()),
            false => Err(Fault::refused("another number of values")),
        }
    }

    /// The bytes of all values that were given to NCCL.
    pub fn bytes_sent(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What ends it from another thread: whoever waits gets [`Fault::Aborted`].
    pub fn closer(&self) -> Closer {
        let communicator = Arc::clone(&self.communicator);
        Closer::new(move || communicator.abort())
    }

    /// Waits until no call is under way and `is_done` says so. After a fault the communicator is aborted, so that nothing
    /// of it is left on the device.
    fn until(&self, patience: Duration, is_done: impl Fn() -> Outcome<bool>) -> Outcome<()> {
        let since = Instant::now();
        let waited = loop {
            match self
                .communicator
                .is_settled()
                .and_then(|it| Ok(it && is_done()?))
            {
                Ok(true) => return Ok(()),
                Ok(false) if since.elapsed() < patience => std::thread::sleep(LOOK),
                Ok(false) => break Fault::Silent(since.elapsed()),
                Err(fault) => break fault,
            }
        };
        self.communicator.abort();
        Err(waited)
    }
}

/// The connection of a member; none when it was aborted.
struct Communicator(Mutex<Option<Pointer>>);

struct Pointer(sys::ncclComm_t);

// SAFETY: NCCL lets any thread use a communicator, one at a time, which the lock around it sees to.
unsafe impl Send for Pointer {}

impl Communicator {
    /// Makes a call, unless it was aborted.
    fn call(
        &self,
        call: impl FnOnce(sys::ncclComm_t) -> Result<NcclStatus, NcclError>,
    ) -> Outcome<()> {
        let pointer = self.0.lock();
        let Some(Pointer(pointer)) = *pointer else {
            return Err(Fault::Aborted);
        };
        call(pointer).map_err(|error| with_reason(&error, pointer))?;
        Ok(())
    }

    /// Whether no call is under way.
    fn is_settled(&self) -> Outcome<bool> {
        let pointer = self.0.lock();
        let Some(Pointer(pointer)) = *pointer else {
            return Err(Fault::Aborted);
        };
        let mut state = sys::ncclResult_t::ncclSuccess;
        // SAFETY: the communicator lives while its lock is held, and `state` longer than the call.
        let asked = unsafe { sys::ncclCommGetAsyncError(pointer, &raw mut state) };
        asked.result().map_err(|error| failed(&error))?;
        match state.result() {
            Ok(NcclStatus::InProgress) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) => Err(with_reason(&error, pointer)),
        }
    }

    fn abort(&self) {
        if let Some(Pointer(pointer)) = self.0.lock().take() {
            // SAFETY: nobody has the pointer any more. What the abort returns changes nothing.
            let _ = unsafe { result::comm_abort(pointer) };
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.abort();
    }
}

/// The options of a communicator that does not block; all others are chosen by NCCL.
fn options() -> sys::ncclConfig_t {
    sys::ncclConfig_t {
        size: size_of::<sys::ncclConfig_t>(),
        magic: MAGIC,
        version: OPTIONS_OF,
        blocking: 0,
        cgaClusterSize: CHOSEN_BY_NCCL,
        minCTAs: CHOSEN_BY_NCCL,
        maxCTAs: CHOSEN_BY_NCCL,
        netName: null(),
        splitShare: CHOSEN_BY_NCCL,
        trafficClass: CHOSEN_BY_NCCL,
        commName: null(),
        collnetEnable: CHOSEN_BY_NCCL,
        CTAPolicy: CHOSEN_BY_NCCL,
        shrinkShare: CHOSEN_BY_NCCL,
        nvlsCTAs: CHOSEN_BY_NCCL,
        nChannelsPerNetPeer: CHOSEN_BY_NCCL,
        nvlinkCentricSched: CHOSEN_BY_NCCL,
        graphUsageMode: CHOSEN_BY_NCCL,
        numRmaCtx: CHOSEN_BY_NCCL,
        maxP2pPeers: CHOSEN_BY_NCCL,
    }
}

/// An error of NCCL with what it says about it.
fn failed(error: &NcclError) -> Fault {
    // SAFETY: NCCL returns a text that lives as long as its library.
    Fault::Failed(format!("NCCL: {}", unsafe {
        text(sys::ncclGetErrorString(error.0))
    }))
}

/// The same with the reason that NCCL has noted last for this communicator.
fn with_reason(error: &NcclError, communicator: sys::ncclComm_t) -> Fault {
    // SAFETY: the communicator lives while its lock is held; the text is copied before that ends.
    let reason = unsafe { text(sys::ncclGetLastError(communicator)) };
    match (failed(error), reason.trim()) {
        (Fault::Failed(what), reason) if !reason.is_empty() => {
            Fault::Failed(format!("{what}: {reason}"))
        }
        (fault, _) => fault,
    }
}

/// # Safety
/// A text that ends with a zero, or null.
unsafe fn text(from: *const c_char) -> String {
    match from.is_null() {
        true => String::new(),
        // SAFETY: by the contract.
        false => unsafe { CStr::from_ptr(from) }
            .to_string_lossy()
            .into_owned(),
    }
}

fn of_device(device: usize, error: DriverError) -> Fault {
    Fault::Failed(format!("CUDA device {device}: {error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_their_words() {
        assert_eq!(title(22_803), "NCCL 2.28.3");
        assert_eq!(title(OLDEST), "NCCL 2.14.0");
        assert_eq!(title(2804), "NCCL 2.8.4");
    }

    #[test]
    fn a_machine_without_nccl_says_what_is_missing() {
        let Err(fault) = find() else {
            return;
        };
        let said = fault.to_string();
        assert!(
            said.contains("libcuda.so") || said.contains("libnccl.so") || said.contains("older"),
            "{said}"
        );
        // And everything that needs it says the same.
        assert_eq!(new_name(), Err(fault.clone()));
        let joined = Nccl::join(&[0; 128], (0, 2), 0, MEETING);
        assert_eq!(joined.err(), Some(fault));
        assert_eq!(version(), None);
    }

    fn begun(name: &[u8], place: (usize, usize)) -> Outcome<Nccl> {
        Nccl::join(name, place, 0, Duration::from_secs(20))
    }

    /// Whether there is no NCCL; with a line that `tests/run.sh` counts.
    fn is_missing() -> bool {
        let missing = find().err();
        if let Some(missing) = &missing {
            println!("skipped: {missing}");
        }
        missing.is_some()
    }

    /// A group of one needs one GPU: sums, counted bytes, and the end from another thread.
    #[test]
    fn a_group_of_one_on_gpu() {
        if is_missing() {
            return;
        }
        let name = new_name().expect("NCCL is there");
        let group = begun(&name, (0, 1)).expect("there is a GPU");
        group.wait().expect("nobody else is awaited");
        // All of them are numbers of bfloat16.
        let given: Vec<f32> = (0..60_000_u16).map(|at| f32::from(at % 256)).collect();
        for precision in [Precision::Float32, Precision::Bfloat16] {
            let mut values = given.clone();
            group
                .all_reduce(&mut values, precision)
                .expect("one of them");
            assert_eq!(values, given);
        }
        assert_eq!(group.bytes_sent(), 6 * given.len() as u64);
        group.closer().close();
        let after = group.all_reduce(&mut [1.0], Precision::Float32);
        assert_eq!(after, Err(Fault::Aborted));
    }

    /// NCCL refuses two members with one GPU, and its reason is what a user reads.
    #[test]
    fn two_members_with_one_device_on_gpu() {
        if is_missing() {
            return;
        }
        let name = new_name().expect("NCCL is there");
        let reasons = std::thread::scope(|scope| {
            let members = [0, 1].map(|at| {
                let name = &name;
                scope.spawn(move || begun(name, (at, 2)).and_then(|group| group.wait()))
            });
            members.map(|member| member.join().expect("no panic"))
        });
        for reason in reasons {
            let Err(Fault::Failed(reason)) = reason else {
                panic!("{reason:?}");
            };
            assert!(reason.contains("Duplicate GPU"), "{reason}");
        }
    }
}
