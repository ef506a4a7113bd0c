//! Running a plan over one snapshot of the database, straight into JSON text.
//!
//! A run needs nothing but the snapshot and what it was given. Where it meets something that only the node can do (a
//! call, a transaction to be sent) it notes that down and goes on; the node does these things, and the same plan is run
//! again over the same snapshot with their results. So an answer never mixes two heads.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::{Address, B256, Bytes, U256};

use super::binding::{CallArguments, FilterArguments, Value};
use super::blocks::Loaded;
use super::complaints::{self, Entry};
use super::engine::{Engine, Query};
use super::fields::Field;
use super::plan::Node;
use super::transactions::Transaction;
use crate::body::{Known, Tx};
use crate::errors::Error;
use crate::json_text::{data, wide};
use crate::logs::{self, LogFilter};
use crate::state::View;
use crate::store::Snapshot;

pub const INVALID_PARAMS: (i64, &str) = (-32602, "Invalid params");
const STATE_MISSING: (i64, &str) = (-32008, "Initial sync is still in progress");
const RANGE_TOO_LARGE: (i64, &str) = (-32005, "Requested range exceeds maximum RPC range limit");
const TOO_MANY_LOGS: (i64, &str) = (-32005, "Too many logs match; ask for fewer blocks");

/// States that are open at the same time.
const VIEWS_KEPT: usize = 8;
const OUT_OF_TIME: &str = "Timeout expired";

/// Work of one step, roughly in units of writing a short field.
pub mod cost {
    pub const BLOCK: u64 = 20;
    pub const TRANSACTION: u64 = 8;
    pub const ACCOUNT: u64 = 100;
    pub const ASK: u64 = 1_000;
}

/// What a transaction of the pool is.
#[derive(Clone)]
pub struct Pooled {
    pub tx: Arc<Tx>,
    pub known: Known,
}

/// What the node knows beside the database.
pub struct Inputs {
    /// The block that the node has announced as its head.
    pub head: (B256, u64),
    pub chain_id: u64,
    pub protocol_version: u32,
    pub gas_price: U256,
    pub priority_fee: U256,
    /// Base fee of the block after the head; None before London.
    pub next_base_fee: Option<u64>,
    pub syncing: Option<(u64, u64, u64)>,
    pub pool: Vec<Pooled>,
    /// Transactions of the pool that the request names.
    pub named: Vec<Pooled>,
}

/// What a run may cost.
#[derive(Clone)]
pub struct Bounds {
    pub budget: u64,
    pub max_bytes: usize,
    pub max_blocks: u64,
    pub max_logs_range: u64,
    pub max_logs: usize,
    pub max_asks: usize,
    pub deadline: Instant,
}

/// Something for the node to do.
pub enum Ask {
    /// At a block, or in the next one.
    Call {
        block: Option<B256>,
        is_estimate: bool,
        call: Arc<CallArguments>,
    },
    Send(Bytes),
}

/// What became of it.
#[derive(Clone)]
pub enum Reply {
    /// The state is not there.
    Nothing,
    Call {
        succeeded: bool,
        gas_used: u64,
        output: Bytes,
    },
    Gas(u64),
    Sent(B256),
    Failed {
        code: Option<i64>,
        message: String,
        data: Option<String>,
    },
}

pub enum Outcome {
    Answer {
        is_ok: bool,
        body: Vec<u8>,
    },
    Asks(Vec<Ask>),
    /// More than the budget; nothing is wrong with the request itself.
    Exhausted(&'static str),
}

/// Why a field was not written.
pub enum Stop {
    /// It is null and must not be: its parent is null too.
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
    engine: &'a Engine,
    bounds: Bounds,
    replies: Option<&'a [Reply]>,
    asks: Vec<Ask>,
    asked: usize,
    errors: Vec<Entry>,
    path: Vec<Step<'a>>,
    spent: u64,
    next_look: u64,
    blocks: HashMap<B256, Rc<Loaded<'a>>>,
    views: HashMap<B256, Rc<View>>,
}

/// Who an account is and where its state is read.
pub struct Account<'a> {
    pub address: Address,
    pub block: Rc<Loaded<'a>>,
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
        // The database may have moved on since the node announced its head; a snapshot with another branch in it is
        // taken as it is.
        let announced = snapshot.canonical_hash(inputs.head.1)? == Some(inputs.head.0);
        let newest = snapshot.head()?.ok_or_else(|| Error::Storage("the database is empty".into()))?;
        let head = if announced { inputs.head } else { newest };
        Ok(Run {
            snapshot,
            query,
            inputs,
            out: Vec::with_capacity(512),
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
            blocks: HashMap::new(),
            views: HashMap::new(),
        })
    }

    pub fn finish(mut self) -> Result<Outcome, Error> {
        self.out.extend_from_slice(b"{\"data\":");
        let introspected = match self.introspect() {
            Ok(introspected) => introspected,
            Err(entry) => {
                return Ok(Outcome::Answer { is_ok: false, body: complaints::refusal(&[entry]) });
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
        if self.errors.is_empty() {
            return Ok(Outcome::Answer { is_ok: true, body: self.out });
        }
        let mut body = vec![b'{'];
        complaints::write_errors(&mut body, &self.errors);
        body.push(b',');
        body.extend_from_slice(&self.out[1..]);
        Ok(Outcome::Answer { is_ok: false, body })
    }

    // --- what every field uses ------------------------------------------------------------------

    /// Note that work was done; ends the run when it was too much.
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
            return Err(Stop::Exhausted("maximum answer size exceeded"));
        }
        if Instant::now() >= self.bounds.deadline {
            return Err(Stop::Exhausted(OUT_OF_TIME));
        }
        Ok(())
    }

    /// An object, its fields written one after another. A field that fails becomes null or takes the object along.
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
                    if self.errors.len() >= complaints::MOST_ERRORS {
                        return Err(Stop::Null);
                    }
                }
                Err(stop) => return Err(stop),
            }
        }
        self.out.push(b'}');
        if is_null { Err(Stop::Null) } else { Ok(()) }
    }

    /// The value of a field that has fields itself.
    pub fn inside(&mut self, node: &'a Node, write: impl FnOnce(&mut Self) -> Written) -> Written {
        self.path.push(Step::Key(&node.name));
        write(self)?;
        self.path.pop();
        Ok(())
    }

    /// A list of objects; `may_be_null` where a single item may be missing.
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
            self.path.push(Step::Index(at));
            write(self, item)?;
            self.path.pop();
        }
        self.out.push(b']');
        self.path.pop();
        Ok(())
    }

    pub fn null(&mut self) {
        self.out.extend_from_slice(b"null");
    }

    pub fn text(&mut self, text: &str) {
        complaints::text(&mut self.out, text);
    }

    pub fn integer(&mut self, value: u64) -> Written {
        use std::io::Write;
        write!(self.out, "{value}").expect("writing to memory");
        Ok(())
    }

    pub fn integer_or_null(&mut self, value: Option<u64>) -> Written {
        match value {
            Some(value) => self.integer(value),
            None => {
                self.null();
                Ok(())
            }
        }
    }

    pub fn big(&mut self, value: impl Into<U256>) -> Written {
        wide(&mut self.out, "", value);
        Ok(())
    }

    pub fn big_or_null(&mut self, value: Option<impl Into<U256>>) -> Written {
        match value {
            Some(value) => self.big(value),
            None => {
                self.null();
                Ok(())
            }
        }
    }

    pub fn bytes(&mut self, bytes: impl AsRef<[u8]>) -> Written {
        data(&mut self.out, "", bytes);
        Ok(())
    }

    pub fn hashes<'h>(&mut self, hashes: impl IntoIterator<Item = &'h B256>) -> Written {
        crate::json_text::list(&mut self.out, "", hashes, |out, hash| data(out, "", hash));
        Ok(())
    }

    /// The error of one field; what becomes of its value is decided where fields are written.
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
        let mut entry = complaints::fetching(path, &shown, detail, document, at);
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

    // --- blocks ---------------------------------------------------------------------------------

    pub fn block(&mut self, hash: B256) -> Result<Option<Rc<Loaded<'a>>>, Stop> {
        if let Some(block) = self.blocks.get(&hash) {
            return Ok(Some(block.clone()));
        }
        self.spend(cost::BLOCK)?;
        let Some(loaded) = Loaded::read(self.snapshot, hash)? else { return Ok(None) };
        let loaded = Rc::new(loaded);
        self.blocks.insert(hash, loaded.clone());
        Ok(Some(loaded))
    }

    /// A block of the canonical chain, up to the head.
    pub fn canonical(&mut self, number: u64) -> Result<Option<Rc<Loaded<'a>>>, Stop> {
        if number > self.head.1 {
            return Ok(None);
        }
        match self.snapshot.canonical_hash(number)? {
            Some(hash) => self.block(hash),
            None => Ok(None),
        }
    }

    pub fn head_block(&mut self) -> Result<Rc<Loaded<'a>>, Stop> {
        let found = self.block(self.head.0)?;
        found.ok_or_else(|| Stop::Broken(Error::damaged("the head has no header")))
    }

    /// A block that exists but that the node has not announced yet.
    fn is_ahead(&self, block: &Loaded<'_>) -> Result<bool, Error> {
        Ok(block.header.number > self.head.1 && self.snapshot.canonical_hash(block.header.number)? == Some(block.hash))
    }

    // --- the root -------------------------------------------------------------------------------

    fn introspect(&self) -> Result<Option<apollo_compiler::response::JsonMap>, Entry> {
        let Some((document, operation)) = &self.query.plan.introspection else { return Ok(None) };
        let refused = |cause: apollo_compiler::request::RequestError| Entry::aborted(cause.message().to_string());
        apollo_compiler::introspection::check_max_depth(document, operation).map_err(refused)?;
        let given = self.query.variables_text.as_deref().unwrap_or("{}");
        let given = serde_json::from_str(given).unwrap_or_default();
        let schema = &self.engine.schema;
        let variables = apollo_compiler::request::coerce_variable_values(schema, operation, &given).map_err(refused)?;
        let found = apollo_compiler::introspection::partial_execute(
            schema,
            &self.engine.implementers,
            document,
            operation,
            &variables,
        );
        Ok(Some(found.map_err(refused)?.data.unwrap_or_default()))
    }

    fn root(&mut self, node: &'a Node, introspected: Option<&apollo_compiler::response::JsonMap>) -> Written {
        match node.field {
            Field::QueryBlock => self.root_block(node),
            Field::QueryBlocks => self.root_blocks(node),
            Field::QueryAccount => self.root_account(node),
            Field::QueryTransaction => self.root_transaction(node),
            Field::QueryLogs => self.root_logs(node),
            Field::QueryPending => self.inside(node, |run| run.object(&node.children, Self::pending_field)),
            Field::QueryGasPrice => self.big(self.inputs.gas_price),
            Field::QueryPriorityFee => self.big(self.inputs.priority_fee),
            Field::QueryProtocolVersion => self.integer(u64::from(self.inputs.protocol_version)),
            Field::QueryChainId => self.big(U256::from(self.inputs.chain_id)),
            Field::QuerySyncing => match self.inputs.syncing {
                Some(status) => {
                    self.inside(node, |run| run.object(&node.children, |run, node| run.sync_field(node, status)))
                }
                None => {
                    self.null();
                    Ok(())
                }
            },
            Field::SendRawTransaction => self.send(node),
            _ => {
                let value = introspected.and_then(|data| data.get(&*node.name));
                match value {
                    Some(value) => serde_json::to_writer(&mut self.out, value).expect("writing to memory"),
                    None => self.null(),
                }
                Ok(())
            }
        }
    }

    fn root_block(&mut self, node: &'a Node) -> Written {
        let block = match (self.argument(node, 0), self.argument(node, 1)) {
            (Value::Null, Value::Null) => self.head_block()?,
            (Value::Long(number), Value::Null) => match self.canonical(*number)? {
                Some(block) => block,
                None => return Err(self.fail(node, None, &format!("Block number {number} was not found"), None)),
            },
            (Value::Null, Value::Hash(hash)) => match self.block(*hash)? {
                Some(block) if !self.is_ahead(&block)? => block,
                _ => return Err(self.fail(node, None, &format!("Block hash {hash} was not found"), None)),
            },
            _ => return Err(self.fail_with(node, INVALID_PARAMS)),
        };
        self.inside(node, |run| run.block_object(&node.children, &block))
    }

    fn root_blocks(&mut self, node: &'a Node) -> Written {
        let head = self.head.1;
        let first = self.long(node, 0).unwrap_or(0);
        let last = self.long(node, 1).unwrap_or(head);
        if first > last {
            return Err(self.fail_with(node, INVALID_PARAMS));
        }
        let last = last.min(head);
        if last.saturating_sub(first) >= self.bounds.max_blocks {
            return Err(self.fail_with(node, RANGE_TOO_LARGE));
        }
        self.list(node, first..=last, |run, number| match run.canonical(number)? {
            Some(block) => run.block_object(&node.children, &block),
            None => Err(Stop::Broken(Error::damaged(format!("block {number} is missing")))),
        })
    }

    fn root_account(&mut self, node: &'a Node) -> Written {
        let Value::Address(address) = *self.argument(node, 0) else { return Err(self.fail_with(node, INVALID_PARAMS)) };
        let block = match self.argument(node, 1) {
            Value::Long(number) => match self.canonical(*number)? {
                Some(block) => block,
                None => return Err(self.fail_with(node, INVALID_PARAMS)),
            },
            _ => self.head_block()?,
        };
        self.account_object(node, &Account { address, block })
    }

    fn root_transaction(&mut self, node: &'a Node) -> Written {
        let Value::Hash(hash) = *self.argument(node, 0) else { return Err(self.fail_with(node, INVALID_PARAMS)) };
        if let Some((number, index)) = self.snapshot.position(&hash)?
            && let Some(block) = self.canonical(number)?
        {
            self.spend(cost::TRANSACTION)?;
            let transaction = Transaction::mined(&block, index as usize, true)?;
            return self.inside(node, |run| run.transaction_object(&node.children, &transaction));
        }
        match self.inputs.named.iter().find(|pooled| pooled.known.hash == hash) {
            Some(pooled) => {
                let transaction = Transaction::pooled(pooled);
                self.inside(node, |run| run.transaction_object(&node.children, &transaction))
            }
            None => {
                self.null();
                Ok(())
            }
        }
    }

    fn root_logs(&mut self, node: &'a Node) -> Written {
        let Value::Filter(filter) = self.argument(node, 0) else { return Err(self.fail_with(node, INVALID_PARAMS)) };
        let head = self.head.1;
        let (first, last) = (filter.from_block.unwrap_or(head), filter.to_block.unwrap_or(head));
        if first > last {
            return Err(self.fail_with(node, INVALID_PARAMS));
        }
        let last = last.min(head);
        let wanted = log_filter(filter);
        // The index narrows a search to the blocks that may match; one that takes every log reads them all.
        let takes_all = wanted.addresses.is_empty() && wanted.topics.iter().all(Option::is_none);
        let most = self.bounds.max_logs_range;
        let blocks = last.saturating_sub(first);
        if (most > 0 && blocks > most) || (takes_all && blocks >= self.bounds.max_blocks) {
            return Err(self.fail_with(node, RANGE_TOO_LARGE));
        }
        let limits = logs::Limits { max_results: self.bounds.max_logs, deadline: self.bounds.deadline };
        let numbers = match logs::candidates(self.snapshot, first, last, &wanted, &limits) {
            Err(_) if Instant::now() >= self.bounds.deadline => return Err(Stop::Exhausted(OUT_OF_TIME)),
            found => found?,
        };
        let mut found = Vec::new();
        for number in numbers {
            self.spend(cost::BLOCK)?;
            if let Some(block) = self.canonical(number)? {
                self.matching_logs(&block, &wanted, &mut found)?;
            }
            if found.len() > self.bounds.max_logs {
                return Err(self.fail_with(node, TOO_MANY_LOGS));
            }
        }
        self.list(node, found, |run, (block, at)| run.log_object(&node.children, &block, at))
    }

    fn sync_field(&mut self, node: &'a Node, (starting, current, highest): (u64, u64, u64)) -> Written {
        match node.field {
            Field::SyncStarting => self.integer(starting),
            Field::SyncCurrent => self.integer(current),
            Field::SyncHighest => self.integer(highest),
            _ => {
                self.null();
                Ok(())
            }
        }
    }

    fn pending_field(&mut self, node: &'a Node) -> Written {
        match node.field {
            Field::PendingTransactionCount => self.integer(self.inputs.pool.len() as u64),
            Field::PendingTransactions => {
                let pool: &'a [Pooled] = &self.inputs.pool;
                self.list(node, pool, |run, pooled| {
                    run.transaction_object(&node.children, &Transaction::pooled(pooled))
                })
            }
            Field::PendingAccount => {
                let Value::Address(address) = *self.argument(node, 0) else {
                    return Err(self.fail_with(node, INVALID_PARAMS));
                };
                let block = self.head_block()?;
                self.account_object(node, &Account { address, block })
            }
            Field::PendingCall => self.call(node, None),
            _ => self.estimate(node, None),
        }
    }

    // --- what the node does ---------------------------------------------------------------------

    /// The reply to the next thing asked; None in the first round, which only notes what is to be done.
    fn ask(&mut self, node: &Node, make: impl FnOnce() -> Ask) -> Result<Option<&'a Reply>, Stop> {
        self.spend(cost::ASK)?;
        let position = self.asked;
        self.asked += 1;
        if self.asked > self.bounds.max_asks {
            let most = self.bounds.max_asks;
            return Err(self.fail(node, None, &format!("more than {most} calls in one request"), None));
        }
        match self.replies {
            Some(replies) => Ok(replies.get(position)),
            None => {
                self.asks.push(make());
                Ok(None)
            }
        }
    }

    fn call_arguments(&self, node: &Node) -> Arc<CallArguments> {
        match self.argument(node, 0) {
            Value::Call(call) => call.clone(),
            _ => Arc::default(),
        }
    }

    pub fn call(&mut self, node: &'a Node, block: Option<B256>) -> Written {
        let call = self.call_arguments(node);
        match self.ask(node, || Ask::Call { block, is_estimate: false, call })? {
            Some(Reply::Call { succeeded, gas_used, output }) => self.inside(node, |run| {
                run.object(&node.children, |run, node| match node.field {
                    Field::CallData => run.bytes(output),
                    Field::CallGasUsed => run.integer(*gas_used),
                    _ => run.integer(u64::from(*succeeded)),
                })
            }),
            Some(reply @ Reply::Failed { .. }) => Err(self.replied_failure(node, reply)),
            _ => {
                self.null();
                Ok(())
            }
        }
    }

    pub fn estimate(&mut self, node: &'a Node, block: Option<B256>) -> Written {
        let call = self.call_arguments(node);
        match self.ask(node, || Ask::Call { block, is_estimate: true, call })? {
            Some(Reply::Gas(gas)) => self.integer(*gas),
            Some(Reply::Nothing) => Err(self.fail_with(node, STATE_MISSING)),
            Some(reply) => Err(self.replied_failure(node, reply)),
            None => self.integer(0),
        }
    }

    fn send(&mut self, node: &'a Node) -> Written {
        let Value::Bytes(raw) = self.argument(node, 0) else { return Err(self.fail_with(node, INVALID_PARAMS)) };
        match self.ask(node, || Ask::Send(raw.clone()))? {
            Some(Reply::Sent(hash)) => self.bytes(hash),
            Some(reply) => Err(self.replied_failure(node, reply)),
            None => {
                self.null();
                Ok(())
            }
        }
    }

    fn replied_failure(&mut self, node: &Node, reply: &Reply) -> Stop {
        match reply {
            Reply::Failed { code, message, data } => {
                let code = code.map(|code| (code, message.as_str()));
                self.fail(node, code, message, data.clone())
            }
            _ => self.fail(node, None, "it was not answered", None),
        }
    }

    // --- accounts -------------------------------------------------------------------------------

    fn view(&mut self, node: &Node, block: &Loaded<'_>) -> Result<Rc<View>, Stop> {
        let root = block.header.state_root;
        if let Some(view) = self.views.get(&root) {
            return Ok(view.clone());
        }
        self.spend(cost::ACCOUNT)?;
        let opened = self.snapshot.state(root).and_then(|state| state.open());
        match opened {
            Ok(view) => {
                // Each has a reader of the database of its own, of which there are not many.
                if self.views.len() >= VIEWS_KEPT {
                    self.views.clear();
                }
                let view = Rc::new(view);
                self.views.insert(root, view.clone());
                Ok(view)
            }
            Err(Error::MissingState(_)) => Err(self.fail_with(node, STATE_MISSING)),
            Err(error) => Err(error.into()),
        }
    }

    /// An account field: its state is opened when something beside the address is asked for.
    pub fn account_object(&mut self, node: &'a Node, account: &Account<'a>) -> Written {
        self.inside(node, |run| run.object(&node.children, |run, node| run.account_field(node, account)))
    }

    fn account_field(&mut self, node: &'a Node, account: &Account<'a>) -> Written {
        use alloy_primitives::{KECCAK256_EMPTY, keccak256};
        let address = &account.address;
        if node.field == Field::AccountAddress {
            return self.bytes(address);
        }
        let view = self.view(node, &account.block)?;
        self.spend(cost::ACCOUNT)?;
        let hash = keccak256(address);
        if node.field == Field::AccountStorage {
            let Value::Hash(slot) = *self.argument(node, 0) else {
                return Err(self.fail_with(node, INVALID_PARAMS));
            };
            let value = view.storage(address, &hash, &slot.into(), &keccak256(slot))?;
            return self.bytes(value.to_be_bytes::<32>());
        }
        let found = view.account(address, &hash)?;
        match node.field {
            Field::AccountBalance => self.big(found.map_or(U256::ZERO, |account| account.balance)),
            Field::AccountNonce => self.integer(found.map_or(0, |account| account.nonce)),
            _ => {
                let code = view.code(&found.map_or(KECCAK256_EMPTY, |account| account.code_hash))?;
                self.bytes(code.original_bytes())
            }
        }
    }

    /// The block in whose state an account is shown: its own, or the one that an argument names.
    pub fn account_at(
        &mut self,
        node: &'a Node,
        address: Address,
        own: Option<&Rc<Loaded<'a>>>,
    ) -> Result<Account<'a>, Stop> {
        let block = match (self.long(node, 0), own) {
            (Some(number), _) => match self.canonical(number)? {
                Some(block) => block,
                None => return Err(self.fail_with(node, INVALID_PARAMS)),
            },
            (None, Some(block)) => block.clone(),
            (None, None) => self.head_block()?,
        };
        Ok(Account { address, block })
    }
}

pub fn log_filter(filter: &FilterArguments) -> LogFilter {
    let any_of = |row: &Vec<B256>| (!row.is_empty()).then(|| row.clone());
    LogFilter { addresses: filter.addresses.clone(), topics: filter.topics.iter().map(any_of).collect() }
}
