//! Parquet's encoding of small numbers: a repeated value as one run, other values bit-packed in groups of eight.

use super::thrift::varint;

/// Number of values in a bit-packed group.
const GROUP: usize = 8;

/// Append numbers of `width` bits each, with repeated values as runs.
pub fn append_runs(out: &mut Vec<u8>, values: &[u32], width: u32) {
    // Bit-packed values come in groups of eight, so a run starts at a multiple of eight.
    let (mut at, mut packed) = (0, 0);
    while let Some(group) = values[at..].first_chunk::<GROUP>() {
        let value = group[0];
        if !group.iter().all(|one| *one == value) {
            at += GROUP;
            continue;
        }
        let run = GROUP + values[at + GROUP..].iter().take_while(|one| **one == value).count();
        // only the last run may end inside a group
        let run = if at + run == values.len() { run } else { run / GROUP * GROUP };
        append_packed(out, &values[packed..at], width);
        append_run(out, value, run, width);
        at += run;
        packed = at;
    }
    append_packed(out, &values[packed..], width);
}

/// Append a run: one value that repeats `count` times.
pub fn append_run(out: &mut Vec<u8>, value: u32, count: usize, width: u32) {
    varint(out, (count as u64) << 1);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

fn append_packed(out: &mut Vec<u8>, values: &[u32], width: u32) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(GROUP);
    varint(out, (groups as u64) << 1 | 1);
    out.reserve(groups * width as usize);
    for group in values.chunks(GROUP) {
        // each half of the group fits into 128 bits
        let (mut low, mut high) = (0u128, 0u128);
        for (at, value) in group.iter().enumerate() {
            let half = if at < GROUP / 2 { &mut low } else { &mut high };
            *half |= u128::from(*value) << (at % (GROUP / 2) * width as usize);
        }
        if width.is_multiple_of(2) {
            let size = width as usize / 2;
            out.extend_from_slice(&low.to_le_bytes()[..size]);
            out.extend_from_slice(&high.to_le_bytes()[..size]);
        } else {
            // with an odd width, each half of the group ends in the middle of a byte
            let size = width as usize / 2;
            out.extend_from_slice(&low.to_le_bytes()[..size]);
            let middle = (low >> (8 * size)) as u8 | (high as u8) << 4;
            out.push(middle);
            out.extend_from_slice(&(high >> 4).to_le_bytes()[..size]);
        }
    }
}

/// Return the number of bits that numbers up to `max` need.
pub fn bits_of(max: u32) -> u32 {
    u32::BITS - max.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decode `count` numbers of `width` bits that `append_runs` has encoded.
    fn read(mut bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let mut found = Vec::new();
        while found.len() < count {
            let (mut header, mut shift) = (0u64, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            let size = (header >> 1) as usize;
            if header & 1 == 0 {
                let length = width.div_ceil(8) as usize;
                let mut value = [0; 4];
                value[..length].copy_from_slice(&bytes[..length]);
                bytes = &bytes[length..];
                found.extend(std::iter::repeat_n(u32::from_le_bytes(value), size));
            } else {
                for at in 0..size * 8 {
                    let bit = |one: usize| u32::from(bytes[one / 8] >> (one % 8) & 1);
                    let start = at * width as usize;
                    found.push((0..width as usize).map(|one| bit(start + one) << one).sum());
                }
                bytes = &bytes[size * width as usize..];
            }
        }
        assert!(bytes.is_empty());
        found.truncate(count);
        found
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut seed = 7u32;
        for width in 1..=17 {
            for length in [1, 7, 8, 9, 100, 1000] {
                let values: Vec<u32> = (0..length)
                    .flat_map(|_| {
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let times = if seed >> 30 == 0 { (seed >> 8) as usize % 40 } else { 1 };
                        std::iter::repeat_n((seed >> 4) & ((1 << width) - 1), times)
                    })
                    .collect();
                let mut out = Vec::new();
                append_runs(&mut out, &values, width);
                assert_eq!(read(&out, width, values.len()), values, "width {width}, length {length}");
            }
        }
    }

    #[test]
    fn a_constant_is_one_run() {
        let mut out = Vec::new();
        append_runs(&mut out, &[1; 100_000], 1);
        assert_eq!(out.len(), 4);
    }
}
