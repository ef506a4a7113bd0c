//! Executes a private transaction again with a tracer, for priv_traceTransaction.

use std::time::Instant;

use alloy_primitives::map::AddressSet;
use alloy_primitives::{Address, B256, Log};
use ophion_execution::evm::block_environment::BlockEnv;
use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::raw;
use ophion_storage::state::StateData;
use ophion_tracing::flat::blocks::{FlatList, Selection};
use ophion_tracing::output::sink::Sink;
use ophion_tracing::output::stream::Stream;
use ophion_tracing::replay::block::{Place, Ran, Tracer, start, trace_one};
use revm::context::TxEnv;
use revm::inspector::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};

use crate::contract_addresses::contract_address;
use crate::flexible_groups;
use crate::transaction::Unsigned;
use crate::transaction_execution::{CreationAddress, private_cfg, private_db, private_tx_env};

/// Return the trace entries of a private transaction, run on the state of its group before the transaction. With
/// `founds`, the transaction creates a flexible group.
#[allow(clippy::too_many_arguments)]
pub fn trace_flat(
    state: StateData,
    env: BlockEnv,
    fields: Unsigned,
    sender: Address,
    group: B256,
    place: Place,
    founds: bool,
    deadline: Instant,
) -> Result<Stream> {
    Stream::start(deadline, move |sink| {
        raw(&mut sink.out, "[");
        let (from, to) = (AddressSet::default(), AddressSet::default());
        let mut selection = Selection { from, to, skip: 0, left: u64::MAX, address: None };
        let mut is_first = true;
        let mut db = private_db(state.open()?, &env, &sender)?;
        if founds {
            flexible_groups::found(&mut db)?;
        }
        let address = fields.to.is_none().then(|| contract_address(&sender, fields.nonce, &group));
        let inner = FlatList::tracer(sink, &mut selection, &mut is_first);
        let mut evm =
            start(&env, db, private_cfg(&env), WithCreationAddress { creation: CreationAddress { address }, inner });
        trace_one(&mut evm, private_tx_env(&fields, sender), Some(place))?;
        raw(&mut evm.inspector.0.inner.sink().out, "]");
        Ok(())
    })
}

/// Wraps a tracer, and gives created contracts the addresses that they have in the privacy group.
struct WithCreationAddress<T> {
    creation: CreationAddress,
    inner: T,
}

impl<T: Tracer> Inspector<EvmContext> for WithCreationAddress<T> {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.inner.initialize_interp(interpreter, context);
    }

    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.inner.step(interpreter, context);
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.inner.step_end(interpreter, context);
    }

    fn log(&mut self, context: &mut EvmContext, log: Log) {
        self.inner.log(context, log);
    }

    fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.inner.call(context, inputs)
    }

    fn call_end(&mut self, context: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
        self.inner.call_end(context, inputs, outcome);
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.creation.create(context, inputs);
        self.inner.create(context, inputs)
    }

    fn create_end(&mut self, context: &mut EvmContext, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        self.inner.create_end(context, inputs, outcome);
    }
}

impl<T: Tracer> Tracer for WithCreationAddress<T> {
    fn sink(&mut self) -> &mut Sink {
        self.inner.sink()
    }

    fn begin(&mut self, tx: &TxEnv) {
        self.inner.begin(tx);
    }

    fn finish(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        self.inner.finish(db, ran)
    }
}
