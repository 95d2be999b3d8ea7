//! Parses option files, which contain one `name=value[,value...]` per line.

/// Parses the options of a file, each with its values. Lines without `=` are skipped. Values are separated by a comma or
/// spaces; two adjacent commas enclose an empty value. `#` at the start of a value begins a comment. A quoted value may contain
/// spaces and commas; text between its closing quote and the next comma is ignored. Inside a value, `#` and quotes are ordinary
/// characters, as in passwords. Parsing stops at an unclosed quote and returns its error message as the second result.
pub fn read(text: &str) -> (Vec<(String, Vec<String>)>, Option<String>) {
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((name, rest)) = line.split_once('=') else { continue };
        if name.trim_start().starts_with('#') {
            continue;
        }
        match split_values(rest) {
            Some(values) => lines.push((name.to_owned(), values)),
            None => return (lines, Some(format!("unexpected EOL on line {}", number + 1))),
        }
    }
    (lines, None)
}

/// Splits `text` into values, up to a comment; `None` if a quote is not closed.
fn split_values(text: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (value, after) = match rest.strip_prefix(['"', '\'']) {
            Some(quoted) => {
                let (value, after) = quoted.split_once(&rest[..1])?;
                (value, &after[after.find([',', '#']).unwrap_or(after.len())..])
            }
            None => rest.split_at(
                rest.find(|letter: char| letter == ',' || letter.is_whitespace()).unwrap_or(rest.len()),
            ),
        };
        values.push(value.to_owned());
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(String, Vec<String>)> {
        let (lines, problem) = read(text);
        assert_eq!(problem, None);
        lines
    }

    #[test]
    fn names_and_values() {
        let text = "threads=4\nmysql-host=a, b 'c d',\"e,f\" # two\n\n# x=1\nno equals sign\nempty=\n";
        let expected =
            [("threads", vec!["4"]), ("mysql-host", vec!["a", "b", "c d", "e,f"]), ("empty", Vec::new())];
        let expected =
            expected.map(|(name, values)| (name.into(), values.into_iter().map(Into::into).collect()));
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn quotes_and_hashes_are_special_at_the_start_of_a_value() {
        let words = |text: &str| lines(&format!("a={text}\n")).remove(0).1;
        assert_eq!(words("pass#word"), ["pass#word"]);
        assert_eq!(words("it's"), ["it's"]);
        assert_eq!(words("a, #b"), ["a"]);
        assert_eq!(words("b 'a'c \"d\", e"), ["b", "a", "e"]);
        assert_eq!(words("'a' # b, c"), ["a"]);
        assert_eq!(words(",a,,b,"), ["", "a", "", "b"]);
        assert_eq!(words("a=b"), ["a=b"]);
    }

    #[test]
    fn unclosed_quote_ends_parsing() {
        let (lines, problem) = read("threads=4\nmysql-user='a\ntime=3\n");
        assert_eq!(lines.len(), 1);
        assert_eq!(problem.as_deref(), Some("unexpected EOL on line 2"));
    }
}
