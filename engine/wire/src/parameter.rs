//! Parameters of statements and their types.

/// One parameter, borrowed from the script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter<'a> {
    /// NULL, where values of this type stand otherwise.
    Null(Type),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    Text(&'a [u8]),
}

/// Type of a parameter. It stays the same from one execution to the next, so that the server is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A signed integer of 64 bits.
    Int,
    /// A floating-point number of 64 bits.
    Double,
    /// A string.
    Text,
}

impl Parameter<'_> {
    /// Its type.
    pub fn kind(&self) -> Type {
        match self {
            Parameter::Null(kind) => *kind,
            Parameter::Int(_) => Type::Int,
            Parameter::Double(_) => Type::Double,
            Parameter::Text(_) => Type::Text,
        }
    }
}
