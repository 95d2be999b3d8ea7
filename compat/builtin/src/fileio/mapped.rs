//! Memory-mapped files.
#![allow(unsafe_code)] // Copies without a reference, because other threads and programs may change the bytes.

use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw};

/// Threads copy bytes in and out without synchronisation, as with `read` and `write`.
pub(super) struct Mapped(MmapRaw);

impl Mapped {
    pub(super) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        MmapOptions::new().len(bytes).map_raw(file).map(Self)
    }

    fn at(&self, at: u64, bytes: usize) -> *mut u8 {
        let at = at as usize;
        assert!(at <= self.0.len() && bytes <= self.0.len() - at);
        // SAFETY: within the mapping, as just asserted.
        unsafe { self.0.as_mut_ptr().add(at) }
    }

    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) {
        // SAFETY: the bytes are within the mapping, and the buffer is not.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at(at, buffer.len()), buffer.as_mut_ptr(), buffer.len())
        };
    }

    pub(super) fn write(&self, at: u64, buffer: &[u8]) {
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(buffer.as_ptr(), self.at(at, buffer.len()), buffer.len()) };
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.flush()
    }
}
