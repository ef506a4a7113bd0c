//! States by root.

mod merged_layers;
mod view;

pub use merged_layers::merge_layers;
pub use view::{Layer, LayerAccount, Layers, Page, StateData, View};
