//! What SQLite does to an open file: one C call each, answered by a [`DatabaseFile`].

use std::ffi::{c_int, c_void};
use std::{ptr, slice};

use rusqlite::ffi;

use super::{len, told};
use crate::disk::database::DatabaseFile;
use crate::disk::levels::Level;

/// What SQLite allocates for an open file: its own part first, then ours.
#[repr(C)]
pub(super) struct FileSlot {
    own: ffi::sqlite3_file,
    file: *mut DatabaseFile,
}

impl FileSlot {
    /// Says that there is nothing to close.
    ///
    /// # Safety
    /// `file` has room for a `FileSlot`.
    pub(super) unsafe fn clear(file: *mut ffi::sqlite3_file) {
        // SAFETY: the caller's promise. What was there before is not read.
        unsafe {
            file.cast::<Self>().write(Self {
                own: ffi::sqlite3_file { pMethods: ptr::null() },
                file: ptr::null_mut(),
            });
        }
    }

    /// Gives an open file to SQLite, until it closes it.
    ///
    /// # Safety
    /// `file` has room for a `FileSlot`.
    pub(super) unsafe fn fill(file: *mut ffi::sqlite3_file, opened: DatabaseFile) {
        // SAFETY: the caller's promise. What was there before is not read.
        unsafe {
            file.cast::<Self>().write(Self {
                own: ffi::sqlite3_file { pMethods: &raw const METHODS },
                file: Box::into_raw(Box::new(opened)),
            });
        }
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// # Safety
/// `file` was given to `fill` and is not yet closed; SQLite makes one call at a time on a file.
unsafe fn opened<'a>(file: *mut ffi::sqlite3_file) -> &'a mut DatabaseFile {
    // SAFETY: `fill` put a pointer from `Box::into_raw` there, which only `close` takes back.
    unsafe { &mut *(*file.cast::<FileSlot>()).file }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes an open file once; the pointer came from `Box::into_raw` in `fill`.
    unsafe {
        drop(Box::from_raw((*file.cast::<FileSlot>()).file));
        FileSlot::clear(file);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    out: *mut c_void,
    count: c_int,
    from: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: the file is open and `out` has room for `count` bytes, which SQLite owns.
    let (file, bytes) =
        unsafe { (opened(file), slice::from_raw_parts_mut(out.cast::<u8>(), len(count))) };
    told(file.read(bytes, offset(from)))
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    count: c_int,
    to: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: the file is open and `bytes` are `count` bytes, which SQLite owns.
    let (file, bytes) =
        unsafe { (opened(file), slice::from_raw_parts(bytes.cast::<u8>(), len(count))) };
    told(file.write(bytes, offset(to)))
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: the file is open.
    told(unsafe { opened(file) }.truncate(offset(size)))
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: the file is open.
    told(unsafe { opened(file) }.sync())
}

unsafe extern "C" fn file_size(
    file: *mut ffi::sqlite3_file,
    out: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: the file is open.
    told(unsafe { opened(file) }.len().map(|len| {
        let len = len.try_into().expect("a file is smaller than memory");
        // SAFETY: SQLite gives a place for the answer.
        unsafe { *out = len };
    }))
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, wanted: c_int) -> c_int {
    // SAFETY: the file is open.
    told(unsafe { opened(file) }.lock(level(wanted)))
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, wanted: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe { opened(file) }.unlock(level(wanted));
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: the file is open, and SQLite gives a place for the answer.
    unsafe { *out = opened(file).is_reserved().into() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(
    _file: *mut ffi::sqlite3_file,
    _verb: c_int,
    _argument: *mut c_void,
) -> c_int {
    // All verbs are hints or questions that SQLite can do without.
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    // What `os_unix.c` says of every disk.
    4096
}

unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    // A torn write touches nothing beside it. `os_unix.c` says so of every disk, and here it is true.
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

fn offset(offset: ffi::sqlite3_int64) -> u64 {
    offset.try_into().expect("SQLite counts bytes from 0")
}

fn level(level: c_int) -> Level {
    match level {
        ffi::SQLITE_LOCK_NONE => Level::None,
        ffi::SQLITE_LOCK_SHARED => Level::Shared,
        ffi::SQLITE_LOCK_RESERVED => Level::Reserved,
        ffi::SQLITE_LOCK_PENDING => Level::Pending,
        ffi::SQLITE_LOCK_EXCLUSIVE => Level::Exclusive,
        other => unreachable!("SQLite has no lock {other}"),
    }
}
