//! Ends the process if a script allocates memory without end, or does not return while it is loaded.
//!
//! LuaJIT cannot be interrupted while it runs compiled code, so the process ends.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use dbdyno_runner::external::memory_peak_bytes;

/// How often the memory is measured.
const MEMORY_POLL: Duration = Duration::from_millis(50);
/// Default of the memory limit: this, and [`USER_BYTES`] for each user.
const BASE_BYTES: u64 = 4 << 30;
const USER_BYTES: u64 = 1 << 20;

/// The memory that a script with `users` users may use by default.
pub(crate) fn default_memory_limit(users: u32) -> u64 {
    BASE_BYTES + u64::from(users) * USER_BYTES
}

/// Calls `end`, which must end the process, with a message if the process uses more than `limit` bytes of memory.
pub(crate) fn limit_memory(limit: u64, end: impl FnOnce(&str) + Send + 'static) {
    std::thread::spawn(move || {
        while memory_peak_bytes() <= limit {
            std::thread::sleep(MEMORY_POLL);
        }
        let mib = limit >> 20;
        end(&format!("the script uses more than {mib} MiB of memory: it probably allocates without end"));
    });
}

/// Calls `end` after `seconds`, unless the returned guard is dropped before.
pub(crate) fn limit_time(seconds: u64, end: impl FnOnce() + Send + 'static) -> Sender<()> {
    let (guard, dropped) = channel();
    std::thread::spawn(move || {
        if dropped.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
            end();
        }
    });
    guard
}
