//! SIGINT, SIGTERM and SIGHUP end a run gracefully: it still reports.

use std::io;

use dbdyno_door::record::EndReason;
use dbdyno_drive::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Turns the first signal into an order to stop; a second one ends the process at once.
pub(crate) fn stop_on_signal(control: Control) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        let mut signals = signals.forever();
        signals.next();
        control.stop(EndReason::Interrupted);
        signals.next();
        std::process::exit(130);
    });
    Ok(())
}
