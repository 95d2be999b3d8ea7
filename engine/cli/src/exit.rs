//! Exit codes, the same as those of `dbdyno`.

use dbdyno_schema::record::EndReason;

/// The plan is invalid.
pub const USAGE: u8 = 2;
const UNREACHABLE: u8 = 3;
/// The command failed, or its output is incomplete.
pub const ABORTED: u8 = 4;
/// A signal ended the command.
pub const INTERRUPTED: u8 = 130;

/// The exit code of a command that ended for `reason`.
pub fn code(reason: EndReason) -> u8 {
    match reason {
        reason if reason.is_planned() => 0,
        EndReason::ConnectFailed => UNREACHABLE,
        EndReason::Interrupted => INTERRUPTED,
        _ => ABORTED,
    }
}
