//! Memory for requests.

/// Direct I/O wants memory that begins with a page.
const PAGE_BYTES: usize = 4096;

/// Zeros that begin with a page.
pub(super) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Buffer {
    pub(super) fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + PAGE_BYTES];
        let start = memory.as_ptr().align_offset(PAGE_BYTES);
        Self { memory, start, bytes }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.bytes]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_begins_with_a_page() {
        for bytes in [1, 512, 16_384, 5000] {
            let mut buffer = Buffer::new(bytes);
            assert_eq!(buffer.bytes().len(), bytes);
            assert!((buffer.bytes_mut().as_ptr() as usize).is_multiple_of(PAGE_BYTES));
        }
    }
}
