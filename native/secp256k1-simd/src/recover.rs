//! Q = (s R - z G) / r, the public key behind a signature (r, s) over z, where R is the point of the curve with x = r.
//!
//! s / r is split by the curve's endomorphism into two halves, -z / r into two of 128 bits; so four sums of multiples share
//! 128 doublings: multiples of R from a table made for the occasion, those of G and of 2^128 G from one made once.

use std::sync::LazyLock;

use alloy_primitives::{U256, uint};
use secp256k1::{PublicKey, SECP256K1, SecretKey};

use super::are_there;
use super::field::Field;
use super::point::{Affine, Digits, Fixed, Multiples, Point};
use crate::secp256k1_simd::Signature;
use crate::secp256k1_simd::limbs::{LANES, limbs_of};
use crate::secp256k1_simd::scalar::{BY_ORDER, BY_PRIME, ORDER, factors, halves, split};

/// Bits and digits of the factors of R.
const NARROW: usize = 5;
const NARROW_COUNT: usize = 26;
/// Bits and digits of the factors of G. More bits are fewer sums, but tables that no longer lie close to the processor.
const WIDE: usize = 10;
const WIDE_COUNT: usize = 13;
const MULTIPLES: usize = 1 << (WIDE - 1);
/// Where the first digit of all begins.
const HIGHEST: usize = if NARROW * (NARROW_COUNT - 1) > WIDE * (WIDE_COUNT - 1) {
    NARROW * (NARROW_COUNT - 1)
} else {
    WIDE * (WIDE_COUNT - 1)
};

uint! {
const BETA: U256 = 0x7ae96a2b657c07106e64479eac3434e99cf0497512f58995c1396c28719501ee_U256;
}

/// Multiples of G, and of 2^128 G.
static GENERATOR: LazyLock<[Fixed<MULTIPLES>; 2]> = LazyLock::new(|| {
    [U256::ONE, U256::ONE << 128].map(|factor| {
        let secret = SecretKey::from_byte_array(factor.to_be_bytes()).expect("below the order");
        let base = PublicKey::from_secret_key(SECP256K1, &secret);
        let mut table = Box::new([[0; 10]; MULTIPLES]);
        let mut sum = base;
        for entry in table.iter_mut() {
            let [x, y] = coordinates(&sum);
            entry[..5].copy_from_slice(&limbs_of(x.as_limbs()));
            entry[5..].copy_from_slice(&limbs_of(y.as_limbs()));
            sum = sum.combine(&base).expect("far from infinity");
        }
        Fixed(table)
    })
});

fn coordinates(key: &PublicKey) -> [U256; 2] {
    let bytes = key.serialize_uncompressed();
    [U256::from_be_slice(&bytes[1..33]), U256::from_be_slice(&bytes[33..])]
}

/// The factors of eight signatures, digit by digit.
#[derive(Default)]
struct Factors {
    point: [[[i64; LANES]; NARROW_COUNT]; 2],
    generator: [[[i64; LANES]; WIDE_COUNT]; 2],
}

impl Factors {
    fn set(&mut self, lane: usize, of_generator: U256, of_point: U256) -> Option<()> {
        let (first, second) = split(of_point)?;
        for (digits, half) in self.point.iter_mut().zip([first, second]) {
            for (row, digit) in digits.iter_mut().zip(half.digits::<NARROW, NARROW_COUNT>()) {
                row[lane] = digit;
            }
        }
        let (low, high) = halves(of_generator);
        for (digits, half) in self.generator.iter_mut().zip([low, high]) {
            for (row, digit) in digits.iter_mut().zip(half.digits::<WIDE, WIDE_COUNT>()) {
                row[lane] = digit;
            }
        }
        Some(())
    }
}

/// Uncompressed public keys; None where libsecp256k1 has to be asked, everywhere where `are_there` says no, and where fewer
/// than `fewest` are left over.
pub fn recover(signatures: &[Signature], fewest: usize) -> Vec<Option<[u8; 64]>> {
    let mut keys = vec![None; signatures.len()];
    if !are_there() {
        return keys;
    }
    let is_usual = |number: &U256| !number.is_zero() && *number < ORDER;
    let ordinary: Vec<usize> = (0..signatures.len())
        .filter(|index| is_usual(&signatures[*index].r) && is_usual(&signatures[*index].s))
        .collect();
    let mut inverted: Vec<U256> = ordinary.iter().map(|index| signatures[*index].r).collect();
    BY_ORDER.inverses(&mut inverted);
    for (group, inverted) in ordinary.chunks(LANES).zip(inverted.chunks(LANES)) {
        if group.len() < fewest {
            continue;
        }
        // lanes that are left over repeat the first
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
        // SAFETY: the processor has what is needed, as was seen above.
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

/// Which lanes gave a point, and the points.
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
    // an exception on the way has made Z zero, and with it x and y, which no point has
    let lies = equal(&affine.y.squared(), &right_side(&affine.x));
    let (x, y) = (affine.x.numbers(), affine.y.numbers());
    (exists & lies & !sum.infinite, std::array::from_fn(|lane| [x[lane], y[lane]]))
}

#[target_feature(enable = "avx512f,avx512dq")]
fn sum_of_multiples(base: &Affine, factors: &Factors) -> Point {
    let multiples = Multiples::of(base, &Field::everywhere(BETA.as_limbs()));
    let mut sum = Point::infinity();
    for bit in (0..=HIGHEST).rev() {
        if sum.infinite != u8::MAX {
            sum.double();
        }
        if bit % NARROW == 0 {
            for (is_turned, digits) in [false, true].into_iter().zip(&factors.point) {
                let digits = Digits::of(&digits[bit / NARROW]);
                sum.add(&multiples.at(&digits, is_turned), digits.negative, digits.present, None);
            }
        }
        if bit % WIDE == 0 {
            for (fixed, digits) in GENERATOR.iter().zip(&factors.generator) {
                let digits = Digits::of(&digits[bit / WIDE]);
                sum.add(&fixed.at(&digits), digits.negative, digits.present, Some(&multiples.scale));
            }
        }
    }
    sum.z = sum.z.times(&multiples.scale);
    sum
}

/// x^3 + 7.
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

fn lanes_where(numbers: &[[u64; 4]; LANES], mut is_so: impl FnMut(&[u64; 4]) -> bool) -> u8 {
    numbers.iter().enumerate().fold(0, |lanes, (lane, number)| lanes | u8::from(is_so(number)) << lane)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::*;
    use crate::keys::{recover_key, secret_key, sign};

    fn signed(number: u64) -> Signature {
        let secret = secret_key(keccak256(number.to_be_bytes()).as_slice()).unwrap();
        let digest = keccak256((number + 1_000_000).to_be_bytes());
        let signature = sign(&secret, digest.0);
        Signature {
            digest: U256::from_be_bytes(digest.0),
            r: U256::from_be_slice(&signature[..32]),
            s: U256::from_be_slice(&signature[32..64]),
            parity: signature[64] == 1,
        }
    }

    /// As libsecp256k1 does it, one by one; None where it finds none.
    fn expected(signatures: &[Signature]) -> Vec<Option<[u8; 64]>> {
        let one = |signature: &Signature| {
            let mut r_s = [0; 64];
            r_s[..32].copy_from_slice(&signature.r.to_be_bytes::<32>());
            r_s[32..].copy_from_slice(&signature.s.to_be_bytes::<32>());
            recover_key(&signature.digest.to_be_bytes::<32>().into(), &r_s, signature.parity).ok()
        };
        signatures.iter().map(one).collect()
    }

    #[test]
    fn the_keys_are_those_of_the_library() {
        if !are_there() {
            return;
        }
        let signatures: Vec<Signature> = (0..2_003).map(signed).collect();
        for count in [1, 2, 7, 8, 9, 17, signatures.len()] {
            let found = recover(&signatures[..count], 1);
            assert!(found.iter().all(Option::is_some), "all of them are ordinary");
            assert_eq!(found, expected(&signatures[..count]));
        }
    }

    #[test]
    fn random_numbers_give_the_same_keys_or_none() {
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
        if are_there() {
            let count = found.iter().flatten().count();
            assert!((900..1_100).contains(&count), "half of all numbers are an x of the curve: {count}");
        }
    }

    /// Numbers at the edges of every range, and signatures whose points are small multiples of the generator, so that
    /// sums meet equal and opposite points.
    #[test]
    fn exceptions_give_the_same_keys_or_none() {
        let small = [1u64, 2, 3, 4, 15, 16, 17, 31, 32, 127, 128, 129, 255, 256].map(U256::from);
        let numbers: Vec<U256> = [U256::ZERO, ORDER, U256::MAX, U256::ONE << 128, (U256::ONE << 128) - U256::ONE]
            .into_iter()
            .chain(small)
            .chain(small.map(|number| ORDER - number))
            .collect();
        let rs = small.into_iter().map(|number| {
            let secret = SecretKey::from_byte_array(number.to_be_bytes()).unwrap();
            coordinates(&PublicKey::from_secret_key(SECP256K1, &secret))[0]
        });
        let mut signatures = Vec::new();
        for r in rs.chain([U256::ZERO, U256::ONE, U256::from(5), ORDER - U256::ONE, ORDER]) {
            for (index, factor) in numbers.iter().enumerate() {
                for other in numbers.iter().skip(index % 3).step_by(3) {
                    // s / r and z / r are small themselves
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
