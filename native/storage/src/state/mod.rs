//! Access to states by their state root.

mod merged_layers;
mod ranges;
mod view;

pub use merged_layers::merge_layers;
pub use ranges::{PathSet, RangeLimits, account_range, byte_codes, storage_ranges, trie_nodes};
pub use view::{Layer, LayerAccount, Layers, Page, StateData, View};
