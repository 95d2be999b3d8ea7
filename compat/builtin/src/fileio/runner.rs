//! Executes one thread's requests.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError};

use dbdyno_random::Rng;
use memmap2::MmapMut;

use super::aio::Queue;
use super::checksum::{self, Mismatch};
use super::files::page_aligned;
use super::open_files::OpenFiles;
use super::options::IoMode;
use super::requests::{Request, Span};
use crate::test::{Line, Runner, Work, errno};

/// Fields drop in this order: the queue first, because the kernel may still use the buffer.
pub(super) struct FileRunner {
    queue: Option<Queue>,
    buffer: MmapMut,
    shared: Arc<OpenFiles>,
    rng: Rng,
    request: Request,
}

impl FileRunner {
    pub(super) fn new(shared: Arc<OpenFiles>, rng: Rng) -> Result<Self, Vec<Line>> {
        let options = &shared.options;
        let queue = (options.io_mode == IoMode::Async).then(|| Queue::new(options.backlog)).transpose();
        let queue =
            queue.map_err(|error| vec![Line::fatal(format!("io_queue_init() failed! {}", errno(&error)))])?;
        let buffer = page_aligned(options.request_bytes())?;
        Ok(Self { queue, buffer, shared, rng, request: Request::Sync { file: 0 } })
    }

    fn read(&mut self, span: Span) -> Result<Work, Vec<Line>> {
        let shared = Arc::clone(&self.shared);
        // Without the lock a reader could see a half-written block.
        let _guard =
            shared.guards.get(span.file).map(|guard| guard.read().unwrap_or_else(PoisonError::into_inner));
        if self.queue.is_some() {
            let work = self.submit(span, false)?;
            self.check(span)?;
            return Ok(work);
        }
        let buffer = &mut self.buffer[..span.bytes];
        match shared.maps.get(span.file) {
            Some(map) => map.read(span.at, buffer),
            None => {
                let read = shared.files[span.file].read_at(buffer, span.at);
                shared.check_complete("read", span, read)?;
            }
        }
        self.check(span)?;
        Ok(Work { reads: 1, read_bytes: span.bytes as u64, ..Work::default() })
    }

    fn write(&mut self, span: Span) -> Result<Work, Vec<Line>> {
        let shared = Arc::clone(&self.shared);
        let _guard =
            shared.guards.get(span.file).map(|guard| guard.write().unwrap_or_else(PoisonError::into_inner));
        if shared.options.validate {
            let block = shared.options.block_bytes as usize;
            for (number, bytes) in self.buffer[..span.bytes].chunks_mut(block).enumerate() {
                checksum::fill_block(bytes, span.at + (number * block) as u64, &mut self.rng);
            }
        }
        let mut work = if self.queue.is_some() {
            self.submit(span, true)?
        } else {
            let buffer = &self.buffer[..span.bytes];
            match shared.maps.get(span.file) {
                Some(map) => map.write(span.at, buffer),
                None => {
                    let written = shared.files[span.file].write_at(buffer, span.at);
                    shared.check_complete("write", span, written)?;
                }
            }
            Work { writes: 1, written_bytes: span.bytes as u64, ..Work::default() }
        };
        if shared.options.sync_all {
            work += self.wait_for_all()?;
            work += shared.sync(span.file)?;
        }
        Ok(work)
    }

    /// Submits a request; if the backlog is full, waits for one to complete.
    #[allow(unsafe_code)] // The kernel uses the buffer until the request completes.
    fn submit(&mut self, span: Span, writes: bool) -> Result<Work, Vec<Line>> {
        let Some(queue) = &mut self.queue else { return Ok(Work::default()) };
        let options = &self.shared.options;
        let file = self.shared.files[span.file].as_raw_fd();
        let buffer = self.buffer.as_mut_ptr();
        // SAFETY: the buffer outlives the queue and is as long as the longest request. Concurrent reads may overwrite
        // each other's bytes, which is harmless: only `check` uses the bytes, and with validation only one request is
        // pending.
        let submitted = unsafe { queue.submit((file, span.at), buffer, span.bytes, writes) };
        submitted.map_err(|error| vec![failed(writes, Some(&error))])?;
        // The caller checks the block next, so its read must complete first.
        let limit = if options.validate { 1 } else { options.backlog };
        if queue.pending() < limit { Ok(Work::default()) } else { self.wait(1) }
    }

    fn wait(&mut self, min: usize) -> Result<Work, Vec<Line>> {
        let Some(queue) = &mut self.queue else { return Ok(Work::default()) };
        let completed = queue.wait(min);
        let completed = completed
            .map_err(|error| vec![Line::fatal(format!("io_getevents() failed! {}", errno(&error)))])?;
        let mut work = Work::default();
        for done in completed {
            if !done.is_complete {
                return Err(vec![failed(done.writes, None)]);
            }
            work += if done.writes {
                Work { writes: 1, written_bytes: done.bytes, ..Work::default() }
            } else {
                Work { reads: 1, read_bytes: done.bytes, ..Work::default() }
            };
        }
        Ok(work)
    }

    fn wait_for_all(&mut self) -> Result<Work, Vec<Line>> {
        let mut work = Work::default();
        while let Some(pending) = self.queue.as_ref().map(Queue::pending).filter(|&pending| pending > 0) {
            work += self.wait(pending)?;
        }
        Ok(work)
    }

    /// Validates the checksums of the blocks if `--validate` is on.
    fn check(&self, span: Span) -> Result<(), Vec<Line>> {
        let options = &self.shared.options;
        if !options.validate {
            return Ok(());
        }
        let block = options.block_bytes as usize;
        for (number, read) in self.buffer[..span.bytes].chunks(block).enumerate() {
            let at = span.at + (number * block) as u64;
            checksum::check(read, at).map_err(|mismatch| mismatch_lines(mismatch, span.file, at))?;
        }
        Ok(())
    }
}

fn failed(writes: bool, error: Option<&io::Error>) -> Line {
    let what = if writes { "write" } else { "read" };
    let why = error.map(|error| format!(" {}", errno(error))).unwrap_or_default();
    Line::fatal(format!("Asynchronous {what} failed!{why}"))
}

fn mismatch_lines(mismatch: Mismatch, file: usize, at: u64) -> Vec<Line> {
    let (what, values) = match mismatch {
        Mismatch::Checksum { calculated, stored } => (
            format!("Checksum mismatch in block with offset: {at}"),
            format!("    Calculated value: 0x{calculated:x}    Stored value: 0x{stored:x}"),
        ),
        Mismatch::Offset { stored } => (
            "Offset mismatch in block:".to_owned(),
            format!("   Actual offset: {at}    Stored offset: {stored}"),
        ),
    };
    let last = format!("Validation failed on file {file}, block offset {at}, exiting...");
    [what, values, last].map(Line::fatal).into()
}

impl Runner for FileRunner {
    fn next(&mut self) -> bool {
        let mut requests = self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
        self.request = requests.next(&mut self.rng);
        true
    }

    fn event(&mut self) -> Result<Work, Vec<Line>> {
        match self.request {
            Request::Read(span) => self.read(span),
            Request::Write(span) => self.write(span),
            Request::Sync { file } => self.shared.sync(file),
        }
    }

    /// Waits for pending requests before the final sync.
    fn finish(&mut self) -> Result<Work, Vec<Line>> {
        let mut work = self.wait_for_all()?;
        let options = &self.shared.options;
        if options.sync_end && options.mode.writes() {
            for file in 0..options.files {
                work += self.shared.sync(file)?;
            }
        }
        Ok(work)
    }
}
