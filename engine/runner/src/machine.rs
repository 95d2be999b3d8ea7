//! System calls for limits, timers and CPU times.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Puts the calling thread into SCHED_BATCH, so that it does not preempt the server whenever a reply arrives.
///
/// # Errors
/// The system refuses SCHED_BATCH.
pub(crate) fn schedule_batch() -> std::io::Result<()> {
    set_scheduling_class(libc::SCHED_BATCH)
}

/// Puts the calling thread into SCHED_OTHER.
///
/// # Errors
/// The system refuses SCHED_OTHER.
pub(crate) fn schedule_normal() -> std::io::Result<()> {
    set_scheduling_class(libc::SCHED_OTHER)
}

#[allow(unsafe_code)] // rustix has no sched_setscheduler.
fn set_scheduling_class(class: libc::c_int) -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for the call, and 0 names the calling thread.
    match unsafe { libc::sched_setscheduler(0, class, &parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Raises this process's limit on open files to the maximum that the system allows, and returns the new limit.
pub fn raise_open_files() -> u64 {
    let limits = getrlimit(Resource::Nofile);
    // This fails only if the limit is already that high.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Prevents core files of this process, which would contain passwords.
///
/// A limit of 0 does not hold for a core that the system pipes to a program; 1 prevents both (core(5)).
pub fn disable_core_files() {
    let maximum = getrlimit(Resource::Core).maximum;
    // It fails only if a limit of 0 is inherited, which no process may raise.
    let _ = setrlimit(
        Resource::Core,
        Rlimit { current: maximum.map_or(Some(1), |limit| Some(limit.min(1))), maximum },
    );
}

/// Returns free memory to the system if the C library can: creating thousands of Lua states temporarily needs far more
/// memory than they keep.
#[allow(unsafe_code)] // A function of the C library.
pub fn release_memory() {
    // SAFETY: malloc_trim takes no pointer and changes only free memory.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Reduces the timer slack of the calling thread from the default of 50 µs to 1 ns.
pub(crate) fn disable_timer_slack() {
    // If this fails, timers are up to 50 µs late, which the measured lag includes.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// CPU time that the hypervisor gave to other machines, and total CPU time of all CPUs, in kernel ticks since boot;
/// `None` if the kernel does not report them.
pub(crate) fn stolen_ticks() -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    // Fields: user, nice, system, idle, iowait, irq, softirq, steal; user already includes guest time (proc_stat(5)).
    let fields: Vec<u64> =
        stat.lines().next()?.split_ascii_whitespace().skip(1).take(8).flat_map(str::parse).collect();
    Some((*fields.get(7)?, fields.iter().sum()))
}

/// The CPU time of the calling thread.
pub fn thread_cpu() -> Duration {
    read_cpu_clock(ClockId::ThreadCPUTime)
}

/// The CPU time of this process.
pub fn process_cpu() -> Duration {
    read_cpu_clock(ClockId::ProcessCPUTime)
}

fn read_cpu_clock(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long the calling thread was runnable but waited for a CPU; zero if the kernel does not report it.
pub fn thread_run_queue_wait() -> Duration {
    // Fields: time on CPU, time waiting, slices (kernel documentation, scheduler/sched-stats).
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let wait_ns = schedstat.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    Duration::from_nanos(wait_ns)
}

/// Peak resident memory of the process (VmHWM) in bytes; 0 if the kernel does not report it.
pub fn memory_peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib: Option<u64> = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok());
    kib.unwrap_or(0) * 1024
}
