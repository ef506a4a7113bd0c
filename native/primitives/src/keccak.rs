//! Keccak-256 of many inputs, eight at a time with AVX-512 (docs/decisions/0181-cost-of-large-states.md).
//!
//! This is a fast path. The slow path is `alloy_primitives::keccak256`, one input at a time. The tests compare both.

use alloy_primitives::{B256, keccak256};

/// Append the Keccak-256 hash of each input to `hashes`, in the same order.
pub fn keccak256_many(inputs: &[&[u8]], hashes: &mut Vec<B256>) {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    if inputs.len() >= simd::MIN_INPUTS && simd::is_supported() {
        // SAFETY: the processor has the instructions.
        unsafe { simd::hash_all(inputs, hashes) };
        return;
    }
    hashes.extend(inputs.iter().map(keccak256));
}

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod simd {
    use std::arch::x86_64::*;
    use std::sync::LazyLock;

    use alloy_primitives::{B256, keccak256};

    pub const LANES: usize = 8;
    /// Minimum number of inputs that are hashed together with SIMD. Fewer inputs take less time one by one.
    pub const MIN_INPUTS: usize = 3;
    /// Number of input bytes that one Keccak permutation absorbs.
    const RATE_BYTES: usize = 136;
    const RATE_WORDS: usize = RATE_BYTES / 8;

    const ROUND_CONSTANTS: [u64; 24] = [
        0x0000000000000001,
        0x0000000000008082,
        0x800000000000808a,
        0x8000000080008000,
        0x000000000000808b,
        0x0000000080000001,
        0x8000000080008081,
        0x8000000000008009,
        0x000000000000008a,
        0x0000000000000088,
        0x0000000080008009,
        0x000000008000000a,
        0x000000008000808b,
        0x800000000000008b,
        0x8000000000008089,
        0x8000000000008003,
        0x8000000000008002,
        0x8000000000000080,
        0x000000000000800a,
        0x800000008000000a,
        0x8000000080008081,
        0x8000000000008080,
        0x0000000080000001,
        0x8000000080008008,
    ];

    /// Return whether the processor has the AVX-512 instructions and computes right hashes with them.
    pub fn is_supported() -> bool {
        static SUPPORTED: LazyLock<bool> = LazyLock::new(|| is_x86_feature_detected!("avx512f") && passes_self_test());
        *SUPPORTED
    }

    fn passes_self_test() -> bool {
        let bytes: Vec<u8> = (0..600).map(|at| (at % 251) as u8).collect();
        let inputs: Vec<&[u8]> = (0..2 * LANES).map(|index| &bytes[..index * 37]).collect();
        let mut hashes = Vec::new();
        // SAFETY: the caller has checked the processor.
        unsafe { hash_all(&inputs, &mut hashes) };
        inputs.iter().zip(&hashes).all(|(input, hash)| keccak256(input) == *hash)
    }

    /// Return the number of Keccak permutations that an input needs. The padding takes at least one byte.
    fn blocks(input: &[u8]) -> usize {
        input.len() / RATE_BYTES + 1
    }

    /// Append the hash of each input to `hashes`, with AVX-512.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn hash_all(inputs: &[&[u8]], hashes: &mut Vec<B256>) {
        // sort the inputs by number of blocks, because inputs with the same number are hashed together
        let mut order: Vec<u32> = (0..inputs.len() as u32).collect();
        order.sort_by_key(|index| blocks(inputs[*index as usize]));
        let first = hashes.len();
        hashes.resize(first + inputs.len(), B256::ZERO);
        let mut rest = &order[..];
        while let Some(shortest) = rest.first() {
            let count = blocks(inputs[*shortest as usize]);
            let equal = rest.iter().take(LANES).take_while(|index| blocks(inputs[**index as usize]) == count).count();
            let (group, after) = rest.split_at(equal);
            rest = after;
            if equal < MIN_INPUTS {
                group.iter().for_each(|index| hashes[first + *index as usize] = keccak256(inputs[*index as usize]));
                continue;
            }
            let lanes: [&[u8]; LANES] = std::array::from_fn(|lane| inputs[group[lane.min(equal - 1)] as usize]);
            let digests = hash_group(&lanes, count);
            for (index, digest) in group.iter().zip(digests) {
                hashes[first + *index as usize] = digest;
            }
        }
    }

    /// Hash eight inputs of `count` blocks each.
    #[target_feature(enable = "avx512f")]
    fn hash_group(inputs: &[&[u8]; LANES], count: usize) -> [B256; LANES] {
        let mut state = [_mm512_setzero_si512(); 25];
        let mut words = [[0u64; LANES]; RATE_WORDS];
        for block in 0..count {
            for (lane, input) in inputs.iter().enumerate() {
                let rest = &input[block * RATE_BYTES..];
                let mut padded = [0u8; RATE_BYTES];
                let bytes = match rest.first_chunk::<RATE_BYTES>() {
                    Some(whole) => whole,
                    None => {
                        padded[..rest.len()].copy_from_slice(rest);
                        padded[rest.len()] = 1;
                        padded[RATE_BYTES - 1] |= 0x80;
                        &padded
                    }
                };
                for (word, eight) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                    word[lane] = u64::from_le_bytes(*eight);
                }
            }
            for (lane, word) in state.iter_mut().zip(&words) {
                // SAFETY: `word` has eight u64, so 64 bytes, as many as a register.
                *lane = _mm512_xor_si512(*lane, unsafe { _mm512_loadu_si512(word.as_ptr().cast()) });
            }
            permute(&mut state);
        }
        for (word, lane) in words.iter_mut().zip(&state[..4]) {
            // SAFETY: `word` has eight u64, so 64 bytes, as many as a register.
            unsafe { _mm512_storeu_si512(word.as_mut_ptr().cast(), *lane) };
        }
        std::array::from_fn(|lane| {
            let mut digest = B256::ZERO;
            for (bytes, word) in digest.0.as_chunks_mut::<8>().0.iter_mut().zip(&words) {
                *bytes = word[lane].to_le_bytes();
            }
            digest
        })
    }

    /// Keccak-f[1600] of eight states.
    #[target_feature(enable = "avx512f")]
    fn permute(state: &mut [__m512i; 25]) {
        /// Truth table of a ^ b ^ c for ternary logic instructions.
        const XOR3: i32 = 0x96;
        /// Truth table of a ^ (!b & c) for ternary logic instructions.
        const CHI: i32 = 0xd2;
        macro_rules! xor5 {
            ($x:expr) => {{
                let three = _mm512_ternarylogic_epi64::<XOR3>(state[$x], state[$x + 5], state[$x + 10]);
                _mm512_ternarylogic_epi64::<XOR3>(three, state[$x + 15], state[$x + 20])
            }};
        }
        for constant in ROUND_CONSTANTS {
            let parity = [xor5!(0), xor5!(1), xor5!(2), xor5!(3), xor5!(4)];
            let turned = parity.map(|column| _mm512_rol_epi64::<1>(column));
            // the Keccak steps theta, rho and pi: word (x, y) is rotated by its offset and moves to (y, 2x + 3y)
            macro_rules! moved {
                ($from:expr, $offset:expr) => {{
                    let x = $from % 5;
                    let mixed =
                        _mm512_ternarylogic_epi64::<XOR3>(state[$from], parity[(x + 4) % 5], turned[(x + 1) % 5]);
                    _mm512_rol_epi64::<$offset>(mixed)
                }};
            }
            let rows = [
                [moved!(0, 0), moved!(6, 44), moved!(12, 43), moved!(18, 21), moved!(24, 14)],
                [moved!(3, 28), moved!(9, 20), moved!(10, 3), moved!(16, 45), moved!(22, 61)],
                [moved!(1, 1), moved!(7, 6), moved!(13, 25), moved!(19, 8), moved!(20, 18)],
                [moved!(4, 27), moved!(5, 36), moved!(11, 10), moved!(17, 15), moved!(23, 56)],
                [moved!(2, 62), moved!(8, 55), moved!(14, 39), moved!(15, 41), moved!(21, 2)],
            ];
            for (y, row) in rows.iter().enumerate() {
                for x in 0..5 {
                    state[5 * y + x] = _mm512_ternarylogic_epi64::<CHI>(row[x], row[(x + 1) % 5], row[(x + 2) % 5]);
                }
            }
            state[0] = _mm512_xor_si512(state[0], _mm512_set1_epi64(constant as i64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hashes_equal_single_hashes() {
        let bytes: Vec<u8> = (0..5_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for count in [0, 1, 2, 3, 7, 8, 9, 16, 63, 200] {
            let inputs: Vec<&[u8]> = (0..count).map(|index| &bytes[index..index + index * 7919 % 700]).collect();
            let mut hashes = vec![B256::repeat_byte(7)];
            keccak256_many(&inputs, &mut hashes);
            let single: Vec<B256> = std::iter::once(B256::repeat_byte(7)).chain(inputs.iter().map(keccak256)).collect();
            assert_eq!(hashes, single, "{count} inputs");
        }
    }

    #[test]
    fn inputs_at_the_edges_of_blocks() {
        let bytes = [0xabu8; 300];
        let inputs: Vec<&[u8]> = [0, 1, 134, 135, 136, 137, 270, 271, 272, 273].map(|length| &bytes[..length]).to_vec();
        let inputs: Vec<&[u8]> = inputs.iter().flat_map(|input| std::iter::repeat_n(*input, 3)).collect();
        let mut hashes = Vec::new();
        keccak256_many(&inputs, &mut hashes);
        assert_eq!(hashes, inputs.iter().map(keccak256).collect::<Vec<_>>());
    }
}
