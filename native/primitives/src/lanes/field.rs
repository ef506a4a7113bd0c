//! Numbers modulo the prime of secp256k1, p = 2^256 - 2^32 - 977, eight at a time.
//!
//! A number is five limbs of 52 bits, which is what the multiplier takes; one register holds the same limb of all eight.
//! The types keep the bounds apart: a `Field` may be multiplied, a `Loose` may be added to and must be carried first.

use core::arch::x86_64::*;

/// How many are worked on at once.
pub const LANES: usize = 8;

/// Whether this processor can.
pub fn are_there() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma")
}

pub const PRIME: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];
const MASK: u64 = (1 << 52) - 1;
const TOP_MASK: u64 = (1 << 48) - 1;
/// 2^256 modulo p.
const FOLD: u64 = 0x1_0000_03d1;
/// 2^260 modulo p: what one unit of a sixth limb is worth.
const FOLD_LIMB: u64 = FOLD << 4;
/// The limbs of 16 p, from which up to eight fields can be subtracted limb by limb.
const SIXTEEN_P: [u64; 5] = [0xf_fffe_ffff_fc2f << 4, MASK << 4, MASK << 4, MASK << 4, TOP_MASK << 4];

/// Limbs below 2^52, the last one below 2^49: ready to be multiplied. Not unique: the number may still exceed p a little.
#[derive(Clone, Copy)]
pub struct Field([__m512i; 5]);

/// Limbs below 2^60: a product, or a sum of a few.
#[derive(Clone, Copy)]
pub struct Loose([__m512i; 5]);

/// Limbs of eight numbers as they lie in memory.
pub type Limbs = [[u64; LANES]; 5];

/// The five limbs of a number.
pub fn limbs_of(n: &[u64; 4]) -> [u64; 5] {
    [
        n[0] & MASK,
        (n[0] >> 52 | n[1] << 12) & MASK,
        (n[1] >> 40 | n[2] << 24) & MASK,
        (n[2] >> 28 | n[3] << 36) & MASK,
        n[3] >> 16,
    ]
}

/// The number below p that the limbs of a `Field` stand for.
fn reduced(limbs: [u64; 5]) -> [u64; 4] {
    let [a, b, c, d, e] = limbs;
    // once through the fold of what lies above 2^256, in wide steps; then p is subtracted if it still fits
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

#[target_feature(enable = "avx512f,avx512ifma")]
fn all(n: u64) -> __m512i {
    _mm512_set1_epi64(n.cast_signed())
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn low(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52lo_epu64(sum, a, b)
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn high(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52hi_epu64(sum, a, b)
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn plus(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi64(a, b)
}

/// From ten limbs of a product, each below 2^57, to five.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn fold(mut c: [__m512i; 10]) -> Loose {
    let mask = all(MASK);
    for index in 5..9 {
        c[index + 1] = plus(c[index + 1], _mm512_srli_epi64::<52>(c[index]));
        c[index] = _mm512_and_si512(c[index], mask);
    }
    let worth = all(FOLD_LIMB);
    let over = high(all(0), c[9], worth);
    let mut out = [c[0], c[1], c[2], c[3], c[4]];
    for index in 0..4 {
        out[index] = low(out[index], c[index + 5], worth);
        out[index + 1] = high(out[index + 1], c[index + 5], worth);
    }
    out[4] = low(out[4], c[9], worth);
    out[0] = low(out[0], over, worth);
    out[1] = high(out[1], over, worth);
    Loose(out)
}

impl Field {
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn one() -> Self {
        Field([all(1), all(0), all(0), all(0), all(0)])
    }

    /// The same number in all lanes.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn everywhere(n: &[u64; 4]) -> Self {
        let limbs = limbs_of(n);
        Field([all(limbs[0]), all(limbs[1]), all(limbs[2]), all(limbs[3]), all(limbs[4])])
    }

    /// Eight numbers below 2^256.
    #[target_feature(enable = "avx512f,avx512ifma")]
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
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn load(limbs: &Limbs) -> Self {
        let mut out = [all(0); 5];
        for (register, row) in out.iter_mut().zip(limbs) {
            // SAFETY: a row is 64 bytes.
            *register = unsafe { _mm512_loadu_si512(row.as_ptr().cast()) };
        }
        Field(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn store(&self) -> Limbs {
        let mut limbs: Limbs = [[0; LANES]; 5];
        for (row, register) in limbs.iter_mut().zip(self.0) {
            // SAFETY: a row is 64 bytes.
            unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), register) };
        }
        limbs
    }

    /// The eight numbers, each below p.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn numbers(&self) -> [[u64; 4]; LANES] {
        let limbs = self.store();
        std::array::from_fn(|lane| reduced(limbs.map(|row| row[lane])))
    }

    /// Each lane's limbs from a place of its own in `table`, limb by limb `step` words apart.
    ///
    /// # Safety
    /// Every place, and every place plus four steps, lies in the table.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub unsafe fn gather(table: *const u64, places: __m512i, step: usize) -> Self {
        let mut out = [all(0); 5];
        for (limb, register) in out.iter_mut().enumerate() {
            // SAFETY: the caller's.
            *register = unsafe { _mm512_i64gather_epi64::<8>(places, table.add(limb * step).cast()) };
        }
        Field(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn mul(&self, other: &Self) -> Loose {
        let (a, b) = (&self.0, &other.0);
        let mut c = [all(0); 10];
        for i in 0..5 {
            for j in 0..5 {
                c[i + j] = low(c[i + j], a[i], b[j]);
                c[i + j + 1] = high(c[i + j + 1], a[i], b[j]);
            }
        }
        fold(c)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn square(&self) -> Loose {
        let a = &self.0;
        let mut c = [all(0); 10];
        for i in 0..5 {
            for j in i + 1..5 {
                c[i + j] = low(c[i + j], a[i], a[j]);
                c[i + j + 1] = high(c[i + j + 1], a[i], a[j]);
            }
        }
        for limb in &mut c[1..9] {
            *limb = plus(*limb, *limb);
        }
        for i in 0..5 {
            c[2 * i] = low(c[2 * i], a[i], a[i]);
            c[2 * i + 1] = high(c[2 * i + 1], a[i], a[i]);
        }
        fold(c)
    }

    /// The product, carried.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn times(&self, other: &Self) -> Self {
        self.mul(other).carried()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn squared(&self) -> Self {
        self.square().carried()
    }

    /// `self` where the lane's bit is clear, `other` where it is set.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn or_where(&self, lanes: u8, other: &Self) -> Self {
        let mut out = self.0;
        for (mine, theirs) in out.iter_mut().zip(other.0) {
            *mine = _mm512_mask_mov_epi64(*mine, lanes, theirs);
        }
        Field(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn loose(&self) -> Loose {
        Loose(self.0)
    }

    /// A multiple that may still be subtracted: at most eight times.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn doubled<const TIMES: u32>(&self) -> Loose {
        const { assert!(TIMES <= 3) };
        Loose(self.0).doubled::<TIMES>()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn squared_often(&self, times: u32) -> Self {
        let mut out = *self;
        for _ in 0..times {
            out = out.squared();
        }
        out
    }

    /// self^(2^222 - 1 + ...) pieces that root and inverse share: exponents of 2, 22 and 223 ones.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn runs_of_ones(&self) -> [Self; 3] {
        let ones_2 = self.squared().times(self);
        let ones_3 = ones_2.squared().times(self);
        let ones_6 = ones_3.squared_often(3).times(&ones_3);
        let ones_9 = ones_6.squared_often(3).times(&ones_3);
        let ones_11 = ones_9.squared_often(2).times(&ones_2);
        let ones_22 = ones_11.squared_often(11).times(&ones_11);
        let ones_44 = ones_22.squared_often(22).times(&ones_22);
        let ones_88 = ones_44.squared_often(44).times(&ones_44);
        let ones_176 = ones_88.squared_often(88).times(&ones_88);
        let ones_220 = ones_176.squared_often(44).times(&ones_44);
        let ones_223 = ones_220.squared_often(3).times(&ones_3);
        [ones_2, ones_22, ones_223]
    }

    /// self^((p + 1) / 4): a square root, where there is one.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn root(&self) -> Self {
        let [ones_2, ones_22, ones_223] = self.runs_of_ones();
        ones_223.squared_often(23).times(&ones_22).squared_often(6).times(&ones_2).squared_often(2)
    }

    /// self^(p - 2): the inverse, and zero of zero.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn inverse(&self) -> Self {
        let [ones_2, ones_22, ones_223] = self.runs_of_ones();
        let high = ones_223.squared_often(23).times(&ones_22).squared_often(5).times(self);
        high.squared_often(3).times(&ones_2).squared_often(2).times(self)
    }
}

impl Loose {
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn carried(&self) -> Field {
        let [mut a, mut b, mut c, mut d, mut e] = self.0;
        let mask = all(MASK);
        a = low(a, _mm512_srli_epi64::<48>(e), all(FOLD));
        e = _mm512_and_si512(e, all(TOP_MASK));
        b = plus(b, _mm512_srli_epi64::<52>(a));
        c = plus(c, _mm512_srli_epi64::<52>(b));
        d = plus(d, _mm512_srli_epi64::<52>(c));
        e = plus(e, _mm512_srli_epi64::<52>(d));
        a = _mm512_and_si512(a, mask);
        b = _mm512_and_si512(b, mask);
        c = _mm512_and_si512(c, mask);
        d = _mm512_and_si512(d, mask);
        Field([a, b, c, d, e])
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn plus(&self, other: &Self) -> Self {
        let mut out = self.0;
        for (mine, theirs) in out.iter_mut().zip(other.0) {
            *mine = plus(*mine, theirs);
        }
        Loose(out)
    }

    /// `other`: a sum of at most eight fields.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn minus(&self, other: &Self) -> Self {
        let mut out = self.0;
        for ((mine, theirs), spare) in out.iter_mut().zip(other.0).zip(SIXTEEN_P) {
            *mine = plus(*mine, _mm512_sub_epi64(all(spare), theirs));
        }
        Loose(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn doubled<const TIMES: u32>(&self) -> Self {
        let mut out = self.0;
        for limb in &mut out {
            *limb = _mm512_slli_epi64::<TIMES>(*limb);
        }
        Loose(out)
    }

    /// `16 p - self` in the lanes whose bits are set. Only for what `minus` takes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn negated_where(&self, lanes: u8) -> Self {
        let mut out = self.0;
        for (mine, spare) in out.iter_mut().zip(SIXTEEN_P) {
            *mine = _mm512_mask_sub_epi64(*mine, lanes, all(spare), *mine);
        }
        Loose(out)
    }
}
