//! Asynchronous I/O by Linux's `io_submit`, which sysbench uses too. No crate offers these calls, and many containers
//! forbid `io_uring`.
#![allow(unsafe_code)] // System calls with pointers.

use std::io;

/// A request (linux/aio_abi.h, `struct iocb`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Iocb {
    /// The number of bytes, shifted left by one bit; the lowest bit is set for a write.
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

/// The pending requests of one thread.
pub(super) struct AioQueue {
    context: libc::c_ulong,
    pending: usize,
    events: Vec<IoEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) is_write: bool,
    pub(super) bytes: u64,
    pub(super) is_complete: bool,
}

fn to_result(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

impl AioQueue {
    pub(super) fn new(backlog: usize) -> io::Result<Self> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context's number to the pointer's target.
        to_result(unsafe { libc::syscall(libc::SYS_io_setup, backlog as libc::c_long, &raw mut context) })?;
        Ok(Self { context, pending: 0, events: vec![IoEvent::default(); backlog] })
    }

    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// # Safety
    /// `buffer` must stay valid, and the buffer of a write also unchanged, until `wait` has returned the request or the
    /// queue is dropped.
    pub(super) unsafe fn submit(
        &mut self,
        (file, offset): (i32, u64),
        buffer: *mut u8,
        bytes: usize,
        is_write: bool,
    ) -> io::Result<()> {
        let mut request = Iocb {
            data: (bytes as u64) << 1 | u64::from(is_write),
            opcode: if is_write { PWRITE } else { PREAD },
            file: file as u32,
            buffer: buffer as u64,
            bytes: bytes as u64,
            offset: offset as i64,
            ..Iocb::default()
        };
        let mut list = [&raw mut request];
        // SAFETY: the kernel copies the request from the list; the caller guarantees the buffer.
        to_result(unsafe {
            libc::syscall(libc::SYS_io_submit, self.context, 1 as libc::c_long, list.as_mut_ptr())
        })?;
        self.pending += 1;
        Ok(())
    }

    /// Waits until at least `min` requests have completed, and returns all completed requests.
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
            match to_result(result) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.pending -= completed;
        let completion = |event: &IoEvent| {
            let bytes = event.data >> 1;
            Completion { is_write: event.data & 1 == 1, bytes, is_complete: event.result == bytes as i64 }
        };
        Ok(self.events[..completed].iter().map(completion).collect())
    }
}

impl Drop for AioQueue {
    fn drop(&mut self) {
        // SAFETY: the context is this queue's. The kernel waits for pending requests, so no buffer is used afterwards.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
