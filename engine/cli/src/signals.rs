//! SIGINT, SIGTERM and SIGHUP end a run gracefully: it still reports.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use dbdyno_door::record::EndReason;
use dbdyno_drive::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The signal that ended the run.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// Ends the process by the signal that ended the run, where there was one.
pub(crate) fn die_of_signal() {
    let signal = FIRST.load(Ordering::Relaxed);
    if signal != 0 {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// Turns the first signal into an order to stop; a second one ends the process at once.
pub(crate) fn stop_on_signal(control: Control) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        let mut signals = signals.forever();
        FIRST.store(signals.next().unwrap_or(SIGINT), Ordering::Relaxed);
        control.stop(EndReason::Interrupted);
        signals.next();
        std::process::exit(130);
    });
    Ok(())
}
