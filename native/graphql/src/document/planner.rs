//! Builds plans of validated operations.
//!
//! The planner expands fragments, merges selections with the same response key, evaluates conditions and precomputes
//! JSON keys.

use std::collections::HashMap;
use std::sync::Arc;

use apollo_compiler::ast::{Type, Value as Ast};
use apollo_compiler::executable::{Field as Selected, Operation, OperationType, Selection, SelectionSet};
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Node as Shared};

use super::fields::Field;
use super::kinds::Kind;
use super::plan::{Argument, Needs, Node, Plan, Variable, Written};
use super::shape::Literal;

/// Reason why a valid document is rejected: it exceeds a limit.
#[derive(Debug)]
pub enum Refusal {
    Fields(usize),
    Depth(usize),
    Schema(usize),
}

/// Maximum estimated number of introspected values, three times as many as common tools request.
const MAX_INTROSPECTED: usize = 60_000;

pub struct Limits {
    pub max_fields: usize,
    pub max_depth: usize,
}

/// Return whether `@skip` or `@include` conditions depend on variables. If so, each request gets its own plan.
pub fn has_variable_conditions(document: &ExecutableDocument, operation: &Operation) -> bool {
    let fragments = document.fragments.values().map(|fragment| &fragment.selection_set);
    std::iter::once(&operation.selection_set).chain(fragments).any(conditional)
}

fn conditional(set: &SelectionSet) -> bool {
    set.selections.iter().any(|selection| {
        let depends = |name: &str| {
            let directive = selection.directives().get(name);
            directive.is_some_and(|found| {
                found.specified_argument_by_name("if").is_some_and(|value| matches!(&**value, Ast::Variable(_)))
            })
        };
        depends("skip")
            || depends("include")
            || match selection {
                Selection::Field(field) => conditional(&field.selection_set),
                Selection::InlineFragment(inline) => conditional(&inline.selection_set),
                Selection::FragmentSpread(_) => false,
            }
    })
}

pub struct Planner<'a> {
    pub document: &'a Arc<Valid<ExecutableDocument>>,
    pub operation: &'a Shared<Operation>,
    /// Literals of the document; None if other documents do not share its plan.
    pub literals: Option<&'a [Literal]>,
    pub limits: &'a Limits,
    /// Returns the value of a Boolean variable in a condition.
    pub condition: &'a dyn Fn(&str) -> bool,
}

/// Selections with the same response key.
struct Group<'a> {
    fields: Vec<&'a Shared<Selected>>,
}

struct Draft {
    arguments: Vec<Argument>,
    variables: Vec<Variable>,
    needs: Needs,
    has_introspection: bool,
    introspected: usize,
    is_fragile: bool,
    fields: usize,
}

impl<'a> Planner<'a> {
    pub fn plan(&self) -> Result<Plan, Refusal> {
        let mut draft = Draft {
            arguments: Vec::new(),
            variables: Vec::new(),
            needs: Needs::default(),
            has_introspection: false,
            introspected: 0,
            is_fragile: false,
            fields: 0,
        };
        for variable in &self.operation.variables {
            let default = match &variable.default_value {
                Some(value) => self.written(value, &draft.variables),
                None => Written::Absent,
            };
            draft.variables.push(Variable {
                name: variable.name.to_string(),
                kind: Kind::of(&variable.ty),
                type_name: variable.ty.to_string(),
                is_required: variable.ty.is_non_null(),
                default,
                at: offset(variable.location()),
            });
        }
        let root: Arc<str> = Arc::from("");
        let nodes = self.nodes(&[&self.operation.selection_set], &root, 1, &mut draft)?;
        let introspection = draft.has_introspection.then(|| (self.document.clone(), self.operation.clone()));
        Ok(Plan {
            is_mutation: self.operation.operation_type == OperationType::Mutation,
            nodes,
            arguments: draft.arguments,
            variables: draft.variables,
            needs: draft.needs,
            introspection,
            introspected: draft.introspected,
            is_fragile: draft.is_fragile,
            fields: draft.fields,
        })
    }

    fn nodes(
        &self,
        sets: &[&'a SelectionSet],
        path: &Arc<str>,
        depth: usize,
        draft: &mut Draft,
    ) -> Result<Vec<Node>, Refusal> {
        if depth > self.limits.max_depth {
            return Err(Refusal::Depth(self.limits.max_depth));
        }
        let mut groups: Vec<(&'a str, Group<'a>)> = Vec::new();
        let mut places = HashMap::new();
        for set in sets {
            self.collect(set, &mut groups, &mut places, draft)?;
        }
        let type_name = sets[0].ty.as_str();
        groups.into_iter().map(|(name, group)| self.node(type_name, name, &group, path, depth, draft)).collect()
    }

    /// Group the selections of a selection set by response key, in order of first occurrence. Fragments are expanded.
    fn collect(
        &self,
        set: &'a SelectionSet,
        groups: &mut Vec<(&'a str, Group<'a>)>,
        places: &mut HashMap<&'a str, usize>,
        draft: &mut Draft,
    ) -> Result<(), Refusal> {
        for selection in &set.selections {
            draft.fields += 1;
            if draft.fields > self.limits.max_fields {
                return Err(Refusal::Fields(self.limits.max_fields));
            }
            if !self.is_selected(selection) {
                continue;
            }
            match selection {
                Selection::Field(field) => {
                    let name = field.response_key().as_str();
                    let place = *places.entry(name).or_insert_with(|| {
                        groups.push((name, Group { fields: Vec::new() }));
                        groups.len() - 1
                    });
                    groups[place].1.fields.push(field);
                }
                Selection::InlineFragment(inline) => self.collect(&inline.selection_set, groups, places, draft)?,
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = self.document.fragments.get(&spread.fragment_name) {
                        self.collect(&fragment.selection_set, groups, places, draft)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_selected(&self, selection: &Selection) -> bool {
        let holds = |name: &str| {
            let directive = selection.directives().get(name)?;
            match &**directive.specified_argument_by_name("if")? {
                Ast::Boolean(value) => Some(*value),
                Ast::Variable(variable) => Some((self.condition)(variable.as_str())),
                _ => None,
            }
        };
        !holds("skip").unwrap_or(false) && holds("include").unwrap_or(true)
    }

    fn node(
        &self,
        type_name: &str,
        name: &'a str,
        group: &Group<'a>,
        path: &Arc<str>,
        depth: usize,
        draft: &mut Draft,
    ) -> Result<Node, Refusal> {
        let first = group.fields[0];
        let path: Arc<str> = if path.is_empty() { Arc::from(name) } else { Arc::from(format!("{path}/{name}")) };
        draft.is_fragile |= group.fields.len() > 1 && !first.arguments.is_empty();
        let field = self.field(type_name, first, draft);
        let at = offset(first.name.location().filter(|_| first.alias.is_none()).or_else(|| first.location()));
        let first_argument = draft.arguments.len();
        if field == Field::Introspection {
            for selected in &group.fields {
                self.introspect(&selected.selection_set, 1, &mut draft.introspected)?;
            }
        } else {
            self.arguments(first, &path, at, draft);
        }
        let sets: Vec<&SelectionSet> =
            group.fields.iter().map(|field| &field.selection_set).filter(|set| !set.selections.is_empty()).collect();
        let children = if sets.is_empty() || field == Field::Introspection {
            Vec::new()
        } else {
            self.nodes(&sets, &path, depth + 1, draft)?
        };
        Ok(Node {
            field,
            key: format!("\"{name}\":").into(),
            name: name.into(),
            first_argument,
            is_nullable: !first.definition.ty.is_non_null(),
            has_nullable_items: matches!(&first.definition.ty, Type::List(item) | Type::NonNullList(item) if !item.is_non_null()),
            type_name: type_name.into(),
            at,
            children,
        })
    }

    /// Count the introspected values of a selection. The values in a list are multiplied by the estimated number of
    /// items.
    fn introspect(&self, set: &SelectionSet, times: usize, total: &mut usize) -> Result<(), Refusal> {
        for selection in &set.selections {
            *total = total.saturating_add(times);
            if *total > MAX_INTROSPECTED {
                return Err(Refusal::Schema(MAX_INTROSPECTED));
            }
            match selection {
                Selection::Field(field) => {
                    let items = match field.name.as_str() {
                        "types" => 30,
                        "fields" => 8,
                        "enumValues" => 6,
                        "directives" | "locations" => 5,
                        "inputFields" => 4,
                        "args" => 2,
                        _ => 1,
                    };
                    self.introspect(&field.selection_set, times.saturating_mul(items), total)?;
                }
                Selection::InlineFragment(inline) => self.introspect(&inline.selection_set, times, total)?,
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = self.document.fragments.get(&spread.fragment_name) {
                        self.introspect(&fragment.selection_set, times, total)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn field(&self, type_name: &str, selected: &Selected, draft: &mut Draft) -> Field {
        match selected.name.as_str() {
            "__typename" => Field::TypeName,
            name => match Field::of(&format!("{type_name}.{name}")) {
                Some(field) => {
                    let needs = &mut draft.needs;
                    needs.gas_price |= field == Field::QueryGasPrice;
                    needs.priority_fee |= field == Field::QueryPriorityFee;
                    needs.next_base_fee |= field == Field::BlockNextBaseFee;
                    needs.pool |= matches!(field, Field::PendingTransactionCount | Field::PendingTransactions);
                    field
                }
                // This case cannot happen, because the schema is compared with the list of fields when the program
                // starts.
                None => {
                    draft.has_introspection = true;
                    Field::Introspection
                }
            },
        }
    }

    /// Append all arguments of a field to the plan, in schema order. Absent arguments are included, because the
    /// executor finds arguments by index.
    fn arguments(&self, selected: &Selected, path: &Arc<str>, at: usize, draft: &mut Draft) {
        for definition in &selected.definition.arguments {
            let given = selected.arguments.iter().find(|argument| argument.name == definition.name);
            let written = match given {
                Some(argument) => self.written(&argument.value, &draft.variables),
                None => Written::Absent,
            };
            draft.arguments.push(Argument {
                name: definition.name.to_string(),
                kind: Kind::of(&definition.ty),
                is_required: definition.ty.is_non_null(),
                written,
                path: path.clone(),
                at: given.and_then(|argument| argument.location()).map_or(at, |span| span.offset()),
            });
        }
    }

    fn written(&self, value: &Shared<Ast>, variables: &[Variable]) -> Written {
        let literal = |inside: usize| {
            let start = offset(value.location()) + inside;
            let literals = self.literals?;
            literals.binary_search_by_key(&start, |literal| literal.start).ok()
        };
        match &**value {
            Ast::Null => Written::Null,
            Ast::Boolean(value) => Written::Boolean(*value),
            Ast::Int(digits) => literal(0).map_or_else(|| Written::Number(digits.as_str().into()), Written::NumberAt),
            Ast::String(text) => literal(1).map_or_else(|| Written::Text(text.clone()), Written::TextAt),
            Ast::Variable(name) => {
                let position = variables.iter().position(|variable| variable.name == name.as_str());
                position.map_or(Written::Absent, Written::Variable)
            }
            Ast::List(items) => Written::List(items.iter().map(|item| self.written(item, variables)).collect()),
            Ast::Object(members) => Written::Object(
                members.iter().map(|(name, value)| (name.to_string(), self.written(value, variables))).collect(),
            ),
            Ast::Enum(name) => Written::Enum(name.to_string()),
            Ast::Float(digits) => Written::Fraction(digits.as_str().into()),
        }
    }
}

pub fn offset(location: Option<apollo_compiler::parser::SourceSpan>) -> usize {
    location.map_or(0, |span| span.offset())
}
