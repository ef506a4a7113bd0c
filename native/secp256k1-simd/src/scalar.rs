//! Scalars: numbers modulo the order of secp256k1, one at a time, and batch inversion modulo the order or the prime.

use alloy_primitives::{U256, U512, uint};

use crate::limbs::PRIME;

uint! {
pub const ORDER: U256 = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256;
/// 2^512 modulo the order of secp256k1. The Montgomery product of a number and this constant is the number times 2^256.
const SQUARE: U256 = 0x9d671cd581c69bc5e697f5e45bcd07c6741496c20e7cf878896cf21467d7d140_U256;
/// Constants for splitting a scalar with the curve's endomorphism, lambda times (x, y) = (beta x, y). Two short vectors
/// (a, b) satisfy a + b lambda = 0: (A1, -B1) and (A2, A1). The last two constants are A1 and B1, each times 2^384 and
/// divided by the order.
const A1: U256 = 0x3086d221a7d46bcde86c90e49284eb15_U256;
const B1: U256 = 0xe4437ed6010e88286f547fa90abfe4c3_U256;
const A2: U256 = 0x114ca50f7a8e2f3f657c1108d9d44cfd8_U256;
const A1_SHARE: U256 = 0x3086d221a7d46bcde86c90e49284eb153daa8a1471e8ca7fe893209a45dbb031_U256;
const B1_SHARE: U256 = 0xe4437ed6010e88286f547fa90abfe4c4221208ac9df506c61571b4ae8ac47f71_U256;
}

/// A modulus with its Montgomery constant, for fast multiplication.
#[derive(Clone, Copy)]
pub struct Modulus {
    number: U256,
    /// The negated inverse of the modulus, modulo 2^64.
    reduce: u64,
}

pub const BY_ORDER: Modulus = Modulus { number: ORDER, reduce: 0x4b0d_ff66_5588_b13f };
pub const BY_PRIME: Modulus = Modulus { number: U256::from_limbs(PRIME), reduce: 0xd838_091d_d225_3531 };

impl Modulus {
    /// Return the Montgomery product a b / 2^256 modulo this modulus.
    fn product(self, a: U256, b: U256) -> U256 {
        a.mul_redc(b, self.number, self.reduce)
    }

    /// Replace each number (below the modulus) by its inverse, with a single inversion. Zero stays zero.
    pub fn inverses(self, numbers: &mut [U256]) {
        // `before` holds, for each number, the product of all nonzero numbers that precede the number
        let mut before = Vec::with_capacity(numbers.len());
        let mut all = U256::ONE;
        for number in numbers.iter() {
            before.push(all);
            if !number.is_zero() {
                all = self.product(all, *number);
            }
        }
        let mut rest = all.inv_mod(self.number).expect("a product of numbers that have inverses has one");
        // the factors 2^256 in `before` and in `rest` cancel each other out
        for (number, before) in numbers.iter_mut().zip(before).rev() {
            if !number.is_zero() {
                let inverse = self.product(rest, before);
                rest = self.product(rest, *number);
                *number = inverse;
            }
        }
    }
}

/// Return the two factors of a public key Q = u G + v R: u = -digest / r for the generator G, and v = s / r for the
/// point R.
pub fn factors(digest: U256, s: U256, inverse: U256) -> (U256, U256) {
    let inverse = BY_ORDER.product(inverse, SQUARE);
    let digest = if digest >= ORDER { digest - ORDER } else { digest };
    let negated = if digest.is_zero() { digest } else { ORDER - digest };
    (BY_ORDER.product(negated, inverse), BY_ORDER.product(s, inverse))
}

/// A half of a split scalar: sign and magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Half {
    pub magnitude: u128,
    pub is_negative: bool,
}

impl Half {
    /// Convert from two's complement; None when the number does not fit into 128 bits.
    fn of(number: U256) -> Option<Self> {
        let is_negative = number.bit(255);
        let size = if is_negative { number.wrapping_neg() } else { number };
        Some(Half { magnitude: size.try_into().ok()?, is_negative })
    }

    /// Return the digits of this number to the base 2^BITS, lowest first. Each digit is between -2^BITS / 2 and 2^BITS
    /// / 2.
    pub fn digits<const BITS: usize, const COUNT: usize>(self) -> [i64; COUNT] {
        let mut carry = 0;
        std::array::from_fn(|index| {
            let rest = self.magnitude.checked_shr((index * BITS) as u32).unwrap_or(0);
            let mut digit = (rest & ((1 << BITS) - 1)) as i64 + carry;
            carry = i64::from(digit > 1 << (BITS - 1));
            digit -= carry << BITS;
            if self.is_negative { -digit } else { digit }
        })
    }
}

/// Split `number` into two halves: first + second * lambda. None if a half is too large.
pub fn split(number: U256) -> Option<(Half, Half)> {
    let share = |of: U256| -> U256 {
        let product: U512 = number.widening_mul(of);
        let rounded = (product >> 383u32) + U512::from(1);
        (rounded >> 1u32).to()
    };
    let (c1, c2) = (share(A1_SHARE), share(B1_SHARE));
    let first = number.wrapping_sub(c1.wrapping_mul(A1)).wrapping_sub(c2.wrapping_mul(A2));
    let second = c1.wrapping_mul(B1).wrapping_sub(c2.wrapping_mul(A1));
    Some((Half::of(first)?, Half::of(second)?))
}

/// Split `number` into two halves: first + second * 2^128.
pub fn halves(number: U256) -> (Half, Half) {
    let [a, b, c, d] = number.into_limbs();
    let half = |low: u64, high: u64| Half { magnitude: u128::from(low) | u128::from(high) << 64, is_negative: false };
    (half(a, b), half(c, d))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::*;

    const LAMBDA: U256 = uint!(0x5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72_U256);

    fn some() -> Vec<U256> {
        let random = (0..500u32).map(|number| U256::from_be_bytes(keccak256(number.to_be_bytes()).0) % ORDER);
        let edges = [1, 2, 3, 15, 16, 17].map(U256::from);
        edges
            .into_iter()
            .chain(edges.map(|edge| ORDER - edge))
            .chain([U256::ONE << 128, LAMBDA])
            .chain(random)
            .collect()
    }

    fn signed(half: Half) -> U256 {
        let size = U256::from(half.magnitude);
        if half.is_negative && !size.is_zero() { ORDER - size } else { size }
    }

    fn inverted(mut numbers: Vec<U256>, modulus: Modulus) -> Vec<U256> {
        modulus.inverses(&mut numbers);
        numbers
    }

    #[test]
    fn a_number_times_its_inverse_is_one_and_zero_stays_zero() {
        for modulus in [BY_ORDER, BY_PRIME] {
            let mut numbers = some();
            for at in [0, 7, numbers.len()] {
                numbers.insert(at, U256::ZERO);
            }
            for (number, inverse) in numbers.iter().zip(inverted(numbers.clone(), modulus)) {
                let one = if number.is_zero() { U256::ZERO } else { U256::ONE };
                assert_eq!(number.mul_mod(inverse, modulus.number), one);
            }
            for few in [vec![], vec![U256::ZERO], vec![U256::ZERO; 2]] {
                assert_eq!(inverted(few.clone(), modulus), few);
            }
        }
    }

    #[test]
    fn halves_add_up_to_the_number() {
        for number in some() {
            let (first, second) = split(number).unwrap();
            assert_eq!(signed(first).add_mod(signed(second).mul_mod(LAMBDA, ORDER), ORDER), number);
            let (low, high) = halves(number);
            assert_eq!(U256::from(low.magnitude) + (U256::from(high.magnitude) << 128), number);
        }
    }

    #[test]
    fn digits_add_up_to_the_half() {
        for size in some().iter().map(|number| number.wrapping_to::<u128>()).chain([0, u128::MAX, u128::MAX - 15]) {
            for is_negative in [false, true] {
                let half = Half { magnitude: size, is_negative };
                let sum = |digits: &[i64], bits: usize| {
                    digits.iter().rev().fold(U256::ZERO, |sum, digit| {
                        assert!(digit.unsigned_abs() <= 1 << (bits - 1));
                        let digit_256 = U256::from(digit.unsigned_abs());
                        let sum = sum << bits;
                        if *digit < 0 { sum.wrapping_sub(digit_256) } else { sum.wrapping_add(digit_256) }
                    })
                };
                let expected = if is_negative { U256::from(size).wrapping_neg() } else { U256::from(size) };
                assert_eq!(sum(&half.digits::<5, 26>(), 5), expected);
                assert_eq!(sum(&half.digits::<10, 13>(), 10), expected);
            }
        }
    }

    #[test]
    fn factors_are_quotients() {
        let numbers = some();
        let (digest, s, r) = (U256::MAX, numbers[20], numbers[21]);
        let (of_generator, of_point) = factors(digest, s, inverted(vec![r], BY_ORDER)[0]);
        assert_eq!(of_generator.mul_mod(r, ORDER), ORDER - digest % ORDER);
        assert_eq!(of_point.mul_mod(r, ORDER), s);
        assert_eq!(factors(ORDER, s, r).0, U256::ZERO);
    }
}
