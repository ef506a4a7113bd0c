//! States by root.

mod view;

pub use view::{Layer, LayerAccount, Page, StateData, View};
