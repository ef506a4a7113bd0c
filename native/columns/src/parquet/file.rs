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

    /// Encode tables as one row group. Up to `threads` threads encode one column each. Returns parts of the file, in
    /// order.
    pub fn row_group(&mut self, tables: &[Vec<Arc<Column>>], threads: usize) -> Result<Vec<Vec<u8>>> {
        let encoded = encode_columns(&self.fields, tables, threads)?;
        let mut out = Vec::with_capacity(encoded.len() + 1);
        out.push(self.start());
        self.offset += out[0].len() as u64;
        let mut chunks = Vec::with_capacity(encoded.len());
        for (chunk, bytes) in encoded {
            chunks.push(ChunkPlace { start: self.offset, chunk });
            self.offset += bytes.len() as u64;
            out.push(bytes);
        }
        let rows = tables.iter().map(|table| table.first().map_or(0, |column| column.rows())).sum();
        self.groups.push(Group { rows, chunks });
        Ok(out)
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

fn encode_columns(fields: &[Field], tables: &[Vec<Arc<Column>>], threads: usize) -> Result<Vec<Encoded>> {
    let next = AtomicUsize::new(0);
    // the largest columns come first, so that the threads end at about the same time
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_by_key(|at| Reverse(tables.iter().map(|table| table[*at].size()).sum::<usize>()));
    let done: Mutex<Vec<Option<Result<Encoded>>>> = Mutex::new(fields.iter().map(|_| None).collect());
    let work = || {
        let mut packer = Packer::new(ZSTD_LEVEL);
        loop {
            let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)).copied() else { return };
            let parts: Vec<&Column> = tables.iter().map(|table| &*table[at]).collect();
            let encoded = encode(&parts, fields[at].has_dictionary, &mut packer);
            done.lock().expect("no thread panics with the lock")[at] = Some(encoded);
        }
    };
    std::thread::scope(|scope| {
        (1..threads.min(fields.len())).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let all = done.into_inner().map_err(|_| Error::Storage("a thread of the encoder has failed".into()))?;
    all.into_iter().map(|one| one.expect("every column is encoded")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Codec;
    use super::*;
    use crate::tables::column::Kind;

    #[test]
    fn a_file_starts_and_ends_with_the_magic_bytes() {
        let field = Field { name: "n".into(), kind: Kind::U32, has_dictionary: false };
        let mut column = Column::new(Kind::U32, true);
        (0..1000).for_each(|number| column.u32(number));
        let mut encoder = Encoder::new(vec![field], vec![("key".into(), "value".into())]);
        let mut file = encoder.row_group(&[vec![Arc::new(column)]], 2).unwrap().concat();
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
            let mut bytes = encoder.row_group(&[columns.clone(), columns.clone()], threads).unwrap().concat();
            bytes.extend(encoder.finish());
            bytes
        };
        assert_eq!(file(1), file(4));
    }
}
