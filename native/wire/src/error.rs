//! The error type of this crate.

/// One line of text: the invalid field, a colon, the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn at(place: impl std::fmt::Display, problem: impl std::fmt::Display) -> Self {
        Error(format!("{place}: {problem}"))
    }
}

impl From<ophion_primitives::errors::Error> for Error {
    fn from(error: ophion_primitives::errors::Error) -> Self {
        Error(error.to_string())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
