//! Options that a script or a built-in test declares, and their values.

/// Types of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `on` or `off`.
    Bool,
    /// A signed 32-bit number.
    Int,
    /// A number with an optional K, M, G or T, powers of 1024.
    Size,
    /// A floating-point number.
    Double,
    /// Anything.
    String,
    /// Strings separated by commas.
    List,
    /// The name of a file with options, read at once.
    File,
}

/// A declared option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Name, as declared; `-` and `_` are the same in it.
    pub name: String,
    /// Type of its value.
    pub kind: Kind,
    /// What it is where the command line says nothing, as it would be written there; `None` for no value.
    pub default: Option<String>,
    /// One line that describes it.
    pub help: Option<String>,
}

/// What an option is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Bool`].
    Bool(bool),
    /// Of [`Kind::Int`].
    Int(i32),
    /// Of [`Kind::Size`].
    Size(u64),
    /// Of [`Kind::Double`].
    Double(f64),
    /// Of [`Kind::String`]; `None` where it has no value.
    String(Option<String>),
    /// Of [`Kind::List`].
    List(Vec<String>),
}

impl Declared {
    /// An option with a default and a description.
    pub fn new(name: &str, kind: Kind, default: Option<&str>, help: &str) -> Self {
        Self { name: name.into(), kind, default: default.map(Into::into), help: Some(help.into()) }
    }
}
