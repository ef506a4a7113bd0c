//! Documents, and errors about them.

pub mod complaints;
pub mod fields;
pub mod kinds;
pub mod plan;
pub mod planner;
pub mod shape;
