//! A block of memory that threads may share.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// What the original's allocation in huge pages is rounded up by, which its message tells.
const HUGE_PAGE_BYTES: u64 = 4 << 20;

/// A block of words. Threads that share it touch it without any order between them.
pub(super) struct Block(Memory);

enum Memory {
    Own(Box<[AtomicU64]>),
    Huge(Mapping),
}

/// Huge pages of the system.
struct Mapping {
    start: *mut AtomicU64,
    words: usize,
    bytes: usize,
}

// SAFETY: the words are atomic, and the mapping ends with this value.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Mapping {}

impl Block {
    /// A block of so many bytes.
    ///
    /// # Errors
    /// There is no room: a line that says why.
    pub(super) fn new(bytes: u64, huge: bool) -> Result<Self, String> {
        let words = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<AtomicU64>();
        if huge {
            return Mapping::new(bytes, words).map(|mapping| Self(Memory::Huge(mapping)));
        }
        let mut memory = Vec::new();
        let room = memory.try_reserve_exact(words);
        room.map_err(|error| format!("Failed to allocate {bytes} bytes: {error}"))?;
        // Written once, so that no page is the system's page of zeros, which would be read at the cache's speed.
        memory.resize_with(words, AtomicU64::default);
        memory.iter().for_each(|word| word.store(1, Ordering::Relaxed));
        Ok(Self(Memory::Own(memory.into_boxed_slice())))
    }

    /// The words.
    #[allow(unsafe_code)]
    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        match &self.0 {
            Memory::Own(words) => words,
            // SAFETY: so many words are mapped from there on, aligned to a page and zeroed, for as long as `self` lives.
            Memory::Huge(mapping) => unsafe { std::slice::from_raw_parts(mapping.start, mapping.words) },
        }
    }
}

impl Mapping {
    #[allow(unsafe_code)]
    fn new(bytes: u64, words: usize) -> Result<Self, String> {
        let rounded = bytes.saturating_add(HUGE_PAGE_BYTES - 1);
        // The kernel takes whole huge pages alone, whatever size of them it has.
        let length = usize::try_from(rounded / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES).unwrap_or(usize::MAX);
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let mapped = unsafe {
            mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags)
        };
        match mapped {
            Ok(start) => Ok(Self { start: start.cast(), words, bytes: length }),
            Err(errno) => {
                let number = errno.raw_os_error();
                let error = std::io::Error::from(errno).to_string();
                let why = error.split(" (os error").next().unwrap_or_default();
                Err(format!(
                    "Failed to allocate {rounded} bytes from HugeTLB memory. errno = {number} ({why})"
                ))
            }
        }
    }
}

impl Drop for Mapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody has a reference into it any more. A refusal loses memory
        // and nothing else.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_the_words_that_were_asked_for() {
        let block = Block::new(4096, false).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(block.words().len(), 512);
        assert!(Block::new(1 << 62, false).is_err());
    }

    #[test]
    fn huge_pages_are_there_or_refused_in_the_originals_words() {
        match Block::new(1024, true) {
            Ok(block) => assert_eq!(block.words().len(), 128),
            Err(why) => assert!(
                why.starts_with("Failed to allocate 4195327 bytes from HugeTLB memory. errno = "),
                "{why}"
            ),
        }
    }
}
