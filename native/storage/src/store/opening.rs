//! Opens the database and diagnoses failures.

use std::path::Path;
use std::sync::Once;

use heed::types::Bytes as Raw;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use ophion_primitives::errors::{Error, Result};

use super::memory_limit::memory_limit;
use super::records::number;
use super::tables::{ROW_TABLES, RowTables, Table, Tables, meta};

/// Virtual size of the memory map. Large files get a larger map, and the size is halved until the system accepts it.
/// Only used pages take memory or disk.
const MAP_SIZE: usize = 1 << 38;
const MAP_GROWTH_FACTOR: usize = 4;
const MIN_MAP_BYTES: usize = 1 << 30;
/// Size of the two meta pages at the start of an LMDB file. A shorter file is incomplete.
const TWO_PAGES: u64 = 8192;

/// The open LMDB environment with its tables and the tables of other packages.
pub type Opened = (Env<WithoutTls>, Tables, RowTables);

/// Open the environment and its tables. With `create`, missing tables are created.
pub fn open(path: &Path, create: bool, read_only: bool, durable: bool) -> Result<Opened> {
    let place = path.display();
    let file = path.join("data.mdb");
    let length = file.metadata().map(|file| file.len()).ok();
    if create && !read_only {
        std::fs::create_dir_all(path).map_err(|cause| Error::Storage(format!("cannot create {place}: {cause}")))?;
        if length.is_some_and(|length| length < TWO_PAGES) {
            // the process was killed, or the disk was full, before the process stored any data: start with an empty
            // file
            let emptied = std::fs::OpenOptions::new().write(true).open(&file).and_then(|file| file.set_len(0));
            emptied.map_err(|cause| Error::Storage(format!("cannot write {}: {cause}", file.display())))?;
        }
    } else if length.is_none() {
        return Err(Error::Storage(format!("there is no database in {place}")));
    } else if length.is_some_and(|length| length < TWO_PAGES) {
        return Err(nothing_yet(path));
    }
    let mut flags = EnvFlags::empty();
    if read_only {
        flags |= EnvFlags::READ_ONLY;
    }
    if !durable {
        flags |= EnvFlags::NO_SYNC;
    }
    if memory_limit().is_some_and(|memory| length.unwrap_or_default() > memory) {
        // Most reads are at random places. In a database larger than memory, pages read ahead displace pages that will
        // be read again.
        flags |= EnvFlags::NO_READ_AHEAD;
    }
    explain_bus_errors();
    let env = open_env(path, flags, map_size(length.unwrap_or_default()))?;
    env.clear_stale_readers()?;
    let tables =
        if read_only { open_tables(&env, path)?.ok_or_else(|| nothing_yet(path))? } else { create_tables(&env)? };
    check_layout(&env, &tables)?;
    let tables = Tables { first_packed: first_packed(&env, &tables)?, ..tables };
    let rows = row_tables(&env, read_only)?;
    Ok((env, tables, rows))
}

fn nothing_yet(path: &Path) -> Error {
    Error::Storage(format!("there is no chain in {} yet", path.display()))
}

/// Return the size of the memory map for a file of this length. A full map gets larger at the next start.
fn map_size(length: u64) -> usize {
    let size = usize::try_from(length).unwrap_or(usize::MAX).saturating_mul(MAP_GROWTH_FACTOR);
    size.clamp(MAP_SIZE, 1 << 46).next_multiple_of(MIN_MAP_BYTES)
}

fn open_env(path: &Path, flags: EnvFlags, mut size: usize) -> Result<Env<WithoutTls>> {
    loop {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(size).max_dbs((Tables::NAMES.len() + ROW_TABLES.len()) as u32).max_readers(1024);
        // SAFETY: the lock of the data directory keeps other processes out, and no flag weakens isolation.
        let opened = unsafe { options.flags(flags).open(path) };
        match opened {
            Ok(env) => return Ok(env),
            Err(heed::Error::Io(cause)) if cause.raw_os_error() == Some(12) && size > MIN_MAP_BYTES => size /= 2,
            Err(cause) => {
                let advice = match cause {
                    heed::Error::Mdb(heed::MdbError::Invalid | heed::MdbError::VersionMismatch) => {
                        ". It is damaged, or another program's. Restore it from a copy, or import the chain anew."
                    }
                    _ => "",
                };
                return Err(Error::Storage(format!("cannot open the database in {}: {cause}{advice}", path.display())));
            }
        }
    }
}

/// Create all tables and the layout version in one transaction. In a database with data, a missing table means damage,
/// and a new empty table would hide the damage. Tables of later versions are created in databases that never had them.
fn create_tables(env: &Env<WithoutTls>) -> Result<Tables> {
    let txn = env.write_txn()?;
    let databases = env
        .create_databases_and_commit(txn, |opener, txn| -> Result<_> {
            let made = match opener.open_database::<Raw, Raw>(txn, Some(Tables::NAMES[Tables::META]))? {
                Some(meta_table) if meta_table.get(txn, meta::LAYOUT)?.is_some() => {
                    Some(tables_made(meta_table.get(txn, meta::TABLES)?))
                }
                _ => None,
            };
            let known = &Tables::NAMES[..made.unwrap_or(Tables::NAMES.len())];
            let mut databases = Vec::with_capacity(Tables::NAMES.len());
            let mut lost = Vec::new();
            for name in known {
                match opener.open_database::<Raw, Raw>(txn, Some(name))? {
                    Some(database) => databases.push(database),
                    None => lost.push(*name),
                }
            }
            // the program creates all tables together, so a database with only some tables has lost the others
            if made.is_some() || (!lost.is_empty() && !databases.is_empty()) {
                refuse_lost(&lost)?;
            }
            for name in &Tables::NAMES[databases.len()..] {
                databases.push(opener.create_database::<Raw, Raw>(txn, Some(name))?);
            }
            let databases: [_; Tables::NAMES.len()] =
                databases.try_into().unwrap_or_else(|_| unreachable!("one for each name"));
            let layout = databases[Tables::META].get(txn, meta::LAYOUT)?;
            let is_older = layout.is_some_and(|layout| meta::OLDER_LAYOUTS.contains(&layout));
            if is_older {
                // older versions stored a copy of the head's state here; this version reads that state from the trie
                databases[Tables::STORAGE].clear(txn)?;
            }
            if made != Some(Tables::NAMES.len()) || is_older {
                // because of the new version in this row, older programs report that they cannot read this database;
                // other rows stay unchanged
                let lacks_bodies = databases[Tables::META].get(txn, meta::HISTORY)?.is_some();
                let layout = if lacks_bodies { meta::LAYOUT_WITHOUT_BODIES } else { meta::LAYOUT_VERSION };
                databases[Tables::META].put(txn, meta::LAYOUT, layout)?;
                databases[Tables::META].put(txn, meta::TABLES, &[Tables::NAMES.len() as u8])?;
                if databases[Tables::META].get(txn, meta::FIRST_PACKED)?.is_none() {
                    let next = databases[Tables::META].get(txn, meta::NEXT_NODE)?.map_or(1, number);
                    databases[Tables::META].put(txn, meta::FIRST_PACKED, &next.to_be_bytes())?;
                }
            }
            Ok(CommitOrAbort::<_, ()>::Commit(databases))
        })?
        .unwrap_commit();
    Ok(Tables::of(databases.map(table), u64::MAX))
}

/// Return the number of tables that were created in the database.
fn tables_made(record: Option<&[u8]>) -> usize {
    let count = record.and_then(|record| record.first()).map_or(Tables::FIRST, |count| usize::from(*count));
    count.min(Tables::NAMES.len())
}

/// Return an error that names the lost tables, if there are any.
fn refuse_lost(lost: &[&str]) -> Result<()> {
    match lost {
        [] => Ok(()),
        [name] => Err(Error::damaged(format!("the table '{name}' is missing"))),
        names => Err(Error::damaged(format!("the tables '{}' are missing", names.join("', '")))),
    }
}

/// Open the tables. Returns None if they do not exist yet.
fn open_tables(env: &Env<WithoutTls>, path: &Path) -> Result<Option<Tables>> {
    let txn = env.read_txn()?;
    let databases = env.open_databases_and_commit(txn, |opener, txn| -> Result<_> {
        let mut databases = Vec::with_capacity(Tables::NAMES.len());
        let mut lost = Vec::new();
        for name in Tables::NAMES {
            match opener.open_database::<Raw, Raw>(txn, Some(name))? {
                Some(database) => databases.push(database),
                None => lost.push(name),
            }
        }
        if databases.is_empty() {
            return Ok(CommitOrAbort::Abort(()));
        }
        let meta_table = opener.open_database::<Raw, Raw>(txn, Some(Tables::NAMES[Tables::META]))?;
        let record = meta_table.map_or(Ok(None), |meta_table| meta_table.get(txn, meta::TABLES))?;
        let newer = &Tables::NAMES[tables_made(record)..];
        if databases.len() >= Tables::PREIMAGE_RUNS && lost == newer && lost == Tables::NAMES[databases.len()..] {
            // A database of layout 5 lacks the tables of preimage runs and of packed nodes. A database of layout 7
            // lacks only the table of packed nodes. In both layouts the table `storage` is empty, so it stands in for
            // the missing tables.
            databases.resize(Tables::NAMES.len(), databases[Tables::STORAGE]);
            lost.clear();
        }
        if !lost.is_empty() && lost.iter().all(|name| newer.contains(name)) {
            return Err(Error::Storage(format!(
                "the database in {} is of an older Ophion. Start a node of this version on it once, which adds the \
                 missing tables; then run the command again",
                path.display()
            )));
        }
        refuse_lost(&lost)?;
        let databases: [_; Tables::NAMES.len()] =
            databases.try_into().unwrap_or_else(|_| unreachable!("one for each name"));
        Ok(CommitOrAbort::Commit(databases))
    })?;
    Ok(match databases {
        CommitOrAbort::Commit(databases) => Some(Tables::of(databases.map(table), u64::MAX)),
        CommitOrAbort::Abort(()) => None,
    })
}

/// Open the tables of other packages. Missing tables are created, because a database with a lost table looks the same
/// as an older database.
fn row_tables(env: &Env<WithoutTls>, read_only: bool) -> Result<RowTables> {
    let mut found: RowTables = [None; ROW_TABLES.len()];
    if read_only {
        let txn = env.read_txn()?;
        env.open_databases_and_commit(txn, |opener, txn| -> Result<_> {
            for (place, name) in found.iter_mut().zip(ROW_TABLES) {
                *place = opener.open_database::<Raw, Raw>(txn, Some(name))?.map(table);
            }
            Ok(CommitOrAbort::<_, ()>::Commit(()))
        })?;
    } else {
        let txn = env.write_txn()?;
        env.create_databases_and_commit(txn, |opener, txn| -> Result<_> {
            for (place, name) in found.iter_mut().zip(ROW_TABLES) {
                *place = Some(table(opener.create_database::<Raw, Raw>(txn, Some(name))?));
            }
            Ok(CommitOrAbort::<_, ()>::Commit(()))
        })?;
    }
    Ok(found)
}

fn table(database: Database<'_, Raw, Raw>) -> Table {
    // SAFETY: only the lifetime changes. The handle is a number that is valid while the environment is open, and
    // `Database` owns both.
    Table::new(unsafe { std::mem::transmute::<Database<'_, Raw, Raw>, Database<'static, Raw, Raw>>(database) })
}

/// Return the lowest id of a trie node in the table `node_rows`; `u64::MAX` if a program that knows this table has not
/// written to the database yet. A database may come from another node, so the record is checked: with a wrong record,
/// new nodes would be looked up in the table of the old nodes.
fn first_packed(env: &Env<WithoutTls>, tables: &Tables) -> Result<u64> {
    let txn = env.read_txn()?;
    let layout = tables.meta.get(&txn, meta::LAYOUT)?;
    let is_older = layout.is_some_and(|layout| meta::OLDER_LAYOUTS.contains(&layout));
    let next = tables.meta.get(&txn, meta::NEXT_NODE)?.map_or(1, number);
    match tables.meta.get(&txn, meta::FIRST_PACKED)?.map(number) {
        None if is_older => Ok(u64::MAX),
        Some(first) if first <= next => Ok(first),
        first => Err(Error::damaged(format!("the first packed trie node is {first:?}, and the next node is {next}"))),
    }
}

fn check_layout(env: &Env<WithoutTls>, tables: &Tables) -> Result<()> {
    let known = [meta::LAYOUT_VERSION, meta::LAYOUT_WITHOUT_BODIES];
    let txn = env.read_txn()?;
    match tables.meta.get(&txn, meta::LAYOUT)? {
        Some(version) if known.contains(&version) || meta::OLDER_LAYOUTS.contains(&version) => Ok(()),
        version => Err(Error::Storage(format!(
            "the database has layout {}, this program knows layout {}: use a newer Ophion or another data path",
            version.and_then(|version| version.first()).copied().unwrap_or(0),
            meta::LAYOUT_WITHOUT_BODIES[0]
        ))),
    }
}

/// Print an explanation on SIGBUS. A truncated file or a failing disk kills the process with SIGBUS, because the file
/// is memory-mapped. An existing handler stays.
fn explain_bus_errors() {
    static ONCE: Once = Once::new();
    extern "C" fn explain(_: libc::c_int) {
        const TEXT: &[u8] = b"The database is damaged: its file is shorter than it should be, or its disk fails. \
            Restore it from a copy, or import the chain anew.\n";
        // SAFETY: write and _exit are async-signal-safe, and the text is static.
        unsafe {
            libc::write(2, TEXT.as_ptr().cast(), TEXT.len());
            libc::_exit(1);
        }
    }
    ONCE.call_once(|| {
        // SAFETY: sigaction gets local structures, and the handler is async-signal-safe.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_DFL {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = explain as *const () as libc::sighandler_t;
                libc::sigemptyset(&mut ours.sa_mask);
                libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut());
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Create a database that has only these tables, as an older version made it. Each version with more tables than the
    /// first one records their number.
    fn older(name: &str, tables: &[&str]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("ophion-opening-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        let env = open_env(&path, EnvFlags::empty(), map_size(0)).expect("an environment");
        let txn = env.write_txn().expect("a transaction");
        env.create_databases_and_commit(txn, |opener, txn| -> Result<_> {
            for table in tables {
                let made = opener.create_database::<Raw, Raw>(txn, Some(table))?;
                if *table == Tables::NAMES[Tables::META] {
                    made.put(txn, meta::LAYOUT, meta::OLDER_LAYOUTS[0])?;
                    made.put(txn, meta::NEXT_NODE, &42u64.to_be_bytes())?;
                    if tables.len() > Tables::FIRST {
                        made.put(txn, meta::TABLES, &[tables.len() as u8])?;
                    }
                }
            }
            Ok(CommitOrAbort::<_, ()>::Commit(()))
        })
        .expect("tables")
        .unwrap_commit();
        path
    }

    #[test]
    fn a_map_lets_a_file_grow() {
        assert_eq!(map_size(0), MAP_SIZE);
        assert_eq!(map_size(1 << 36), MAP_SIZE);
        assert_eq!(map_size((1 << 37) + 4096), (1 << 39) + MIN_MAP_BYTES);
        assert_eq!(map_size(u64::MAX), 1 << 46);
    }

    #[test]
    fn an_older_database_without_old_bodies_stays_marked() {
        let path = older("history", &Tables::NAMES[..Tables::PREIMAGE_RUNS]);
        let layout = |is_pending: bool| {
            let (env, tables, _) = open(&path, true, false, false).expect("a database");
            let mut txn = env.write_txn().expect("a transaction");
            let layout = tables.meta.get(&txn, meta::LAYOUT).expect("a table").map(<[u8]>::to_vec);
            if is_pending {
                tables.meta.put(&mut txn, meta::HISTORY, &9u64.to_be_bytes()).expect("a table");
                tables.meta.put(&mut txn, meta::LAYOUT, &[6]).expect("a table");
                txn.commit().expect("a commit");
            }
            layout
        };
        assert_eq!(layout(true).as_deref(), Some(meta::LAYOUT_VERSION));
        assert_eq!(layout(false).as_deref(), Some(meta::LAYOUT_WITHOUT_BODIES));
    }

    #[test]
    fn later_tables_are_made_in_an_older_database_and_lost_ones_are_not() {
        let first = &Tables::NAMES[..Tables::FIRST];
        let path = older("first", first);
        let refused = open(&path, false, true, true).err().expect("reading alone makes nothing").to_string();
        assert!(refused.contains("Start a node of this version on it once"), "{refused}");
        drop(open(&path, true, false, false).expect("the later tables are made"));
        let (env, tables, _) = open(&path, false, true, true).expect("and are there");
        let layout = tables
            .meta
            .get(&env.read_txn().expect("a transaction"), meta::LAYOUT)
            .expect("a table")
            .map(<[u8]>::to_vec);
        assert_eq!(layout.as_deref(), Some(meta::LAYOUT_VERSION), "older programs shall refuse it");
        drop(env);
        let path = older("fifth", &Tables::NAMES[..Tables::PREIMAGE_RUNS]);
        let (env, tables, _) = open(&path, false, true, true).expect("layout 5 can be read as it is");
        assert_eq!(tables.preimage_runs.usage(&env.read_txn().expect("a transaction")).expect("a table").0, 0);
        drop(env);
        let path = older("eighth", &Tables::NAMES[..Tables::NODE_ROWS]);
        let (env, tables, _) = open(&path, false, true, true).expect("layout 7 can be read as it is");
        assert_eq!(tables.first_packed, u64::MAX);
        drop(env);
        for _ in 0..2 {
            let (env, tables, _) = open(&path, true, false, false).expect("the table of rows is made once");
            assert_eq!(tables.first_packed, 42, "older nodes have their own rows");
            let mut txn = env.write_txn().expect("a transaction");
            tables.meta.put(&mut txn, meta::NEXT_NODE, &50u64.to_be_bytes()).expect("a table");
            txn.commit().expect("a commit");
        }
        for (name, record) in [("absent", None), ("late", Some(51u64))] {
            let path = older(name, &Tables::NAMES[..Tables::NODE_ROWS]);
            let (env, tables, _) = open(&path, true, false, false).expect("the table of rows is made");
            let mut txn = env.write_txn().expect("a transaction");
            match record {
                None => drop(tables.meta.delete(&mut txn, meta::FIRST_PACKED).expect("a table")),
                Some(first) => tables.meta.put(&mut txn, meta::FIRST_PACKED, &first.to_be_bytes()).expect("a table"),
            }
            txn.commit().expect("a commit");
            drop(env);
            let refused = open(&path, false, true, true).err().expect("a wrong record is damage").to_string();
            assert!(refused.contains("first packed trie node"), "{refused}");
        }
        let path = older("whole", &Tables::NAMES);
        drop(open(&path, false, true, true).expect("an older database can be looked at"));
        let path = older("lost", &first[..Tables::FIRST - 1]);
        let refused = open(&path, true, false, false).err().expect("a lost table is damage").to_string();
        assert!(refused.contains(first[Tables::FIRST - 1]), "{refused}");
    }
}
