//! The interface for scripts; see [`crate::scripted`].

use super::skim::{ExpectedAnswer, Skimmer};
use super::{MysqlConnection, MysqlConnector, message};
use crate::rows::SCRIPT_BYTES_MAX;
use crate::scripted::{Parameter, Prepared, ResultSet, Rows, Scripted, ScriptedConnector};
use crate::{Outcome, WireError};

impl Scripted for MysqlConnection {
    fn write_prepare(&mut self, sql: &[u8]) {
        self.out.clear();
        message::prepare(&mut self.out, sql);
    }

    fn write_execute<'a>(
        &mut self,
        id: u32,
        parameters: impl Iterator<Item = Parameter<'a>> + Clone,
        types_changed: bool,
    ) {
        self.out.clear();
        message::execute_with(&mut self.out, id, parameters, types_changed);
    }

    fn write_query(&mut self, sql: &[u8]) {
        self.out.clear();
        message::query(&mut self.out, sql);
    }

    async fn send_prepare(&mut self) -> Result<Prepared, WireError> {
        let answer = self.request_prepare().await?;
        Ok(Prepared { id: answer.statement_id, parameters: answer.parameters })
    }

    async fn skim(&mut self) -> Result<Outcome, WireError> {
        let skim = Skimmer::new(ExpectedAnswer::Result, self.deprecate_eof);
        let mut skim = skim.track_result_sets(self.tracks_result_sets);
        let answer = self.exchange(&mut skim).await;
        self.result_sets = skim.take_result_sets();
        Ok(answer?.outcome)
    }

    async fn fetch_rows(&mut self, mut rows: Rows) -> (Rows, Result<Outcome, WireError>) {
        rows.clear();
        let tracks = self.tracks_result_sets;
        let skim = Skimmer::new(ExpectedAnswer::Result, self.deprecate_eof);
        let mut skim = skim.track_result_sets(tracks).keep_rows_in(rows, SCRIPT_BYTES_MAX, tracks);
        let answer = self.exchange(&mut skim).await;
        self.result_sets = skim.take_result_sets();
        (skim.into_rows(), answer.map(|answer| answer.outcome))
    }

    fn track_result_sets(&mut self) {
        self.tracks_result_sets = true;
    }

    fn take_result_sets(&mut self) -> Vec<ResultSet> {
        std::mem::take(&mut self.result_sets)
    }

    async fn close_statement(&mut self, id: u32) -> Result<(), WireError> {
        self.out.clear();
        message::close_statement(&mut self.out, id);
        Ok(self.socket.send(&self.out).await?)
    }

    fn set_blocking(&mut self, blocking: bool) {
        self.socket.set_blocking(blocking);
    }
}

impl ScriptedConnector for MysqlConnector {
    async fn connect_blocking(&self, number: u64) -> Result<MysqlConnection, WireError> {
        self.options
            .connect_blocking(number, async |socket, address| self.log_in(number, socket, address).await)
            .await
    }
}
