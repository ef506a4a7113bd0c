//! Types of arguments and variables.

use apollo_compiler::ast::Type;

/// Type of an argument or variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Long,
    Int,
    BigInt,
    Address,
    Bytes,
    Bytes32,
    Boolean,
    Text,
    CallData,
    /// Argument type of a log filter: FilterCriteria (with a block range) or BlockFilterCriteria (without).
    Filter,
    Addresses,
    TopicRow,
    Topics,
    /// A type that no argument of the schema has. A variable of this type cannot be used.
    Unused,
}

impl Kind {
    pub fn of(ty: &Type) -> Self {
        let lists = std::iter::successors(Some(ty), |ty| match ty {
            Type::List(inner) | Type::NonNullList(inner) => Some(&**inner),
            _ => None,
        });
        match (ty.inner_named_type().as_str(), lists.count() - 1) {
            ("Long", 0) => Kind::Long,
            ("Int", 0) => Kind::Int,
            ("BigInt", 0) => Kind::BigInt,
            ("Address", 0) => Kind::Address,
            ("Address", 1) => Kind::Addresses,
            ("Bytes", 0) => Kind::Bytes,
            ("Bytes32", 0) => Kind::Bytes32,
            ("Bytes32", 1) => Kind::TopicRow,
            ("Bytes32", 2) => Kind::Topics,
            ("Boolean", 0) => Kind::Boolean,
            ("String" | "ID", 0) => Kind::Text,
            ("CallData", 0) => Kind::CallData,
            ("BlockFilterCriteria" | "FilterCriteria", 0) => Kind::Filter,
            _ => Kind::Unused,
        }
    }

    /// Return the name of the type in the schema; for a list, the name of the item type.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Long => "Long",
            Kind::Int => "Int",
            Kind::BigInt => "BigInt",
            Kind::Address | Kind::Addresses => "Address",
            Kind::Bytes => "Bytes",
            Kind::Bytes32 | Kind::TopicRow | Kind::Topics => "Bytes32",
            Kind::Boolean => "Boolean",
            Kind::Text => "String",
            Kind::CallData => "CallData",
            Kind::Filter => "FilterCriteria",
            Kind::Unused => "Unknown",
        }
    }
}
