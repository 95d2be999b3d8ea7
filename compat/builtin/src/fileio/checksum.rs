//! Self-validating blocks in sysbench's format: random bytes, their CRC-32, and the block's offset in its file.

use dbdyno_random::Rng;

/// Checksum and offset, little-endian.
pub(super) const TRAILER_BYTES: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    Checksum { calculated: u32, stored: u32 },
    Offset { stored: u64 },
}

/// Fills `block` with random bytes and the trailer for the offset `at`.
pub(super) fn fill_block(block: &mut [u8], at: u64, rng: &mut Rng) {
    let content = block.len() - TRAILER_BYTES;
    for chunk in block[..content].chunks_mut(8) {
        chunk.copy_from_slice(&rng.bits().to_le_bytes()[..chunk.len()]);
    }
    let checksum = crc32fast::hash(&block[..content]);
    block[content..content + 4].copy_from_slice(&checksum.to_le_bytes());
    block[content + 4..].copy_from_slice(&at.to_le_bytes());
}

/// Validates `block`, read from the offset `at`.
pub(super) fn check(block: &[u8], at: u64) -> Result<(), Mismatch> {
    let (content, trailer) = block.split_at(block.len() - TRAILER_BYTES);
    let (checksum, offset) = trailer.split_at(4);
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
    let (calculated, stored) = (crc32fast::hash(content), number(checksum) as u32);
    if calculated != stored {
        return Err(Mismatch::Checksum { calculated, stored });
    }
    match number(offset) {
        stored if stored == at => Ok(()),
        stored => Err(Mismatch::Offset { stored }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_good_at_its_place_alone_and_as_long_as_nobody_changes_it() {
        let mut block = vec![0; 512];
        assert!(matches!(check(&block, 0), Err(Mismatch::Checksum { stored: 0, .. })));
        fill_block(&mut block, 1024, &mut Rng::new(1, &[]));
        assert_eq!(check(&block, 1024), Ok(()));
        assert_eq!(check(&block, 512), Err(Mismatch::Offset { stored: 1024 }));
        block[100] ^= 1;
        assert!(matches!(check(&block, 1024), Err(Mismatch::Checksum { .. })));
    }

    /// CRC-32 as in zlib, whose value for these digits is well known.
    #[test]
    fn the_checksum_is_zlibs() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }
}
