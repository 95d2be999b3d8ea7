//! Compressed frames in pieces of any size: what they hold must not depend on where the network cut them, nor on how
//! much room the reader has; and what we pack ourselves comes out as it went in.
//!
//! Input: a byte of switches, the size of a piece less one, then the frames.

use dbdyno_schema::plan::Compression;
use dbdyno_wire::WireError;
use dbdyno_wire::mysql::compress::{Unpacker, pack};

/// Most bytes that are taken out of one input: zlib makes a thousand of one.
const OUT_MAX: usize = 1 << 20;

/// Takes the input apart in three ways, and packs it.
///
/// # Panics
/// When the three differ, when nothing moves any more, or when packing loses something.
pub fn check(input: &[u8]) {
    let [switches, size, bytes @ ..] = input else { return };
    let compression = match switches & 1 {
        0 => Compression::Zlib,
        _ => Compression::Zstd { level: 3 },
    };
    let whole = unpack(compression, bytes, bytes.len().max(1), 64 * 1024);
    if whole.0.len() < OUT_MAX {
        let size = usize::from(*size) + 1;
        same(&unpack(compression, bytes, size, size * 7), &whole);
        same(&unpack(compression, bytes, 1, 256), &whole);
    }
    let mut frames = Vec::new();
    pack(compression, 0, bytes, &mut frames);
    let (out, error) = unpack(compression, &frames, 1000, 1000);
    assert_eq!((out.as_slice(), error), (bytes, None));
}

fn same(one: &(Vec<u8>, Option<WireError>), other: &(Vec<u8>, Option<WireError>)) {
    assert_eq!(one.1.is_some(), other.1.is_some(), "{:?} {:?}", one.1, other.1);
    // Up to an error a reader with less room may have seen more or less of the same.
    let common = if one.1.is_some() { one.0.len().min(other.0.len()) } else { usize::MAX };
    assert_eq!(one.0[..common.min(one.0.len())], other.0[..common.min(other.0.len())]);
}

/// What comes out of `bytes` in pieces of `size`, into a reader with `room`.
fn unpack(compression: Compression, bytes: &[u8], size: usize, room: usize) -> (Vec<u8>, Option<WireError>) {
    let (mut unpacker, mut out, mut room) = (Unpacker::new(compression), Vec::new(), vec![0; room]);
    for mut piece in bytes.chunks(size) {
        loop {
            match unpacker.feed(piece, &mut room) {
                Err(error) => return (out, Some(error)),
                Ok((taken, given)) => {
                    piece = &piece[taken..];
                    out.extend_from_slice(&room[..given]);
                    if given == 0 {
                        assert!(piece.is_empty(), "{} bytes that nobody takes", piece.len());
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
