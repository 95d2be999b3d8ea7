//! LOAD DATA LOCAL: the server asks for a file, and gets rows that are made as the socket takes them.
//!
//! No file is ever opened: the server's request is honoured only as the answer to a statement of this function,
//! on a connection that was opened for loading, and whatever name it holds is not looked at.
//!
//! Source: "LOCAL INFILE Request" in the client/server protocol chapter of the MySQL internals manual. The data
//! are packets that go on numbering where the request stopped, and an empty packet ends them. A server that fails
//! in the middle passes the rest over and answers with its error at the end.

use super::message::packet;
use super::skim::{Expect, Skim};
use super::{MysqlConnection, message};
use crate::bulk::{BulkLoad, LoadTrouble};
use crate::trouble::{Trouble, lost};
use crate::{Outcome, WireError};

/// Bytes of one packet of data. The server takes a packet into memory whole, and refuses one that is longer than
/// its `max_allowed_packet`.
const PACKET_BYTES: usize = 64 * 1024;
/// Bytes handed to the socket at once.
const SEND_BYTES: usize = 256 * 1024;

/// A server that waits for the data of a LOAD DATA LOCAL of ours.
#[derive(Debug)]
#[must_use = "the server waits for data"]
pub struct DataRequest<'c>(&'c mut MysqlConnection);

impl MysqlConnection {
    /// Sends a LOAD DATA LOCAL statement and waits until the server asks for the data.
    ///
    /// # Errors
    /// The server's own, also when it refuses LOCAL; [`WireError::Protocol`] when it does not ask for data.
    pub async fn load_data(&mut self, sql: &str) -> Result<DataRequest<'_>, WireError> {
        self.out.clear();
        message::query(&mut self.out, sql.as_bytes());
        if !self.ask_shortly(Expect::DataRequest).await?.data_requested {
            return Err(WireError::Protocol("the server did not ask for the data of LOAD DATA LOCAL".into()));
        }
        Ok(DataRequest(self))
    }
}

impl DataRequest<'_> {
    /// Answers with rows. `rows` appends at most about as many bytes of them as it is told, and returns whether
    /// there are more; it is asked again only when the socket has taken what there was. The outcome's rows are
    /// those that the server stored.
    ///
    /// # Errors
    /// The server's own, for instance a deadlock; then nothing of this statement is stored where the tables know
    /// transactions.
    pub async fn answer(
        self,
        mut rows: impl FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> Result<Outcome, WireError> {
        let connection = self.0;
        let mut sequence = 2u8; // The statement was 0, the request 1.
        let mut more = true;
        while more {
            connection.out.clear();
            while more && connection.out.len() < SEND_BYTES {
                let begin = connection.out.len();
                packet(&mut connection.out, sequence, |out| more = rows(out, PACKET_BYTES));
                if connection.out.len() == begin + 4 {
                    connection.out.truncate(begin); // An empty packet would end the data here.
                } else {
                    sequence = sequence.wrapping_add(1);
                }
            }
            if !more {
                packet(&mut connection.out, sequence, |_| {});
            }
            connection.socket.go_on();
            if let Err(error) = connection.socket.send(&connection.out).await {
                return Err(connection.last_words(lost(error)).await);
            }
        }
        connection.out.clear();
        Ok(connection.ask_shortly(Expect::Result).await?.outcome)
    }
}

impl BulkLoad for MysqlConnection {
    async fn load(
        &mut self,
        sql: &str,
        rows: impl FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> Result<Outcome, LoadTrouble> {
        let request = self.load_data(sql).await.map_err(LoadTrouble::Refused)?;
        request.answer(rows).await.map_err(LoadTrouble::Failed)
    }
}

impl MysqlConnection {
    /// What a server said before it closed the connection, or else `error`.
    async fn last_words(&mut self, error: WireError) -> WireError {
        let mut skim = Skim::new(Expect::Result, self.deprecate_eof).at_most(super::SHORT_ANSWER_BYTES);
        let answer = self.socket.receive(|bytes| skim.feed(bytes).map_err(Trouble::Wire)).await;
        match answer.map_err(Trouble::into_wire) {
            Err(error @ WireError::Server { .. }) => error,
            _ => error,
        }
    }
}
