//! Encodes the row groups and the footer of a Parquet file.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ophion_primitives::errors::{Error, Result};

use super::chunk::{Chunk, Packer, encode};
use super::metadata::{ChunkPlace, Group, footer};
use crate::tables::column::Column;

pub use super::metadata::Field;

const MAGIC: &[u8; 4] = b"PAR1";
const ZSTD_LEVEL: i32 = 1;

/// Encodes one Parquet file. The caller writes the returned bytes to the file, in order.
pub struct Encoder {
    fields: Vec<Field>,
    metadata: Vec<(String, String)>,
    groups: Vec<Group>,
    /// Number of bytes of the file encoded so far.
    offset: u64,
}

impl Encoder {
    pub fn new(fields: Vec<Field>, metadata: Vec<(String, String)>) -> Self {
        Encoder { fields, metadata, groups: Vec::new(), offset: 0 }
    }

    /// Encode tables as one row group. Up to `threads` threads encode one column each. `write` receives the next part
    /// of the file while other threads encode.
    pub fn row_group<E: From<Error>>(
        &mut self,
        tables: &[Vec<Arc<Column>>],
        threads: usize,
        mut write: impl FnMut(Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let start = self.start();
        let mut offset = self.offset + start.len() as u64;
        write(start)?;
        let mut chunks = Vec::with_capacity(self.fields.len());
        encode_columns(&self.fields, tables, threads, |(chunk, bytes)| {
            chunks.push(ChunkPlace { start: offset, chunk });
            offset += bytes.len() as u64;
            write(bytes)
        })?;
        self.offset = offset;
        let rows = tables.iter().map(|table| table.first().map_or(0, |column| column.rows())).sum();
        self.groups.push(Group { rows, chunks });
        Ok(())
    }

    /// Encode the footer, which ends the file.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = self.start();
        let footer = footer(&self.fields, &self.groups, &self.metadata);
        out.extend_from_slice(&footer);
        out.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        out.extend_from_slice(MAGIC);
        self.offset += out.len() as u64;
        out
    }

    fn start(&self) -> Vec<u8> {
        if self.offset == 0 { MAGIC.to_vec() } else { Vec::new() }
    }
}

type Encoded = (Chunk, Vec<u8>);

/// Encode the columns of a row group and pass them to `take` in the order of the fields. This thread encodes columns too,
/// and passes on what is ready after each of them.
fn encode_columns<E: From<Error>>(
    fields: &[Field],
    tables: &[Vec<Arc<Column>>],
    threads: usize,
    mut take: impl FnMut(Encoded) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let order = order_of(tables, fields.len());
    let next = AtomicUsize::new(0);
    let ready: Mutex<Vec<Option<Result<Encoded>>>> = Mutex::new(fields.iter().map(|_| None).collect());
    let encode_next = |packer: &mut Packer<'_>| {
        let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)).copied() else { return false };
        let parts: Vec<&Column> = tables.iter().map(|table| &*table[at]).collect();
        let encoded = encode(&parts, fields[at].has_dictionary, packer);
        ready.lock().expect("no thread panics with the lock")[at] = Some(encoded);
        true
    };
    let mut taken = 0;
    let mut take_ready = || -> std::result::Result<(), E> {
        while taken < fields.len() {
            // release the lock before `take`, which may wait for the disk
            let found = ready.lock().expect("no thread panics with the lock")[taken].take();
            let Some(encoded) = found else { break };
            taken += 1;
            take(encoded?)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| -> std::result::Result<(), E> {
        for _ in 1..threads.min(fields.len()) {
            scope.spawn(|| {
                let mut packer = Packer::new(ZSTD_LEVEL);
                while encode_next(&mut packer) {}
            });
        }
        let mut packer = Packer::new(ZSTD_LEVEL);
        while encode_next(&mut packer) {
            // after an error, the other threads encode no further column
            take_ready().inspect_err(|_| next.store(order.len(), Ordering::Relaxed))?;
        }
        Ok(())
    })?;
    take_ready()
}

/// Return the order in which columns are encoded: large columns first, so that the threads end at about the same time,
/// then in the order of the file, so that they can be written soon.
fn order_of(tables: &[Vec<Arc<Column>>], count: usize) -> Vec<usize> {
    let size = |at: usize| tables.iter().map(|table| table[at].size()).sum::<usize>();
    let sizes: Vec<usize> = (0..count).map(size).collect();
    let large = sizes.iter().sum::<usize>() / LARGE_SHARE;
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|at| Reverse(if sizes[*at] > large { sizes[*at] } else { 0 }));
    order
}

/// A column is large if it has more than this fraction of the bytes of a row group.
const LARGE_SHARE: usize = 6;

#[cfg(test)]
mod tests {
    use super::super::metadata::Codec;
    use super::*;
    use crate::tables::column::Kind;

    fn appended(file: &mut Vec<u8>, part: &[u8]) -> Result<()> {
        file.extend_from_slice(part);
        Ok(())
    }

    #[test]
    fn an_error_of_the_writer_ends_the_row_group() {
        let field = |at: usize| Field { name: format!("n{at}"), kind: Kind::U32, has_dictionary: false };
        let mut column = Column::new(Kind::U32, true);
        (0..1000).for_each(|number| column.u32(number));
        let column = Arc::new(column);
        let table: Vec<_> = (0..9).map(|_| column.clone()).collect();
        for fails_at in 0..10 {
            let mut encoder = Encoder::new((0..9).map(field).collect(), Vec::new());
            let mut written = 0;
            let found = encoder.row_group(std::slice::from_ref(&table), 3, |_| {
                written += 1;
                if written > fails_at { Err(Error::Storage("the disk is full".into())) } else { Ok(()) }
            });
            assert!(matches!(found, Err(Error::Storage(_))), "{fails_at}");
            assert_eq!(written, fails_at + 1);
        }
    }

    #[test]
    fn large_columns_are_encoded_first() {
        let sizes = [10, 30, 4000, 20, 9000, 600];
        let table = sizes.map(|rows| {
            let mut column = Column::new(Kind::U32, true);
            (0..rows).for_each(|number| column.u32(number));
            Arc::new(column)
        });
        assert_eq!(order_of(&[table.to_vec()], 6), [4, 2, 0, 1, 3, 5]);
    }

    #[test]
    fn a_file_starts_and_ends_with_the_magic_bytes() {
        let field = Field { name: "n".into(), kind: Kind::U32, has_dictionary: false };
        let mut column = Column::new(Kind::U32, true);
        (0..1000).for_each(|number| column.u32(number));
        let mut encoder = Encoder::new(vec![field], vec![("key".into(), "value".into())]);
        let mut file = Vec::new();
        encoder.row_group(&[vec![Arc::new(column)]], 2, |part| appended(&mut file, &part)).unwrap();
        file.extend(encoder.finish());
        let end = file.len();
        assert_eq!((&file[..4], &file[end - 4..]), (&MAGIC[..], &MAGIC[..]));
        let length = u32::from_le_bytes(file[end - 8..end - 4].try_into().unwrap()) as usize;
        assert!(length < end - 12);
        assert_eq!(file[end - 8 - length], 0x15); // the version is the first field
    }

    #[test]
    fn a_column_of_hashes_is_not_compressed() {
        let codecs: Vec<Codec> = [true, false]
            .map(|is_random| {
                let mut column = Column::new(Kind::Fixed(32), true);
                let hash = |number: u64| alloy_primitives::keccak256(number.to_be_bytes());
                (0..5000u64).for_each(|number| column.bytes(&hash(if is_random { number } else { number / 200 }).0));
                let mut packer = Packer::new(ZSTD_LEVEL);
                let (chunk, bytes) = encode(&[&column], false, &mut packer).unwrap();
                assert_eq!(chunk.packed_bytes, bytes.len());
                assert_eq!(chunk.raw_bytes == bytes.len(), is_random);
                chunk.codec
            })
            .into();
        assert_eq!(codecs, [Codec::None, Codec::Zstd]);
    }

    #[test]
    fn the_number_of_threads_does_not_change_the_file() {
        let kinds = [Kind::U64, Kind::Fixed(3), Kind::Text, Kind::Bool, Kind::Decimal];
        let columns: Vec<Arc<Column>> = kinds
            .into_iter()
            .map(|kind| {
                let mut column = Column::new(kind, true);
                for number in 0..5000u64 {
                    match kind {
                        _ if number % 7 == 0 => column.null(),
                        Kind::U64 => column.u64(number),
                        Kind::Bool => column.bool(number % 3 == 0),
                        Kind::Decimal => column.decimal(&alloy_primitives::U256::from(number)),
                        _ => column.bytes(&number.to_be_bytes()[5..]),
                    }
                }
                Arc::new(column)
            })
            .collect();
        let file = |threads: usize| {
            let field = |kind: &Kind| Field { name: kind.name(), kind: *kind, has_dictionary: true };
            let mut encoder = Encoder::new(kinds.iter().map(field).collect(), Vec::new());
            let mut bytes = Vec::new();
            let tables = [columns.clone(), columns.clone()];
            encoder.row_group(&tables, threads, |part| appended(&mut bytes, &part)).unwrap();
            bytes.extend(encoder.finish());
            bytes
        };
        assert_eq!(file(1), file(4));
    }
}
