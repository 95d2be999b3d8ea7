//! Executes one thread's requests.

use std::io::Error;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError};

use dbdyno_random::Rng;
use memmap2::MmapMut;

use super::aio::AioQueue;
use super::checksum::{self, Mismatch};
use super::files::page_aligned;
use super::open_files::OpenFiles;
use super::options::IoMode;
use super::request_sequence::{ByteRange, Request};
use crate::test::{IoCounts, LogMessage, Runner, errno_text};

/// Fields drop in this order: the queue first, because the kernel may still use the buffer.
pub(super) struct FileRunner {
    queue: Option<AioQueue>,
    buffer: MmapMut,
    shared: Arc<OpenFiles>,
    rng: Rng,
    request: Request,
}

impl FileRunner {
    pub(super) fn new(shared: Arc<OpenFiles>, rng: Rng) -> Result<Self, Vec<LogMessage>> {
        let options = &shared.options;
        let queue = (options.io_mode == IoMode::Async).then(|| AioQueue::new(options.backlog)).transpose();
        let queue = queue.map_err(|error| {
            vec![LogMessage::fatal(format!("io_queue_init() failed! {}", errno_text(&error)))]
        })?;
        let buffer = page_aligned(options.request_bytes())?;
        Ok(Self { queue, buffer, shared, rng, request: Request::Sync { file: 0 } })
    }

    fn read(&mut self, range: ByteRange) -> Result<IoCounts, Vec<LogMessage>> {
        let shared = Arc::clone(&self.shared);
        // Without the lock, a reader could read a half-written block.
        let _guard =
            shared.file_locks.get(range.file).map(|lock| lock.read().unwrap_or_else(PoisonError::into_inner));
        if self.queue.is_some() {
            let io = self.submit(range, false)?;
            self.validate(range)?;
            return Ok(io);
        }
        let buffer = &mut self.buffer[..range.bytes];
        match shared.mappings.get(range.file) {
            Some(map) => map.read(range.offset, buffer),
            None => {
                let read = shared.files[range.file].read_at(buffer, range.offset);
                shared.check_complete("read", range, read)?;
            }
        }
        self.validate(range)?;
        Ok(IoCounts { reads: 1, read_bytes: range.bytes as u64, ..IoCounts::default() })
    }

    fn write(&mut self, range: ByteRange) -> Result<IoCounts, Vec<LogMessage>> {
        let shared = Arc::clone(&self.shared);
        let _guard = shared
            .file_locks
            .get(range.file)
            .map(|lock| lock.write().unwrap_or_else(PoisonError::into_inner));
        if shared.options.validate {
            let block = shared.options.block_bytes as usize;
            for (number, bytes) in self.buffer[..range.bytes].chunks_mut(block).enumerate() {
                checksum::fill_block(bytes, range.offset + (number * block) as u64, &mut self.rng);
            }
        }
        let mut io = if self.queue.is_some() {
            self.submit(range, true)?
        } else {
            let buffer = &self.buffer[..range.bytes];
            match shared.mappings.get(range.file) {
                Some(map) => map.write(range.offset, buffer),
                None => {
                    let written = shared.files[range.file].write_at(buffer, range.offset);
                    shared.check_complete("write", range, written)?;
                }
            }
            IoCounts { writes: 1, written_bytes: range.bytes as u64, ..IoCounts::default() }
        };
        if shared.options.sync_each_write {
            io += self.wait_for_all()?;
            io += shared.sync(range.file)?;
        }
        Ok(io)
    }

    /// Submits a request. If the backlog is full, waits until one request has completed.
    #[allow(unsafe_code)] // The kernel uses the buffer until the request completes.
    fn submit(&mut self, range: ByteRange, is_write: bool) -> Result<IoCounts, Vec<LogMessage>> {
        let Some(queue) = &mut self.queue else { return Ok(IoCounts::default()) };
        let options = &self.shared.options;
        let file = self.shared.files[range.file].as_raw_fd();
        let buffer = self.buffer.as_mut_ptr();
        // SAFETY: the buffer outlives the queue and is as long as the longest request. Concurrent reads may overwrite
        // each other's bytes, which is harmless: only `validate` uses the bytes, and with validation only one request is
        // pending.
        let submitted = unsafe { queue.submit((file, range.offset), buffer, range.bytes, is_write) };
        submitted.map_err(|error| vec![aio_error(is_write, Some(&error))])?;
        // The caller validates the block next, so the read must complete first.
        let limit = if options.validate { 1 } else { options.backlog };
        if queue.pending() < limit { Ok(IoCounts::default()) } else { self.wait(1) }
    }

    fn wait(&mut self, min_requests: usize) -> Result<IoCounts, Vec<LogMessage>> {
        let Some(queue) = &mut self.queue else { return Ok(IoCounts::default()) };
        let completions = queue.wait(min_requests);
        let completions = completions.map_err(|error| {
            vec![LogMessage::fatal(format!("io_getevents() failed! {}", errno_text(&error)))]
        })?;
        let mut io = IoCounts::default();
        for completion in completions {
            if !completion.is_complete {
                return Err(vec![aio_error(completion.is_write, None)]);
            }
            io += if completion.is_write {
                IoCounts { writes: 1, written_bytes: completion.bytes, ..IoCounts::default() }
            } else {
                IoCounts { reads: 1, read_bytes: completion.bytes, ..IoCounts::default() }
            };
        }
        Ok(io)
    }

    fn wait_for_all(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        let mut io = IoCounts::default();
        while let Some(pending) = self.queue.as_ref().map(AioQueue::pending).filter(|&pending| pending > 0) {
            io += self.wait(pending)?;
        }
        Ok(io)
    }

    /// Validates the checksums of the blocks in the buffer if `--validate` is on.
    fn validate(&self, range: ByteRange) -> Result<(), Vec<LogMessage>> {
        let options = &self.shared.options;
        if !options.validate {
            return Ok(());
        }
        let block = options.block_bytes as usize;
        for (number, read) in self.buffer[..range.bytes].chunks(block).enumerate() {
            let offset = range.offset + (number * block) as u64;
            checksum::validate_block(read, offset)
                .map_err(|mismatch| mismatch_messages(mismatch, range.file, offset))?;
        }
        Ok(())
    }
}

fn aio_error(is_write: bool, error: Option<&Error>) -> LogMessage {
    let call = if is_write { "write" } else { "read" };
    let cause = error.map(|error| format!(" {}", errno_text(error))).unwrap_or_default();
    LogMessage::fatal(format!("Asynchronous {call} failed!{cause}"))
}

fn mismatch_messages(mismatch: Mismatch, file: usize, offset: u64) -> Vec<LogMessage> {
    let (problem, values) = match mismatch {
        Mismatch::Checksum { calculated, stored } => (
            format!("Checksum mismatch in block with offset: {offset}"),
            format!("    Calculated value: 0x{calculated:x}    Stored value: 0x{stored:x}"),
        ),
        Mismatch::Offset { stored } => (
            "Offset mismatch in block:".to_owned(),
            format!("   Actual offset: {offset}    Stored offset: {stored}"),
        ),
    };
    let conclusion = format!("Validation failed on file {file}, block offset {offset}, exiting...");
    [problem, values, conclusion].map(LogMessage::fatal).into()
}

impl Runner for FileRunner {
    fn prepare_event(&mut self) -> bool {
        let mut requests = self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
        self.request = requests.next(&mut self.rng);
        true
    }

    fn execute_event(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        match self.request {
            Request::Read(range) => self.read(range),
            Request::Write(range) => self.write(range),
            Request::Sync { file } => self.shared.sync(file),
        }
    }

    /// Waits for pending requests before the final sync.
    fn finish(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        let mut io = self.wait_for_all()?;
        let options = &self.shared.options;
        if options.sync_at_end && options.mode.has_writes() {
            for file in 0..options.files {
                io += self.shared.sync(file)?;
            }
        }
        Ok(io)
    }
}
