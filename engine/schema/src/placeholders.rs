//! Finds the parameters of a statement: `:name`, outside quotes and comments.
//!
//! `::` (a cast), `:=` (an assignment) and a colon after a name (a label) do not begin a parameter.

/// A part of a statement's text: a parameter, a placeholder, or the text between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment<'a> {
    /// Text without parameters.
    Text(&'a str),
    /// The name of a parameter, without the colon.
    Parameter(&'a str),
    /// A `?` outside quotes and comments.
    QuestionMark,
}

/// Rules for quotes and comments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quoting {
    /// A backslash escapes inside quotes, and `#` begins a comment.
    #[default]
    Mysql,
    /// No backslash escapes and no `#` comments; `$tag$` quotes.
    Postgresql,
}

/// Splits a statement at its parameters.
pub fn fragments(sql: &str, quoting: Quoting) -> Vec<Fragment<'_>> {
    let bytes = sql.as_bytes();
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        let skipped = quoted_or_comment_length(sql, at, quoting);
        if skipped > 0 {
            at += skipped;
            continue;
        }
        let (fragment, length) = match bytes[at] {
            b'?' => (Fragment::QuestionMark, 1),
            b':' if bytes[at + 1..].starts_with(b":") => {
                at += 2;
                continue;
            }
            b':' if at == 0 || !is_word(bytes[at - 1]) => {
                let name = word(&sql[at + 1..]);
                if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
                    at += 1;
                    continue;
                }
                (Fragment::Parameter(name), 1 + name.len())
            }
            _ => {
                at += 1;
                continue;
            }
        };
        if start < at {
            found.push(Fragment::Text(&sql[start..at]));
        }
        found.push(fragment);
        at += length;
        start = at;
    }
    if start < bytes.len() {
        found.push(Fragment::Text(&sql[start..]));
    }
    found
}

/// The first word of a statement in capitals, after comments and parentheses.
pub fn first_word(sql: &str, quoting: Quoting) -> String {
    let mut at = 0;
    while at < sql.len() {
        let byte = sql.as_bytes()[at];
        match quoted_or_comment_length(sql, at, quoting) {
            0 if byte.is_ascii_whitespace() || byte == b'(' => at += 1,
            0 => break,
            length => at += length,
        }
    }
    word(&sql[at..]).to_ascii_uppercase()
}

/// Bytes of the quoted text or comment that begins at `at`; 0 if none begins there. A quoted text with a doubled quote
/// inside counts as two adjacent texts.
pub fn quoted_or_comment_length(sql: &str, at: usize, quoting: Quoting) -> usize {
    let rest = &sql.as_bytes()[at..];
    let mysql = quoting == Quoting::Mysql;
    let to = |end: &str, skip: usize| {
        sql[at + skip..].find(end).map_or(rest.len(), |found| skip + found + end.len())
    };
    match rest {
        [quote @ (b'\'' | b'"'), ..] => quoted_length(rest, *quote, mysql),
        [b'`', ..] => quoted_length(rest, b'`', false),
        [b'/', b'*', ..] => to("*/", 2),
        [b'#', ..] if mysql => to("\n", 1),
        // MySQL requires white space after the dashes.
        [b'-', b'-', after, ..] if !mysql || after.is_ascii_whitespace() => to("\n", 2),
        [b'$', ..] if !mysql && (at == 0 || !is_word(sql.as_bytes()[at - 1])) => {
            let tag = word(&sql[at + 1..]);
            if tag.starts_with(|first: char| first.is_ascii_digit())
                || !sql[at + 1 + tag.len()..].starts_with('$')
            {
                return 0;
            }
            let tag = &sql[at..at + tag.len() + 2];
            to(tag, tag.len())
        }
        _ => 0,
    }
}

/// Bytes of the quoted text at the start of `rest`, with its quotes.
fn quoted_length(rest: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if escapes => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn word(text: &str) -> &str {
    let end = text.bytes().position(|byte| !is_word(byte)).unwrap_or(text.len());
    &text[..end]
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::Fragment::{Parameter, QuestionMark, Text};
    use super::*;

    fn mysql(sql: &str) -> Vec<Fragment<'_>> {
        fragments(sql, Quoting::Mysql)
    }

    #[test]
    fn names_after_a_colon_are_parameters() {
        assert_eq!(
            mysql("SELECT c FROM t WHERE id IN (:a,:b_2) LIMIT :n"),
            [
                Text("SELECT c FROM t WHERE id IN ("),
                Parameter("a"),
                Text(","),
                Parameter("b_2"),
                Text(") LIMIT "),
                Parameter("n")
            ]
        );
        assert_eq!(mysql("DO 1"), [Text("DO 1")]);
        assert_eq!(mysql(""), []);
    }

    #[test]
    fn quotes_and_comments_are_left_alone() {
        for sql in [
            "SELECT ':a', \":b\", `:c`",
            "SELECT 'it''s :a', 'it\\'s :a', '?'",
            "SELECT 1 -- :a ?\n",
            "SELECT 1 # :a ?",
            "SELECT /* :a ? */ 1",
            "SELECT ':a",
            "SELECT /* :a",
            "SET @a := 1, @b:=2",
            "lbl: LOOP",
            "SELECT '12:30' + 1",
        ] {
            assert_eq!(mysql(sql), [Text(sql)], "{sql}");
        }
        assert_eq!(mysql("a--:b"), [Text("a--"), Parameter("b")]);
        assert_eq!(mysql("?"), [QuestionMark]);
    }

    #[test]
    fn postgresql_has_other_rules_for_quotes() {
        let postgresql = |sql| fragments(sql, Quoting::Postgresql);
        for sql in ["SELECT $$:a$$, $x$ :b $$ $x$", "SELECT 1::int", "SELECT 1 --:a", "SELECT a[1:2]"] {
            assert_eq!(postgresql(sql), [Text(sql)], "{sql}");
        }
        assert_eq!(postgresql("'\\':a"), [Text("'\\'"), Parameter("a")]);
        assert_eq!(postgresql("a #> :a"), [Text("a #> "), Parameter("a")]);
        assert_eq!(postgresql("$1 :a"), [Text("$1 "), Parameter("a")]);
    }

    #[test]
    fn characters_of_several_bytes_are_not_split() {
        assert_eq!(mysql("SELECT 'é', é :a é"), [Text("SELECT 'é', é "), Parameter("a"), Text(" é")]);
    }

    #[test]
    fn the_first_word_follows_comments_and_parentheses() {
        for (sql, word) in [
            ("  select 1", "SELECT"),
            ("/* hint */ (SELECT 1)", "SELECT"),
            ("-- why\nUPDATE t", "UPDATE"),
            ("", ""),
        ] {
            assert_eq!(first_word(sql, Quoting::Mysql), word);
        }
    }
}
