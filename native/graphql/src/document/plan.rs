//! Plans: GraphQL operations in which everything is precomputed that does not depend on values.

use std::sync::Arc;

use apollo_compiler::executable::Operation;
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Node as Shared};

use super::fields::Field;
use super::kinds::Kind;

/// An argument as written in the document.
#[derive(Debug)]
pub enum Written {
    Absent,
    Null,
    Boolean(bool),
    /// A number literal, by its index among the literals of the document. A document of the same shape may have another
    /// number at this index.
    NumberAt(usize),
    TextAt(usize),
    Number(String),
    Text(String),
    Variable(usize),
    List(Vec<Written>),
    Object(Vec<(String, Written)>),
    /// An enum value. No argument of the schema accepts it.
    Enum(String),
    Fraction(String),
}

#[derive(Debug)]
pub struct Argument {
    pub name: String,
    pub kind: Kind,
    pub is_required: bool,
    pub written: Written,
    /// Response keys from the root to the field.
    pub path: Arc<str>,
    /// Position of the argument in the document, or of its field if the argument is absent.
    pub at: usize,
}

#[derive(Debug)]
pub struct Variable {
    pub name: String,
    pub kind: Kind,
    pub type_name: String,
    pub is_required: bool,
    pub default: Written,
    pub at: usize,
}

/// A field of a plan. A run writes its value into the response.
#[derive(Debug)]
pub struct Node {
    pub field: Field,
    /// Response key as JSON text with its colon: `"name":`
    pub key: Box<str>,
    pub name: Box<str>,
    /// Index of the field's first argument in the plan.
    pub first_argument: usize,
    pub is_nullable: bool,
    /// Whether the field's value is a list in which a failed item becomes null and the other items stay.
    pub has_nullable_items: bool,
    /// Name of the type that has the field.
    pub type_name: Box<str>,
    pub at: usize,
    pub children: Vec<Node>,
}

pub struct Plan {
    pub is_mutation: bool,
    pub nodes: Vec<Node>,
    pub arguments: Vec<Argument>,
    pub variables: Vec<Variable>,
    pub needs: Needs,
    /// Document and operation of an introspection query; None for other documents.
    pub introspection: Option<(Arc<Valid<ExecutableDocument>>, Shared<Operation>)>,
    /// Estimated number of values that the introspection fields of the query return.
    pub introspected: usize,
    /// Whether several selections with arguments share a response key. With other literals, these selections might
    /// conflict.
    pub is_fragile: bool,
    /// Number of fields of the plan, after expanding fragments.
    pub fields: usize,
}

/// Data that the node must supply before the query runs.
#[derive(Clone, Copy, Default, Debug)]
pub struct Needs {
    pub gas_price: bool,
    pub priority_fee: bool,
    pub pool: bool,
    pub next_base_fee: bool,
}
