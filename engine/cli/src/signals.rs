//! SIGINT, SIGTERM and SIGHUP stop a run, which still writes its reports.
//!
//! Signals within [`BURST`] after the first one count as one signal. GNU timeout signals its child and then the child's
//! process group, so a second SIGINT arrives microseconds after the first.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use dbdyno_runner::Control;
use dbdyno_schema::record::EndReason;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::INTERRUPTED;

/// Signals that arrive this soon after the first one belong to the same burst. The interval between two key presses is
/// longer.
const BURST: Duration = Duration::from_millis(500);

/// The signal that ended the run.
static FIRST_SIGNAL: AtomicI32 = AtomicI32::new(0);
/// Whether Ctrl-C ends the process immediately, by its default action.
static ENDS_IMMEDIATELY: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether Ctrl-C was pressed; the signal handler itself sets it.
static INTERRUPTED_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether the burst of the first signal is over. This mutex is held while `ENDS_IMMEDIATELY` changes.
static BURST_IS_OVER: Mutex<bool> = Mutex::new(false);

/// Ends the process by the signal that ended the run, if there was one.
pub fn exit_by_signal() {
    let signal = FIRST_SIGNAL.load(Ordering::Relaxed);
    if signal != 0 {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// Makes Ctrl-C end the process immediately from now on. If Ctrl-C has just ended the run, this takes effect only after
/// its burst, so that the rest of the burst does not end the process before its report.
pub fn stop_handling() {
    let is_over = BURST_IS_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_over || !INTERRUPTED_ONCE.load(Ordering::SeqCst) {
        ENDS_IMMEDIATELY.store(true, Ordering::SeqCst);
    }
    // A signal that arrived between the check and the store starts a burst too.
    if !*is_over && INTERRUPTED_ONCE.load(Ordering::SeqCst) {
        ENDS_IMMEDIATELY.store(false, Ordering::SeqCst);
    }
}

/// Stops the run at the first signal. The next signal after its burst ends the process immediately. If SIGHUP is ignored,
/// as under nohup, it stays ignored.
pub fn stop_on_signal(control: Control) -> io::Result<()> {
    let handled: &[i32] = if is_ignored(SIGHUP) { &[SIGINT, SIGTERM] } else { &[SIGINT, SIGTERM, SIGHUP] };
    let signals = Signals::new(handled)?;
    watch_signals(signals, move |reason| control.stop(reason), |_| std::process::exit(INTERRUPTED.into()));
    Ok(())
}

/// Calls `stop` at the first Ctrl-C; the next one after its burst ends the process. Does nothing if SIGINT is ignored,
/// as shells do for background processes. Prints a message if the system refuses the handler.
pub fn stop_on_interrupt(stop: impl FnOnce(EndReason) + Send + 'static) {
    if let Err(error) = handle_interrupt(stop) {
        eprintln!("cannot handle signals, so a signal ends the process without a report: {error}");
    }
}

fn handle_interrupt(stop: impl FnOnce(EndReason) + Send + 'static) -> io::Result<()> {
    if is_ignored(SIGINT) {
        return Ok(());
    }
    let signals = Signals::new([SIGINT])?;
    // Set in the signal handler itself, because otherwise the interrupted work could finish first. `stop_handling`
    // depends on the order of these two handlers.
    signal_hook::flag::register(SIGINT, Arc::clone(&INTERRUPTED_ONCE))?;
    signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&ENDS_IMMEDIATELY))?;
    // The handlers above usually end the process before this thread does.
    watch_signals(signals, stop, |signal| drop(signal_hook::low_level::emulate_default_handler(signal)));
    Ok(())
}

/// Whether this process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    ignores(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), signal)
}

/// Whether a process ignores a signal, according to the text of its /proc/PID/status.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Starts a thread that calls `stop` at the first signal, and `end` at the first signal after its burst. `end` must end
/// the process.
fn watch_signals(
    mut signals: Signals,
    stop: impl FnOnce(EndReason) + Send + 'static,
    end: impl FnOnce(i32) + Send + 'static,
) {
    std::thread::spawn(move || {
        FIRST_SIGNAL.store(signals.forever().next().unwrap_or(SIGINT), Ordering::Relaxed);
        INTERRUPTED_ONCE.store(true, Ordering::SeqCst);
        stop(EndReason::Interrupted);
        std::thread::sleep(BURST);
        end_burst();
        signals.pending().for_each(drop); // Ignore the rest of the burst.
        end(signals.forever().next().unwrap_or(SIGINT));
    });
}

fn end_burst() {
    let mut is_over = BURST_IS_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    *is_over = true;
    ENDS_IMMEDIATELY.store(true, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001002\nSigCgt:\t0\n";
        assert!(ignores(status, SIGINT) && !ignores(status, SIGHUP) && !ignores("", SIGINT));
    }
}
