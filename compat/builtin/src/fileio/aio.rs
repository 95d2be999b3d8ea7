//! Linux's native asynchronous I/O, which sysbench uses too. No crate offers it, and many containers forbid `io_uring`.
#![allow(unsafe_code)] // System calls with pointers.

use std::io;

/// A request (linux/aio_abi.h, `struct iocb`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Iocb {
    data: u64,
    key_and_flags: [u32; 2],
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

/// A result (`struct io_event`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    request: u64,
    result: i64,
    result2: i64,
}

const PREAD: u16 = 0;
const PWRITE: u16 = 1;

/// The requests of one thread.
pub(super) struct Queue {
    context: libc::c_ulong,
    pending: usize,
    events: Vec<IoEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) writes: bool,
    pub(super) bytes: u64,
    pub(super) is_complete: bool,
}

fn check(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

impl Queue {
    pub(super) fn new(backlog: usize) -> io::Result<Self> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context's number to the pointer's target.
        check(unsafe { libc::syscall(libc::SYS_io_setup, backlog as libc::c_long, &raw mut context) })?;
        Ok(Self { context, pending: 0, events: vec![IoEvent::default(); backlog] })
    }

    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// # Safety
    /// Until `wait` has returned the request or the queue is dropped, `buffer` must stay valid. The buffer of a write
    /// must also stay unchanged.
    pub(super) unsafe fn submit(
        &mut self,
        (file, at): (i32, u64),
        buffer: *mut u8,
        bytes: usize,
        writes: bool,
    ) -> io::Result<()> {
        let mut request = Iocb {
            data: (bytes as u64) << 1 | u64::from(writes),
            opcode: if writes { PWRITE } else { PREAD },
            file: file as u32,
            buffer: buffer as u64,
            bytes: bytes as u64,
            offset: at as i64,
            ..Iocb::default()
        };
        let mut list = [&raw mut request];
        // SAFETY: the kernel copies the request from the list; the caller guarantees the buffer.
        check(unsafe {
            libc::syscall(libc::SYS_io_submit, self.context, 1 as libc::c_long, list.as_mut_ptr())
        })?;
        self.pending += 1;
        Ok(())
    }

    /// Waits until at least `min` requests have completed, and returns all that have.
    pub(super) fn wait(&mut self, min: usize) -> io::Result<Vec<Completion>> {
        let (min, max) = (min.min(self.pending), self.events.len());
        let timeout: *const libc::timespec = std::ptr::null();
        let completed = loop {
            // SAFETY: there is room for `max` events.
            let result = unsafe {
                let events = self.events.as_mut_ptr();
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    min as libc::c_long,
                    max as libc::c_long,
                    events,
                    timeout,
                )
            };
            match check(result) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.pending -= completed;
        let done = |event: &IoEvent| {
            let bytes = event.data >> 1;
            Completion { writes: event.data & 1 == 1, bytes, is_complete: event.result == bytes as i64 }
        };
        Ok(self.events[..completed].iter().map(done).collect())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the context is this queue's. The kernel waits for pending requests, so no buffer is used afterwards.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
