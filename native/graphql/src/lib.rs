//! GraphQL: documents checked against the schema, planned once, and run over one snapshot of the database.
//!
//! ```text
//! text -> shape (literals out) -> kept plan, or parse, validate, plan -> values bound -> run -> JSON text
//! ```
//!
//! | folder    | question it answers                                             |
//! |-----------|-----------------------------------------------------------------|
//! | document/ | what is in a document: its shape, its fields, its plan          |
//! | values/   | what are arguments and variables                                |
//! | request/  | how does a request become a checked query, what is wrong if not |
//! | run/      | how is a query answered                                         |

pub mod document;
pub mod request;
pub mod run;
pub mod values;
