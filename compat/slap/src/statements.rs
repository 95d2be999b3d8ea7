//! Splits a text into statements.

/// Splits `text` at each delimiter, removes one whitespace character after each delimiter, and omits empty statements.
pub fn split(text: &str, delimiter: &str) -> Vec<String> {
    let mut statements = Vec::new();
    for (number, piece) in text.split(delimiter).enumerate() {
        let piece = match piece.strip_prefix(|first: char| first.is_ascii_whitespace()) {
            Some(rest) if number > 0 => rest,
            _ => piece,
        };
        if !piece.trim().is_empty() {
            statements.push(piece.to_owned());
        }
    }
    statements
}

/// The name of a statement in a report: its text, on one line of at most `max_length` characters.
pub fn title(sql: &str, max_length: usize) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max_length {
        return line;
    }
    line.chars().take(max_length.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whitespace_character_after_a_delimiter_is_removed() {
        assert_eq!(split("select 1; select 2 ;", ";"), ["select 1", "select 2 "]);
        assert_eq!(split(" a;  b\nc;\nd", ";"), [" a", " b\nc", "d"]);
        assert_eq!(split("a//b", "//"), ["a", "b"]);
    }

    #[test]
    fn empty_statements_are_omitted() {
        assert_eq!(split("a\n\n\nb\n", "\n"), ["a", "b"]);
        assert!(split(" ;; ", ";").is_empty());
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(title("SELECT\n  1", 20), "SELECT 1");
        assert_eq!(title("SELECT a FROM b", 8), "SELECT …");
    }
}
