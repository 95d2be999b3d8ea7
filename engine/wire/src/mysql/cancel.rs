//! Cancels statements of other sessions by KILL QUERY on a further connection.

use super::{MysqlConnector, SessionKey};
use crate::{Connection, Connector, TextRow, WireError};

/// Columns of SHOW PROCESSLIST, which every server of this protocol has in this order.
const USER: usize = 1;
const HOST: usize = 2;
const COMMAND: usize = 4;

/// Sends KILL QUERY for those of the sessions that execute a statement.
///
/// Connection ids are unique only on one server. Behind a load balancer, the further connection may reach another server,
/// where an id belongs to another client. So a session counts only if its account and its client's host are those of this
/// connection.
pub(super) async fn cancel(
    connector: &MysqlConnector,
    number: u64,
    sessions: &[SessionKey],
) -> Result<(), WireError> {
    let mut connection = connector.connect(number).await?;
    let rows = connection.query_rows("SHOW PROCESSLIST").await?;
    for id in find_running(&rows, connection.id, sessions) {
        // The statement may just have ended.
        let _ = connection.query(format!("KILL QUERY {id}").as_bytes()).await;
    }
    connection.close().await;
    Ok(())
}

/// The ids of those of the sessions that execute a statement.
fn find_running(rows: &[TextRow], own_id: u32, sessions: &[SessionKey]) -> Vec<u32> {
    let id = |row: &TextRow| row.first().and_then(|id| id.as_deref()?.parse().ok());
    let Some(own) = rows.iter().find(|row| id(row) == Some(own_id)) else { return Vec::new() };
    let is_running = |row: &&TextRow| {
        client(row).is_some()
            && client(row) == client(own)
            && text(row, COMMAND).is_some_and(|text| text != "Sleep")
    };
    let running = rows.iter().filter(is_running).filter_map(id);
    running.filter(|&id| sessions.contains(&SessionKey::Mysql(id))).collect()
}

fn text(row: &TextRow, column: usize) -> Option<&str> {
    row.get(column)?.as_deref()
}

/// The account and the host of a session's client, without its port.
fn client(row: &TextRow) -> Option<(&str, &str)> {
    let host = text(row, HOST)?;
    Some((text(row, USER)?, host.rsplit_once(':').map_or(host, |(host, _)| host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u32, user: &str, host: &str, command: &str) -> TextRow {
        let id = id.to_string();
        [id.as_str(), user, host, "db", command, "0"].map(|text| Some(text.to_owned())).into()
    }

    #[test]
    fn only_running_statements_of_this_client_are_cancelled() {
        let rows = [
            row(5, "load", "10.0.0.1:5000", "Query"),
            row(6, "load", "10.0.0.1:5001", "Sleep"),
            row(7, "load", "10.0.0.2:5002", "Query"),
            row(8, "other", "10.0.0.1:5003", "Query"),
            row(9, "load", "10.0.0.1:5004", "Query"),
            row(10, "load", "10.0.0.1:5005", "Execute"),
        ];
        let sessions = [5, 6, 7, 8, 10].map(SessionKey::Mysql);
        assert_eq!(find_running(&rows, 9, &sessions), [5, 10]);
        assert!(find_running(&rows, 11, &sessions).is_empty(), "this connection is missing");
        assert!(find_running(&[vec![], vec![None]], 9, &sessions).is_empty());
    }
}
