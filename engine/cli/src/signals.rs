//! SIGINT, SIGTERM and SIGHUP end a run gracefully: it still reports.
//!
//! Signals within [`BURST`] of the first are one: GNU timeout signals its child and then the child's process group, so
//! that a second SIGINT arrives microseconds after the first, and nobody pressed Ctrl-C twice.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use dbdyno_runner::Control;
use dbdyno_schema::record::EndReason;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::INTERRUPTED;

/// How long after the first signal others belong to it. Two presses of a key are further apart.
const BURST: Duration = Duration::from_millis(500);

/// The signal that ended the run.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// Whether Ctrl-C ends the process at once, as if nobody handled it.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether Ctrl-C was pressed; the signal handler itself notes it.
static INTERRUPTED_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether the burst of the first signal is over. Held while `AT_ONCE` is set.
static BURST_IS_OVER: Mutex<bool> = Mutex::new(false);

/// Ends the process by the signal that ended the run, where there was one.
pub fn die_of_signal() {
    let signal = FIRST.load(Ordering::Relaxed);
    if signal != 0 {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// From now on Ctrl-C ends the process at once. Where Ctrl-C has just ended the run, only from the end of its burst on:
/// the rest of the burst must not end the process before its report.
pub fn nothing_to_stop() {
    let is_over = BURST_IS_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_over || !INTERRUPTED_ONCE.load(Ordering::SeqCst) {
        AT_ONCE.store(true, Ordering::SeqCst);
    }
    // One that arrived in between is the first of a burst, too.
    if !*is_over && INTERRUPTED_ONCE.load(Ordering::SeqCst) {
        AT_ONCE.store(false, Ordering::SeqCst);
    }
}

/// Turns the first signal into an order to stop; one after its burst ends the process at once.
pub fn stop_on_signal(control: Control) -> io::Result<()> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    follow(signals, move |reason| control.stop(reason), |_| std::process::exit(INTERRUPTED.into()));
    Ok(())
}

/// The same for Ctrl-C alone, of which the process dies at the one after the burst. Not where whoever started the process had it
/// ignored, as shells do for what runs in the background. Where the system refuses it says so, and goes on.
pub fn stop_on_interrupt(stop: impl FnOnce(EndReason) + Send + 'static) {
    if let Err(error) = handle_interrupt(stop) {
        eprintln!("signals cannot be handled: {error}");
    }
}

fn handle_interrupt(stop: impl FnOnce(EndReason) + Send + 'static) -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores(&status, SIGINT) {
        return Ok(());
    }
    let signals = Signals::new([SIGINT])?;
    // In the handler itself: what the signal interrupts could otherwise come to an end of its own before. In this order,
    // see `nothing_to_stop`.
    signal_hook::flag::register(SIGINT, Arc::clone(&INTERRUPTED_ONCE))?;
    signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&AT_ONCE))?;
    // The handler above has ended the process before this thread can, or does so now.
    follow(signals, stop, |signal| drop(signal_hook::low_level::emulate_default_handler(signal)));
    Ok(())
}

/// Whether a signal is ignored, by the kernel's file on a process.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Waits for the first signal and calls `stop`, and at the next one after the burst `end`, which ends the process.
fn follow(
    mut signals: Signals,
    stop: impl FnOnce(EndReason) + Send + 'static,
    end: impl FnOnce(i32) + Send + 'static,
) {
    std::thread::spawn(move || {
        FIRST.store(signals.forever().next().unwrap_or(SIGINT), Ordering::Relaxed);
        INTERRUPTED_ONCE.store(true, Ordering::SeqCst);
        stop(EndReason::Interrupted);
        std::thread::sleep(BURST);
        end_burst();
        // Those of the burst are waiting to be read.
        signals.pending().for_each(drop);
        end(signals.forever().next().unwrap_or(SIGINT));
    });
}

/// From now on a signal is a second one.
fn end_burst() {
    let mut is_over = BURST_IS_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    *is_over = true;
    AT_ONCE.store(true, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_stands_in_a_mask() {
        let status = "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001002\nSigCgt:\t0\n";
        assert!(ignores(status, SIGINT) && !ignores(status, SIGHUP) && !ignores("", SIGINT));
    }
}
