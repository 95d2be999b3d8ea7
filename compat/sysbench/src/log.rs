//! Formats log lines: omits those that the log level hides, and collapses repeated ones.

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
    last_line: Option<String>,
    repeat_count: u32,
}

impl Log {
    pub fn new(verbosity: Level) -> Self {
        Self { verbosity, last_line: None, repeat_count: 0 }
    }

    pub fn is_enabled(&self, level: Level) -> bool {
        level <= self.verbosity
    }

    /// Formats `text`, which may have several lines. The result is empty if the level is hidden or the text is repeated.
    pub fn format(&mut self, level: Level, text: &str) -> String {
        let line = self.format_timestamped(level, text);
        if line.is_empty() {
            return line;
        }
        if self.last_line.as_deref() == Some(&line) {
            self.repeat_count += 1;
            return String::new();
        }
        let text = self.flush() + &line;
        self.last_line = Some(line);
        text
    }

    /// Formats a line that is never collapsed, because it starts with a time.
    pub fn format_timestamped(&mut self, level: Level, text: &str) -> String {
        if self.is_enabled(level) { format!("{}{text}\n", level.prefix()) } else { String::new() }
    }

    /// The line that reports how often the last line was repeated; empty if it was not repeated.
    pub fn flush(&mut self) -> String {
        match std::mem::take(&mut self.repeat_count) {
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
        let output: String =
            ["one", "one", "one", "two", "", "", "one"].map(|text| log.format(Level::Info, text)).concat();
        assert_eq!(
            output,
            "one\n(last message repeated 2 times)\ntwo\n\n(last message repeated 1 times)\none\n"
        );
    }

    #[test]
    fn log_levels_have_prefixes_and_are_filtered() {
        let mut log = Log::new(Level::Warning);
        assert_eq!(log.format(Level::Fatal, "x"), "FATAL: x\n");
        assert_eq!(log.format(Level::Warning, "x"), "WARNING: x\n");
        assert_eq!(log.format(Level::Notice, "x"), "");
        assert_eq!(log.format_timestamped(Level::Debug, "x"), "");
    }
}
