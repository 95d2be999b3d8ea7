//! A compressed socket: transfers the frames of [`compress`](crate::mysql::compress) over another socket.
//!
//! It holds buffers only while a frame is partly sent or read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use dbdyno_schema::plan::Compression;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::mysql::compress::{Unpacker, pack};

/// Maximum bytes of one read.
const INPUT_BYTES: usize = 16 * 1024;

/// A compressed socket. Each write contains one message of the protocol; a flush sends it.
pub(crate) struct Stream<S> {
    socket: S,
    compression: Compression,
    unpacker: Unpacker,
    /// Bytes read. Those from `taken` on are not decompressed yet.
    input: Vec<u8>,
    taken: usize,
    /// Frames to send. The bytes from `sent` on are not written yet.
    output: Vec<u8>,
    sent: usize,
    /// Number of the next frame of the current exchange (a command and its answer).
    sequence: u8,
    continues_exchange: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream<S> {
    pub(crate) fn new(socket: S, compression: Compression) -> Self {
        Self {
            socket,
            compression,
            unpacker: Unpacker::new(compression),
            input: Vec::new(),
            taken: 0,
            output: Vec::new(),
            sent: 0,
            sequence: 0,
            continues_exchange: false,
        }
    }

    /// The underlying socket.
    pub(crate) fn get_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Makes the next write part of the current exchange.
    pub(crate) fn continue_exchange(&mut self) {
        self.continues_exchange = true;
    }

    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.output.len() {
            let count = ready!(Pin::new(&mut self.socket).poll_write(context, &self.output[self.sent..]))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += count;
        }
        (self.output, self.sent) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let input = &this.input[this.taken..];
            // The I/O error contains the protocol error, which `WireError` extracts.
            let (taken, written) =
                this.unpacker.feed(input, buffer.initialize_unfilled()).map_err(io::Error::other)?;
            this.taken += taken;
            if written > 0 {
                this.sequence = this.unpacker.next_sequence();
                buffer.advance(written);
                return Poll::Ready(Ok(()));
            }
            (this.input, this.taken) = (vec![0; INPUT_BYTES], 0);
            let mut fresh = ReadBuf::new(&mut this.input);
            let read = Pin::new(&mut this.socket).poll_read(context, &mut fresh);
            let count = fresh.filled().len();
            this.input.truncate(count);
            if count == 0 {
                this.input = Vec::new();
                return read;
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_drain(context))?;
        let this = &mut *self;
        let first = if this.continues_exchange { this.sequence } else { 0 };
        this.continues_exchange = false;
        this.sequence = pack(this.compression, first, bytes, &mut this.output);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
