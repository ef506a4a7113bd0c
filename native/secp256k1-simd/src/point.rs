//! Points of secp256k1, eight at a time, in Jacobian coordinates: (X, Y, Z) stands for (X / Z^2, Y / Z^3).
//!
//! The formulas ignore the exceptional cases of the group law. Adding equal or opposite points makes Z zero, and Z
//! stays zero, so the caller checks Z at the end. Every sum starts with the point at infinity, which one bit per lane
//! marks.

use core::arch::x86_64::*;

use super::field::{Field, Limbs};
use crate::limbs::LANES;

/// Number of entries in a `Multiples` table: 1 to 16 times a point.
pub const ENTRIES: usize = 16;

#[derive(Clone, Copy)]
pub struct Affine {
    pub x: Field,
    pub y: Field,
}

impl Affine {
    /// Return the point, negated in lanes whose bit is set.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn negated_where(&self, lanes: u8) -> Self {
        Affine { x: self.x, y: self.y.loose().negated_where(lanes).carried() }
    }

    /// Return `self` in lanes whose bit is clear and `other` in lanes whose bit is set.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn or_where(&self, lanes: u8, other: &Self) -> Self {
        Affine { x: self.x.or_where(lanes, &other.x), y: self.y.or_where(lanes, &other.y) }
    }

    /// Return the sum of two points. `slope` is the difference of their y coordinates divided by that of their x
    /// coordinates.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn plus(&self, other: &Self, slope: &Field) -> Self {
        let x = slope.square().minus(&self.x.loose().plus(&other.x.loose())).carried();
        let y = slope.mul(&self.x.loose().minus(&x.loose()).carried()).minus(&self.y.loose()).carried();
        Affine { x, y }
    }
}

#[derive(Clone, Copy)]
pub struct Point {
    x: Field,
    y: Field,
    pub z: Field,
    /// Lanes that hold the point at infinity. Their coordinates have no meaning.
    pub infinite: u8,
}

impl Point {
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn infinity() -> Self {
        let one = Field::one();
        Point { x: one, y: one, z: one, infinite: u8::MAX }
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn of(point: &Affine) -> Self {
        Point { x: point.x, y: point.y, z: Field::one(), infinite: 0 }
    }

    /// Return `self` in lanes whose bit is clear and `other` in lanes whose bit is set.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn or_where(&self, lanes: u8, other: &Self) -> Self {
        Point {
            x: self.x.or_where(lanes, &other.x),
            y: self.y.or_where(lanes, &other.y),
            z: self.z.or_where(lanes, &other.z),
            infinite: self.infinite & !lanes | other.infinite & lanes,
        }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn double(&mut self) {
        let b = self.y.squared();
        let c = b.squared();
        let d = self.x.times(&b);
        let a = self.x.square();
        let e = a.plus(&a.doubled::<1>()).carried();
        let z = self.y.mul(&self.z).doubled::<1>().carried();
        let x = e.square().minus(&d.doubled::<3>()).carried();
        let y = d.doubled::<2>().minus(&x.loose()).carried();
        self.y = e.mul(&y).minus(&c.doubled::<3>()).carried();
        self.x = x;
        self.z = z;
    }

    /// Add the point `other` to this sum in the lanes of `present`. In lanes that are also in `negated`, subtract it.
    /// The true Z coordinate of this sum is `self.z` times `scale`.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn add(&mut self, other: &Affine, negated: u8, present: u8, scale: Option<&Field>) {
        let old = *self;
        self.add_everywhere(other, negated, scale);
        let kept = !present | old.infinite;
        if kept != 0 {
            self.x = self.x.or_where(kept, &old.x);
            self.y = self.y.or_where(kept, &old.y);
            self.z = self.z.or_where(kept, &old.z);
        }
        let first = present & old.infinite;
        if first != 0 {
            let (x, y) = match scale {
                None => (other.x, other.y),
                Some(scale) => {
                    let square = scale.squared();
                    (other.x.times(&square), other.y.times(&square.times(scale)))
                }
            };
            self.x = self.x.or_where(first, &x);
            self.y = self.y.or_where(first, &y.loose().negated_where(negated).carried());
            self.z = self.z.or_where(first, &Field::one());
            self.infinite &= !first;
        }
    }

    /// Add the point `other` in all lanes. Returns the factor by which Z changed.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn add_everywhere(&mut self, other: &Affine, negated: u8, scale: Option<&Field>) -> Field {
        let z = match scale {
            None => self.z,
            Some(scale) => self.z.times(scale),
        };
        let zz = z.squared();
        let u = other.x.mul(&zz);
        let s = other.y.times(&zz.times(&z)).loose().negated_where(negated);
        let h = u.minus(&self.x.loose()).carried();
        let r = s.minus(&self.y.loose()).carried();
        let hh = h.squared();
        let hhh = hh.times(&h);
        let v = self.x.times(&hh);
        let x = r.square().minus(&hhh.loose().plus(&v.doubled::<1>())).carried();
        let y = r.mul(&v.loose().minus(&x.loose()).carried());
        self.y = y.minus(&self.y.times(&hhh).loose()).carried();
        self.x = x;
        self.z = self.z.times(&h);
        h
    }

    /// Return the affine coordinates (x, y), valid in lanes where Z is not zero. `inverse` is the inverse of Z.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn affine(&self, inverse: &Field) -> Affine {
        let square = inverse.squared();
        Affine { x: self.x.times(&square), y: self.y.times(&square.times(inverse)) }
    }
}

/// Multiples of one point per lane, on an isomorphic curve on which all entries have Z = 1.
pub struct Multiples {
    x: [Limbs; ENTRIES],
    /// beta times x of each entry. With y, these are the multiples of lambda times the point.
    x_beta: [Limbs; ENTRIES],
    y: [Limbs; ENTRIES],
    /// The common Z coordinate of all entries in the table.
    pub scale: Field,
}

impl Multiples {
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn of(point: &Affine, beta: &Field) -> Self {
        let one = Field::one();
        let mut sum = Point::of(point);
        let mut entries = [sum; ENTRIES];
        // each ratio is the Z coordinate of an entry divided by the Z coordinate of the previous entry
        let mut ratios = [one; ENTRIES];
        sum.double();
        entries[1] = sum;
        ratios[1] = sum.z;
        for index in 2..ENTRIES {
            ratios[index] = sum.add_everywhere(point, 0, None);
            entries[index] = sum;
        }
        let zero: Limbs = [[0; LANES]; 5];
        let mut table = Multiples { x: [zero; ENTRIES], x_beta: [zero; ENTRIES], y: [zero; ENTRIES], scale: sum.z };
        let mut scale = one;
        for index in (0..ENTRIES).rev() {
            let entry = &entries[index];
            let square = scale.squared();
            let x = entry.x.times(&square);
            table.x[index] = x.store();
            table.x_beta[index] = x.times(beta).store();
            table.y[index] = entry.y.times(&square.times(&scale)).store();
            scale = scale.times(&ratios[index]);
        }
        table
    }

    /// Return an entry in affine coordinates. `inverse` is the inverse of `scale`.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn affine(&self, index: usize, inverse: &Field) -> Affine {
        let square = inverse.squared();
        let (x, y) = (Field::load(&self.x[index]), Field::load(&self.y[index]));
        Affine { x: x.times(&square), y: y.times(&square.times(inverse)) }
    }

    /// Return the multiple that the digit of each lane selects; digit 0 selects multiple 1. With `by_lambda`, return
    /// the multiple of lambda times the point.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn at(&self, digits: &Digits, by_lambda: bool) -> Affine {
        const ENTRY: i64 = (5 * LANES) as i64;
        let lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        let offsets = _mm512_add_epi64(_mm512_mullo_epi64(digits.index::<ENTRIES>(), _mm512_set1_epi64(ENTRY)), lanes);
        let x = if by_lambda { &self.x_beta } else { &self.x };
        // SAFETY: each index is below the number of entries, and each entry has five rows of eight lanes.
        unsafe {
            Affine {
                x: Field::gather(x.as_ptr().cast(), offsets, LANES),
                y: Field::gather(self.y.as_ptr().cast(), offsets, LANES),
            }
        }
    }
}

/// One digit of a scalar for each lane.
pub struct Digits {
    magnitudes: __m512i,
    pub negative: u8,
    pub present: u8,
}

impl Digits {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn of(digits: &[i64; LANES]) -> Self {
        // SAFETY: eight numbers have 64 bytes, as many as a register.
        let digits = unsafe { _mm512_loadu_si512(digits.as_ptr().cast()) };
        let zero = _mm512_setzero_si512();
        Digits {
            magnitudes: _mm512_abs_epi64(digits),
            negative: _mm512_cmplt_epi64_mask(digits, zero),
            present: _mm512_cmpneq_epi64_mask(digits, zero),
        }
    }

    /// Return the index into a table of the multiples 1 to COUNT. The index is always in range.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn index<const COUNT: usize>(&self) -> __m512i {
        let one = _mm512_set1_epi64(1);
        let last = _mm512_set1_epi64(COUNT as i64 - 1);
        _mm512_min_epu64(_mm512_sub_epi64(_mm512_max_epu64(self.magnitudes, one), one), last)
    }
}

/// Multiples of one point, shared by all lanes. An entry has the limbs of x, then the limbs of y.
pub struct FixedMultiples<const COUNT: usize>(pub Box<[[u64; 10]; COUNT]>);

impl<const COUNT: usize> FixedMultiples<COUNT> {
    /// Return the multiple that the digit of each lane selects; digit 0 selects multiple 1.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn at(&self, digits: &Digits) -> Affine {
        let offsets = _mm512_mullo_epi64(digits.index::<COUNT>(), _mm512_set1_epi64(10));
        let table: *const u64 = self.0.as_ptr().cast();
        // SAFETY: each index is below the number of entries, and each entry has ten words.
        unsafe { Affine { x: Field::gather(table, offsets, 1), y: Field::gather(table.add(5), offsets, 1) } }
    }
}

/// Return the multiple that the digit of each lane selects from the table of the lane; digit 0 selects multiple 1. An
/// entry has the limbs of x, then the limbs of y.
///
/// # Safety
/// Each table has `COUNT` entries of ten words.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub unsafe fn chosen<const COUNT: usize>(tables: [*const u64; LANES], digits: &Digits) -> Affine {
    const ENTRY_BYTES: i64 = 80;
    const Y_BYTES: i64 = 40;
    // SAFETY: eight addresses have 64 bytes, as many as a register.
    let starts = unsafe { _mm512_loadu_si512(tables.as_ptr().cast()) };
    let offsets = _mm512_mullo_epi64(digits.index::<COUNT>(), _mm512_set1_epi64(ENTRY_BYTES));
    let x = _mm512_add_epi64(starts, offsets);
    // SAFETY: each index is below the number of entries, and each entry has ten words.
    unsafe { Affine { x: Field::gather_at(x), y: Field::gather_at(_mm512_add_epi64(x, _mm512_set1_epi64(Y_BYTES))) } }
}
