//! A block of memory that threads may share.

use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::test::errno_text;

/// sysbench rounds an allocation in huge pages up to a multiple of this size. Its error message shows the requested size plus
/// this size minus one byte.
const HUGE_PAGE_BYTES: u64 = 4 << 20;

pub(super) struct Block {
    memory: MmapRaw,
    words: usize,
}

impl Block {
    /// # Errors
    /// sysbench's message if the allocation fails.
    pub(super) fn new(bytes: u64, use_huge_pages: bool) -> Result<Self, String> {
        let words = bytes as usize / size_of::<AtomicU64>();
        if use_huge_pages {
            let rounded = bytes.saturating_add(HUGE_PAGE_BYTES - 1);
            // The kernel maps only multiples of the huge page size.
            let length = rounded / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
            let memory = MmapOptions::new().len(length as usize).huge(None).map_anon().map_err(|error| {
                format!("Failed to allocate {rounded} bytes from HugeTLB memory. {}", errno_text(&error))
            })?;
            return Ok(Self { memory: memory.into(), words });
        }
        let memory = MmapOptions::new().len(bytes as usize).map_anon();
        let memory = memory.map_err(|error| format!("Failed to allocate {bytes} bytes: {error}"))?;
        let block = Self { memory: memory.into(), words };
        // Write to every page: the kernel maps all pages that nobody has written to one page of zeros, so reading them
        // would measure the CPU cache.
        block.words().iter().for_each(|word| word.store(1, Ordering::Relaxed));
        Ok(block)
    }

    #[allow(unsafe_code)]
    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds this many words, is page-aligned, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.as_mut_ptr().cast(), self.words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_the_requested_number_of_words() {
        let block = Block::new(4096, false).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(block.words().len(), 512);
        assert!(Block::new(1 << 62, false).is_err());
    }

    #[test]
    fn huge_pages_are_allocated_or_refused_with_sysbenchs_message() {
        match Block::new(1024, true) {
            Ok(block) => assert_eq!(block.words().len(), 128),
            Err(error) => assert!(
                error.starts_with("Failed to allocate 4195327 bytes from HugeTLB memory. errno = "),
                "{error}"
            ),
        }
    }
}
