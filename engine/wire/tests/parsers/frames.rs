//! Compressed frames in pieces of any size: the unpacked bytes must not depend on how the network divides the frames, nor
//! on the size of the reader's buffer. Bytes that the client packs must be unpacked to the same bytes.
//!
//! Input: a byte of switches, the size of a piece minus 1, then the frames.

use dbdyno_schema::plan::Compression;
use dbdyno_wire::WireError;
use dbdyno_wire::mysql::compress::{Unpacker, pack};

/// Maximum bytes to unpack from one input. zlib can unpack a thousand bytes from one.
const OUT_MAX: usize = 1 << 20;

/// Unpacks the input with three sizes of pieces and buffers; then packs it and unpacks the result.
///
/// # Panics
/// If the three results differ, if the unpacker stops before the end of its input, or if packing changes the bytes.
pub fn check(input: &[u8]) {
    let [switches, size, bytes @ ..] = input else { return };
    let compression = match switches & 1 {
        0 => Compression::Zlib,
        _ => Compression::Zstd { level: 3 },
    };
    let whole = unpack(compression, bytes, bytes.len().max(1), 64 * 1024);
    if whole.0.len() < OUT_MAX {
        let size = usize::from(*size) + 1;
        assert_same(&unpack(compression, bytes, size, size * 7), &whole);
        assert_same(&unpack(compression, bytes, 1, 256), &whole);
    }
    let mut frames = Vec::new();
    pack(compression, 0, bytes, &mut frames);
    let (out, error) = unpack(compression, &frames, 1000, 1000);
    assert_eq!((out.as_slice(), error), (bytes, None));
}

fn assert_same(one: &(Vec<u8>, Option<WireError>), other: &(Vec<u8>, Option<WireError>)) {
    assert_eq!(one.1.is_some(), other.1.is_some(), "{:?} {:?}", one.1, other.1);
    // Before an error, readers with different buffers may have unpacked different numbers of bytes.
    let common = if one.1.is_some() { one.0.len().min(other.0.len()) } else { usize::MAX };
    assert_eq!(one.0[..common.min(one.0.len())], other.0[..common.min(other.0.len())]);
}

/// Unpacks `bytes` in pieces of `size` bytes into a buffer of `room` bytes. Returns the unpacked bytes and the error, if any.
fn unpack(compression: Compression, bytes: &[u8], size: usize, room: usize) -> (Vec<u8>, Option<WireError>) {
    let (mut unpacker, mut out, mut room) = (Unpacker::new(compression), Vec::new(), vec![0; room]);
    for mut piece in bytes.chunks(size) {
        loop {
            match unpacker.feed(piece, &mut room) {
                Err(error) => return (out, Some(error)),
                Ok((read, written)) => {
                    piece = &piece[read..];
                    out.extend_from_slice(&room[..written]);
                    if written == 0 {
                        assert!(piece.is_empty(), "{} bytes that the unpacker does not consume", piece.len());
                        break;
                    }
                }
            }
            if out.len() >= OUT_MAX {
                return (out, None);
            }
        }
    }
    (out, None)
}
