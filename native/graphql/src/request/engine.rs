//! Documents to plans: the schema, the limits of a document, and the plans that are kept.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use apollo_compiler::ast::Document;
use apollo_compiler::executable::Operation;
use apollo_compiler::parser::Parser;
use apollo_compiler::schema::{ExtendedType, Implementers};
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Name, Node as Shared, Schema};
use ophion_primitives::errors::{Error, Result};

use super::check;
use crate::document::complaints::Entry;
use crate::document::fields::Field;
use crate::document::plan::Plan;
use crate::document::planner::{Limits, Planner, Refusal, has_variable_conditions};
use crate::document::shape::{Literal, line_and_column, moved, shape_of};
use crate::values::binding::{self, BadValue};
use crate::values::sources::{self, Texts, Variables};
use crate::values::value::Value;

/// Documents that are kept, and the longest of them; what was kept goes when there are too many.
const DOCUMENTS_KEPT: usize = 512;
const LONGEST_KEPT: usize = 16 * 1024;
const LONGEST_NAME: usize = 256;
/// Values of the schema that are looked up by the thread which serves everybody.
const INTROSPECTED_AT_ONCE: usize = 500;

pub struct Engine {
    pub schema: Valid<Schema>,
    pub implementers: apollo_compiler::collections::HashMap<Name, Implementers>,
    pub limits: Limits,
    pub max_tokens: usize,
    kept: Mutex<HashMap<Vec<u8>, Arc<Compiled>>>,
}

/// A document that has been checked.
pub struct Compiled {
    document: Arc<Valid<ExecutableDocument>>,
    /// Of the text that was parsed.
    literals: Vec<Literal>,
    plans: Mutex<Vec<(Option<String>, Arc<Plan>)>>,
    /// It turned out to be too much for the thread that serves everybody.
    pub is_heavy: AtomicBool,
    /// Length of the last answer: the next will be about as long.
    last_bytes: AtomicUsize,
    is_shared: bool,
}

/// A request that is ready to be run.
pub struct Query {
    pub plan: Arc<Plan>,
    pub compiled: Arc<Compiled>,
    pub values: Vec<Value>,
    pub variables_text: Option<String>,
    text: String,
    literals: Vec<Literal>,
}

impl Query {
    /// The document, and where a place of the plan lies in it.
    pub fn place(&self, at: usize) -> (&str, usize) {
        (&self.text, moved(at, &self.compiled.literals, &self.literals))
    }

    pub fn is_heavy(&self) -> bool {
        self.compiled.is_heavy.load(Ordering::Relaxed)
    }

    pub fn note_heavy(&self) {
        self.compiled.is_heavy.store(true, Ordering::Relaxed);
    }

    /// Room for an answer a little longer than the last one.
    pub fn expected_bytes(&self) -> usize {
        let last = self.compiled.last_bytes.load(Ordering::Relaxed);
        512.max(last + last / 8)
    }

    pub fn note_bytes(&self, bytes: usize) {
        self.compiled.last_bytes.store(bytes, Ordering::Relaxed);
    }
}

type Refused<T> = std::result::Result<T, Vec<Entry>>;

impl Engine {
    pub fn new(schema: &str, max_tokens: usize, limits: Limits) -> Result<Self> {
        let schema = Schema::parse_and_validate(schema, "schema.graphql")
            .map_err(|found| Error::Decode(format!("GraphQL schema: {}", found.errors)))?;
        for (name, definition) in &schema.types {
            let ExtendedType::Object(object) = definition else { continue };
            let unknown = object.fields.keys().find(|field| Field::of(&format!("{name}.{field}")).is_none());
            if let Some(field) = unknown.filter(|_| !name.starts_with("__")) {
                return Err(Error::Decode(format!("GraphQL schema: nothing resolves {name}.{field}")));
            }
        }
        let implementers = schema.implementers_map();
        Ok(Engine { schema, implementers, limits, max_tokens, kept: Mutex::default() })
    }

    /// Check a request completely; what can be wrong with it after this depends on the chain.
    pub fn prepare(&self, text: String, operation: Option<&str>, variables: Option<&str>) -> Refused<Query> {
        let shape = shape_of(&text);
        if shape.longest_name > LONGEST_NAME {
            let message = format!("maximum query size exceeded: a name of more than {LONGEST_NAME} letters");
            return Err(vec![Entry::aborted(message)]);
        }
        let compiled = self.compiled(&text, &shape.key, &shape.literals, shape.is_plain)?;
        let given = sources::read_variables(variables).map_err(|message| vec![Entry::validation(message, None)])?;
        let literals = if compiled.is_shared { shape.literals } else { Vec::new() };
        let texts = Texts { document: &text, literals: &literals };
        let chosen = compiled.document.operations.get(operation).map_err(|_| {
            let message = match operation {
                Some(name) => format!("Unknown operation named '{name}'."),
                None => "Must provide operation name if query contains multiple operations.".into(),
            };
            vec![Entry::validation(message, None)]
        })?;
        let plan = self.plan(&compiled, chosen, operation, &given)?;
        let bound = binding::variables(&plan, &given, &texts)
            .and_then(|variables| binding::arguments(&plan, &variables, &texts));
        let values = bound.map_err(|BadValue { message, at }| {
            let at = moved(at, &compiled.literals, &literals);
            vec![Entry::validation(message, Some(line_and_column(&text, at)))]
        })?;
        Ok(Query { plan, compiled, values, variables_text: variables.map(str::to_string), text, literals })
    }

    fn compiled(&self, text: &str, key: &[u8], literals: &[Literal], is_plain: bool) -> Refused<Arc<Compiled>> {
        {
            let kept = self.kept.lock().expect("no panic while locked");
            let shared = if is_plain { kept.get(key) } else { None };
            if let Some(found) = shared.or_else(|| kept.get(&exact_key(text))) {
                return Ok(found.clone());
            }
        }
        let compiled = Arc::new(self.parse(text, literals, is_plain)?);
        if text.len() <= LONGEST_KEPT {
            let mut kept = self.kept.lock().expect("no panic while locked");
            if kept.len() >= DOCUMENTS_KEPT {
                kept.clear();
            }
            kept.insert(if compiled.is_shared { key.to_vec() } else { exact_key(text) }, compiled.clone());
        }
        Ok(compiled)
    }

    fn parse(&self, text: &str, literals: &[Literal], is_plain: bool) -> Refused<Compiled> {
        let mut parser = Parser::new().token_limit(self.max_tokens).recursion_limit(2 * self.limits.max_depth);
        let parsed: Document =
            parser.parse_ast(text, "query").map_err(|found| check::errors_of(&found.errors, None, text))?;
        let document = parsed
            .to_executable_validate(&self.schema)
            .map_err(|found| check::errors_of(&found.errors, Some(&parsed), text))?;
        let document = Arc::new(document);
        // Whether other literals could make the document invalid shows in the plans of its operations.
        let mut is_shared = is_plain;
        let mut introspected = 0;
        for operation in document.operations.iter() {
            let literals = is_plain.then_some(literals);
            let planner =
                Planner { document: &document, operation, literals, limits: &self.limits, condition: &|_| true };
            let plan = planner.plan().map_err(refused)?;
            introspected = introspected.max(plan.introspected);
            is_shared &=
                !plan.is_fragile && plan.introspection.is_none() && !has_variable_conditions(&document, operation);
        }
        Ok(Compiled {
            document,
            literals: if is_shared { literals.to_vec() } else { Vec::new() },
            plans: Mutex::default(),
            is_heavy: AtomicBool::new(introspected > INTROSPECTED_AT_ONCE),
            last_bytes: AtomicUsize::new(0),
            is_shared,
        })
    }

    fn plan(
        &self,
        compiled: &Compiled,
        operation: &Shared<Operation>,
        name: Option<&str>,
        given: &Variables<'_>,
    ) -> Refused<Arc<Plan>> {
        if let Some((_, plan)) =
            compiled.plans.lock().expect("no panic while locked").iter().find(|(known, _)| known.as_deref() == name)
        {
            return Ok(plan.clone());
        }
        let is_conditional = has_variable_conditions(&compiled.document, operation);
        let condition = |variable: &str| match given.get(variable) {
            Some(value) => value.get().trim() == "true",
            None => operation.variables.iter().any(|declared| {
                let default = declared.default_value.as_ref().and_then(|value| value.to_bool());
                declared.name == variable && default == Some(true)
            }),
        };
        let planner = Planner {
            document: &compiled.document,
            operation,
            literals: compiled.is_shared.then_some(&compiled.literals),
            limits: &self.limits,
            condition: &condition,
        };
        let plan = Arc::new(planner.plan().map_err(refused)?);
        if !is_conditional {
            compiled.plans.lock().expect("no panic while locked").push((name.map(str::to_string), plan.clone()));
        }
        Ok(plan)
    }
}

/// A key that no shape can have.
fn exact_key(text: &str) -> Vec<u8> {
    [b"\0", text.as_bytes()].concat()
}

fn refused(refusal: Refusal) -> Vec<Entry> {
    let message = match refusal {
        Refusal::Fields(most) => format!("maximum query complexity exceeded: more than {most} fields"),
        Refusal::Schema(most) => {
            format!("maximum query complexity exceeded: more than about {most} values of the schema")
        }
        Refusal::Depth(most) => format!("maximum query depth exceeded: more than {most} levels"),
    };
    vec![Entry::aborted(message)]
}
