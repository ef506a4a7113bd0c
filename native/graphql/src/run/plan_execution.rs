//! Runs a plan on one database snapshot and writes JSON text.
//!
//! A run uses only the snapshot and its inputs. It collects tasks for the node, such as a call or a transaction to
//! send. The node does the tasks, and the plan runs again on the same snapshot with the results. So a response never
//! mixes two heads.

use std::collections::HashMap;
use std::rc::Rc;

use alloy_primitives::B256;
use ophion_primitives::deadline;
use ophion_primitives::errors::Error;
use ophion_storage::state::View;
use ophion_storage::store::Snapshot;

use super::block_cache::RecentBlocks;
use super::run_inputs::{Ask, Bounds, Inputs, Outcome, Reply};
use crate::document::error_entries::{self, Entry};
use crate::document::fields::Field;
use crate::document::plan::Node;
use crate::request::engine::{Engine, Query};
use crate::values::value::Value;

pub const INVALID_PARAMS: (i64, &str) = (-32602, "Invalid params");

pub const OUT_OF_TIME: &str = "Timeout expired";
pub const TOO_LONG: &str = "maximum answer size exceeded";

/// Costs of expensive fields. One unit is about the cost of a short field.
pub mod cost {
    pub const BLOCK: u64 = 20;
    pub const TRANSACTION: u64 = 8;
    pub const ACCOUNT: u64 = 100;
    pub const ASK: u64 = 1_000;
}

/// Reason why a field was not written.
pub enum Stop {
    /// The field is null although the schema allows no null. The parent object becomes null.
    Null,
    Exhausted(&'static str),
    Broken(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Broken(error)
    }
}

pub type Written = Result<(), Stop>;

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

pub struct Run<'a> {
    pub snapshot: &'a Snapshot,
    pub query: &'a Query,
    pub inputs: &'a Inputs,
    pub out: Vec<u8>,
    pub head: (B256, u64),
    pub(super) engine: &'a Engine,
    pub(super) bounds: Bounds,
    pub(super) replies: Option<&'a [Reply]>,
    pub(super) asks: Vec<Ask>,
    pub(super) asked: usize,
    errors: Vec<Entry>,
    path: Vec<Step<'a>>,
    spent: u64,
    next_look: u64,
    pub(super) blocks: RecentBlocks<'a>,
    pub(super) views: HashMap<B256, Rc<View>>,
}

impl<'a> Run<'a> {
    pub fn new(
        engine: &'a Engine,
        snapshot: &'a Snapshot,
        query: &'a Query,
        inputs: &'a Inputs,
        bounds: Bounds,
        replies: Option<&'a [Reply]>,
    ) -> Result<Self, Error> {
        // If this snapshot does not contain the announced head as a canonical block, use the head of the snapshot.
        let announced = snapshot.canonical_hash(inputs.head.1)? == Some(inputs.head.0);
        let stored = snapshot.head()?.ok_or_else(|| Error::Storage("the database is empty".into()))?;
        let head = if announced { inputs.head } else { stored };
        Ok(Run {
            snapshot,
            query,
            inputs,
            out: Vec::with_capacity(query.expected_bytes()),
            head,
            engine,
            bounds,
            replies,
            asks: Vec::new(),
            asked: 0,
            errors: Vec::new(),
            path: Vec::new(),
            spent: 0,
            next_look: 0,
            blocks: RecentBlocks::default(),
            views: HashMap::new(),
        })
    }

    pub fn finish(mut self) -> Result<Outcome, Error> {
        self.out.extend_from_slice(b"{\"data\":");
        let introspected = match self.introspect() {
            Ok(introspected) => introspected,
            Err(entry) => {
                return Ok(Outcome::Answer { is_ok: false, body: error_entries::refusal(&[*entry]) });
            }
        };
        let plan = &self.query.plan;
        let written = self.object(&plan.nodes, |run, node| run.root(node, introspected.as_ref()));
        match written {
            Err(Stop::Broken(error)) => return Err(error),
            Err(Stop::Exhausted(what)) => return Ok(Outcome::Exhausted(what)),
            Err(Stop::Null) => {
                self.out.truncate(b"{\"data\":".len());
                self.out.extend_from_slice(b"null");
            }
            Ok(()) => {}
        }
        if !self.asks.is_empty() {
            return Ok(Outcome::Asks(self.asks));
        }
        self.out.push(b'}');
        let is_ok = self.errors.is_empty();
        if !is_ok {
            let mut before = Vec::new();
            error_entries::write_errors(&mut before, &self.errors);
            before.push(b',');
            self.out.splice(1..1, before);
        }
        self.query.note_bytes(self.out.len());
        Ok(Outcome::Answer { is_ok, body: self.out })
    }

    // --- used by all fields ---------------------------------------------------------------------

    /// Add cost units to the run. Ends the run if its cost, its response or its time exceeds a limit.
    pub fn spend(&mut self, units: u64) -> Written {
        self.spent += units;
        if self.spent < self.next_look {
            return Ok(());
        }
        self.next_look = self.spent + 512;
        if self.spent > self.bounds.budget {
            return Err(Stop::Exhausted("maximum query complexity exceeded: it asks for too many values"));
        }
        if self.out.len() > self.bounds.max_bytes {
            return Err(Stop::Exhausted(TOO_LONG));
        }
        if deadline::is_over(self.bounds.deadline) {
            return Err(Stop::Exhausted(OUT_OF_TIME));
        }
        Ok(())
    }

    /// Write a JSON object. If a field fails, the field becomes null, or the object does if the field must not be null.
    pub fn object(&mut self, nodes: &'a [Node], mut write: impl FnMut(&mut Self, &'a Node) -> Written) -> Written {
        self.out.push(b'{');
        let mut is_null = false;
        for (at, node) in nodes.iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(node.key.as_bytes());
            self.spend(1)?;
            let start = self.out.len();
            let depth = self.path.len();
            let written = match node.field {
                Field::TypeName => {
                    self.text(&node.type_name);
                    Ok(())
                }
                _ => write(self, node),
            };
            match written {
                Ok(()) => {}
                Err(Stop::Null) => {
                    self.path.truncate(depth);
                    self.out.truncate(start);
                    self.null();
                    is_null |= !node.is_nullable;
                    if self.errors.len() >= error_entries::MAX_ERRORS {
                        return Err(Stop::Null);
                    }
                }
                Err(stop) => return Err(stop),
            }
        }
        self.out.push(b'}');
        if is_null { Err(Stop::Null) } else { Ok(()) }
    }

    /// Write the value of a field with subfields.
    pub fn inside(&mut self, node: &'a Node, write: impl FnOnce(&mut Self) -> Written) -> Written {
        self.path.push(Step::Key(&node.name));
        write(self)?;
        self.path.pop();
        Ok(())
    }

    /// Write a list of objects into the JSON response.
    pub fn list<T>(
        &mut self,
        node: &'a Node,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Written,
    ) -> Written {
        self.path.push(Step::Key(&node.name));
        self.out.push(b'[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            let (start, depth) = (self.out.len(), self.path.len());
            self.path.push(Step::Index(at));
            match write(self, item) {
                Err(Stop::Null) if node.has_nullable_items && self.errors.len() < error_entries::MAX_ERRORS => {
                    self.out.truncate(start);
                    self.null();
                }
                written => written?,
            }
            self.path.truncate(depth);
        }
        self.out.push(b']');
        self.path.pop();
        Ok(())
    }

    /// Record the error of a field. The caller decides about the value of the field.
    pub fn fail(&mut self, node: &Node, code: Option<(i64, &str)>, detail: &str, extra: Option<String>) -> Stop {
        let mut path = String::from("[");
        let mut shown = String::new();
        for step in self.path.iter().copied().chain([Step::Key(&node.name)]) {
            if path.len() > 1 {
                path.push(',');
            }
            match step {
                Step::Key(key) => {
                    path.push_str(&format!("\"{key}\""));
                    shown.push_str(&format!("/{key}"));
                }
                Step::Index(index) => {
                    path.push_str(&index.to_string());
                    shown.push_str(&format!("[{index}]"));
                }
            }
        }
        path.push(']');
        let (document, at) = self.query.place(node.at);
        let mut entry = error_entries::fetching(path, &shown, detail, document, at);
        entry.code = code.map(|(code, message)| (code, message.to_string()));
        entry.data = extra;
        self.errors.push(entry);
        Stop::Null
    }

    pub fn fail_with(&mut self, node: &Node, code: (i64, &str)) -> Stop {
        self.fail(node, Some(code), code.1, None)
    }

    pub fn argument(&self, node: &Node, position: usize) -> &'a Value {
        let query: &'a Query = self.query;
        &query.values[node.first_argument + position]
    }

    pub fn long(&self, node: &Node, position: usize) -> Option<u64> {
        match self.argument(node, position) {
            Value::Long(number) => Some(*number),
            _ => None,
        }
    }
}
