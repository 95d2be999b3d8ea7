//! Reads and writes memory-mapped files.
#![allow(unsafe_code)] // Copies without a reference, because other threads and programs may change the bytes.

use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw};

/// A memory-mapped file. Threads copy bytes without synchronisation, as with read(2) and write(2).
pub(super) struct MappedFile(MmapRaw);

impl MappedFile {
    pub(super) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        MmapOptions::new().len(bytes).map_raw(file).map(Self)
    }

    fn pointer(&self, offset: u64, bytes: usize) -> *mut u8 {
        let offset = offset as usize;
        assert!(offset <= self.0.len() && bytes <= self.0.len() - offset);
        // SAFETY: within the mapping, as just asserted.
        unsafe { self.0.as_mut_ptr().add(offset) }
    }

    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) {
        // SAFETY: the bytes are within the mapping, and the buffer is not.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.pointer(offset, buffer.len()),
                buffer.as_mut_ptr(),
                buffer.len(),
            )
        };
    }

    pub(super) fn write(&self, offset: u64, buffer: &[u8]) {
        // SAFETY: as in `read`.
        unsafe {
            std::ptr::copy_nonoverlapping(buffer.as_ptr(), self.pointer(offset, buffer.len()), buffer.len())
        };
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.flush()
    }
}
