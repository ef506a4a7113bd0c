//! Products by floating-point numbers, for processors that have AVX-512 and not its 52-bit multiplier (Intel servers of
//! 2017 to 2020).
//!
//! A double has 53 bits, and a fused multiplication and addition rounds only once. So 2^104 + a b, rounded towards zero,
//! is 2^104 and the bits of a b from the 52nd on, exactly; and what that leaves of a b, added to 2^52, is exact too.
//! Both numbers lie in a range in which doubles are evenly spaced, so their bits are a constant plus the integer that is
//! looked for: they are added up as integers, and the constants are taken off in one go.

use core::arch::x86_64::*;

use super::limbs::{FOLD_LIMB, all, carry, plus};

#[path = "field.rs"]
mod field;
#[path = "point.rs"]
mod point;
#[path = "recover.rs"]
mod recover;

pub use recover::recover;

/// Fewer than these are done sooner by libsecp256k1.
pub const FEWEST: usize = 4;

/// Whether this processor can.
pub fn are_there() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
}

/// 2^52 and 2^104 as the bits of doubles.
const LOW: u64 = (1023 + 52) << 52;
const HIGH: u64 = (1023 + 104) << 52;

/// Where a sum begins that so many low and high halves are added to: it has taken off their constants.
const fn start(lows: u64, highs: u64) -> u64 {
    0u64.wrapping_sub(lows.wrapping_mul(LOW)).wrapping_sub(highs.wrapping_mul(HIGH))
}

/// An integer below 2^52 as a double.
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

/// The bits of a b below the 52nd and those above, each with its constant. a and b: integers below 2^52.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn halves(a: __m512d, b: __m512d) -> (__m512i, __m512i) {
    const TOWARDS_ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    let far = _mm512_castsi512_pd(all(HIGH));
    let both = _mm512_castsi512_pd(all(HIGH + 1)); // 2^104 + 2^52
    let high = _mm512_fmadd_round_pd::<TOWARDS_ZERO>(a, b, far);
    let low = _mm512_fmadd_pd(a, b, _mm512_sub_pd(both, high));
    (_mm512_castpd_si512(low), _mm512_castpd_si512(high))
}

/// Add both halves of a b to a limb and the one above.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add(sums: &mut [__m512i], at: usize, a: __m512d, b: __m512d) {
    let (low, high) = halves(a, b);
    sums[at] = plus(sums[at], low);
    sums[at + 1] = plus(sums[at + 1], high);
}

/// Ten limbs below 2^57.
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

/// Where the sums of a product begin, or those of a square: they are doubled before the squares of limbs come to them.
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

/// From the ten limbs of a product to five.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn folded(mut c: [__m512i; 10]) -> [__m512i; 5] {
    carry(&mut c[5..]);
    let worth = double(all(FOLD_LIMB));
    let mut out = [c[0], c[1], c[2], c[3], c[4]];
    for index in 0..4 {
        add(&mut out, index, double(c[index + 5]), worth);
    }
    let (low, high) = halves(double(c[9]), worth);
    out[4] = plus(out[4], low);
    add(&mut out, 0, double(plus(high, all(start(0, 1)))), worth);
    // how many halves have come to each
    let offsets = [start(2, 0), start(1, 2), start(1, 1), start(1, 1), start(1, 1)];
    for (limb, offset) in out.iter_mut().zip(offsets) {
        *limb = plus(*limb, all(offset));
    }
    out
}

/// `sum`, and a number below 2^12 times 2^256 modulo p, which is 2^32 + 977.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn plus_over(sum: __m512i, over: __m512i) -> __m512i {
    plus(sum, plus(_mm512_slli_epi64::<32>(over), _mm512_mul_epu32(over, all(977))))
}
