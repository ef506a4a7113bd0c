//! Prepares requests: schema, document limits, plan cache.

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

use super::validation_errors;
use crate::document::error_entries::Entry;
use crate::document::fields::Field;
use crate::document::plan::Plan;
use crate::document::planner::{Limits, Planner, Refusal, has_variable_conditions};
use crate::document::shape::{Literal, line_and_column, moved, shape_of};
use crate::values::binding::{self, BadValue};
use crate::values::sources::{self, Texts, Variables};
use crate::values::value::Value;

/// Maximum number of cached documents.
const MAX_CACHED_DOCUMENTS: usize = 512;
/// Maximum text length of a cached document.
const MAX_CACHED_TEXT_BYTES: usize = 16 * 1024;
/// Maximum estimated memory of the cache, in bytes. A larger cache is cleared.
const MAX_CACHED_BYTES: usize = 32 << 20;
/// Estimated bytes of memory per byte of a cached document's text.
const TEXT_BYTE: usize = 40;
/// Estimated bytes of memory per field of a cached plan. With fragments, few bytes of text can become many fields.
const FIELD: usize = 250;
const MAX_NAME_LENGTH: usize = 256;
/// Maximum number of introspected values that are resolved on the event loop.
const INTROSPECTED_AT_ONCE: usize = 500;

pub struct Engine {
    pub schema: Valid<Schema>,
    pub implementers: apollo_compiler::collections::HashMap<Name, Implementers>,
    pub limits: Limits,
    pub max_tokens: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    documents: HashMap<Vec<u8>, Arc<Compiled>>,
    bytes: usize,
}

impl Kept {
    /// Add bytes to the cache size, and clear the cache if it gets too large.
    fn weigh(&mut self, bytes: usize) {
        if self.bytes + bytes > MAX_CACHED_BYTES {
            *self = Kept::default();
        }
        self.bytes += bytes;
    }
}

/// A validated document.
pub struct Compiled {
    document: Arc<Valid<ExecutableDocument>>,
    /// Literals of the document from which this plan was made.
    literals: Vec<Literal>,
    plans: Mutex<Vec<(Option<String>, Arc<Plan>)>>,
    is_kept: bool,
    /// Whether the document was too expensive for the event loop.
    pub is_heavy: AtomicBool,
    /// Length of the last response in bytes, as an estimate for the next response.
    last_bytes: AtomicUsize,
    is_shared: bool,
}

/// A GraphQL request ready to run.
pub struct Query {
    pub plan: Arc<Plan>,
    pub compiled: Arc<Compiled>,
    pub values: Vec<Value>,
    pub variables_text: Option<String>,
    text: String,
    literals: Vec<Literal>,
}

impl Query {
    /// Return the document of this request, and the position in it that corresponds to position `at` in the document of
    /// the plan.
    pub fn place(&self, at: usize) -> (&str, usize) {
        (&self.text, moved(at, &self.compiled.literals, &self.literals))
    }

    pub fn is_heavy(&self) -> bool {
        self.compiled.is_heavy.load(Ordering::Relaxed)
    }

    pub fn note_heavy(&self) {
        self.compiled.is_heavy.store(true, Ordering::Relaxed);
    }

    /// Return the initial size in bytes of the response buffer: slightly more than the last response.
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

    /// Validate a request completely. The returned query can only fail because of the content of the chain.
    pub fn prepare(&self, text: String, operation: Option<&str>, variables: Option<&str>) -> Refused<Query> {
        let shape = shape_of(&text);
        if shape.longest_name > MAX_NAME_LENGTH {
            let message = format!("maximum query size exceeded: a name of more than {MAX_NAME_LENGTH} letters");
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
            let shared = if is_plain { kept.documents.get(key) } else { None };
            if let Some(found) = shared.or_else(|| kept.documents.get(&exact_key(text))) {
                return Ok(found.clone());
            }
        }
        let compiled = Arc::new(self.parse(text, literals, is_plain)?);
        if compiled.is_kept {
            let mut kept = self.kept.lock().expect("no panic while locked");
            if kept.documents.len() >= MAX_CACHED_DOCUMENTS {
                *kept = Kept::default();
            }
            kept.weigh(text.len() * TEXT_BYTE);
            let key = if compiled.is_shared { key.to_vec() } else { exact_key(text) };
            kept.documents.insert(key, compiled.clone());
        }
        Ok(compiled)
    }

    fn parse(&self, text: &str, literals: &[Literal], is_plain: bool) -> Refused<Compiled> {
        let mut parser = Parser::new().token_limit(self.max_tokens).recursion_limit(2 * self.limits.max_depth);
        let parsed: Document =
            parser.parse_ast(text, "query").map_err(|found| validation_errors::errors_of(&found.errors, None, text))?;
        let document = parsed
            .to_executable_validate(&self.schema)
            .map_err(|found| validation_errors::errors_of(&found.errors, Some(&parsed), text))?;
        let document = Arc::new(document);
        // documents that differ only in literals share one plan, unless other literals could make the document invalid
        let mut is_shared = is_plain;
        let (mut introspected, mut fields) = (0, 0);
        for operation in document.operations.iter() {
            if fields > self.limits.max_fields {
                // Stop planning at the field limit, because hundreds of operations may use the same fragments. The
                // document then shares no plan.
                (is_shared, introspected) = (false, usize::MAX);
                break;
            }
            let literals = is_plain.then_some(literals);
            let planner =
                Planner { document: &document, operation, literals, limits: &self.limits, condition: &|_| true };
            let plan = planner.plan().map_err(refused)?;
            introspected = introspected.max(plan.introspected);
            fields += plan.fields;
            is_shared &=
                !plan.is_fragile && plan.introspection.is_none() && !has_variable_conditions(&document, operation);
        }
        Ok(Compiled {
            document,
            literals: if is_shared { literals.to_vec() } else { Vec::new() },
            plans: Mutex::default(),
            is_kept: text.len() <= MAX_CACHED_TEXT_BYTES,
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
        if !is_conditional && compiled.is_kept {
            self.kept.lock().expect("no panic while locked").weigh(plan.fields * FIELD);
            compiled.plans.lock().expect("no panic while locked").push((name.map(str::to_string), plan.clone()));
        }
        Ok(plan)
    }
}

/// Return the cache key of a document that shares its plan with no other document. No shape has this key.
fn exact_key(text: &str) -> Vec<u8> {
    [b"\0", text.as_bytes()].concat()
}

fn refused(refusal: Refusal) -> Vec<Entry> {
    let message = match refusal {
        Refusal::Fields(max) => format!("maximum query complexity exceeded: more than {max} fields"),
        Refusal::Schema(max) => {
            format!("maximum query complexity exceeded: more than about {max} values of the schema")
        }
        Refusal::Depth(max) => format!("maximum query depth exceeded: more than {max} levels"),
    };
    vec![Entry::aborted(message)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine() -> Engine {
        let schema = include_str!("../../../../src/ophion/graphql/schema.graphql");
        Engine::new(schema, 15_000, Limits { max_fields: 5000, max_depth: 50 }).unwrap()
    }

    fn kept(engine: &Engine) -> (usize, usize, usize) {
        let kept = engine.kept.lock().unwrap();
        let plans = kept.documents.values().flat_map(|document| {
            let plans = document.plans.lock().unwrap();
            plans.iter().map(|(_, plan)| plan.fields).collect::<Vec<_>>()
        });
        (kept.documents.len(), kept.bytes, plans.sum())
    }

    /// Return a document of a few hundred bytes whose fragments expand to more than a thousand fields.
    fn wide(operations: usize, salt: usize) -> String {
        let spread =
            |from: &str| (0..10).map(|at| format!("a{at}:block(number:{salt}){{...{from}}}")).collect::<String>();
        let mut text = format!("fragment A on Block{{number hash nonce}} fragment B on Query{{{}}}", spread("A"));
        (0..operations).for_each(|at| text += &format!("query q{at}{{...B x{at}:block{{...A}}}}"));
        text
    }

    #[test]
    fn what_is_kept_is_bounded_by_its_size() {
        let engine = engine();
        for salt in 0..3000 {
            assert!(engine.prepare(wide(2, salt), Some("q1"), None).is_ok());
            let text = format!("{{ a{salt}: block {{ number }} }}");
            assert!(engine.prepare(text.clone(), None, None).is_ok() && engine.prepare(text, None, None).is_ok());
            let (documents, bytes, fields) = kept(&engine);
            assert!(documents <= MAX_CACHED_DOCUMENTS && bytes <= MAX_CACHED_BYTES && fields * FIELD <= bytes);
        }
        for _ in 0..2 {
            let many = wide(300, 1);
            for operation in 0..300 {
                let name = format!("q{operation}");
                let query = engine.prepare(many.clone(), Some(&name), None).ok().unwrap();
                assert!(query.is_heavy() && !query.compiled.is_shared, "not all of them were looked at");
            }
            let (_, bytes, fields) = kept(&engine);
            assert!(bytes <= MAX_CACHED_BYTES && fields > 0 && fields * FIELD <= bytes);
        }
    }
}
