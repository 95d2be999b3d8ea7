//! A login that is not gone through with.

use crate::WireError;

/// Error number of MySQL's own clients for a login method they cannot or will not use.
const CR_AUTH_PLUGIN_CANNOT_LOAD: u16 = 2059;

pub(super) fn refused(text: String, way_out: &str) -> WireError {
    WireError::Refused { code: CR_AUTH_PLUGIN_CANNOT_LOAD, text, way_out: way_out.into() }
}
