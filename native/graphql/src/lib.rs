//! GraphQL: documents are validated, planned once, and run on one database snapshot.
//!
//! ```text
//! text -> shape (literals removed) -> cached plan, or parse, validate, plan -> bind values -> run -> JSON text
//! ```
//!
//! | folder    | contents                                                   |
//! |-----------|------------------------------------------------------------|
//! | document/ | shape, fields and plan of a document                       |
//! | values/   | arguments and variables                                    |
//! | request/  | from the text of a request to a validated query            |
//! | run/      | query execution                                            |

pub mod document;
pub mod request;
pub mod run;
pub mod values;
