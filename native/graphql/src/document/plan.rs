//! Plans: an operation with everything worked out that does not depend on the values it is run with.

use std::sync::Arc;

use apollo_compiler::executable::Operation;
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Node as Shared};

use super::fields::Field;
use super::kinds::Kind;

/// An argument as the document writes it.
#[derive(Debug)]
pub enum Written {
    Absent,
    Null,
    Boolean(bool),
    /// A literal that is looked up in the text of each document of this shape.
    NumberAt(usize),
    TextAt(usize),
    Number(String),
    Text(String),
    Variable(usize),
    List(Vec<Written>),
    Object(Vec<(String, Written)>),
    /// No argument of the schema takes these two.
    Enum(String),
    Fraction(String),
}

#[derive(Debug)]
pub struct Argument {
    pub name: String,
    pub kind: Kind,
    pub is_required: bool,
    pub written: Written,
    /// Keys from the root to the field.
    pub path: Arc<str>,
    /// Its place in the text; that of the field when it is absent.
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

/// One field to be written.
#[derive(Debug)]
pub struct Node {
    pub field: Field,
    /// `"name":`
    pub key: Box<str>,
    pub name: Box<str>,
    /// Position of its first argument among those of the plan.
    pub first_argument: usize,
    pub is_nullable: bool,
    /// It is a list, and an item that fails is null without taking the list along.
    pub has_nullable_items: bool,
    /// Name of the type it belongs to.
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
    /// Kept where the document asks about the schema itself.
    pub introspection: Option<(Arc<Valid<ExecutableDocument>>, Shared<Operation>)>,
    /// How many values that is, roughly.
    pub introspected: usize,
    /// The same name stands for several selections with arguments, so other literals might make them contradict.
    pub is_fragile: bool,
    /// After fragments were spread.
    pub fields: usize,
}

/// What only the node can supply, known before anything is read.
#[derive(Clone, Copy, Default, Debug)]
pub struct Needs {
    pub gas_price: bool,
    pub priority_fee: bool,
    pub pool: bool,
    pub next_base_fee: bool,
}
