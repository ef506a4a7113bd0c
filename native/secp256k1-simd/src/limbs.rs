//! Numbers modulo the prime of secp256k1, p = 2^256 - 2^32 - 977, as five limbs of 52 bits. A register holds eight
//! limbs.

use core::arch::x86_64::*;

/// Number of signatures that are recovered together, one in each lane of a register.
pub const LANES: usize = 8;

pub const PRIME: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];
pub const MASK: u64 = (1 << 52) - 1;
pub const TOP_MASK: u64 = (1 << 48) - 1;
/// 2^256 modulo p.
pub const FOLD: u64 = 0x1_0000_03d1;
/// 2^260 modulo p, which is the value of one unit in a sixth limb.
pub const FOLD_LIMB: u64 = FOLD << 4;
/// Limbs of 16 p. No limb is below the same limb of a sum of up to eight `Field`s, so the sum can be subtracted limb by
/// limb.
pub const SIXTEEN_P: [u64; 5] = [0xf_fffe_ffff_fc2f << 4, MASK << 4, MASK << 4, MASK << 4, TOP_MASK << 4];

/// Split a number into five limbs.
pub fn limbs_of(n: &[u64; 4]) -> [u64; 5] {
    [
        n[0] & MASK,
        (n[0] >> 52 | n[1] << 12) & MASK,
        (n[1] >> 40 | n[2] << 24) & MASK,
        (n[2] >> 28 | n[3] << 36) & MASK,
        n[3] >> 16,
    ]
}

/// Return the number below p that the limbs of a `Field` represent.
pub fn reduced(limbs: [u64; 5]) -> [u64; 4] {
    let [a, b, c, d, e] = limbs;
    // reduce modulo p: multiply the part above 2^256 by 2^256 mod p, add it, and subtract p if needed
    let mut words = [0u64; 4];
    let high = e >> 48;
    let e = e & TOP_MASK;
    let mut carry = u128::from(a | b << 52) + u128::from(high) * u128::from(FOLD);
    for (word, next) in words.iter_mut().zip([b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16, 0]) {
        *word = carry as u64;
        carry = (carry >> 64) + u128::from(next);
    }
    subtracted_once(words, carry != 0)
}

fn subtracted_once(words: [u64; 4], overflows: bool) -> [u64; 4] {
    let mut less = [0u64; 4];
    let mut borrow = false;
    for index in 0..4 {
        let (first, under) = words[index].overflowing_sub(PRIME[index]);
        let (second, again) = first.overflowing_sub(u64::from(borrow));
        less[index] = second;
        borrow = under || again;
    }
    if borrow && !overflows { words } else { less }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn all(n: u64) -> __m512i {
    _mm512_set1_epi64(n.cast_signed())
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn plus(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi64(a, b)
}

/// Carry the bits above the 52nd of each limb into the next limb. The last limb keeps its carry bits.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub fn carry(limbs: &mut [__m512i]) {
    let mask = all(MASK);
    for index in 1..limbs.len() {
        limbs[index] = plus(limbs[index], _mm512_srli_epi64::<52>(limbs[index - 1]));
        limbs[index - 1] = _mm512_and_si512(limbs[index - 1], mask);
    }
}
