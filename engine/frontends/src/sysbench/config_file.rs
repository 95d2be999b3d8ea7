//! Files of options: `name=value[,value...]`, one a line.

/// One line of a file: an option's name and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// As it stands before the `=`.
    pub name: String,
    /// What stands after it: words, separated by commas or blanks, without their quotes.
    pub values: Vec<String>,
}

/// Reads a file's text. Lines without `=` are skipped; `#` begins a comment; quotes hold blanks and commas together.
/// A quote that is not closed ends the reading; the second value is then what to say of it.
pub fn read(text: &str) -> (Vec<Line>, Option<String>) {
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((name, rest)) = line.split_once('=') else { continue };
        if name.trim_start().starts_with('#') {
            continue;
        }
        match words(rest) {
            Some(values) => lines.push(Line { name: name.to_owned(), values }),
            None => return (lines, Some(format!("unexpected EOL on line {}", number + 1))),
        }
    }
    (lines, None)
}

/// The words of a value; `None` where a quote is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '#' => break,
            ',' | ' ' | '\t' | '\r' => words.extend(word.take()),
            '"' | '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        closing if closing == character => break,
                        inside => word.push(inside),
                    }
                }
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(String, Vec<String>)> {
        let (lines, fault) = read(text);
        assert_eq!(fault, None);
        lines.into_iter().map(|line| (line.name, line.values)).collect()
    }

    #[test]
    fn names_and_words() {
        let text = "threads=4\nmysql-host=a, b 'c d',\"e,f\" # two\n\n# x=1\nno equals sign\nempty=\n";
        let expected =
            [("threads", vec!["4"]), ("mysql-host", vec!["a", "b", "c d", "e,f"]), ("empty", Vec::new())];
        let expected =
            expected.map(|(name, values)| (name.into(), values.into_iter().map(Into::into).collect()));
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn an_open_quote_ends_the_reading() {
        let (lines, fault) = read("threads=4\nmysql-user='a\ntime=3\n");
        assert_eq!(lines.len(), 1);
        assert_eq!(fault.as_deref(), Some("unexpected EOL on line 2"));
    }
}
