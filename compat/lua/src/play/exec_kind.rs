//! With which call a statement was sent, and how messages about it name that call.

/// With which call a statement was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecKind {
    /// A prepared one.
    Execute,
    /// Text.
    Query,
}

impl ExecKind {
    /// FATAL lines about a statement that was sent so.
    pub(super) fn lines(self, pgsql: bool, (code, message): (u16, &str), text: &str) -> Vec<String> {
        match (pgsql, self) {
            (false, ExecKind::Execute) => {
                vec![format!("mysql_stmt_execute() returned error {code} ({message}) for query '{text}'")]
            }
            (false, ExecKind::Query) => {
                vec![format!("mysql_drv_query() returned error {code} ({message}) for query '{text}'")]
            }
            // 7 is PGRES_FATAL_ERROR.
            (true, ExecKind::Execute) => vec![format!("PQexecPrepared() failed: 7 {message}")],
            (true, ExecKind::Query) => {
                vec![format!("PQexec() failed: 7 {message}"), format!("failed query was: {text}")]
            }
        }
    }
}
