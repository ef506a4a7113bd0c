//! One error type for all crates.

/// Errors that the crates expect and return. Other failures panic, because they are bugs.
#[derive(Debug, Clone)]
pub enum Error {
    Storage(String),
    Decode(String),
    InvalidBody(String),
    MissingState(String),
    Timeout(String),
    Refused(String),
    /// The body and the receipts of a block are not downloaded yet.
    NotDownloaded {
        number: u64,
        from: u64,
    },
    /// The RPC endpoint of the forked chain does not answer, or answers with an error.
    Source(String),
    /// The local copy of a forked chain's state lacks a key, and this thread may not wait for the chain's RPC endpoint.
    NotFetched,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn decode(place: impl std::fmt::Display, cause: impl std::fmt::Display) -> Self {
        Error::Decode(format!("{place}: {cause}"))
    }

    pub fn damaged(what: impl std::fmt::Display) -> Self {
        Error::Storage(format!("the database is damaged: {what}; run `ophion storage check`"))
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Storage(m) | Error::Decode(m) | Error::InvalidBody(m) | Error::MissingState(m) => f.write_str(m),
            Error::Timeout(m) | Error::Refused(m) | Error::Source(m) => f.write_str(m),
            Error::NotDownloaded { number, from } => write!(
                f,
                "block {number} has not been downloaded yet; bodies and receipts are available from block {from}"
            ),
            Error::NotFetched => f.write_str("the state of the forked chain is not fetched yet"),
        }
    }
}

impl std::error::Error for Error {}
impl revm_database_interface::DBErrorMarker for Error {}

impl From<heed::Error> for Error {
    fn from(error: heed::Error) -> Self {
        use heed::{Error as H, MdbError};
        match &error {
            H::Io(io) if io.raw_os_error() == Some(28) => {
                Error::Storage("no space left on the disk; nothing of the unfinished block was written".into())
            }
            H::Mdb(MdbError::MapFull) => Error::Storage("the database has reached its map size".into()),
            H::Mdb(MdbError::Corrupted | MdbError::PageNotFound | MdbError::Invalid) => Error::damaged(&error),
            _ => Error::Storage(format!("database: {error}")),
        }
    }
}
