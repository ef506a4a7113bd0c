//! States by root.

mod view;

pub use view::{Layer, LayerAccount, Layers, Page, StateData, View};
