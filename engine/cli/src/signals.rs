//! SIGINT, SIGTERM and SIGHUP end a run gracefully: it still reports.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, LazyLock};

use dbdyno_door::record::EndReason;
use dbdyno_drive::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::INTERRUPTED;

/// The signal that ended the run.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// Whether Ctrl-C ends the process at once, as if nobody handled it.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Ends the process by the signal that ended the run, where there was one.
pub(crate) fn die_of_signal() {
    let signal = FIRST.load(Ordering::Relaxed);
    if signal != 0 {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// From now on Ctrl-C ends the process at once.
pub(crate) fn nothing_to_stop() {
    AT_ONCE.store(true, Ordering::Relaxed);
}

/// Turns the first signal into an order to stop; a second one ends the process at once.
pub(crate) fn stop_on_signal(control: Control) -> io::Result<()> {
    stop_on(&[SIGINT, SIGTERM, SIGHUP], move |reason| control.stop(reason))
}

/// The same for Ctrl-C alone, of which the process dies at the second one. Not where whoever started the process had it
/// ignored, as shells do for what runs in the background. Where the system refuses it says so, and goes on.
pub(crate) fn stop_on_interrupt(stop: impl FnOnce(EndReason) + Send + 'static) {
    if let Err(error) = handle_interrupt(stop) {
        eprintln!("signals cannot be handled: {error}");
    }
}

fn handle_interrupt(stop: impl FnOnce(EndReason) + Send + 'static) -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores(&status, SIGINT) {
        return Ok(());
    }
    // In the handler itself: what the signal interrupts could otherwise come to an end of its own before.
    signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&AT_ONCE))?;
    stop_on(&[SIGINT], move |reason| {
        nothing_to_stop();
        stop(reason);
    })
}

/// Whether a signal is ignored, by the kernel's file on a process.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn stop_on(signals: &[i32], stop: impl FnOnce(EndReason) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(signals)?;
    std::thread::spawn(move || {
        let mut signals = signals.forever();
        FIRST.store(signals.next().unwrap_or(SIGINT), Ordering::Relaxed);
        stop(EndReason::Interrupted);
        signals.next();
        std::process::exit(INTERRUPTED.into());
    });
    Ok(())
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
