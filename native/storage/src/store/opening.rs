//! Opening the database, and what can be wrong with it.

use std::path::Path;
use std::sync::Once;

use heed::types::Bytes as Raw;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use ophion_primitives::errors::{Error, Result};

use super::tables::{ROW_TABLES, RowTables, Table, Tables, meta};

/// Virtual size of the map; halved while the system refuses it. Only what is used takes memory or disk.
const MAP_SIZE: usize = 1 << 38;
const SMALLEST_MAP: usize = 1 << 30;
/// LMDB begins a file with two pages of this size at least; a shorter one was never finished.
const TWO_PAGES: u64 = 8192;

/// The environment with its tables.
pub type Opened = (Env<WithoutTls>, Tables, RowTables);

/// Open the environment and its tables, made anew where asked for.
pub fn open(path: &Path, create: bool, read_only: bool, durable: bool) -> Result<Opened> {
    let place = path.display();
    let file = path.join("data.mdb");
    let length = file.metadata().map(|file| file.len()).ok();
    if create && !read_only {
        std::fs::create_dir_all(path).map_err(|cause| Error::Storage(format!("cannot create {place}: {cause}")))?;
        if length.is_some_and(|length| length < TWO_PAGES) {
            // The disk was full, or the process killed, before anything was stored: LMDB begins again with an empty file.
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
    explain_bus_errors();
    let env = open_env(path, flags)?;
    env.clear_stale_readers()?;
    let tables = if read_only { open_tables(&env)?.ok_or_else(|| nothing_yet(path))? } else { create_tables(&env)? };
    check_layout(&env, &tables)?;
    let rows = row_tables(&env, read_only)?;
    Ok((env, tables, rows))
}

fn nothing_yet(path: &Path) -> Error {
    Error::Storage(format!("there is no chain in {} yet", path.display()))
}

fn open_env(path: &Path, flags: EnvFlags) -> Result<Env<WithoutTls>> {
    let mut size = MAP_SIZE;
    loop {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(size).max_dbs((Tables::NAMES.len() + ROW_TABLES.len()) as u32).max_readers(1024);
        // SAFETY: the data directory's lock keeps other processes out, and the flags used here never
        // weaken what a reader sees.
        let opened = unsafe { options.flags(flags).open(path) };
        match opened {
            Ok(env) => return Ok(env),
            Err(heed::Error::Io(cause)) if cause.raw_os_error() == Some(12) && size > SMALLEST_MAP => size /= 2,
            Err(cause) => {
                return Err(Error::Storage(format!("cannot open the database in {}: {cause}", path.display())));
            }
        }
    }
}

/// All tables, and the layout's version, in one transaction: either everything is there or nothing. In a database
/// that is in use a missing table is damage, and making an empty one would hide it.
fn create_tables(env: &Env<WithoutTls>) -> Result<Tables> {
    let txn = env.write_txn()?;
    let databases = env
        .create_databases_and_commit(txn, |opener, txn| -> Result<_> {
            let in_use = match opener.open_database::<Raw, Raw>(txn, Some(Tables::NAMES[Tables::META]))? {
                Some(meta_table) => meta_table.get(txn, meta::LAYOUT)?.is_some(),
                None => false,
            };
            let mut databases = Vec::with_capacity(Tables::NAMES.len());
            let mut lost = Vec::new();
            for name in Tables::NAMES {
                match opener.open_database::<Raw, Raw>(txn, Some(name))? {
                    Some(database) => databases.push(database),
                    None => lost.push(name),
                }
            }
            // Tables are made together, so some without the others are what is left of all of them.
            if in_use || (!lost.is_empty() && !databases.is_empty()) {
                refuse_lost(&lost)?;
            }
            if databases.is_empty() {
                for name in Tables::NAMES {
                    databases.push(opener.create_database::<Raw, Raw>(txn, Some(name))?);
                }
            }
            let databases: [_; Tables::NAMES.len()] =
                databases.try_into().unwrap_or_else(|_| unreachable!("one for each name"));
            if !in_use {
                databases[Tables::META].put(txn, meta::LAYOUT, meta::LAYOUT_VERSION)?;
            }
            Ok(CommitOrAbort::<_, ()>::Commit(databases))
        })?
        .unwrap_commit();
    Ok(Tables::of(databases.map(table)))
}

/// Damage that names the tables which are not there.
fn refuse_lost(lost: &[&str]) -> Result<()> {
    match lost {
        [] => Ok(()),
        [name] => Err(Error::damaged(format!("the table '{name}' is missing"))),
        names => Err(Error::damaged(format!("the tables '{}' are missing", names.join("', '")))),
    }
}

/// None while the tables have not been made.
fn open_tables(env: &Env<WithoutTls>) -> Result<Option<Tables>> {
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
        refuse_lost(&lost)?;
        let databases: [_; Tables::NAMES.len()] =
            databases.try_into().unwrap_or_else(|_| unreachable!("one for each name"));
        Ok(CommitOrAbort::Commit(databases))
    })?;
    Ok(match databases {
        CommitOrAbort::Commit(databases) => Some(Tables::of(databases.map(table))),
        CommitOrAbort::Abort(()) => None,
    })
}

/// The tables of other rooms. Empty ones are no loss that could be told from a database of an older program, so they are
/// made where they are missing; their rooms say what they miss.
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
    // SAFETY: only the lifetime changes. The handle is a number that stays valid while the environment is open, and
    // `Database` owns both.
    Table::new(unsafe { std::mem::transmute::<Database<'_, Raw, Raw>, Database<'static, Raw, Raw>>(database) })
}

fn check_layout(env: &Env<WithoutTls>, tables: &Tables) -> Result<()> {
    let txn = env.read_txn()?;
    match tables.meta.get(&txn, meta::LAYOUT)? {
        Some(version) if version == meta::LAYOUT_VERSION => Ok(()),
        version => Err(Error::Storage(format!(
            "the database has layout {}, this program knows layout {}: use a newer Ophion or another data path",
            version.and_then(|version| version.first()).copied().unwrap_or(0),
            meta::LAYOUT_VERSION[0]
        ))),
    }
}

/// A page that is not in the file any more, or a failing disk, kills the process with SIGBUS, since the file is
/// mapped. Nothing can be rescued then, but it can be said. Whoever has a handler of their own keeps it.
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
        // SAFETY: plain calls of sigaction with structures of our own; the handler is async-signal-safe.
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
