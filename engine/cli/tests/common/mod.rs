//! The engine as a process: what the tests of this folder share.

#![allow(clippy::disallowed_methods)] // A test starts processes.

use std::io::Write;
use std::process::{Child, Command, Stdio};

/// Starts `dbdyno-engine command` and hands it `input`, which ends there.
pub(crate) fn spawn(command: &str, input: &str, records: Stdio, words: Stdio) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dbdyno-engine"))
        .arg(command)
        .stdin(Stdio::piped())
        .stdout(records)
        .stderr(words)
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child
}
