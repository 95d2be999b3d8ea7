//! Positions of parameters in a statement.

use dbdyno_schema::description::ParameterPosition;
use dbdyno_schema::placeholders::{Fragment, Quoting, fragments};

/// The parameters of a statement, from left to right.
pub(crate) fn positions(sql: &str, quoting: Quoting) -> Vec<ParameterPosition> {
    let mut at = 0;
    let mut positions = Vec::new();
    for fragment in fragments(sql, quoting) {
        let (length, name) = match fragment {
            Fragment::Text(text) => {
                at += text.chars().count() as u64;
                continue;
            }
            Fragment::QuestionMark => (1, None),
            Fragment::Parameter(name) => (1 + name.chars().count() as u64, Some(name.to_owned())),
        };
        positions.push(ParameterPosition { name, at });
        at += length;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_in_characters() {
        let position = |name: Option<&str>, at| ParameterPosition { name: name.map(Into::into), at };
        assert_eq!(
            positions("SELECT 'é?', :a FROM t WHERE b=? AND c=:a", Quoting::Mysql),
            [position(Some("a"), 13), position(None, 31), position(Some("a"), 39)]
        );
    }
}
