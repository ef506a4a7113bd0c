//! Accounts before and after.

pub mod prestate;
