//! The compression of the MySQL protocol: client and server send packets inside compressed frames.
//!
//! ```text
//! frame: length of the content (3 bytes), sequence number (1 byte), length before compression (3 bytes; 0 if the
//!        content is not compressed), content
//! ```
//! Both directions are functions over bytes. The unpacker returns the content of a frame in pieces of the caller's size
//! and never stores it. A frame therefore needs no memory, whatever length it declares. A wrong length is an error.
//!
//! Source: "Compression" in the MySQL internals manual.

use std::cell::RefCell;

use dbdyno_schema::plan::Compression;
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use crate::WireError;

const HEADER: usize = 7;
/// Maximum bytes of a frame before compression. The length field has three bytes.
const FRAME_MAX: usize = 0xff_ffff;
/// Minimum bytes of a frame that is compressed, as in MySQL's own library.
const COMPRESS_MIN: usize = 50;
/// Base-2 logarithm of the maximum window of a zstd frame in bytes. A frame contains at most 2^24 bytes.
const WINDOW_LOG2_MAX: u32 = 24;
/// Maximum number of idle decompressors that a thread keeps. A decompressor is in use while a frame is incomplete.
const IDLE_MAX: usize = 4;

thread_local! {
    static ZLIB_OUT: RefCell<Option<Compress>> = const { RefCell::new(None) };
    static ZSTD_OUT: RefCell<Option<(u8, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
    static ZLIB_IN: RefCell<Vec<Decompress>> = const { RefCell::new(Vec::new()) };
    static ZSTD_IN: RefCell<Vec<Decoder<'static>>> = const { RefCell::new(Vec::new()) };
}

/// Appends `message`, one or more complete packets, as frames numbered from `sequence` on. Returns the number of the
/// next frame.
///
/// For each command, the frames of both directions are numbered together from 0. Servers check the number.
pub fn pack(compression: Compression, mut sequence: u8, message: &[u8], out: &mut Vec<u8>) -> u8 {
    for piece in message.chunks(FRAME_MAX) {
        let header = out.len();
        out.extend_from_slice(&[0; HEADER]);
        let is_compressed = piece.len() >= COMPRESS_MIN && compress(compression, piece, out).is_some();
        let is_smaller = is_compressed && out.len() - header - HEADER < piece.len();
        if !is_smaller {
            out.truncate(header + HEADER);
            out.extend_from_slice(piece);
        }
        let length = (out.len() - header - HEADER) as u32;
        let before = if is_smaller { piece.len() as u32 } else { 0 };
        out[header..header + 3].copy_from_slice(&length.to_le_bytes()[..3]);
        out[header + 3] = sequence;
        out[header + 4..header + 7].copy_from_slice(&before.to_le_bytes()[..3]);
        sequence = sequence.wrapping_add(1);
    }
    sequence
}

/// Appends `piece` in compressed form. Returns `None` if that would not make it shorter.
fn compress(compression: Compression, piece: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.resize(start + piece.len(), 0);
    let room = &mut out[start..];
    let length = match compression {
        Compression::None => None,
        Compression::Zlib => ZLIB_OUT.with_borrow_mut(|kept| {
            let zlib = kept.get_or_insert_with(|| Compress::new(flate2::Compression::new(6), true));
            zlib.reset();
            let status = zlib.compress(piece, room, FlushCompress::Finish);
            matches!(status, Ok(Status::StreamEnd)).then(|| zlib.total_out() as usize)
        }),
        Compression::Zstd { level } => ZSTD_OUT.with_borrow_mut(|kept| {
            if kept.as_ref().is_none_or(|(its, _)| *its != level) {
                *kept = zstd::bulk::Compressor::new(level.into()).ok().map(|zstd| (level, zstd));
            }
            kept.as_mut()?.1.compress_to_buffer(piece, room).ok()
        }),
    };
    out.truncate(start + length.unwrap_or(0));
    length.map(|_| ())
}

/// Unpacks frames.
pub struct Unpacker {
    compression: Compression,
    state: State,
    next_sequence: u8,
}

enum State {
    Header { bytes: [u8; HEADER], have: usize },
    Uncompressed { left: usize },
    Compressed { left: usize, declared: usize, decompressor: Decompressor },
}

const FRAME_START: State = State::Header { bytes: [0; HEADER], have: 0 };

impl Unpacker {
    /// An unpacker at the beginning of a stream.
    pub fn new(compression: Compression) -> Self {
        Self { compression, state: FRAME_START, next_sequence: 0 }
    }

    /// Number of the frame that follows the last frame received.
    pub fn next_sequence(&self) -> u8 {
        self.next_sequence
    }

    /// Unpacks from `input` to `out` as far as possible. Returns the number of bytes read and the number of bytes
    /// written. If no bytes are written, it needs more input.
    ///
    /// # Errors
    /// [`WireError::Protocol`] if the content of a frame contradicts its header.
    pub fn feed(&mut self, input: &[u8], out: &mut [u8]) -> Result<(usize, usize), WireError> {
        let mut taken = 0;
        while let Some((read, written)) = self.step(&input[taken..], out)? {
            taken += read;
            if written > 0 {
                return Ok((taken, written));
            }
        }
        Ok((taken, 0))
    }

    /// Performs one step. Returns the number of bytes read and written, or `None` if it needs more input.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Option<(usize, usize)>, WireError> {
        match &mut self.state {
            State::Header { bytes, have } => {
                let count = input.len().min(HEADER - *have);
                bytes[*have..*have + count].copy_from_slice(&input[..count]);
                *have += count;
                if *have == HEADER {
                    self.next_sequence = bytes[3].wrapping_add(1);
                    self.state = frame_state(self.compression, *bytes)?;
                }
                Ok((count > 0).then_some((count, 0)))
            }
            State::Uncompressed { left } => {
                let count = input.len().min(*left).min(out.len());
                out[..count].copy_from_slice(&input[..count]);
                *left -= count;
                if *left == 0 {
                    self.state = FRAME_START;
                }
                Ok((count > 0).then_some((count, count)))
            }
            State::Compressed { left, declared, decompressor } => {
                let piece = &input[..input.len().min(*left)];
                // The output has room for one byte more than declared, to detect content that is too long.
                let room = out.len().min(*declared + 1);
                let Step { read, written, is_end } = decompressor.run(piece, &mut out[..room])?;
                *left -= read;
                *declared = declared
                    .checked_sub(written)
                    .ok_or_else(|| corrupt_frame("longer than its header declares"))?;
                let has_moved = read + written > 0;
                if is_end && (*left > 0 || *declared > 0) {
                    return Err(corrupt_frame("shorter than its header declares"));
                }
                if !is_end && !has_moved && *left == 0 {
                    return Err(corrupt_frame("truncated"));
                }
                if is_end {
                    self.state = FRAME_START;
                }
                Ok((has_moved || is_end).then_some((read, written)))
            }
        }
    }
}

/// The state of the unpacker after a frame's header.
fn frame_state(
    compression: Compression,
    [a, b, c, _sequence, d, e, f]: [u8; HEADER],
) -> Result<State, WireError> {
    let left = u32::from_le_bytes([a, b, c, 0]) as usize;
    let declared = u32::from_le_bytes([d, e, f, 0]) as usize;
    if left == 0 {
        return Err(corrupt_frame("empty"));
    }
    if declared == 0 {
        return Ok(State::Uncompressed { left });
    }
    Ok(State::Compressed { left, declared, decompressor: Decompressor::new(compression)? })
}

fn corrupt_frame(how: &str) -> WireError {
    WireError::Protocol(format!("a compressed packet that is {how}"))
}

/// A decompressor in use, taken from the idle ones of its thread.
enum Decompressor {
    Zlib(Option<Decompress>),
    Zstd(Option<Decoder<'static>>),
}

struct Step {
    read: usize,
    written: usize,
    is_end: bool,
}

impl Decompressor {
    fn new(compression: Compression) -> Result<Self, WireError> {
        if let Compression::Zstd { .. } = compression {
            let idle = ZSTD_IN.with_borrow_mut(Vec::pop);
            let decoder = idle.map_or_else(zstd_decoder, |mut idle| idle.reinit().map(|()| idle));
            let decoder = decoder.map_err(|error| WireError::Protocol(format!("zstd: {error}")))?;
            return Ok(Decompressor::Zstd(Some(decoder)));
        }
        let mut zlib = ZLIB_IN.with_borrow_mut(Vec::pop).unwrap_or_else(|| Decompress::new(true));
        zlib.reset(true);
        Ok(Decompressor::Zlib(Some(zlib)))
    }

    fn run(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, WireError> {
        match self {
            Decompressor::Zlib(zlib) => {
                let zlib = zlib.as_mut().expect("there until it is dropped");
                let (before_in, before_out) = (zlib.total_in(), zlib.total_out());
                let status = zlib
                    .decompress(input, out, FlushDecompress::None)
                    .map_err(|_| corrupt_frame("not in the zlib format"))?;
                Ok(Step {
                    read: (zlib.total_in() - before_in) as usize,
                    written: (zlib.total_out() - before_out) as usize,
                    is_end: status == Status::StreamEnd,
                })
            }
            Decompressor::Zstd(zstd) => {
                let zstd = zstd.as_mut().expect("there until it is dropped");
                let mut source = InBuffer::around(input);
                let mut target = OutBuffer::around(out);
                let hint = zstd
                    .run(&mut source, &mut target)
                    .map_err(|_| corrupt_frame("not in the zstd format"))?;
                Ok(Step { read: source.pos(), written: target.pos(), is_end: hint == 0 })
            }
        }
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        fn keep<T>(idle: &RefCell<Vec<T>>, one: Option<T>) {
            let mut idle = idle.borrow_mut();
            if idle.len() < IDLE_MAX {
                idle.extend(one);
            }
        }
        // This fails only while the thread ends.
        let _ = match self {
            Decompressor::Zlib(one) => ZLIB_IN.try_with(|idle| keep(idle, one.take())),
            Decompressor::Zstd(one) => ZSTD_IN.try_with(|idle| keep(idle, one.take())),
        };
    }
}

fn zstd_decoder() -> std::io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG2_MAX))?;
    Ok(decoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZSTD: Compression = Compression::Zstd { level: 3 };

    fn unpack(
        compression: Compression,
        bytes: &[u8],
        piece: usize,
        room: usize,
    ) -> Result<Vec<u8>, WireError> {
        let mut unpacker = Unpacker::new(compression);
        let (mut all, mut out) = (Vec::new(), vec![0; room]);
        for mut piece in bytes.chunks(piece) {
            loop {
                let (taken, written) = unpacker.feed(piece, &mut out)?;
                all.extend_from_slice(&out[..written]);
                piece = &piece[taken..];
                if written == 0 {
                    assert!(piece.is_empty(), "it consumed no more bytes and returned none");
                    break;
                }
            }
        }
        Ok(all)
    }

    fn message(length: usize) -> Vec<u8> {
        (0..length).map(|n| (n / 7 % 251) as u8).collect()
    }

    #[test]
    fn packed_messages_are_unpacked_from_pieces_of_any_size() {
        for compression in [Compression::Zlib, ZSTD] {
            for length in [1, 49, 50, 51, 1000, 100_000] {
                let message = message(length);
                let mut packed = Vec::new();
                pack(compression, 0, &message, &mut packed);
                let shrinks = packed.len() < length;
                assert!(shrinks == (length >= 1000) || shrinks && length >= COMPRESS_MIN, "{length}");
                for (piece, room) in [(1, 1), (1, 4096), (7, 3), (4096, 1), (1 << 20, 1 << 20)] {
                    assert_eq!(unpack(compression, &packed, piece, room).unwrap(), message);
                }
            }
        }
    }

    #[test]
    fn a_long_message_is_several_frames() {
        let message = message(FRAME_MAX + 10);
        for compression in [Compression::Zlib, ZSTD] {
            let mut packed = Vec::new();
            pack(compression, 0, &message, &mut packed);
            let second = packed.len() - HEADER - 10;
            assert_eq!(&packed[second..second + HEADER], [10, 0, 0, 1, 0, 0, 0]);
            assert_eq!(unpack(compression, &packed, 1 << 16, 1 << 16).unwrap(), message);
        }
    }

    #[test]
    fn short_and_incompressible_messages_are_sent_uncompressed() {
        let mut packed = Vec::new();
        pack(Compression::Zlib, 0, b"\x01\0\0\0\x0e", &mut packed);
        assert_eq!(packed, b"\x05\0\0\0\0\0\0\x01\0\0\0\x0e");
        let random: Vec<u8> = (0u32..200).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        packed.clear();
        pack(ZSTD, 0, &random, &mut packed);
        assert_eq!((packed.len(), &packed[4..7]), (HEADER + 200, [0; 3].as_slice()));
    }

    #[test]
    fn frames_that_contradict_their_headers_are_errors() {
        for compression in [Compression::Zlib, ZSTD] {
            let mut packed = Vec::new();
            pack(compression, 0, &message(1000), &mut packed);
            let length = packed.len() - HEADER;
            let with = |change: &dyn Fn(&mut Vec<u8>)| {
                let mut frame = packed.clone();
                change(&mut frame);
                unpack(compression, &frame, 64, 256)
            };
            let longer = with(&|frame| frame[4..6].copy_from_slice(&1001u16.to_le_bytes()));
            let shorter = with(&|frame| frame[4..6].copy_from_slice(&999u16.to_le_bytes()));
            let cut = with(&|frame| {
                frame[..2].copy_from_slice(&(length as u16 - 1).to_le_bytes());
                frame.pop();
            });
            let other = with(&|frame| frame[HEADER..].fill(0xa5));
            let empty = with(&|frame| frame[..3].fill(0));
            for (what, result) in
                [("longer", longer), ("shorter", shorter), ("cut", cut), ("other", other), ("empty", empty)]
            {
                assert!(matches!(result, Err(WireError::Protocol(_))), "{what}: {result:?}");
            }
        }
    }

    #[test]
    fn a_frame_is_not_decompressed_beyond_its_declared_length() {
        let mut packed = Vec::new();
        pack(Compression::Zlib, 0, &vec![0; FRAME_MAX], &mut packed);
        packed[4..7].copy_from_slice(&[100, 0, 0]);
        let mut out = vec![0; 1 << 16];
        let error = Unpacker::new(Compression::Zlib).feed(&packed, &mut out).unwrap_err();
        assert_eq!(error, corrupt_frame("longer than its header declares"));
        assert!(out[101..].iter().all(|&byte| byte == 0));
    }
}
