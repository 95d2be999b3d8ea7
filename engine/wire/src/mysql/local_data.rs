//! LOAD DATA LOCAL: the server requests a file, and the client sends rows that it generates on demand.
//!
//! The client never opens a file. It accepts the server's request only as the reply to its own LOAD DATA, on a
//! connection that was opened for loading, and ignores the file name in the request.
//!
//! Source: "LOCAL INFILE Request" in the client/server protocol chapter of the MySQL internals manual. The data are
//! packets that continue the numbering of the request; an empty packet ends them. If an error occurs while the client
//! sends, the server skips the remaining data and then replies with the error.

use super::message::write_packet;
use super::skim::{ExpectedAnswer, Skimmer};
use super::{ANSWER_BYTES_MAX, MysqlConnection, message};
use crate::bulk::{BulkLoad, LoadError};
use crate::{Outcome, WireError};

/// Bytes of one packet of data. The server buffers a complete packet in memory, and refuses one that is longer than its
/// `max_allowed_packet`.
const PACKET_BYTES: usize = 64 * 1024;
/// Bytes of one write to the socket.
const SEND_BYTES: usize = 256 * 1024;

impl BulkLoad for MysqlConnection {
    async fn load(
        &mut self,
        sql: &str,
        rows: impl FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> Result<Outcome, LoadError> {
        self.out.clear();
        message::query(&mut self.out, sql.as_bytes());
        let answer =
            self.request_short_answer(ExpectedAnswer::DataRequest).await.map_err(LoadError::Refused)?;
        if !answer.data_requested {
            let text = "the server did not ask for the data of LOAD DATA LOCAL";
            return Err(LoadError::Refused(WireError::Protocol(text.into())));
        }
        self.send_rows(rows).await.map_err(LoadError::Failed)
    }
}

impl MysqlConnection {
    async fn send_rows(
        &mut self,
        mut rows: impl FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> Result<Outcome, WireError> {
        let mut sequence = 2u8; // The statement had number 0, the request 1.
        let mut more = true;
        while more {
            self.out.clear();
            while more && self.out.len() < SEND_BYTES {
                let begin = self.out.len();
                write_packet(&mut self.out, sequence, |out| more = rows(out, PACKET_BYTES));
                if self.out.len() == begin + 4 {
                    self.out.truncate(begin); // Do not send an empty packet: it would end the data here.
                } else {
                    sequence = sequence.wrapping_add(1);
                }
            }
            if !more {
                write_packet(&mut self.out, sequence, |_| {});
            }
            self.socket.continue_exchange();
            if let Err(error) = self.socket.send(&self.out).await {
                return Err(self.server_error_or(error.into()).await);
            }
        }
        self.out.clear();
        Ok(self.request_short_answer(ExpectedAnswer::Result).await?.outcome)
    }

    /// The error that the server sent before it closed the connection, or else `error`.
    async fn server_error_or(&mut self, error: WireError) -> WireError {
        let mut skim = Skimmer::new(ExpectedAnswer::Result, self.deprecate_eof).limit_bytes(ANSWER_BYTES_MAX);
        match self.socket.receive(|bytes| skim.feed(bytes)).await {
            Err(error @ WireError::Server { .. }) => error,
            _ => error,
        }
    }
}
