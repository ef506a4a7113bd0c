//! Encodes page headers and the file footer. Field ids and type numbers come from Parquet's Thrift definition.

use super::chunk::Chunk;
use super::thrift::{Type, Writer};
use crate::tables::column::Kind;

const CREATED_BY: &str = concat!("ophion version ", env!("CARGO_PKG_VERSION"));
const VERSION: i32 = 2;
const OPTIONAL: i32 = 1;

/// Compression of the pages of a column chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    None = 0,
    Zstd = 6,
}

#[derive(Clone, Copy)]
pub enum PageKind {
    Data = 0,
    Dictionary = 2,
}

#[derive(Clone, Copy)]
pub enum Encoding {
    Plain = 0,
    Runs = 3,
    Dictionary = 8,
}

/// Name and type of a column.
pub struct Field {
    pub name: String,
    pub kind: Kind,
    /// Whether to encode the column with a dictionary, because its values repeat.
    pub has_dictionary: bool,
}

/// Position of a column chunk in the Parquet file.
pub struct ChunkPlace {
    pub start: u64,
    pub chunk: Chunk,
}

/// Metadata of one row group in the file, without the bytes of its column chunks.
pub struct Group {
    pub rows: usize,
    pub chunks: Vec<ChunkPlace>,
}

pub fn page_header(kind: PageKind, encoding: Encoding, count: usize, raw: usize, packed: usize) -> Vec<u8> {
    let mut out = Writer::default();
    out.item(|out| {
        out.i32(1, kind as i32);
        out.i32(2, raw as i32);
        out.i32(3, packed as i32);
        match kind {
            PageKind::Data => out.structure(5, |out| {
                out.i32(1, count as i32);
                out.i32(2, encoding as i32);
                out.i32(3, Encoding::Runs as i32);
                out.i32(4, Encoding::Runs as i32);
            }),
            PageKind::Dictionary => out.structure(7, |out| {
                out.i32(1, count as i32);
                out.i32(2, encoding as i32);
            }),
        }
    });
    out.bytes
}

pub fn footer(fields: &[Field], groups: &[Group], metadata: &[(String, String)]) -> Vec<u8> {
    let mut out = Writer::default();
    out.item(|out| {
        out.i32(1, VERSION);
        out.list(2, Type::Struct, 0..fields.len() + 1, |out, at| match at {
            0 => out.item(|out| {
                out.binary(4, b"schema");
                out.i32(5, fields.len() as i32);
            }),
            _ => column_schema(out, &fields[at - 1]),
        });
        out.i64(3, groups.iter().map(|group| group.rows as i64).sum());
        out.list(4, Type::Struct, groups.iter(), |out, group| row_group(out, fields, group));
        out.list(5, Type::Struct, metadata.iter(), |out, (key, value)| {
            out.item(|out| {
                out.binary(1, key.as_bytes());
                out.binary(2, value.as_bytes());
            });
        });
        out.binary(6, CREATED_BY.as_bytes());
        // Column order TYPE_ORDER: minimum and maximum use the sort order of the column's type.
        out.list(7, Type::Struct, fields.iter(), |out, _| out.item(|out| out.structure(1, |_| {})));
    });
    out.bytes
}

fn physical_type(kind: Kind) -> i32 {
    match kind {
        Kind::Bool => 0,
        Kind::U32 => 1,
        Kind::U64 => 2,
        Kind::F64 => 5,
        Kind::Binary | Kind::Text => 6,
        Kind::Fixed(_) | Kind::Decimal => 7,
    }
}

fn column_schema(out: &mut Writer, field: &Field) {
    let length = match field.kind {
        Kind::Fixed(width) => Some(width as i32),
        Kind::Decimal => Some(16),
        _ => None,
    };
    out.item(|out| {
        out.i32(1, physical_type(field.kind));
        if let Some(length) = length {
            out.i32(2, length);
        }
        out.i32(3, OPTIONAL);
        out.binary(4, field.name.as_bytes());
        logical_type(out, field.kind);
    });
}

/// Write the logical type of a column twice: as ConvertedType (field 6) for old readers, and as LogicalType (field 10).
fn logical_type(out: &mut Writer, kind: Kind) {
    let unsigned = |out: &mut Writer, converted: i32, bits: i8| {
        out.i32(6, converted);
        out.structure(10, |out| {
            out.structure(10, |out| {
                out.i8(1, bits);
                out.bool(2, false);
            });
        });
    };
    match kind {
        Kind::U32 => unsigned(out, 13, 32),
        Kind::U64 => unsigned(out, 14, 64),
        Kind::Text => {
            out.i32(6, 0);
            out.structure(10, |out| out.structure(1, |_| {}));
        }
        Kind::Decimal => {
            out.i32(6, 5);
            out.i32(7, 0);
            out.i32(8, 38);
            out.structure(10, |out| {
                out.structure(5, |out| {
                    out.i32(1, 0);
                    out.i32(2, 38);
                });
            });
        }
        Kind::F64 | Kind::Bool | Kind::Fixed(_) | Kind::Binary => {}
    }
}

fn row_group(out: &mut Writer, fields: &[Field], group: &Group) {
    let total = |size: fn(&ChunkPlace) -> usize| group.chunks.iter().map(size).sum::<usize>() as i64;
    out.item(|out| {
        out.list(1, Type::Struct, group.chunks.iter().zip(fields), |out, (place, field)| {
            out.item(|out| {
                out.i64(2, place.start as i64);
                out.structure(3, |out| column_chunk(out, field, place));
            });
        });
        out.i64(2, total(|place| place.chunk.raw_bytes));
        out.i64(3, group.rows as i64);
        out.i64(6, total(|place| place.chunk.packed_bytes));
    });
}

fn column_chunk(out: &mut Writer, field: &Field, place: &ChunkPlace) {
    let (chunk, start) = (&place.chunk, place.start as i64);
    let encodings = match chunk.dictionary_bytes {
        Some(_) => &[Encoding::Plain, Encoding::Runs, Encoding::Dictionary][..],
        None => &[Encoding::Plain, Encoding::Runs],
    };
    out.i32(1, physical_type(field.kind));
    out.list(2, Type::I32, encodings.iter(), |out, one| out.i32_item(*one as i32));
    out.list(3, Type::Binary, [&field.name].into_iter(), |out, name| out.binary_item(name.as_bytes()));
    out.i32(4, chunk.codec as i32);
    out.i64(5, chunk.rows as i64);
    out.i64(6, chunk.raw_bytes as i64);
    out.i64(7, chunk.packed_bytes as i64);
    out.i64(9, start + chunk.dictionary_bytes.unwrap_or(0) as i64);
    if chunk.dictionary_bytes.is_some() {
        out.i64(11, start);
    }
    out.structure(12, |out| {
        out.i64(3, chunk.nulls as i64);
        if let Some((low, high)) = &chunk.range {
            out.binary(5, high);
            out.binary(6, low);
        }
    });
}
