//! Numbers modulo the prime of secp256k1, p = 2^256 - 2^32 - 977, eight at a time.
//!
//! A number has five limbs of 52 bits; one register holds the same limb of all eight numbers. Two types track bounds. A
//! `Field` may be multiplied. A `Loose` may be a term of a further sum, and must be carried before it is multiplied.

use core::arch::x86_64::*;

use super::{folded, plus_over, product, square};
use crate::limbs::{LANES, SIXTEEN_P, TOP_MASK, all, carry, limbs_of, plus, reduced};

/// A number whose limbs are below 2^52, the last below 2^49. A number has several forms, because it may exceed p
/// slightly.
#[derive(Clone, Copy)]
pub struct Field([__m512i; 5]);

/// A product or a short sum of numbers: its limbs are below 2^60.
#[derive(Clone, Copy)]
pub struct Loose([__m512i; 5]);

/// Limbs of eight numbers in memory.
pub type Limbs = [[u64; LANES]; 5];

impl Field {
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn one() -> Self {
        Field([all(1), all(0), all(0), all(0), all(0)])
    }

    /// Return a `Field` that holds the same number in all eight lanes.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn everywhere(n: &[u64; 4]) -> Self {
        let limbs = limbs_of(n);
        Field([all(limbs[0]), all(limbs[1]), all(limbs[2]), all(limbs[3]), all(limbs[4])])
    }

    /// Load eight numbers below 2^256.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn of(numbers: &[[u64; 4]; LANES]) -> Self {
        let mut limbs: Limbs = [[0; LANES]; 5];
        for (lane, number) in numbers.iter().enumerate() {
            for (row, limb) in limbs.iter_mut().zip(limbs_of(number)) {
                row[lane] = limb;
            }
        }
        Self::load(&limbs)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn load(limbs: &Limbs) -> Self {
        let mut out = [all(0); 5];
        for (register, row) in out.iter_mut().zip(limbs) {
            // SAFETY: a row has 64 bytes, as many as a register.
            *register = unsafe { _mm512_loadu_si512(row.as_ptr().cast()) };
        }
        Field(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn store(&self) -> Limbs {
        let mut limbs: Limbs = [[0; LANES]; 5];
        for (row, register) in limbs.iter_mut().zip(self.0) {
            // SAFETY: a row has 64 bytes, as many as a register.
            unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), register) };
        }
        limbs
    }

    /// Return the eight numbers, each reduced below p.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn numbers(&self) -> [[u64; 4]; LANES] {
        let limbs = self.store();
        std::array::from_fn(|lane| reduced(limbs.map(|row| row[lane])))
    }

    /// Load the limbs of each lane from its own offset in `table`; limbs are `step` words apart.
    ///
    /// # Safety
    /// Every offset, and every offset plus four steps, lies within the table.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub unsafe fn gather(table: *const u64, offsets: __m512i, step: usize) -> Self {
        let mut out = [all(0); 5];
        for (limb, register) in out.iter_mut().enumerate() {
            // SAFETY: the caller guarantees that all offsets are inside the table.
            *register = unsafe { _mm512_i64gather_epi64::<8>(offsets, table.add(limb * step).cast()) };
        }
        Field(out)
    }

    /// Load the limbs of each lane from its own address.
    ///
    /// # Safety
    /// Five words can be read at each address.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub unsafe fn gather_at(addresses: __m512i) -> Self {
        let mut out = [all(0); 5];
        for (limb, register) in out.iter_mut().enumerate() {
            let offset = std::ptr::null::<u8>().wrapping_add(8 * limb);
            // SAFETY: the caller guarantees that the words can be read.
            *register = unsafe { _mm512_i64gather_epi64::<1>(addresses, offset.cast()) };
        }
        Field(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn mul(&self, other: &Self) -> Loose {
        Loose(folded(product(&self.0, &other.0)))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn square(&self) -> Loose {
        Loose(folded(square(&self.0)))
    }

    /// Return `self` times `other` with carried limbs.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn times(&self, other: &Self) -> Self {
        self.mul(other).carried()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn squared(&self) -> Self {
        self.square().carried()
    }

    /// Return `self` in lanes whose bit is clear and `other` in lanes whose bit is set.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn or_where(&self, lanes: u8, other: &Self) -> Self {
        let mut out = self.0;
        for (mine, theirs) in out.iter_mut().zip(other.0) {
            *mine = _mm512_mask_mov_epi64(*mine, lanes, theirs);
        }
        Field(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn loose(&self) -> Loose {
        Loose(self.0)
    }

    /// Return the number times 2^TIMES. The factor is at most 8, so that the result can be subtracted from `SIXTEEN_P`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn doubled<const TIMES: u32>(&self) -> Loose {
        const { assert!(TIMES <= 3) };
        Loose(self.0).doubled::<TIMES>()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn squared_times(&self, times: u32) -> Self {
        let mut out = *self;
        for _ in 0..times {
            out = out.squared();
        }
        out
    }

    /// Return self^((p + 1) / 4), which is a square root if one exists.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn root(&self) -> Self {
        // the exponent has runs of 223, 22 and 2 one bits, so use an addition chain
        let ones_2 = self.squared().times(self);
        let ones_3 = ones_2.squared().times(self);
        let ones_6 = ones_3.squared_times(3).times(&ones_3);
        let ones_9 = ones_6.squared_times(3).times(&ones_3);
        let ones_11 = ones_9.squared_times(2).times(&ones_2);
        let ones_22 = ones_11.squared_times(11).times(&ones_11);
        let ones_44 = ones_22.squared_times(22).times(&ones_22);
        let ones_88 = ones_44.squared_times(44).times(&ones_44);
        let ones_176 = ones_88.squared_times(88).times(&ones_88);
        let ones_220 = ones_176.squared_times(44).times(&ones_44);
        let ones_223 = ones_220.squared_times(3).times(&ones_3);
        ones_223.squared_times(23).times(&ones_22).squared_times(6).times(&ones_2).squared_times(2)
    }
}

impl Loose {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn carried(&self) -> Field {
        let mut out = self.0;
        out[0] = plus_over(out[0], _mm512_srli_epi64::<48>(out[4]));
        out[4] = _mm512_and_si512(out[4], all(TOP_MASK));
        carry(&mut out);
        Field(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn plus(&self, other: &Self) -> Self {
        let mut out = self.0;
        for (mine, theirs) in out.iter_mut().zip(other.0) {
            *mine = plus(*mine, theirs);
        }
        Loose(out)
    }

    /// Return `self` minus `other`. `other` is a sum of at most eight `Field`s.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn minus(&self, other: &Self) -> Self {
        let mut out = self.0;
        for ((mine, theirs), spare) in out.iter_mut().zip(other.0).zip(SIXTEEN_P) {
            *mine = plus(*mine, _mm512_sub_epi64(all(spare), theirs));
        }
        Loose(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn doubled<const TIMES: u32>(&self) -> Self {
        let mut out = self.0;
        for limb in &mut out {
            *limb = _mm512_slli_epi64::<TIMES>(*limb);
        }
        Loose(out)
    }

    /// Return `16 p - self` in lanes whose bit is set, and `self` in the other lanes. `self` is a sum of at most eight
    /// `Field`s.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn negated_where(&self, lanes: u8) -> Self {
        let mut out = self.0;
        for (mine, spare) in out.iter_mut().zip(SIXTEEN_P) {
            *mine = _mm512_mask_sub_epi64(*mine, lanes, all(spare), *mine);
        }
        Loose(out)
    }
}
