//! Database integrity: canonical chain, head state, private states.

use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, b256, keccak256};
use alloy_trie::Nibbles;
use ophion_primitives::errors::Result;
use ophion_primitives::signers::{TASK, recover_signers};
use rayon::prelude::*;

use super::log_index::{self, folds};
use super::preimage_runs::{self, ENTRY};
use super::preimages::Preimages;
use super::private_integrity_check;
use super::reachability::Reach;
use super::read_snapshot::Snapshot;
use super::records::{Nodes, decode_header};
use super::state_roots::{RootRecord, root_id};
use crate::chain::body::{Known, Tx};
use crate::chain::receipts;
use crate::trie::{Account, Child, EMPTY_ROOT, Slot, Source, Trie, Value, stored_children};

/// Mix hash of IBFT 2.0 and QBFT headers. The hash of these headers is not checked here, because consensus defines how
/// they are hashed.
const BFT_MIX_HASH: B256 = b256!("63746963616c2062797a616e74696e65206661756c7420746f6c6572616e6365");

/// Minimum time between two progress reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);
/// Number of trie nodes visited per step.
pub(super) const STRIDE: usize = 10_000;

/// A progress callback that gets the numbers of checked entries and of all entries. It returns false to stop the check.
pub type Watch<'a> = dyn FnMut(u64, u64) -> bool + Send + 'a;

pub(super) struct Findings<'a> {
    pub lines: Vec<String>,
    limit: usize,
    done: u64,
    total: u64,
    reported_at: Option<Instant>,
    watch: &'a mut Watch<'a>,
    is_ended: bool,
}

impl<'a> Findings<'a> {
    pub fn new(limit: usize, total: u64, watch: &'a mut Watch<'a>) -> Self {
        Findings { lines: Vec::new(), limit, done: 0, total, reported_at: None, watch, is_ended: false }
    }

    pub fn add(&mut self, line: String) {
        if self.lines.len() < self.limit {
            self.lines.push(line);
        }
    }

    /// Count checked entries. `watch` is not called again after it has returned false.
    pub fn count(&mut self, entries: u64) {
        self.done += entries;
        if !self.is_ended && self.reported_at.is_none_or(|at| at.elapsed() > REPORT_INTERVAL) {
            self.is_ended = !(self.watch)(self.done, self.total);
            self.reported_at = Some(Instant::now());
        }
    }

    pub fn are_over(&self) -> bool {
        self.is_ended || self.lines.len() >= self.limit
    }
}

/// Return at most `limit` lines of findings; the list is empty if the database is intact. If `watch` stops the check,
/// this returns the findings so far.
pub fn check<'a>(snapshot: &Snapshot, limit: usize, watch: &'a mut Watch<'a>) -> Result<Vec<String>> {
    let Some((head, number)) = snapshot.head()? else { return Ok(Vec::new()) };
    let tables = snapshot.tables();
    let mut total = number + 1 + private_integrity_check::entries(snapshot)?;
    // Count the entries to check. `preimages` is listed twice: once for its own rows, and once as an estimate of the
    // accounts and slots of the state.
    for table in [tables.positions, tables.preimages, tables.preimages, tables.accounts, tables.roots] {
        total += table.usage(snapshot.txn())?.0;
    }
    total += 2 * tables.preimage_runs.usage(snapshot.txn())?.1 / ENTRY as u64;
    let mut findings = Findings::new(limit.max(1), total, watch);
    check_chain(snapshot, head, number, &mut findings)?;
    check_preimages(snapshot, &mut findings)?;
    let root = match snapshot.header(&head)? {
        Some((_, _, header)) => decode_header(header)?.state_root,
        None => return Ok(findings.lines),
    };
    match snapshot.trie(root) {
        Ok(_) if root == EMPTY_ROOT => {}
        Ok(_) => check_state(snapshot, root, &mut findings)?,
        Err(_) => findings.add(format!("state {root} of the head is missing")),
    }
    if findings.lines.is_empty() && !findings.are_over() {
        check_states(snapshot, &mut findings)?;
    }
    if !findings.are_over() {
        private_integrity_check::check_private(snapshot, &mut findings)?;
    }
    Ok(findings.lines)
}

/// Check that every state in the list of stored states is complete. Hashes are checked only for the head.
fn check_states(snapshot: &Snapshot, findings: &mut Findings<'_>) -> Result<()> {
    let mut reach = Reach::default();
    for entry in snapshot.tables().roots.from(snapshot.txn(), &[0])? {
        let (root, record) = entry?;
        let checked = RootRecord::restore(record).and_then(|record| {
            record.ids.into_iter().for_each(|id| reach.add_root(id));
            while reach.advance(&snapshot.nodes(), STRIDE)? && !findings.are_over() {
                findings.count(0);
            }
            Ok(())
        });
        if let Err(cause) = checked {
            findings.add(format!("state {}: {cause}", alloy_primitives::hex::encode_prefixed(root)));
        }
        findings.count(1);
        if findings.are_over() {
            break;
        }
    }
    Ok(())
}

fn check_chain(snapshot: &Snapshot, head: B256, number: u64, findings: &mut Findings<'_>) -> Result<()> {
    let mut expected = head;
    let start = snapshot.history_start()?.unwrap_or(0);
    if start > number + 1 {
        findings.add(format!("block {start}: recorded as the lowest block with a body, but the head is {number}"));
    }
    for at in (0..=number).rev() {
        if findings.are_over() {
            return Ok(());
        }
        match snapshot.canonical_hash(at)? {
            Some(hash) if hash == expected => {}
            Some(hash) => {
                findings.add(format!("block {at}: the canonical chain names {hash}, its child names {expected}"))
            }
            None => findings.add(format!("block {at}: the canonical chain has no entry")),
        }
        let Some((stored_number, total, rlp)) = snapshot.header(&expected)? else {
            findings.add(format!("block {at}: header {expected} is missing"));
            return Ok(());
        };
        let Ok(header) = decode_header(rlp) else {
            findings.add(format!("block {at}: the header cannot be decoded"));
            return Ok(());
        };
        if header.mix_hash != BFT_MIX_HASH && keccak256(rlp) != expected {
            findings.add(format!("block {at}: the header does not hash to {expected}"));
        }
        if header.number != at || stored_number != at {
            findings.add(format!("block {at}: the header says it is block {}", header.number));
        }
        // after a snap synchronisation, blocks between the genesis block and `start` have no bodies and receipts yet
        if at == 0 || at >= start {
            check_contents(snapshot, at, &expected, &header, findings)?;
        }
        if let Some((_, parent_total, _)) = snapshot.header(&header.parent_hash)?
            && parent_total.wrapping_add(header.difficulty) != total
        {
            findings.add(format!("block {at}: the total difficulty is not the sum of what it should be"));
        }
        expected = header.parent_hash;
        findings.count(1);
    }
    Ok(())
}

fn check_contents(
    snapshot: &Snapshot,
    at: u64,
    hash: &B256,
    header: &alloy_consensus::Header,
    findings: &mut Findings<'_>,
) -> Result<()> {
    match snapshot.body(hash) {
        Ok(Some(body)) => {
            if body.transactions_root() != header.transactions_root {
                findings.add(format!("block {at}: the transactions do not match their root"));
            }
            if body.ommers_hash() != header.ommers_hash {
                findings.add(format!("block {at}: the ommers do not match their hash"));
            }
            if body.withdrawals_root() != header.withdrawals_root {
                findings.add(format!("block {at}: the withdrawals do not match their root"));
            }
            let known = body.known()?;
            for (index, Known { hash, .. }) in known.iter().enumerate() {
                if snapshot.position(hash)? != Some((at, index as u32)) {
                    findings.add(format!("block {at}: transaction {index} is not in the index"));
                }
            }
            let is_wrong = |((tx, known), sender): ((&Tx, &Known), Result<Address>)| {
                tx.hash() != known.hash || sender.is_ok_and(|sender| sender != known.sender)
            };
            let first_wrong = |(task, (txs, known)): (usize, (&[Tx], &[Known]))| {
                let senders = recover_signers(&txs.iter().map(Tx::signed).collect::<Vec<_>>());
                Some(task * TASK + txs.iter().zip(known).zip(senders).position(is_wrong)?)
            };
            let tasks = body.txs.par_chunks(TASK).zip(known.par_chunks(TASK)).enumerate();
            if let Some(index) = tasks.find_map_any(first_wrong) {
                findings.add(format!("block {at}: hash or sender stored for transaction {index} is wrong"));
            }
            findings.count(known.len() as u64);
        }
        Ok(None) => findings.add(format!("block {at}: the body is missing")),
        Err(cause) => findings.add(format!("block {at}: the body cannot be read: {cause}")),
    }
    match snapshot.receipts(hash) {
        Ok(Some(all)) => {
            if at > 0 && receipts::root(&all) != header.receipts_root {
                findings.add(format!("block {at}: the receipts do not match their root"));
            }
            for fold in folds(&all) {
                if !log_index::contains(snapshot.tables(), snapshot.txn(), fold, at)? {
                    findings.add(format!("block {at}: the log index is incomplete"));
                    break;
                }
            }
        }
        Ok(None) => findings.add(format!("block {at}: the receipts are missing")),
        Err(cause) => findings.add(format!("block {at}: the receipts cannot be read: {cause}")),
    }
    Ok(())
}

fn check_preimages(snapshot: &Snapshot, findings: &mut Findings<'_>) -> Result<()> {
    for entry in snapshot.tables().preimages.from(snapshot.txn(), &[0])? {
        let (hash, preimage) = entry?;
        if keccak256(preimage).as_slice() != hash {
            findings.add(format!("the preimage of {} is wrong", alloy_primitives::hex::encode_prefixed(hash)));
        }
        findings.count(1);
        if findings.are_over() {
            return Ok(());
        }
    }
    preimage_runs::check(snapshot.tables().preimage_runs, snapshot.txn(), |entries, finding| {
        finding.into_iter().for_each(|line| findings.add(line));
        findings.count(entries);
        !findings.are_over()
    })
}

fn check_state(snapshot: &Snapshot, root: B256, findings: &mut Findings<'_>) -> Result<()> {
    // read the id of the root node from the database, because the cached trie may hide damage
    let Some(id) = root_id(snapshot.tables(), snapshot.txn(), &root).ok().flatten() else {
        findings.add(format!("state {root} of the head is not listed"));
        return Ok(());
    };
    let trie: Trie<Account> = Trie { root: Some(Child::Stored { hash: root, id }) };
    check_nodes(&snapshot.nodes(), &trie, "the state", findings);
    if findings.are_over() {
        return Ok(());
    }
    let nodes = snapshot.nodes();
    let mut preimages = snapshot.preimages()?;
    let walked = trie.walk(&Nibbles::new(), &nodes, &mut |key, account| {
        findings.count(1);
        check_account(snapshot, B256::from_slice(&key.pack()), account, &mut preimages, findings)?;
        Ok(!findings.are_over())
    });
    if let Err(cause) = walked {
        findings.add(format!("the state cannot be walked: {cause}"));
    }
    Ok(())
}

fn check_account(
    snapshot: &Snapshot,
    hash: B256,
    account: &Account,
    preimages: &mut Preimages<'_>,
    findings: &mut Findings<'_>,
) -> Result<()> {
    let tables = snapshot.tables();
    if preimages.address(&hash)?.is_some_and(|address| keccak256(address) != hash) {
        findings.add(format!("account {hash}: the address stored for it is wrong"));
    }
    if account.code_hash != KECCAK256_EMPTY {
        match tables.code.get(snapshot.txn(), account.code_hash.as_slice())? {
            Some(code) if keccak256(code) == account.code_hash => {}
            Some(_) => findings.add(format!("account {hash}: its code does not hash to {}", account.code_hash)),
            None => findings.add(format!("account {hash}: its code {} is missing", account.code_hash)),
        }
    }
    check_nodes(&snapshot.nodes(), &account.storage, &format!("storage of account {hash}"), findings);
    if findings.are_over() {
        return Ok(());
    }
    let walked = account.storage.walk(&Nibbles::new(), &snapshot.nodes(), &mut |_, _: &Slot| {
        findings.count(1);
        Ok(!findings.are_over())
    });
    if let Err(cause) = walked {
        findings.add(format!("storage of account {hash} cannot be walked: {cause}"));
    }
    Ok(())
}

/// Check that every stored node has the hash that its parent records.
pub(super) fn check_nodes<V: Value>(nodes: &Nodes<'_>, trie: &Trie<V>, what: &str, findings: &mut Findings<'_>) {
    let Some(Child::Stored { hash, id }) = &trie.root else { return };
    let mut open = vec![(*hash, *id)];
    while let Some((hash, id)) = open.pop() {
        if findings.are_over() {
            return;
        }
        findings.count(0);
        let loaded = nodes.load(id, |bytes| stored_children::<V>(bytes));
        match loaded {
            Ok((rlp, children)) => {
                if keccak256(rlp) != hash {
                    findings.add(format!("{what}: node {id} does not hash to {hash}"));
                }
                open.extend(children);
            }
            Err(cause) => findings.add(format!("{what}: node {id}: {cause}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_a_check_is_not_asked_again() {
        let mut asked = 0;
        let mut watch = |_, _| {
            asked += 1;
            asked < 2
        };
        let watch: &mut Watch<'_> = &mut watch;
        let mut findings = Findings::new(1, 9, watch);
        let mut ended = Vec::new();
        for _ in 0..4 {
            findings.reported_at = None; // without an earlier report, `count` reports progress at once
            findings.count(1);
            ended.push(findings.are_over());
        }
        assert_eq!(ended, [false, true, true, true]);
        assert_eq!((findings.done, asked), (4, 2));
    }
}
