//! Records as sysbench's text on standard output, each line as soon as it is known.

use std::io::{self, IsTerminal, Write};

use dbdyno_door::Record;
use dbdyno_drive::Sink;
use dbdyno_frontends::sysbench::report::Said;

/// Prints a text at once. Returns false when nobody reads any more.
pub(super) fn say(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// Prints what a function makes of each record.
pub(super) struct Saying<F>(pub(super) F);

impl<F: FnMut(&Record) -> Said> Sink for Saying<F> {
    fn record(&mut self, record: &Record) -> bool {
        let said = self.0(record);
        // What the original never says is for people, not for the scripts that read it.
        if !said.err.is_empty() && io::stderr().is_terminal() {
            eprint!("{}", said.err);
        }
        said.out.is_empty() || say(&said.out)
    }
}
