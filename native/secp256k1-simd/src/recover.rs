//! Computes Q = (s R - z G) / r, the public key of a signature (r, s) over z. R is the point of the curve with x = r.
//!
//! The curve's endomorphism splits s / r into two halves, and -z / r is split into two numbers of 128 bits. So four
//! sums of multiples can share 128 doublings. Multiples of R come from a table per group. Multiples of G and 2^128 G
//! come from a static table.

use std::sync::LazyLock;

use alloy_primitives::{U256, uint};

use super::field::Field;
use super::is_supported;
use super::point::{Affine, Digits, FixedMultiples, Multiples, Point};
use crate::Signature;
use crate::key_table::{fill, times_generator};
use crate::limbs::LANES;
use crate::scalar::{BY_ORDER, BY_PRIME, ORDER, factors, halves, split};

/// Number of bits per digit of the factors of R.
const POINT_WINDOW: usize = 5;
/// Number of digits of each factor of R.
const POINT_DIGITS: usize = 26;
/// Number of bits per digit of the factors of G. More bits need fewer additions, but make the tables too large for the
/// L1 cache.
const GENERATOR_WINDOW: usize = 10;
const GENERATOR_DIGITS: usize = 13;
const MULTIPLES: usize = 1 << (GENERATOR_WINDOW - 1);
/// Position of the lowest bit of the most significant digit, over all factors.
const MAX_BIT: usize = if POINT_WINDOW * (POINT_DIGITS - 1) > GENERATOR_WINDOW * (GENERATOR_DIGITS - 1) {
    POINT_WINDOW * (POINT_DIGITS - 1)
} else {
    GENERATOR_WINDOW * (GENERATOR_DIGITS - 1)
};

uint! {
const BETA: U256 = 0x7ae96a2b657c07106e64479eac3434e99cf0497512f58995c1396c28719501ee_U256;
}

/// Tables with multiples of the generator G, and of 2^128 G.
static GENERATOR: LazyLock<[FixedMultiples<MULTIPLES>; 2]> = LazyLock::new(|| {
    [U256::ONE, U256::ONE << 128].map(|factor| {
        let mut table = Box::new([[0; 10]; MULTIPLES]);
        fill(&mut table[..], &times_generator(factor));
        FixedMultiples(table)
    })
});

/// Digits of the factors of R and G for eight signatures.
#[derive(Default)]
struct Factors {
    point: [[[i64; LANES]; POINT_DIGITS]; 2],
    generator: [[[i64; LANES]; GENERATOR_DIGITS]; 2],
}

impl Factors {
    fn set(&mut self, lane: usize, of_generator: U256, of_point: U256) -> Option<()> {
        let (first, second) = split(of_point)?;
        for (digits, half) in self.point.iter_mut().zip([first, second]) {
            for (row, digit) in digits.iter_mut().zip(half.digits::<POINT_WINDOW, POINT_DIGITS>()) {
                row[lane] = digit;
            }
        }
        let (low, high) = halves(of_generator);
        for (digits, half) in self.generator.iter_mut().zip([low, high]) {
            for (row, digit) in digits.iter_mut().zip(half.digits::<GENERATOR_WINDOW, GENERATOR_DIGITS>()) {
                row[lane] = digit;
            }
        }
        Some(())
    }
}

/// Recover uncompressed public keys. None means that libsecp256k1 has to decide, as for a last group with fewer than
/// `min_signatures`, and for all signatures if the processor lacks the instructions.
pub fn recover(signatures: &[Signature], min_signatures: usize) -> Vec<Option<[u8; 64]>> {
    let mut keys = vec![None; signatures.len()];
    if !is_supported() {
        return keys;
    }
    let is_in_range = |number: &U256| !number.is_zero() && *number < ORDER;
    let valid: Vec<usize> = (0..signatures.len())
        .filter(|index| is_in_range(&signatures[*index].r) && is_in_range(&signatures[*index].s))
        .collect();
    let mut inverted: Vec<U256> = valid.iter().map(|index| signatures[*index].r).collect();
    BY_ORDER.inverses(&mut inverted);
    for (group, inverted) in valid.chunks(LANES).zip(inverted.chunks(LANES)) {
        if group.len() < min_signatures {
            continue;
        }
        // unused SIMD lanes repeat the first signature of the group
        let lanes: [usize; LANES] = std::array::from_fn(|lane| if lane < group.len() { lane } else { 0 });
        let mut all = Factors::default();
        let mut xs = [[0; 4]; LANES];
        let mut odd = 0u8;
        let mut usable = 0u8;
        for (lane, of) in lanes.into_iter().enumerate() {
            let signature = &signatures[group[of]];
            let (of_generator, of_point) = factors(signature.digest, signature.s, inverted[of]);
            xs[lane] = signature.r.into_limbs();
            odd |= u8::from(signature.parity) << lane;
            usable |= u8::from(all.set(lane, of_generator, of_point).is_some()) << lane;
        }
        // SAFETY: `is_supported` was checked above.
        let (found, points) = unsafe { recover_group(&xs, odd, &all) };
        for (lane, index) in group.iter().enumerate() {
            if found & usable & 1 << lane != 0 {
                let mut key = [0; 64];
                let [x, y] = points[lane];
                key[..32].copy_from_slice(&U256::from_limbs(x).to_be_bytes::<32>());
                key[32..].copy_from_slice(&U256::from_limbs(y).to_be_bytes::<32>());
                keys[*index] = Some(key);
            }
        }
    }
    keys
}

/// Recover the keys of eight signatures, one in each lane. Returns a bit mask of the lanes that have a key, and the
/// keys as points.
#[target_feature(enable = "avx512f,avx512dq")]
fn recover_group(xs: &[[u64; 4]; LANES], odd: u8, factors: &Factors) -> (u8, [[[u64; 4]; 2]; LANES]) {
    let x = Field::of(xs);
    let right = right_side(&x);
    let root = right.root();
    let exists = equal(&root.squared(), &right);
    let negated = odd ^ lanes_where(&root.numbers(), |number| number[0] & 1 == 1);
    let base = Affine { x, y: root.loose().negated_where(negated).carried() };

    let sum = sum_of_multiples(&base, factors);
    let mut inverted = sum.z.numbers().map(U256::from_limbs);
    BY_PRIME.inverses(&mut inverted);
    let affine = sum.affine(&Field::of(&inverted.map(U256::into_limbs)));
    // in exceptional cases of the group law Z is zero, which gives the point (0, 0), and (0, 0) is not on the curve
    let is_on_curve = equal(&affine.y.squared(), &right_side(&affine.x));
    let (x, y) = (affine.x.numbers(), affine.y.numbers());
    (exists & is_on_curve & !sum.infinite, std::array::from_fn(|lane| [x[lane], y[lane]]))
}

#[target_feature(enable = "avx512f,avx512dq")]
fn sum_of_multiples(base: &Affine, factors: &Factors) -> Point {
    let multiples = Multiples::of(base, &Field::everywhere(BETA.as_limbs()));
    let mut sum = Point::infinity();
    for bit in (0..=MAX_BIT).rev() {
        if sum.infinite != u8::MAX {
            sum.double();
        }
        if bit % POINT_WINDOW == 0 {
            for (by_lambda, digits) in [false, true].into_iter().zip(&factors.point) {
                let digits = Digits::of(&digits[bit / POINT_WINDOW]);
                sum.add(&multiples.at(&digits, by_lambda), digits.negative, digits.present, None);
            }
        }
        if bit % GENERATOR_WINDOW == 0 {
            for (fixed, digits) in GENERATOR.iter().zip(&factors.generator) {
                let digits = Digits::of(&digits[bit / GENERATOR_WINDOW]);
                sum.add(&fixed.at(&digits), digits.negative, digits.present, Some(&multiples.scale));
            }
        }
    }
    sum.z = sum.z.times(&multiples.scale);
    sum
}

/// Return x^3 + 7, the square of y on the curve.
#[target_feature(enable = "avx512f,avx512dq")]
fn right_side(x: &Field) -> Field {
    x.squared().mul(x).plus(&Field::everywhere(&[7, 0, 0, 0]).loose()).carried()
}

#[target_feature(enable = "avx512f,avx512dq")]
fn equal(a: &Field, b: &Field) -> u8 {
    let b = b.numbers();
    let mut next = b.iter();
    lanes_where(&a.numbers(), |number| next.next() == Some(number))
}

fn lanes_where(numbers: &[[u64; 4]; LANES], mut predicate: impl FnMut(&[u64; 4]) -> bool) -> u8 {
    numbers.iter().enumerate().fold(0, |lanes, (lane, number)| lanes | u8::from(predicate(number)) << lane)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::*;
    use crate::key_table::coordinates;
    use crate::signed;
    use crate::tests::libsecp256k1;

    /// Return the public keys that libsecp256k1 recovers; None for signatures without a public key.
    fn expected(signatures: &[Signature]) -> Vec<Option<[u8; 64]>> {
        signatures.iter().map(libsecp256k1).collect()
    }

    /// Return whether the processor supports this SIMD path. If not, print why the test is skipped.
    fn runs_here() -> bool {
        if !is_supported() {
            eprintln!("skipped: this processor lacks the instructions of {}", module_path!());
        }
        is_supported()
    }

    #[test]
    fn keys_equal_those_of_libsecp256k1() {
        if !runs_here() {
            return;
        }
        let signatures: Vec<Signature> = (0..2_003).map(|number| signed(number).0).collect();
        for count in [1, 2, 7, 8, 9, 17, signatures.len()] {
            let found = recover(&signatures[..count], 1);
            assert!(found.iter().all(Option::is_some), "valid signatures need no fallback");
            assert_eq!(found, expected(&signatures[..count]));
        }
    }

    #[test]
    fn random_signatures_give_the_same_keys_or_none() {
        if !runs_here() {
            return;
        }
        let random = |number: u64| U256::from_be_bytes(keccak256(number.to_be_bytes()).0);
        let signatures: Vec<Signature> = (0..2_000)
            .map(|number| Signature {
                digest: random(number),
                r: random(number + 5_000),
                s: random(number + 10_000),
                parity: number % 2 == 0,
            })
            .collect();
        let found = recover(&signatures, 1);
        for (found, expected) in found.iter().zip(expected(&signatures)) {
            assert!(found.is_none() || *found == expected);
        }
        let count = found.iter().flatten().count();
        assert!((900..1_100).contains(&count), "half of all numbers are an x of the curve: {count}");
    }

    /// Tests numbers at the limits of every range. Points are small multiples of the generator, so that sums contain
    /// equal and opposite points.
    #[test]
    fn exceptions_of_the_group_law_give_the_same_keys_or_none() {
        if !runs_here() {
            return;
        }
        let small = [1u64, 2, 3, 4, 15, 16, 17, 31, 32, 127, 128, 129, 255, 256].map(U256::from);
        let numbers: Vec<U256> = [U256::ZERO, ORDER, U256::MAX, U256::ONE << 128, (U256::ONE << 128) - U256::ONE]
            .into_iter()
            .chain(small)
            .chain(small.map(|number| ORDER - number))
            .collect();
        let rs = small.into_iter().map(|number| coordinates(&times_generator(number))[0]);
        let mut signatures = Vec::new();
        for r in rs.chain([U256::ZERO, U256::ONE, U256::from(5), ORDER - U256::ONE, ORDER]) {
            for (index, factor) in numbers.iter().enumerate() {
                for other in numbers.iter().skip(index % 3).step_by(3) {
                    // z and s are small multiples of r, so z / r and s / r are the small numbers `factor` and `other`
                    let times_r = |number: U256| number.mul_mod(r, ORDER);
                    signatures.push(Signature {
                        digest: times_r(*factor),
                        r,
                        s: times_r(*other),
                        parity: index % 2 == 0,
                    });
                    signatures.push(Signature { digest: *factor, r, s: *other, parity: index % 2 == 1 });
                }
            }
        }
        for (index, (found, expected)) in recover(&signatures, 1).iter().zip(expected(&signatures)).enumerate() {
            assert!(found.is_none() || *found == expected, "signature {index}");
        }
    }
}
