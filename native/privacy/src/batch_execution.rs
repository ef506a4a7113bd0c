//! Executes the private transactions of consecutive blocks in order, and collects the results to write.

use std::sync::Arc;

use alloy_primitives::map::B256Map;
use alloy_primitives::{Address, B256, Bytes, keccak256};
use alloy_trie::Nibbles;
use ophion_execution::evm::block_environment::BlockEnv;
use ophion_primitives::errors::Result;
use ophion_storage::state::{Layer, Layers, StateData};
use ophion_storage::store::{Database, GroupState, GroupStates, Marker, PrivateReceipt, PrivateStatus, PrivateWrites};
use ophion_storage::trie::{Account, EMPTY_ROOT, Trie};

use crate::contract_addresses::contract_address;
use crate::flexible_groups;
use crate::transaction::{self, Decoded, RESTRICTED, Recipients};
use crate::transaction_execution::{ExecutionOutcome, Machine, private_nonce};

/// A payload that the enclave opened, with the position of its marker transaction on the chain.
pub struct Payload {
    pub marker: B256,
    pub index: u32,
    pub key: B256,
    pub group: B256,
    /// Public key of the enclave that sealed the payload.
    pub sender: Bytes,
    pub rlp: Bytes,
    /// Members of the privacy group, or all recipients of the payload for a flexible group. None if the members are not
    /// known: a remote enclave does not know the members of a group of `privateFor`.
    pub members: Option<Vec<Bytes>>,
    /// For a flexible group: the version of the member list for which the payload was made.
    pub version: Option<B256>,
}

#[derive(Clone, Copy)]
pub struct Rules {
    pub chain_id: u64,
    /// Whether a failed private transaction also increments the sender's nonce.
    pub always_increments: bool,
}

struct Live {
    root: B256,
    trie: Trie<Account>,
}

pub struct Batch {
    db: Arc<Database>,
    groups: B256Map<Live>,
    codes: Layers,
    pub writes: PrivateWrites,
}

impl Batch {
    /// Create a batch that starts from the stored states and holds later states in memory.
    pub fn new(db: Arc<Database>) -> Self {
        Batch { db, groups: B256Map::default(), codes: Layers::default(), writes: PrivateWrites::default() }
    }

    /// Reset a privacy group to its state before block `before`.
    pub fn rewind(&mut self, group: B256, before: u64) -> Result<()> {
        let found = match before.checked_sub(1) {
            Some(last) => self.db.snapshot()?.group_state(&group, last)?,
            None => None,
        };
        self.groups.insert(group, Live::of(found));
        Ok(())
    }

    fn ensure(&mut self, group: B256, number: u64) -> Result<()> {
        if !self.groups.contains_key(&group) {
            self.rewind(group, number)?;
        }
        Ok(())
    }

    /// Return the state of a privacy group after the transactions so far, on top of a public state.
    pub fn state(&mut self, group: B256, number: u64, public: &StateData) -> Result<StateData> {
        self.ensure(group, number)?;
        let live = &self.groups[&group];
        let state = StateData::private(public.clone(), live.root, live.trie.clone());
        Ok(StateData { layers: self.codes.clone(), ..state })
    }

    pub fn note_markers(&mut self, markers: Vec<Marker>) {
        self.writes.markers.extend(markers);
    }

    /// Run payloads of one block in order. A further call for the same block continues after the payloads of the
    /// previous call.
    pub fn run_block(
        &mut self,
        public: &StateData,
        env: &BlockEnv,
        block: B256,
        rules: Rules,
        payloads: &[Payload],
    ) -> Result<()> {
        if payloads.is_empty() {
            return Ok(());
        }
        let decoded = transaction::decode_all(&payloads.iter().map(|one| &one.rlp[..]).collect::<Vec<_>>());
        let view = StateData::private(public.clone(), EMPTY_ROOT, Trie::default()).open()?;
        let mut machine = Machine::new(view, env);
        let mut touched: Vec<(B256, Vec<(B256, B256)>)> = Vec::new();
        for (payload, decoded) in payloads.iter().zip(decoded) {
            self.ensure(payload.group, env.number)?;
            let judged = match decoded {
                Ok(decoded) => self.run_one(&mut machine, rules, payload, &decoded)?,
                Err(cause) => invalid(payload, cause.to_string()),
            };
            let root = self.groups[&payload.group].root;
            match touched.iter_mut().find(|(group, _)| *group == payload.group) {
                Some((_, roots)) => roots.push((payload.marker, root)),
                None => touched.push((payload.group, vec![(payload.marker, root)])),
            }
            self.writes.receipts.push((block, payload.marker, PrivateReceipt { root, ..judged }));
        }
        for (group, roots) in touched {
            let trie = self.groups[&group].trie.clone();
            // several calls can execute payloads of the same block, so the block may already have an entry
            match self.writes.states.iter_mut().find(|states| states.group == group && states.block == block) {
                Some(states) => {
                    states.roots.extend(roots);
                    states.trie = trie;
                }
                None => self.writes.states.push(GroupStates { group, block, number: env.number, roots, trie }),
            }
        }
        Ok(())
    }

    fn run_one(
        &mut self,
        machine: &mut Machine<'_>,
        rules: Rules,
        payload: &Payload,
        decoded: &Decoded,
    ) -> Result<PrivateReceipt> {
        let live = self.groups.get_mut(&payload.group).expect("made before");
        let view = machine.view();
        view.root = live.root;
        view.set_trie(live.trie.clone());
        view.layers = self.codes.clone();
        let fields = &decoded.tx.fields;
        let sender = match judge(payload, decoded, rules) {
            Ok(sender) => sender,
            Err(reason) => return Ok(described(payload, decoded, reason)),
        };
        let founds = match payload.version {
            None => false,
            Some(version) => {
                match flexible_groups::check(view, fields, &version, payload.members.as_deref().unwrap_or_default())? {
                    Ok(founds) => founds,
                    Err(reason) => return Ok(described(payload, decoded, reason)),
                }
            }
        };
        let expected = private_nonce(view, &sender)?;
        if fields.nonce != expected {
            let reason = format!("private nonce {} where {expected} is next", fields.nonce);
            return Ok(described(payload, decoded, reason));
        }
        let created = fields.to.is_none().then(|| contract_address(&sender, fields.nonce, &payload.group));
        let before = payload.version.is_some().then(|| live.trie.clone());
        let mut outcome = machine.run(&mut live.trie, fields, sender, created, founds)?;
        if let Some(before) = before
            && outcome.is_success
            && fields.to == Some(flexible_groups::PROXY)
        {
            let view = machine.view();
            view.set_trie(live.trie.clone());
            let members = flexible_groups::membership(view)?;
            if !members
                .is_some_and(|found| flexible_groups::covers(&found, payload.members.as_deref().unwrap_or_default()))
            {
                live.trie = before;
                outcome = ExecutionOutcome::failed(flexible_groups::LEFT_OUT.into());
            }
        }
        if outcome.is_success {
            live.root = live.trie.hash();
        } else if rules.always_increments {
            let view = machine.view();
            live.trie.upsert(Nibbles::unpack(keccak256(sender)), view, |old| {
                let mut account = old.unwrap_or_default();
                account.nonce += 1;
                Ok(account)
            })?;
            live.root = live.trie.hash();
        }
        if !outcome.codes.is_empty() {
            self.keep_codes(&outcome.codes);
        }
        let status = if outcome.is_success { PrivateStatus::Succeeded } else { PrivateStatus::Failed };
        Ok(PrivateReceipt {
            status,
            created,
            output: outcome.output,
            revert_data: outcome.revert_data,
            logs: outcome.logs,
            ..described(payload, decoded, outcome.reason)
        })
    }

    /// Make the code of new contracts visible to later transactions before the code is written.
    fn keep_codes(&mut self, codes: &[(B256, revm::state::Bytecode)]) {
        let mut all = self.codes.first().map_or_else(B256Map::default, |layer| layer.codes.clone());
        for (hash, code) in codes {
            all.insert(*hash, code.clone());
            self.writes.codes.push((*hash, code.original_bytes()));
        }
        let accounts = alloy_primitives::map::AddressMap::default();
        self.codes = Arc::new([Arc::new(Layer { accounts, codes: all, base: EMPTY_ROOT })]);
    }
}

impl Live {
    fn of(found: Option<GroupState>) -> Self {
        match found {
            Some(state) => Live { root: state.root, trie: state.trie },
            None => Live { root: EMPTY_ROOT, trie: Trie::default() },
        }
    }
}

/// Check whether a private transaction may run. Returns its sender, or the reason why it may not.
fn judge(payload: &Payload, decoded: &Decoded, rules: Rules) -> std::result::Result<Address, String> {
    let fields = &decoded.tx.fields;
    if !fields.value.is_zero() {
        return Err("it wants to move ether".into());
    }
    if fields.restriction[..] != *RESTRICTED {
        return Err("its restriction is not 'restricted'".into());
    }
    if fields.private_from != payload.sender {
        return Err("privateFrom is not the key that sealed it".into());
    }
    if fields.group() != Some(payload.group) {
        return Err("it belongs to another group".into());
    }
    if matches!(fields.recipients, Recipients::Group(_)) && payload.version.is_none() {
        match &payload.members {
            None => return Err("its group is not known".into()),
            Some(members) if !members.contains(&fields.private_from) => {
                return Err("privateFrom is not a member of the group".into());
            }
            Some(_) => {}
        }
    }
    if decoded.tx.chain_id().is_some_and(|chain_id| chain_id != rules.chain_id) {
        return Err("it is signed for another chain".into());
    }
    decoded.sender.ok_or_else(|| "its signature gives no sender".into())
}

fn invalid(payload: &Payload, reason: String) -> PrivateReceipt {
    PrivateReceipt {
        status: PrivateStatus::Invalid,
        group: payload.group,
        root: EMPTY_ROOT,
        payload_key: payload.key,
        index: payload.index,
        hash: B256::ZERO,
        sender: Address::ZERO,
        to: None,
        created: None,
        private_from: payload.sender.clone(),
        private_for: None,
        output: Bytes::new(),
        revert_data: Bytes::new(),
        reason,
        logs: Vec::new(),
    }
}

fn described(payload: &Payload, decoded: &Decoded, reason: String) -> PrivateReceipt {
    let fields = &decoded.tx.fields;
    PrivateReceipt {
        hash: decoded.hash,
        sender: decoded.sender.unwrap_or_default(),
        to: fields.to,
        private_from: fields.private_from.clone(),
        private_for: match &fields.recipients {
            Recipients::Keys(keys) => Some(keys.clone()),
            Recipients::Group(_) => None,
        },
        ..invalid(payload, reason)
    }
}
