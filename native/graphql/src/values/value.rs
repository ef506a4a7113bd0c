//! Typed argument values of a GraphQL plan.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};

/// The value of an argument, converted to its type in the schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Long(u64),
    Int(i32),
    Big(U256),
    Address(Address),
    Hash(B256),
    Bytes(Bytes),
    Boolean(bool),
    Text(String),
    Call(Arc<CallArguments>),
    Filter(Arc<FilterArguments>),
    Addresses(Vec<Address>),
    Row(Vec<B256>),
    Topics(Vec<Vec<B256>>),
}

/// An argument of the GraphQL input type CallData.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallArguments {
    pub from: Option<Address>,
    pub to: Option<Address>,
    pub gas: Option<u64>,
    pub gas_price: Option<U256>,
    pub max_fee_per_gas: Option<U256>,
    pub max_priority_fee_per_gas: Option<U256>,
    pub value: Option<U256>,
    pub data: Option<Bytes>,
}

/// An argument of the GraphQL input types FilterCriteria and BlockFilterCriteria.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterArguments {
    pub from_block: Option<u64>,
    pub to_block: Option<u64>,
    pub addresses: Vec<Address>,
    pub topics: Vec<Vec<B256>>,
}
