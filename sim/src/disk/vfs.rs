//! SQLite itself, unchanged, on a simulated disk: its recovery is part of every crash.
//! The only unsafe code, with its leaf. Each function translates one C call and decides nothing; what SQLite is
//! answered is in `database`.
//!
//! There is no shared memory: a database goes into WAL mode only after `PRAGMA
//! locking_mode=EXCLUSIVE`, which the store sets first thing on every connection.
//!
//! SQLite's generator of random numbers (the salts of its log) is one per process. [`Databases`]
//! seeds it whenever it opens a database, so one simulation after another starts it from its own
//! seed; two at the same time in one process would disturb each other.

mod file; // what SQLite does to an open file

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{ptr, slice};

use nexus3::world::Sqlite;
use rusqlite::{Connection, Error, OpenFlags, ffi};

use super::Disk;
use super::database::{Base, Code};
use file::FileSlot;

/// The databases of a simulated disk.
pub struct Databases {
    base: Arc<Base>,
    slot: &'static Slot,
}

impl Databases {
    /// `chance` gives evenly distributed random numbers, and may not use SQLite.
    pub fn new(disk: Disk, chance: impl FnMut() -> u64 + Send + 'static) -> Self {
        let base = Arc::new(Base::new(disk, chance));
        let slot = Slot::take(&base);
        Self { base, slot }
    }
}

impl Sqlite for Databases {
    fn open(&self, path: &Path) -> rusqlite::Result<Connection> {
        if !path.is_absolute() {
            return Err(Error::InvalidPath(path.to_owned()));
        }
        seed(self.base.draw());
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags_and_vfs(path, flags, self.slot.name.as_c_str())
    }
}

impl std::fmt::Debug for Databases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Databases")
    }
}

/// Starts SQLite's generator again. `SQLITE_TESTCTRL_PRNG_RESET` does nothing in this version.
fn seed(number: u64) {
    // Zero would ask for the operating system's numbers.
    let [first, second, third, fourth, ..] = number.to_le_bytes();
    let seed = c_int::from_le_bytes([first | 1, second, third, fourth]);
    let no_database = ptr::null_mut::<ffi::sqlite3>();
    // SAFETY: this verb takes an int and a pointer that may be null, and only sets a number.
    unsafe { ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_PRNG_SEED, seed, no_database) };
}

/// A file system that SQLite knows by name. SQLite keeps pointers to it for as long as a connection
/// lives, which may be longer than `Databases`; so it is never freed but used again, once nothing
/// of the disk it stood for is open.
struct Slot {
    name: CString,
    base: Mutex<Weak<Base>>,
}

/// All slots there are. Held while one is chosen, so that none is chosen twice.
static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

impl Slot {
    fn take(base: &Arc<Base>) -> &'static Self {
        let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in slots.iter() {
            let mut held = slot.base.lock().unwrap_or_else(PoisonError::into_inner);
            if held.strong_count() == 0 {
                *held = Arc::downgrade(base);
                return slot;
            }
        }
        let name = CString::new(format!("nexus3-sim-{}", slots.len())).expect("it has no zero");
        let slot: &'static Slot =
            Box::leak(Box::new(Slot { name, base: Mutex::new(Arc::downgrade(base)) }));
        let vfs = Box::into_raw(Box::new(slot.vfs()));
        // SAFETY: `vfs` is leaked above and all it points to is static; its functions are those
        // below, which know that `pAppData` is a slot. SQLite alone uses it from here on.
        let registered = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
        assert_eq!(registered, ffi::SQLITE_OK, "registering fails only where SQLite cannot start");
        slots.push(slot);
        slot
    }

    fn vfs(&'static self) -> ffi::sqlite3_vfs {
        ffi::sqlite3_vfs {
            iVersion: 2,
            szOsFile: size_of::<FileSlot>().try_into().expect("two pointers are small"),
            mxPathname: 512,
            pNext: ptr::null_mut(),
            zName: self.name.as_ptr(),
            pAppData: ptr::from_ref(self).cast_mut().cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: None,
            xGetLastError: None,
            xCurrentTimeInt64: Some(current_time_int64),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        }
    }
}

/// The disk behind a registered file system, while anything of it is in use.
///
/// # Safety
/// `vfs` was registered by `Slot::take`.
unsafe fn base(vfs: *mut ffi::sqlite3_vfs) -> Result<Arc<Base>, Code> {
    // SAFETY: a registered file system is never freed, and `pAppData` is its static slot.
    let slot = unsafe { &*(*vfs).pAppData.cast::<Slot>() };
    let base = slot.base.lock().unwrap_or_else(PoisonError::into_inner);
    base.upgrade().ok_or(ffi::SQLITE_IOERR)
}

/// # Safety
/// `path` is a string that ends in a zero and lives for `'a`.
unsafe fn path<'a>(path: *const c_char) -> &'a Path {
    // SAFETY: the caller's promise.
    Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()))
}

fn told(result: Result<(), Code>) -> c_int {
    match result {
        Ok(()) => ffi::SQLITE_OK,
        Err(code) => code,
    }
}

fn len(count: c_int) -> usize {
    count.try_into().expect("SQLite counts bytes from 0")
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives `szOsFile` bytes, aligned for pointers.
    unsafe { FileSlot::clear(file) };
    // SAFETY: SQLite calls with the file system that was registered; a name is null or a string.
    let result = unsafe { base(vfs) }.and_then(|base| {
        if name.is_null() { base.open_nameless() } else { base.open(unsafe { path(name) }, flags) }
    });
    let opened = match result {
        Ok(opened) => opened,
        Err(code) => return code,
    };
    let given = if opened.is_read_only() {
        flags & !(ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE) | ffi::SQLITE_OPEN_READONLY
    } else {
        flags
    };
    // SAFETY: `file` as above; `flags_out` is null or SQLite's to be set.
    unsafe {
        FileSlot::fill(file, opened);
        if !flags_out.is_null() {
            *flags_out = given;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync_dir: c_int,
) -> c_int {
    // SAFETY: SQLite calls with the file system that was registered and a string.
    let (base, path) = unsafe { (base(vfs), path(name)) };
    told(base.and_then(|base| base.delete(path, sync_dir & 1 != 0)))
}

unsafe extern "C" fn access(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with the file system that was registered and a string.
    let (base, path) = unsafe { (base(vfs), path(name)) };
    let result = base.and_then(|base| match flags {
        ffi::SQLITE_ACCESS_EXISTS => base.exists(path),
        _ => Ok(base.is_writable(path)),
    });
    match result {
        Ok(found) => {
            // SAFETY: SQLite gives a place for the answer.
            unsafe { *out = found.into() };
            ffi::SQLITE_OK
        }
        Err(code) => code,
    }
}

unsafe extern "C" fn full_pathname(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    out_len: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite calls with the file system that was registered and a string.
    let (base, path) = unsafe { (base(vfs), path(name)) };
    let full = match base {
        Ok(base) => base.full_path(path),
        Err(code) => return code,
    };
    let bytes = full.as_os_str().as_bytes();
    if bytes.len() >= len(out_len) {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has room for `out_len` bytes, which is more than these and the final zero.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), bytes.len());
        *out.add(bytes.len()) = 0;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(
    vfs: *mut ffi::sqlite3_vfs,
    count: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite calls with the file system that was registered and `count` bytes to fill.
    let (base, bytes) = unsafe { (base(vfs), slice::from_raw_parts_mut(out.cast(), len(count))) };
    let Ok(base) = base else {
        return 0;
    };
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&base.draw().to_le_bytes()[..piece.len()]);
    }
    count
}

/// Only who waits for a lock sleeps, and the simulated disk has one process.
unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    microseconds
}

unsafe extern "C" fn current_time_int64(
    vfs: *mut ffi::sqlite3_vfs,
    out: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls with the file system that was registered.
    match unsafe { base(vfs) } {
        Ok(base) => {
            // SAFETY: SQLite gives a place for the answer.
            unsafe { *out = base.julian_ms() };
            ffi::SQLITE_OK
        }
        Err(code) => code,
    }
}
