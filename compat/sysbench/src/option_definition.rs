//! Options that a script or a built-in test declares, and their values.

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Bool,
    /// A signed 32-bit number.
    Int,
    /// A number with an optional suffix K, M, G or T (powers of 1024).
    Size,
    Double,
    String,
    /// Strings separated by commas.
    List,
    /// An option file, which is read at its position among the arguments.
    File,
}

/// The definition of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionDefinition {
    /// The name; `-` and `_` are equal in it.
    pub name: String,
    pub kind: Kind,
    /// The default, written as on the command line; `None` for no value.
    pub default: Option<String>,
    pub help: Option<String>,
}

/// A value of the corresponding [`Kind`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Int(i32),
    Size(u64),
    Double(f64),
    /// `None` for no value.
    String(Option<String>),
    List(Vec<String>),
}

impl OptionDefinition {
    pub fn new(name: &str, kind: Kind, default: Option<&str>, help: &str) -> Self {
        Self { name: name.into(), kind, default: default.map(Into::into), help: Some(help.into()) }
    }
}
