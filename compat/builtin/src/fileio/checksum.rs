//! Self-validating blocks in sysbench's format: random bytes, their CRC-32, and the block's offset in its file.

use dbdyno_random::Rng;

/// Checksum and offset, little-endian.
pub(super) const TRAILER_BYTES: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    Checksum { calculated: u32, stored: u32 },
    Offset { stored: u64 },
}

/// Fills `block` with random bytes and the trailer. `offset` is the block's offset in its file.
pub(super) fn fill_block(block: &mut [u8], offset: u64, rng: &mut Rng) {
    let content = block.len() - TRAILER_BYTES;
    for chunk in block[..content].chunks_mut(8) {
        chunk.copy_from_slice(&rng.bits().to_le_bytes()[..chunk.len()]);
    }
    let checksum = crc32fast::hash(&block[..content]);
    block[content..content + 4].copy_from_slice(&checksum.to_le_bytes());
    block[content + 4..].copy_from_slice(&offset.to_le_bytes());
}

/// Validates `block`, which was read at `offset`.
pub(super) fn validate_block(block: &[u8], offset: u64) -> Result<(), Mismatch> {
    let (content, trailer) = block.split_at(block.len() - TRAILER_BYTES);
    let (stored_checksum, stored_offset) = trailer.split_at(4);
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
    let (calculated, stored) = (crc32fast::hash(content), number(stored_checksum) as u32);
    if calculated != stored {
        return Err(Mismatch::Checksum { calculated, stored });
    }
    match number(stored_offset) {
        stored if stored == offset => Ok(()),
        stored => Err(Mismatch::Offset { stored }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_valid_only_unchanged_and_at_its_offset() {
        let mut block = vec![0; 512];
        assert!(matches!(validate_block(&block, 0), Err(Mismatch::Checksum { stored: 0, .. })));
        fill_block(&mut block, 1024, &mut Rng::new(1, &[]));
        assert_eq!(validate_block(&block, 1024), Ok(()));
        assert_eq!(validate_block(&block, 512), Err(Mismatch::Offset { stored: 1024 }));
        block[100] ^= 1;
        assert!(matches!(validate_block(&block, 1024), Err(Mismatch::Checksum { .. })));
    }

    /// The CRC-32 of these digits is the check value in the standard.
    #[test]
    fn the_checksum_is_the_standard_crc_32() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }
}
