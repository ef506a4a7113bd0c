//! One error type for the crate and its single mapping to Python exception classes.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(_native, NativeError, PyException, "Base of everything the extension raises on purpose.");
create_exception!(_native, StorageError, NativeError, "The database cannot be opened, read or written.");
create_exception!(_native, DecodeError, NativeError, "Bytes that are not what they should be.");
create_exception!(_native, InvalidBody, NativeError, "A transaction of a block breaks a rule.");
create_exception!(_native, MissingState, NativeError, "The state of this root is not in the database.");
create_exception!(_native, TimedOut, NativeError, "A trace was stopped: its time was up, or nobody read it.");
create_exception!(
    _native,
    CallRefused,
    NativeError,
    "A simulated transaction breaks a rule: a code, a colon, the reason."
);

/// What can go wrong on purpose. A panic, by contrast, is a bug.
#[derive(Debug, Clone)]
pub enum Error {
    Storage(String),
    Decode(String),
    InvalidBody(String),
    MissingState(String),
    Timeout(String),
    Refused(String),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn decode(place: &str, cause: impl std::fmt::Display) -> Self {
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
            Error::Timeout(m) | Error::Refused(m) => f.write_str(m),
        }
    }
}

impl std::error::Error for Error {}
impl revm::database_interface::DBErrorMarker for Error {}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        match error {
            Error::Storage(m) => StorageError::new_err(m),
            Error::Decode(m) => DecodeError::new_err(m),
            Error::InvalidBody(m) => InvalidBody::new_err(m),
            Error::MissingState(m) => MissingState::new_err(m),
            Error::Timeout(m) => TimedOut::new_err(m),
            Error::Refused(m) => CallRefused::new_err(m),
        }
    }
}

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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("NativeError", py.get_type::<NativeError>())?;
    module.add("StorageError", py.get_type::<StorageError>())?;
    module.add("DecodeError", py.get_type::<DecodeError>())?;
    module.add("InvalidBody", py.get_type::<InvalidBody>())?;
    module.add("MissingState", py.get_type::<MissingState>())?;
    module.add("TimedOut", py.get_type::<TimedOut>())?;
    module.add("CallRefused", py.get_type::<CallRefused>())
}
