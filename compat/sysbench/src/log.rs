//! The log: omits lines that the log level hides, and collapses repeated lines.

/// The levels, in sysbench's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Fatal,
    Alert,
    Warning,
    Notice,
    Info,
    Debug,
}

impl Level {
    fn prefix(self) -> &'static str {
        match self {
            Level::Fatal => "FATAL: ",
            Level::Alert => "ALERT: ",
            Level::Warning => "WARNING: ",
            Level::Notice | Level::Info => "",
            Level::Debug => "DEBUG: ",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Log {
    verbosity: Level,
    last: Option<String>,
    repeated: u32,
}

impl Log {
    pub fn new(verbosity: Level) -> Self {
        Self { verbosity, last: None, repeated: 0 }
    }

    pub fn shows(&self, level: Level) -> bool {
        level <= self.verbosity
    }

    /// The text to print for `text`, which may have several lines.
    pub fn line(&mut self, level: Level, text: &str) -> String {
        let line = self.timestamped(level, text);
        if line.is_empty() {
            return line;
        }
        if self.last.as_deref() == Some(&line) {
            self.repeated += 1;
            return String::new();
        }
        let text = self.flush() + &line;
        self.last = Some(line);
        text
    }

    /// As [`Self::line`], for a line that is never collapsed because it starts with a time.
    pub fn timestamped(&mut self, level: Level, text: &str) -> String {
        if self.shows(level) { format!("{}{text}\n", level.prefix()) } else { String::new() }
    }

    /// The line that reports how often the last line was repeated; empty if it was not repeated.
    pub fn flush(&mut self) -> String {
        match std::mem::take(&mut self.repeated) {
            0 => String::new(),
            times => format!("(last message repeated {times} times)\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lines_are_collapsed() {
        let mut log = Log::new(Level::Info);
        let said: String =
            ["one", "one", "one", "two", "", "", "one"].map(|text| log.line(Level::Info, text)).concat();
        assert_eq!(
            said,
            "one\n(last message repeated 2 times)\ntwo\n\n(last message repeated 1 times)\none\n"
        );
    }

    #[test]
    fn log_levels_have_prefixes_and_are_filtered() {
        let mut log = Log::new(Level::Warning);
        assert_eq!(log.line(Level::Fatal, "x"), "FATAL: x\n");
        assert_eq!(log.line(Level::Warning, "x"), "WARNING: x\n");
        assert_eq!(log.line(Level::Notice, "x"), "");
        assert_eq!(log.timestamped(Level::Debug, "x"), "");
    }
}
