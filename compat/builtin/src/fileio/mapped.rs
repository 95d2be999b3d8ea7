//! Files in memory.
#![allow(unsafe_code)] // Mappings, which other programs could change under us.

use std::ffi::c_void;
use std::fs::File;
use std::io;

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

/// A file's bytes, shared by all threads.
pub(super) struct Mapped {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: bytes are copied in and out without any order between threads, as `read` and `write` would; what comes of
// two threads at one place is data of either.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// The first `bytes` of a file, which has as many.
    pub(super) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)?
        };
        Ok(Self { start: start.cast(), bytes })
    }

    fn at(&self, at: u64, bytes: usize) -> *mut u8 {
        let at = at as usize;
        assert!(at <= self.bytes && bytes <= self.bytes - at);
        // SAFETY: it lies within the mapping, as was just seen.
        unsafe { self.start.add(at) }
    }

    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) {
        // SAFETY: so many bytes lie within the mapping, and the buffer is none of them.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at(at, buffer.len()), buffer.as_mut_ptr(), buffer.len())
        };
    }

    pub(super) fn write(&self, at: u64, buffer: &[u8]) {
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(buffer.as_ptr(), self.at(at, buffer.len()), buffer.len()) };
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        let flags = MsyncFlags::SYNC | MsyncFlags::INVALIDATE;
        // SAFETY: all of it is mapped.
        unsafe { msync(self.start.cast::<c_void>(), self.bytes, flags) }.map_err(io::Error::from)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody has an address in it any more. A refusal loses addresses and
        // nothing else.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}
