//! Multiplication with doubles, for processors with AVX-512 but without IFMA (Intel servers of 2017 to 2020).
//!
//! A double holds integers of 53 bits exactly, and a fused multiply-add rounds only once. So for integers a and b below
//! 2^52, the double 2^104 + a b, rounded towards zero, holds exactly the bits of a b from bit 52 on. A second
//! multiply-add gives the double 2^52 plus the low 52 bits. The bit pattern of each of these doubles is a constant plus
//! the integer that the double holds. The code adds the bit patterns as integers and subtracts all constants at once.

use core::arch::x86_64::*;

use super::limbs::{FOLD_LIMB, all, carry, plus};

#[path = "field.rs"]
mod field;
#[path = "point.rs"]
mod point;
#[path = "recover.rs"]
mod recover;
#[path = "verify.rs"]
mod verify;

pub use recover::recover;
pub use verify::{multiples, verify};

/// Minimum number of signatures for this path. For fewer signatures, libsecp256k1 is faster.
pub const MIN_SIGNATURES: usize = 4;

/// Return whether this processor has AVX-512.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
}

/// Bit pattern of the double 2^52: the constant that a low half contains.
const LOW: u64 = (1023 + 52) << 52;
/// Bit pattern of the double 2^104: the constant that a high half contains.
const HIGH: u64 = (1023 + 104) << 52;

/// Return the initial value of a sum of `lows` low halves and `highs` high halves. Each half contains a constant (`LOW`
/// or `HIGH`). The initial value is minus the sum of these constants.
const fn start(lows: u64, highs: u64) -> u64 {
    0u64.wrapping_sub(lows.wrapping_mul(LOW)).wrapping_sub(highs.wrapping_mul(HIGH))
}

/// Convert an integer below 2^52 to a double.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn double(limb: __m512i) -> __m512d {
    _mm512_cvtepu64_pd(limb)
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn doubles(limbs: &[__m512i; 5]) -> [__m512d; 5] {
    [double(limbs[0]), double(limbs[1]), double(limbs[2]), double(limbs[3]), double(limbs[4])]
}

/// Multiply integers below 2^52. Returns the low 52 bits of the product plus `LOW`, and its high bits plus `HIGH`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn halves(a: __m512d, b: __m512d) -> (__m512i, __m512i) {
    const TOWARDS_ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    let far = _mm512_castsi512_pd(all(HIGH));
    let both = _mm512_castsi512_pd(all(HIGH + 1)); // this constant is the double 2^104 + 2^52
    let high = _mm512_fmadd_round_pd::<TOWARDS_ZERO>(a, b, far);
    let low = _mm512_fmadd_pd(a, b, _mm512_sub_pd(both, high));
    (_mm512_castpd_si512(low), _mm512_castpd_si512(high))
}

/// Multiply `a` by `b`. Adds the low half of the product to limb `at` and the high half to the next limb.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add(sums: &mut [__m512i], at: usize, a: __m512d, b: __m512d) {
    let (low, high) = halves(a, b);
    sums[at] = plus(sums[at], low);
    sums[at + 1] = plus(sums[at + 1], high);
}

/// Multiply two numbers of five limbs. Returns ten limbs below 2^57.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn product(a: &[__m512i; 5], b: &[__m512i; 5]) -> [__m512i; 10] {
    const STARTS: [u64; 10] = starts(false);
    let (a, b) = (doubles(a), doubles(b));
    let mut c = [all(0); 10];
    for (sum, start) in c.iter_mut().zip(STARTS) {
        *sum = all(start);
    }
    for (i, a) in a.into_iter().enumerate() {
        for (j, b) in b.into_iter().enumerate() {
            add(&mut c, i + j, a, b);
        }
    }
    c
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn square(a: &[__m512i; 5]) -> [__m512i; 10] {
    const STARTS: [u64; 10] = starts(true);
    let a = doubles(a);
    let mut c = [all(0); 10];
    for (sum, start) in c.iter_mut().zip(STARTS) {
        *sum = all(start);
    }
    for i in 0..5 {
        for j in i + 1..5 {
            add(&mut c, i + j, a[i], a[j]);
        }
    }
    for limb in &mut c {
        *limb = plus(*limb, *limb);
    }
    for (i, a) in a.into_iter().enumerate() {
        add(&mut c, 2 * i, a, a);
    }
    c
}

/// Return the initial values of the ten limbs in `product` or `square` (see `start`). `square` doubles its limbs before
/// it adds the squares, so the constants of the squares count half.
const fn starts(is_square: bool) -> [u64; 10] {
    let mut out = [0u64; 10];
    let mut i = 0;
    while i < 5 {
        let mut j = if is_square { i } else { 0 };
        while j < 5 {
            let (low, high) = if is_square && i == j { (LOW / 2, HIGH / 2) } else { (LOW, HIGH) };
            out[i + j] = out[i + j].wrapping_sub(low);
            out[i + j + 1] = out[i + j + 1].wrapping_sub(high);
            j += 1;
        }
        i += 1;
    }
    out
}

/// Reduce the ten limbs of a product to five limbs of the same number modulo p.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn folded(mut c: [__m512i; 10]) -> [__m512i; 5] {
    carry(&mut c[5..]);
    let fold = double(all(FOLD_LIMB));
    let mut out = [c[0], c[1], c[2], c[3], c[4]];
    for index in 0..4 {
        add(&mut out, index, double(c[index + 5]), fold);
    }
    let (low, high) = halves(double(c[9]), fold);
    out[4] = plus(out[4], low);
    add(&mut out, 0, double(plus(high, all(start(0, 1)))), fold);
    // Each added half left a constant (`LOW` or `HIGH`) in its limb. `start` is minus the sum of such constants, so
    // adding it removes them.
    let offsets = [start(2, 0), start(1, 2), start(1, 1), start(1, 1), start(1, 1)];
    for (limb, offset) in out.iter_mut().zip(offsets) {
        *limb = plus(*limb, all(offset));
    }
    out
}

/// Return `sum` plus `over` times F, where F = 2^32 + 977 is 2^256 modulo p. `over` is below 2^12.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn plus_over(sum: __m512i, over: __m512i) -> __m512i {
    plus(sum, plus(_mm512_slli_epi64::<32>(over), _mm512_mul_epu32(over, all(977))))
}
