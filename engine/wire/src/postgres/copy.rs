//! COPY FROM STDIN: the server requests rows, and the client generates them while it sends them.
//!
//! Source: "COPY Operations" in the chapter "Frontend/Backend Protocol" of the PostgreSQL manual. If an error
//! occurs while the client sends, the server skips the remaining data and then replies with the error.

use super::skim::ExpectedAnswer;
use super::{PostgresConnection, message};
use crate::bulk::{BulkLoad, LoadError};
use crate::{Outcome, WireError};

/// Bytes of one message of data.
const MESSAGE_BYTES: usize = 64 * 1024;
/// Bytes of one write to the socket.
const SEND_BYTES: usize = 256 * 1024;

impl BulkLoad for PostgresConnection {
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
            let text = "the server did not ask for the data of COPY FROM STDIN";
            return Err(LoadError::Refused(WireError::Protocol(text.into())));
        }
        self.send_rows(rows).await.map_err(LoadError::Failed)
    }
}

impl PostgresConnection {
    async fn send_rows(
        &mut self,
        mut rows: impl FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> Result<Outcome, WireError> {
        let mut more = true;
        while more {
            self.out.clear();
            while more && self.out.len() < SEND_BYTES {
                message::write_message(&mut self.out, b'd', |out| more = rows(out, MESSAGE_BYTES));
            }
            if !more {
                message::copy_done(&mut self.out);
            }
            if let Err(error) = self.socket.send(&self.out).await {
                self.skim.begin(ExpectedAnswer::Result, false);
                return Err(self.server_error_or(error.into()).await);
            }
        }
        self.out.clear();
        Ok(self.request_short_answer(ExpectedAnswer::Result).await?.outcome)
    }
}
