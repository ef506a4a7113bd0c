//! Multiplication with the 52-bit integer multiplier of AVX-512 IFMA.

use core::arch::asm;
use core::arch::x86_64::*;

use super::limbs::{FOLD, FOLD_LIMB, all, carry};

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
pub const MIN_SIGNATURES: usize = 2;

/// Return whether this processor has AVX-512 IFMA.
pub fn is_supported() -> bool {
    super::doubles::is_supported() && is_x86_feature_detected!("avx512ifma")
}

/// Return `sum` plus the low 52 bits of a b. The code uses inline assembly, not the intrinsic: `field.rs` enables only
/// the features that both multipliers need, and the compiler does not inline a function that needs more features.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn low(mut sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: this code works on registers only, and callers have checked `is_supported`.
    unsafe {
        asm!("vpmadd52luq {}, {}, {}", inout(zmm_reg) sum, in(zmm_reg) a, in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Return `sum` plus the bits of a b from the 52nd on.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn high(mut sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: this code works on registers only, and callers have checked `is_supported`.
    unsafe {
        asm!("vpmadd52huq {}, {}, {}", inout(zmm_reg) sum, in(zmm_reg) a, in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Multiply two numbers of five limbs. Returns ten limbs below 2^57.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn product(a: &[__m512i; 5], b: &[__m512i; 5]) -> [__m512i; 10] {
    let mut c = [all(0); 10];
    for i in 0..5 {
        for j in 0..5 {
            c[i + j] = low(c[i + j], a[i], b[j]);
            c[i + j + 1] = high(c[i + j + 1], a[i], b[j]);
        }
    }
    c
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn square(a: &[__m512i; 5]) -> [__m512i; 10] {
    let mut c = [all(0); 10];
    for i in 0..5 {
        for j in i + 1..5 {
            c[i + j] = low(c[i + j], a[i], a[j]);
            c[i + j + 1] = high(c[i + j + 1], a[i], a[j]);
        }
    }
    for limb in &mut c[1..9] {
        *limb = _mm512_add_epi64(*limb, *limb);
    }
    for i in 0..5 {
        c[2 * i] = low(c[2 * i], a[i], a[i]);
        c[2 * i + 1] = high(c[2 * i + 1], a[i], a[i]);
    }
    c
}

/// Reduce the ten limbs of a product to five limbs of the same number modulo p.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn folded(mut c: [__m512i; 10]) -> [__m512i; 5] {
    carry(&mut c[5..]);
    let fold = all(FOLD_LIMB);
    let over = high(all(0), c[9], fold);
    let mut out = [c[0], c[1], c[2], c[3], c[4]];
    for index in 0..4 {
        out[index] = low(out[index], c[index + 5], fold);
        out[index + 1] = high(out[index + 1], c[index + 5], fold);
    }
    out[4] = low(out[4], c[9], fold);
    out[0] = low(out[0], over, fold);
    out[1] = high(out[1], over, fold);
    out
}

/// Return `sum` plus `over` times 2^256 modulo p. `over` is below 2^12.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn plus_over(sum: __m512i, over: __m512i) -> __m512i {
    low(sum, over, all(FOLD))
}
