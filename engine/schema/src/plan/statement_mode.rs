//! How statements are sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatementMode {
    /// Prepared on the server, once per connection and table.
    #[default]
    Prepared,
    /// As text: the client inserts the parameters as literals.
    Text,
}
