//! Maps the error type of the crates to Python exceptions.

use ophion_primitives::errors::Error;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(_native, NativeError, PyException, "Base of everything the extension raises on purpose.");
create_exception!(_native, StorageError, NativeError, "The database cannot be opened, read or written.");
create_exception!(_native, DecodeError, NativeError, "Bytes that are not what they should be.");
create_exception!(_native, InvalidBody, NativeError, "A transaction of a block breaks a rule.");
create_exception!(_native, MissingState, NativeError, "The state of this root is not in the database.");
create_exception!(
    _native,
    TimedOut,
    NativeError,
    "A block, trace or simulation was stopped: deadline passed, or the reader is gone."
);
create_exception!(
    _native,
    CallRefused,
    NativeError,
    "A simulated transaction breaks a rule: a code, a colon, the reason."
);

create_exception!(_native, NotDownloaded, NativeError, "The body of a block is not downloaded yet.");
create_exception!(_native, SourceFailed, NativeError, "The source of a forked chain cannot answer.");
create_exception!(
    _native,
    NotFetched,
    NativeError,
    "A key of a forked chain is not fetched, and this thread may not wait."
);

/// Error type of the functions that Python calls. The crates' errors and PyO3's errors both convert to it, because the
/// orphan rule forbids a direct conversion between them.
pub struct Raised(PyErr);

pub type Answer<T> = std::result::Result<T, Raised>;

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Self {
        Raised(error)
    }
}

impl From<Raised> for PyErr {
    fn from(raised: Raised) -> Self {
        raised.0
    }
}

impl From<Error> for Raised {
    fn from(error: Error) -> Self {
        Raised(match error {
            Error::Storage(m) => StorageError::new_err(m),
            Error::Decode(m) => DecodeError::new_err(m),
            Error::InvalidBody(m) => InvalidBody::new_err(m),
            Error::MissingState(m) => MissingState::new_err(m),
            Error::Timeout(m) => TimedOut::new_err(m),
            Error::Refused(m) => CallRefused::new_err(m),
            Error::Source(m) => SourceFailed::new_err(m),
            Error::NotDownloaded { .. } => NotDownloaded::new_err(error.to_string()),
            Error::NotFetched => NotFetched::new_err(error.to_string()),
        })
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
    module.add("CallRefused", py.get_type::<CallRefused>())?;
    module.add("NotDownloaded", py.get_type::<NotDownloaded>())?;
    module.add("SourceFailed", py.get_type::<SourceFailed>())?;
    module.add("NotFetched", py.get_type::<NotFetched>())
}
