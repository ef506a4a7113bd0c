//! The values of one column in one row group, as pages.

use ophion_primitives::errors::{Error, Result};
use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use super::dictionary::{Dictionary, Key};
use super::levels::{append_run, append_runs, bits_of};
use super::metadata::{Codec, Encoding, PageKind, page_header};
use crate::tables::column::{Column, Kind};

/// Size in bytes of the uncompressed values at which a page ends. The last value of a page may exceed it.
const MAX_PAGE_BYTES: usize = 1 << 20;
const LEVEL_BITS: u32 = 1;
/// Size of the sample that decides whether a column of byte strings is compressed.
const SAMPLE_BYTES: usize = 1 << 14;

/// Metadata of an encoded column chunk; the bytes of its pages are separate.
pub struct Chunk {
    pub codec: Codec,
    pub packed_bytes: usize,
    pub rows: usize,
    pub nulls: usize,
    /// Length of the dictionary page, which comes first.
    pub dictionary_bytes: Option<usize>,
    /// Size of all pages of the column chunk in bytes, with page headers, before compression.
    pub raw_bytes: usize,
    /// Smallest and greatest value, little-endian; None unless the column holds whole numbers.
    pub range: Option<(Vec<u8>, Vec<u8>)>,
}

/// Compresses pages. Its buffers are used again for each page.
pub struct Packer<'z> {
    zstd: Compressor<'z>,
    /// The uncompressed page.
    page: Vec<u8>,
    /// The compressed page.
    buffer: Vec<u8>,
}

impl Packer<'_> {
    pub fn new(level: i32) -> Self {
        let zstd = Compressor::new(level).expect("the level is valid");
        Packer { zstd, page: Vec::new(), buffer: Vec::new() }
    }

    fn packed(&mut self, raw: &[u8]) -> Result<&[u8]> {
        packed(&mut self.zstd, &mut self.buffer, raw)?;
        Ok(&self.buffer)
    }
}

fn packed(zstd: &mut Compressor<'_>, buffer: &mut Vec<u8>, raw: &[u8]) -> Result<()> {
    buffer.clear();
    buffer.reserve(compress_bound(raw.len()));
    let size = zstd.compress_to_buffer(raw, buffer);
    size.map(drop).map_err(|error| Error::Storage(format!("zstd: {error}")))
}

/// Encode one column of a row group. `parts` holds this column from each table of the row group, in order. Returns the
/// chunk's metadata and the bytes of its pages. With `has_dictionary`, repeated values are written once.
pub fn encode(parts: &[&Column], has_dictionary: bool, packer: &mut Packer<'_>) -> Result<(Chunk, Vec<u8>)> {
    let kind = parts[0].kind;
    let rows = parts.iter().map(|part| part.rows()).sum();
    let nulls = parts.iter().map(|part| part.nulls).sum();
    let numbers = numbers_of(kind, parts);
    let span = numbers.iter().min().copied().zip(numbers.iter().max().copied());
    let dictionary = if has_dictionary { dictionary_of(kind, parts, rows, &numbers, span) } else { None };
    let codec = if dictionary.is_none() && is_random(kind, parts, packer)? { Codec::None } else { Codec::Zstd };
    let mut pages = Pages { bytes: Vec::new(), raw_bytes: 0, codec, packer };
    let mut dictionary_bytes = None;
    match dictionary {
        Some((distinct, values, positions)) => {
            pages.append(PageKind::Dictionary, Encoding::Plain, distinct, &values, |_| {})?;
            dictionary_bytes = Some(pages.bytes.len());
            let width = bits_of(distinct.saturating_sub(1) as u32);
            let mut levels = levels_of(parts);
            levels.push(width as u8);
            pages.append(PageKind::Data, Encoding::Dictionary, rows, &levels, |page| {
                append_runs(page, &positions, width);
            })?;
        }
        None => parts.iter().try_for_each(|part| append_plain_pages(&mut pages, part))?,
    }
    let (bytes, raw_bytes) = (pages.bytes, pages.raw_bytes);
    // with the smallest and the greatest number, readers can skip row groups
    let end = |number: u64| number.to_le_bytes()[..if kind == Kind::U32 { 4 } else { 8 }].to_vec();
    let range = span.filter(|_| kind != Kind::F64).map(|(low, high)| (end(low), end(high)));
    Ok((Chunk { codec, packed_bytes: bytes.len(), rows, nulls, dictionary_bytes, raw_bytes, range }, bytes))
}

/// Return whether a sample of a column of byte strings of fixed length hardly shrinks when it is compressed. Hashes are
/// an example.
fn is_random(kind: Kind, parts: &[&Column], packer: &mut Packer<'_>) -> Result<bool> {
    let Kind::Fixed(_) = kind else { return Ok(false) };
    let Some(part) = parts.iter().find(|part| !part.values.is_empty()) else { return Ok(false) };
    let sample = &part.values[..part.values.len().min(SAMPLE_BYTES)];
    Ok(packer.packed(sample)?.len() > sample.len() / 16 * 15)
}

fn valid(column: &Column) -> impl Iterator<Item = usize> + '_ {
    (0..column.rows()).filter(|row| column.is_valid(*row))
}

type Found = (usize, Vec<u8>, Vec<u32>);

/// Return the number of distinct values of a column, these values as Parquet writes them, and the position of each
/// value among them. Returns None if a dictionary would not make the column smaller.
fn dictionary_of(
    kind: Kind,
    parts: &[&Column],
    rows: usize,
    numbers: &[u64],
    span: Option<(u64, u64)>,
) -> Option<Found> {
    let mut plain = Vec::new();
    match kind {
        Kind::Bool | Kind::Decimal => None,
        Kind::U32 | Kind::U64 | Kind::F64 => {
            let width = if kind == Kind::U32 { 4 } else { 8 };
            let found = Dictionary::of_numbers(numbers, span.unwrap_or((0, 0)), width)?;
            found.values.iter().for_each(|number| plain.extend_from_slice(&number.to_le_bytes()[..width]));
            Some((found.values.len(), plain, found.positions))
        }
        Kind::Fixed(20) => arrays::<20>(parts, rows),
        Kind::Fixed(32) => arrays::<32>(parts, rows),
        Kind::Fixed(_) | Kind::Binary | Kind::Text => {
            let values = parts.iter().flat_map(|part| valid(part).map(|row| part.value(row)));
            let found = Dictionary::of(values, rows, |value| value.len())?;
            found.values.iter().for_each(|value| append_plain(&mut plain, kind, value));
            Some((found.values.len(), plain, found.positions))
        }
    }
}

/// Return the dictionary of byte strings of `N` bytes. Keys of a known length hash and compare faster.
fn arrays<const N: usize>(parts: &[&Column], rows: usize) -> Option<Found>
where
    [u8; N]: Key,
{
    let values = parts.iter().flat_map(|part| {
        let all = part.values.chunks_exact(N).enumerate().filter(|(row, _)| part.is_valid(*row));
        all.map(|(_, bytes)| -> [u8; N] { bytes.try_into().expect("the length matches") })
    });
    let found = Dictionary::of(values, rows, |_| N)?;
    Some((found.values.len(), found.values.concat(), found.positions))
}

/// Return the values of a column of numbers as 64-bit words, without nulls. Returns an empty list for a column of
/// another type.
fn numbers_of(kind: Kind, parts: &[&Column]) -> Vec<u64> {
    match kind {
        Kind::U32 => words::<4>(parts, |bytes| u64::from(u32::from_le_bytes(bytes))),
        Kind::U64 | Kind::F64 => words::<8>(parts, u64::from_le_bytes),
        _ => Vec::new(),
    }
}

fn words<const N: usize>(parts: &[&Column], word: impl Fn([u8; N]) -> u64) -> Vec<u64> {
    let mut found = Vec::with_capacity(parts.iter().map(|part| part.rows()).sum());
    for part in parts {
        let all = part.values.chunks_exact(N).map(|bytes| word(bytes.try_into().expect("the length matches")));
        if part.nulls == 0 {
            found.extend(all);
        } else {
            found.extend(all.enumerate().filter(|(row, _)| part.is_valid(*row)).map(|(_, word)| word));
        }
    }
    found
}

struct Pages<'a, 'z> {
    bytes: Vec<u8>,
    raw_bytes: usize,
    codec: Codec,
    packer: &'a mut Packer<'z>,
}

impl Pages<'_, '_> {
    /// Append a page. Its uncompressed content is `start`, followed by the bytes that `fill` appends.
    fn append(
        &mut self,
        kind: PageKind,
        encoding: Encoding,
        count: usize,
        start: &[u8],
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let Packer { zstd, page, buffer } = &mut *self.packer;
        page.clear();
        page.extend_from_slice(start);
        fill(page);
        let content = match self.codec {
            Codec::Zstd => {
                packed(zstd, buffer, page)?;
                buffer
            }
            Codec::None => &*page,
        };
        let header = page_header(kind, encoding, count, page.len(), content.len());
        self.raw_bytes += header.len() + page.len();
        self.bytes.reserve(header.len() + content.len());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(content);
        Ok(())
    }
}

/// Append all values of one table's column, in pages of about `MAX_PAGE_BYTES`.
fn append_plain_pages(pages: &mut Pages<'_, '_>, part: &Column) -> Result<()> {
    let mut first = 0;
    while first < part.rows() {
        let end = page_end(part, first);
        let levels = level_section(part, first..end);
        let fill = |page: &mut Vec<u8>| append_rows(page, part, first..end);
        pages.append(PageKind::Data, Encoding::Plain, end - first, &levels, fill)?;
        first = end;
    }
    Ok(())
}

/// Return the first row after the page that starts at row `first`.
fn page_end(part: &Column, first: usize) -> usize {
    let width = if part.kind == Kind::Bool { Some(1) } else { part.width() };
    if let Some(width) = width {
        return part.rows().min(first + MAX_PAGE_BYTES.div_ceil(width));
    }
    let mut bytes = 0;
    for row in first..part.rows() {
        bytes += 4 + part.value(row).len();
        if bytes >= MAX_PAGE_BYTES {
            return row + 1;
        }
    }
    part.rows()
}

fn append_rows(page: &mut Vec<u8>, part: &Column, rows: std::ops::Range<usize>) {
    match (part.kind, part.width()) {
        (Kind::Bool, _) => append_bits(page, rows.filter(|row| part.is_valid(*row)).map(|row| part.bit(row))),
        (Kind::U32 | Kind::U64 | Kind::F64 | Kind::Fixed(_), Some(width)) if part.nulls == 0 => {
            page.extend_from_slice(&part.values[rows.start * width..rows.end * width]);
        }
        (kind, _) => {
            rows.filter(|row| part.is_valid(*row)).for_each(|row| append_plain(page, kind, part.value(row)));
        }
    }
}

fn append_plain(page: &mut Vec<u8>, kind: Kind, value: &[u8]) {
    match kind {
        // Parquet's decimals are big-endian.
        Kind::Decimal => page.extend(value.iter().rev()),
        Kind::Binary | Kind::Text => {
            page.extend_from_slice(&(value.len() as u32).to_le_bytes());
            page.extend_from_slice(value);
        }
        _ => page.extend_from_slice(value),
    }
}

fn append_bits(page: &mut Vec<u8>, bits: impl Iterator<Item = bool>) {
    for (at, bit) in bits.enumerate() {
        if at % 8 == 0 {
            page.push(0);
        }
        *page.last_mut().expect("a byte was pushed") |= u8::from(bit) << (at % 8);
    }
}

/// Encode the definition levels of some rows: their length in bytes, then one level per row (1 for a value, 0 for
/// null).
fn level_section(part: &Column, rows: std::ops::Range<usize>) -> Vec<u8> {
    let mut runs = Vec::new();
    if part.nulls == 0 || part.nulls == part.rows() {
        append_run(&mut runs, u32::from(part.nulls == 0), rows.len(), LEVEL_BITS);
    } else {
        let levels: Vec<u32> = rows.map(|row| u32::from(part.is_valid(row))).collect();
        append_runs(&mut runs, &levels, LEVEL_BITS);
    }
    with_length(runs)
}

fn levels_of(parts: &[&Column]) -> Vec<u8> {
    let mut runs = Vec::new();
    let (rows, nulls): (usize, usize) =
        parts.iter().fold((0, 0), |(rows, nulls), part| (rows + part.rows(), nulls + part.nulls));
    if nulls == 0 || nulls == rows {
        append_run(&mut runs, u32::from(nulls == 0), rows, LEVEL_BITS);
    } else {
        let levels =
            |part: &&Column| -> Vec<u32> { (0..part.rows()).map(|row| u32::from(part.is_valid(row))).collect() };
        append_runs(&mut runs, &parts.iter().flat_map(levels).collect::<Vec<u32>>(), LEVEL_BITS);
    }
    with_length(runs)
}

fn with_length(runs: Vec<u8>) -> Vec<u8> {
    let mut section = (runs.len() as u32).to_le_bytes().to_vec();
    section.extend_from_slice(&runs);
    section
}
