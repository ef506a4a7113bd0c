//! Preimages: addresses and slots by hash. Tries hold only the hashes.

use alloy_primitives::{Address, B256, keccak256};
use heed::RoTxn;
use ophion_primitives::errors::Result;

use super::preimage_runs::{ENTRY, Run, parted_runs, prefix, prefix_of, preimage_in, recent_runs, row_at};
use super::read_snapshot::Snapshot;
use super::tables::{Table, Tables};
use crate::trie::FlatAccount;

/// Lookups of preimages in one snapshot. Lookups in the order of the hashes read fewer rows than others, because each
/// run remembers the row that it has read last.
pub struct Preimages<'t> {
    tables: &'t Tables,
    txn: &'t RoTxn<'t>,
    recent: Vec<RunRow<'t>>,
    parted: Vec<RunRow<'t>>,
    /// First byte of the last hash, which determines `parted`.
    first: Option<u8>,
}

/// A run, and the row of it that was read last.
struct RunRow<'t> {
    run: Run,
    row: &'t [u8],
}

impl Snapshot {
    pub fn preimages(&self) -> Result<Preimages<'_>> {
        Preimages::new(self.tables(), self.txn())
    }
}

impl<'t> Preimages<'t> {
    fn new(tables: &'t Tables, txn: &'t RoTxn<'t>) -> Result<Self> {
        let recent = RunRow::of(recent_runs(tables.preimage_runs, txn)?);
        Ok(Preimages { tables, txn, recent, parted: Vec::new(), first: None })
    }

    /// Return the address of an account hash, if known.
    pub fn address(&mut self, hash: &B256) -> Result<Option<Address>> {
        let found = self.get(hash)?;
        Ok(found.filter(|found| found.len() == Address::len_bytes()).map(|found| Address::from_slice(&found)))
    }

    /// Return the address or slot with this hash, if known. The table `accounts` holds addresses from before layout 5,
    /// and the table `preimages` holds other preimages from before layout 7.
    pub fn get(&mut self, hash: &B256) -> Result<Option<Vec<u8>>> {
        if let Some(preimage) = self.tables.preimages.get(self.txn, hash.as_slice())? {
            return Ok(Some(preimage.to_vec()));
        }
        let table = self.tables.preimage_runs;
        if self.first != Some(hash[0]) {
            self.parted = RunRow::of(parted_runs(table, self.txn, hash[0])?);
            self.first = Some(hash[0]);
        }
        // the newest and smallest runs are last
        for run in self.parted.iter_mut().chain(&mut self.recent) {
            if let Some(preimage) = run.find(table, self.txn, hash)? {
                return Ok(Some(preimage.to_vec()));
            }
        }
        match self.tables.accounts.get(self.txn, hash.as_slice())? {
            Some(row) => Ok(FlatAccount::restore_address(row)?.map(|address| address.to_vec())),
            None => Ok(None),
        }
    }
}

impl<'t> RunRow<'t> {
    fn of(runs: Vec<Run>) -> Vec<Self> {
        runs.into_iter().map(|run| RunRow { run, row: &[] }).collect()
    }

    fn find(&mut self, table: Table, txn: &'t RoTxn<'t>, hash: &B256) -> Result<Option<&'t [u8]>> {
        let wanted = prefix_of(hash);
        if !self.covers(wanted) {
            self.row = row_at(table, txn, self.run.number, wanted)?.unwrap_or_default();
        }
        let entries = self.row.as_chunks::<ENTRY>().0;
        let at = entries.partition_point(|entry| prefix(entry) < wanted);
        let alike = entries[at..].iter().take_while(|entry| prefix(&entry[..]) & !1 == wanted);
        Ok(alike.map(|entry| preimage_in(entry)).find(|preimage| keccak256(preimage) == *hash))
    }

    /// Return whether the row that was read last has all entries with this prefix.
    fn covers(&self, wanted: u64) -> bool {
        match self.row.as_chunks::<ENTRY>().0 {
            [first, .., last] => (prefix(first) & !1..=prefix(last)).contains(&wanted),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use heed::RwTxn;

    use super::*;
    use crate::store::opening;
    use crate::store::preimage_runs::{add, check};

    fn database(name: &str) -> opening::Opened {
        let path = std::env::temp_dir().join(format!("ophion-preimages-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        opening::open(&path, true, false, false).unwrap()
    }

    fn slot(number: u64) -> Vec<u8> {
        B256::left_padding_from(&number.to_be_bytes()).to_vec()
    }

    fn hashed(preimages: impl IntoIterator<Item = Vec<u8>>) -> Vec<(B256, Vec<u8>)> {
        preimages.into_iter().map(|preimage| (keccak256(&preimage), preimage)).collect()
    }

    fn findings(tables: &Tables, txn: &RoTxn<'_>) -> Vec<String> {
        let mut found = Vec::new();
        check(tables.preimage_runs, txn, |_, finding| {
            found.extend(finding);
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn addresses_are_found_in_all_tables() {
        let (env, tables, _) = database("tables");
        let mut txn = env.write_txn().unwrap();
        let [new, earlier, old, contract, nameless, slot] = [1, 2, 3, 4, 5, 6].map(Address::repeat_byte);
        add(tables.preimage_runs, &mut txn, hashed([new.to_vec()]).iter()).unwrap();
        tables.preimages.put(&mut txn, keccak256(earlier).as_slice(), earlier.as_slice()).unwrap();
        tables.preimages.put(&mut txn, keccak256(slot).as_slice(), &[6; 32]).unwrap();
        // an account record: nonce, length and bytes of the balance, flags (1 code, 2 storage, 4 address), then the
        // flagged fields
        let row = |flags: u8, hashes: usize, address: &[u8]| {
            [&[7, 1, 9, flags][..], &vec![8; 32 * hashes][..], address].concat()
        };
        for (address, row) in
            [(old, row(4, 0, old.as_slice())), (contract, row(7, 2, contract.as_slice())), (nameless, row(0, 0, &[]))]
        {
            tables.accounts.put(&mut txn, keccak256(address).as_slice(), &row).unwrap();
        }
        let mut preimages = Preimages::new(&tables, &txn).unwrap();
        for (address, is_known) in
            [(new, true), (earlier, true), (old, true), (contract, true), (nameless, false), (slot, false)]
        {
            let found = preimages.address(&keccak256(address)).unwrap();
            assert_eq!(found, is_known.then_some(address));
        }
        assert_eq!(preimages.get(&keccak256(slot)).unwrap(), Some(vec![6; 32]));
    }

    /// Check that these slots are found in the order of their hashes and in the order of their numbers, and no others.
    fn expect_slots(tables: &Tables, txn: &RwTxn<'_>, count: u64) {
        let mut wanted = hashed((0..count).map(slot));
        for _ in 0..2 {
            let mut preimages = Preimages::new(tables, txn).unwrap();
            for (hash, preimage) in &wanted {
                assert_eq!(preimages.get(hash).unwrap().as_ref(), Some(preimage));
            }
            wanted.sort_unstable();
        }
        let mut preimages = Preimages::new(tables, txn).unwrap();
        for (hash, _) in hashed((count..count + 2_000).map(slot)) {
            assert_eq!(preimages.get(&hash).unwrap(), None);
        }
        assert_eq!(findings(tables, txn), Vec::<String>::new());
    }

    #[test]
    fn preimages_are_found_while_their_runs_are_merged() {
        let (env, tables, _) = database("merged");
        let mut txn = env.write_txn().unwrap();
        let mut count = 0;
        for commit in 0..400u64 {
            // some commits have as many slots as a large block, some have one slot, and some repeat earlier slots
            let added = [1, 2_000, 37, 0, 150][(commit % 5) as usize];
            let again = count / 2..(count / 2 + added / 3).min(count);
            add(tables.preimage_runs, &mut txn, hashed((count..count + added).chain(again).map(slot)).iter()).unwrap();
            count += added;
            if commit % 97 == 13 {
                expect_slots(&tables, &txn, count);
            }
        }
        expect_slots(&tables, &txn, count);
        let runs = recent_runs(tables.preimage_runs, &txn).unwrap().len();
        assert!(runs <= 24, "{runs} recent runs");
        let stored = tables.preimage_runs.usage(&txn).unwrap().1;
        assert!(stored < 60 * count, "{stored} bytes for {count} slots");
    }

    #[test]
    fn large_runs_are_merged_in_parts() {
        let (env, tables, _) = database("parts");
        let mut txn = env.write_txn().unwrap();
        let (mut count, mut most) = (0, 0);
        for _ in 0..9 {
            let added = 66_000;
            add(tables.preimage_runs, &mut txn, hashed((count..count + added).map(slot)).iter()).unwrap();
            count += added;
            for _ in 0..64 {
                // each commit merges the runs of one part
                add(tables.preimage_runs, &mut txn, hashed([slot(0)]).iter()).unwrap();
            }
            most = most.max(parted_runs(tables.preimage_runs, &txn, 7).unwrap().len());
        }
        expect_slots(&tables, &txn, count);
        assert!(most <= 4, "{most} runs in a part");
    }

    #[test]
    fn runs_are_merged_beside_one_that_is_too_large_to_merge() {
        let (env, tables, _) = database("beside");
        let mut txn = env.write_txn().unwrap();
        // a genesis file with many accounts, of which this test makes one part
        let alike = (0..270_000u64).map(|number| {
            let hash = B256::right_padding_from(&(number << 32).to_be_bytes());
            (hash, slot(number))
        });
        add(tables.preimage_runs, &mut txn, alike.collect::<Vec<_>>().iter()).unwrap();
        let mut count = 0;
        for _ in 0..5 {
            let added = 66_000;
            add(tables.preimage_runs, &mut txn, hashed((count..count + added).map(slot)).iter()).unwrap();
            count += added;
            for _ in 0..64 {
                add(tables.preimage_runs, &mut txn, hashed([slot(0)]).iter()).unwrap();
            }
        }
        let runs = parted_runs(tables.preimage_runs, &txn, 0).unwrap().len();
        assert!(runs <= 4, "{runs} runs beside each other");
    }

    #[test]
    fn a_damaged_list_of_runs_is_one_error_at_most() {
        let (env, tables, _) = database("list");
        let mut txn = env.write_txn().unwrap();
        for number in 0..7 {
            add(tables.preimage_runs, &mut txn, hashed([slot(number)]).iter()).unwrap();
        }
        let record = tables.preimage_runs.get(&txn, &[0]).unwrap().unwrap().to_vec();
        for at in 0..record.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = record.clone();
                damaged[at] = value;
                let mut nested = env.nested_write_txn(&mut txn).unwrap();
                tables.preimage_runs.put(&mut nested, &[0], &damaged).unwrap();
                let _ = add(tables.preimage_runs, &mut nested, hashed([slot(99)]).iter());
                let _ = Preimages::new(&tables, &nested).and_then(|mut found| found.get(&keccak256(slot(3))));
                findings(&tables, &nested);
                nested.abort();
            }
        }
        for length in 1..record.len() {
            let mut nested = env.nested_write_txn(&mut txn).unwrap();
            tables.preimage_runs.put(&mut nested, &[0], &record[..length]).unwrap();
            if length < 9 || (length - 9) % 17 != 0 {
                let cause = add(tables.preimage_runs, &mut nested, hashed([slot(99)]).iter()).unwrap_err();
                assert!(cause.to_string().contains("damaged"), "{cause}");
            }
            nested.abort();
        }
    }

    #[test]
    fn equal_prefixes_are_told_apart() {
        let (env, tables, _) = database("alike");
        let mut txn = env.write_txn().unwrap();
        let (slot, address) = ([3; 32], Address::repeat_byte(3));
        let alike: Vec<_> = (0..300u64)
            .map(|number| {
                let mut hash = keccak256(slot);
                hash[24..].copy_from_slice(&number.to_be_bytes());
                (hash, self::slot(number))
            })
            .chain(hashed([slot.to_vec(), address.to_vec()]))
            .collect();
        add(tables.preimage_runs, &mut txn, alike.iter()).unwrap();
        let mut preimages = Preimages::new(&tables, &txn).unwrap();
        assert_eq!(preimages.get(&keccak256(slot)).unwrap(), Some(slot.to_vec()));
        assert_eq!(preimages.get(&keccak256(address)).unwrap(), Some(address.to_vec()));
        assert_eq!(preimages.get(&alike[0].0).unwrap(), None, "its preimage has another hash");
        drop(preimages);
        assert_eq!(findings(&tables, &txn).len(), 1, "the row is wrong");
    }

    #[test]
    fn the_check_finds_damage_to_runs() {
        type Damage = fn(&Tables, &mut RwTxn<'_>, &[u8], &[u8]);
        let damages: [(&str, Damage); 5] = [
            ("is wrong", |tables, txn, key, row| {
                let mut row = row.to_vec();
                row[20] ^= 1;
                tables.preimage_runs.put(txn, key, &row).unwrap();
            }),
            ("is out of order", |tables, txn, key, row| {
                let row = [&row[..ENTRY], &row[2 * ENTRY..3 * ENTRY], &row[ENTRY..2 * ENTRY], &row[3 * ENTRY..]];
                tables.preimage_runs.put(txn, key, &row.concat()).unwrap();
            }),
            ("is out of order", |tables, txn, key, row| {
                tables.preimage_runs.put(txn, key, &row[..row.len() - 1]).unwrap();
            }),
            ("is not complete", |tables, txn, key, _| assert!(tables.preimage_runs.delete(txn, key).unwrap())),
            ("is in no run", |tables, txn, key, row| {
                let key = [&key[..8], &[99], &key[9..]].concat();
                tables.preimage_runs.put(txn, &key, row).unwrap();
            }),
        ];
        for (index, (expected, damage)) in damages.into_iter().enumerate() {
            let (env, tables, _) = database(&format!("damage-{index}"));
            let mut txn = env.write_txn().unwrap();
            add(tables.preimage_runs, &mut txn, hashed((0..500).map(slot)).iter()).unwrap();
            let (key, row) = tables.preimage_runs.from(&txn, &[2]).unwrap().nth(1).unwrap().unwrap();
            let (key, row) = (key.to_vec(), row.to_vec());
            damage(&tables, &mut txn, &key, &row);
            let found = findings(&tables, &txn);
            assert!(found.iter().any(|finding| finding.contains(expected)), "{expected}: {found:?}");
        }
    }
}
