//! Integrity of private data: code, receipts, group states.

use alloy_primitives::{B256, KECCAK256_EMPTY, hex, keccak256};
use alloy_trie::Nibbles;
use ophion_primitives::errors::Result;

use super::integrity_check::{Findings, STRIDE, check_nodes};
use super::private_results::PrivateReceipt;
use super::reachability::Reach;
use super::read_snapshot::Snapshot;
use super::records::number;
use super::tables::Tables;
use crate::trie::Account;

/// Repair hint shown to the operator.
const ANEW: &str = "`ophion privacy rebuild` makes private states anew";

/// Return the number of private entries that the check visits.
pub fn entries(snapshot: &Snapshot) -> Result<u64> {
    let Tables { private_code, private_receipts, private_groups, .. } = snapshot.tables();
    [private_code, private_receipts, private_groups]
        .into_iter()
        .try_fold(0, |sum, table| Ok(sum + table.usage(snapshot.txn())?.0))
}

pub fn check_private(snapshot: &Snapshot, findings: &mut Findings<'_>) -> Result<()> {
    let (tables, txn) = (snapshot.tables(), snapshot.txn());
    for entry in tables.private_code.from(txn, &[0])? {
        let (hash, code) = entry?;
        if keccak256(code).as_slice() != hash {
            findings.add(format!("private code {} is another one; {ANEW}", hex::encode_prefixed(hash)));
        }
        findings.count(1);
        if findings.are_over() {
            return Ok(());
        }
    }
    for entry in tables.private_receipts.from(txn, &[0])? {
        let (key, record) = entry?;
        if let Err(cause) = PrivateReceipt::restore(record) {
            let marker = hex::encode_prefixed(key.get(32..).unwrap_or_default());
            findings.add(format!("the result of private transaction {marker}: {cause}; {ANEW}"));
        }
        findings.count(1);
        if findings.are_over() {
            return Ok(());
        }
    }
    check_completeness(snapshot, findings)?;
    for group in snapshot.groups_from(&B256::ZERO, usize::MAX)? {
        if findings.are_over() {
            break;
        }
        check_group(snapshot, &group, findings)?;
    }
    Ok(())
}

/// Check that every listed state of a privacy group is complete.
fn check_completeness(snapshot: &Snapshot, findings: &mut Findings<'_>) -> Result<()> {
    let mut reach = Reach::default();
    for entry in snapshot.tables().private_groups.from(snapshot.txn(), &[0])? {
        let (key, record) = entry?;
        if findings.are_over() {
            break;
        }
        // skip groups with an empty state, because an empty state has no root node
        if let Some(id) = record.get(..8).map(number).filter(|id| *id != 0) {
            reach.add_root(id);
        }
        let complete = loop {
            match reach.advance(&snapshot.private_nodes(), STRIDE) {
                Ok(true) if !findings.are_over() => findings.count(0),
                Ok(_) => break Ok(()),
                Err(cause) => break Err(cause),
            }
        };
        if let Err(cause) = complete {
            let group = hex::encode_prefixed(key.get(..32).unwrap_or_default());
            findings.add(format!("a private state of group {group}: {cause}; {ANEW}"));
        }
        findings.count(1);
    }
    Ok(())
}

/// Check the latest state of a privacy group against its stored root.
fn check_group(snapshot: &Snapshot, group: &B256, findings: &mut Findings<'_>) -> Result<()> {
    let Some(state) = snapshot.group_state(group, u64::MAX)? else { return Ok(()) };
    let nodes = snapshot.private_nodes();
    let what = format!("the private state of group {group}");
    check_nodes(&nodes, &state.trie, &what, findings);
    if findings.are_over() {
        return Ok(());
    }
    let walked = state.trie.walk(&Nibbles::new(), &nodes, &mut |key, account: &Account| {
        let hash = B256::from_slice(&key.pack());
        if account.code_hash != KECCAK256_EMPTY
            && snapshot.private_code(&account.code_hash)?.is_none()
            && snapshot.tables().code.get(snapshot.txn(), account.code_hash.as_slice())?.is_none()
        {
            findings.add(format!("{what}: the code of account {hash} is missing; {ANEW}"));
        }
        check_nodes(&nodes, &account.storage, &format!("{what}, storage of account {hash}"), findings);
        Ok(!findings.are_over())
    });
    if let Err(cause) = walked {
        findings.add(format!("{what} cannot be walked: {cause}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alloy_primitives::{Address, Bytes, U256};

    use super::super::database::Database;
    use super::super::integrity_check::Watch;
    use super::super::private_results::{GroupStates, PrivateStatus, PrivateWrites};
    use super::*;
    use crate::trie::{NoSource, Slot, Trie};

    const GROUP: B256 = B256::repeat_byte(7);
    const BLOCK: B256 = B256::repeat_byte(1);
    const MARKER: B256 = B256::repeat_byte(2);

    fn receipt(root: B256) -> PrivateReceipt {
        PrivateReceipt {
            status: PrivateStatus::Succeeded,
            group: GROUP,
            root,
            payload_key: B256::ZERO,
            index: 0,
            hash: B256::ZERO,
            sender: Address::ZERO,
            to: None,
            created: None,
            private_from: Bytes::new(),
            private_for: None,
            output: Bytes::new(),
            revert_data: Bytes::new(),
            reason: String::new(),
            logs: Vec::new(),
        }
    }

    fn trie() -> Trie<Account> {
        let mut trie = Trie::default();
        for number in 0..40_u64 {
            let mut account = Account { nonce: number + 1, ..Account::default() };
            for slot in 0..20_u64 {
                let key = Nibbles::unpack(keccak256(slot.to_be_bytes()));
                account.storage.insert(key, Slot(U256::from(slot + 1)), &NoSource).unwrap();
            }
            if number == 3 {
                account.code_hash = keccak256(b"code");
            }
            trie.insert(Nibbles::unpack(keccak256(number.to_be_bytes())), account, &NoSource).unwrap();
        }
        trie
    }

    fn database(name: &str) -> Arc<Database> {
        let path = std::env::temp_dir().join(format!("ophion-private-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let database = Database::open(&path, true, false, false).unwrap();
        let trie = trie();
        let root = trie.hash();
        let roots = vec![(MARKER, root)];
        let writes = PrivateWrites {
            states: vec![GroupStates { group: GROUP, block: BLOCK, number: 1, roots, trie }],
            receipts: vec![(BLOCK, MARKER, receipt(root))],
            codes: vec![(keccak256(b"code"), Bytes::from_static(b"code"))],
            ..PrivateWrites::default()
        };
        database.commit_private(&writes).unwrap();
        let at = 1_u64.to_be_bytes();
        database.write_alone(|txn, tables| tables.canonical.put(txn, &at, BLOCK.as_slice())).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        database
    }

    fn found(database: &Arc<Database>) -> Vec<String> {
        let mut watch = |_, _| true;
        let watch: &mut Watch<'_> = &mut watch;
        let mut findings = Findings::new(10, 1, watch);
        check_private(&database.snapshot().unwrap(), &mut findings).unwrap();
        findings.lines
    }

    #[test]
    fn what_is_sound_is_not_found() {
        let database = database("sound");
        assert_eq!(found(&database), [""; 0]);
        assert_eq!(entries(&database.snapshot().unwrap()).unwrap(), 3);
    }

    #[test]
    fn damage_is_named_with_what_to_do() {
        type Harm = fn(&Tables, &mut heed::RwTxn<'_>) -> Result<()>;
        let harms: [(&str, Harm); 4] = [
            ("private code", |tables, txn| tables.private_code.put(txn, keccak256(b"code").as_slice(), b"cold")),
            ("the result of private transaction 0x0202", |tables, txn| {
                tables.private_receipts.put(txn, &[BLOCK.as_slice(), MARKER.as_slice()].concat(), &[9])
            }),
            ("a private state of group 0x0707", |tables, txn| {
                tables.private_nodes.delete(txn, &1_u64.to_be_bytes()).map(drop)
            }),
            ("the private state of group 0x0707", |tables, txn| {
                tables.private_code.delete(txn, keccak256(b"code").as_slice()).map(drop)
            }),
        ];
        for (name, harm) in harms {
            let database = database(&name.replace(' ', "-"));
            database.write_alone(|txn, tables| harm(tables, txn)).unwrap();
            let lines = found(&database);
            assert!(lines[0].starts_with(name), "{lines:?}");
            assert!(lines[0].ends_with(ANEW), "{lines:?}");
        }
    }
}
