//! What the operating system tells about, and does for, the worker threads.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Puts the calling thread into SCHED_BATCH: it no longer preempts the server at every reply.
///
/// # Errors
/// The system's refusal, in its own words.
#[allow(unsafe_code)] // rustix has no sched_setscheduler.
pub(crate) fn schedule_batch() -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for the call, and 0 names the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Raises the number of files this process may open to the most that the system allows, and returns it.
pub fn raise_open_files() -> u64 {
    let limits = getrlimit(Resource::Nofile);
    // Refused only where the limit is that high already.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Gives memory that is free back to the system, where the C library can: thousands of states are made with far more
/// than they keep.
#[allow(unsafe_code)] // A function of the C library.
pub fn give_back_memory() {
    // SAFETY: it takes no pointer and touches only what is free.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Asks for wake-ups of the calling thread without the slack of 50 us that Linux grants itself.
pub(crate) fn exact_timers() {
    // A refusal costs those 50 us, and how late the engine is gets measured anyway.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// CPU time that the hypervisor gave to others, and all CPU time, over the whole machine since it was started, in
/// ticks of the kernel; `None` where it is not told.
pub(crate) fn stolen() -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    // Fields: user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user already (proc_stat(5)).
    let fields: Vec<u64> =
        stat.lines().next()?.split_ascii_whitespace().skip(1).take(8).flat_map(str::parse).collect();
    Some((*fields.get(7)?, fields.iter().sum()))
}

/// CPU time of the calling thread.
pub fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

/// CPU time of the whole process.
pub(crate) fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time the calling thread was runnable and waited for a CPU; zero where the kernel keeps no account.
pub fn thread_run_queue_wait() -> Duration {
    // Fields: time on CPU, time waiting, slices (kernel documentation, scheduler/sched-stats).
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let wait_ns = schedstat.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    Duration::from_nanos(wait_ns)
}

/// Peak resident memory of the process (VmHWM), in bytes; 0 where the kernel does not tell.
pub(crate) fn memory_peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib: Option<u64> = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok());
    kib.unwrap_or(0) * 1024
}
