//! Checks that recovery of a signature (r, s) over z gives an expected public key Q, with a table of multiples of Q.
//!
//! Recovery gives Q exactly if (z G + r Q) / s is the point R with x = r and the parity of the signature. The tables
//! hold multiples of 2^n Q and 2^n G for several n, so 15 doublings are enough instead of 128. No square root is
//! needed. The slow path is `recover`; the tests compare both.

use std::cell::RefCell;
use std::sync::LazyLock;

use alloy_primitives::{U256, uint};

use super::field::Field;
use super::is_supported;
use super::point::{Affine, Digits, FixedMultiples, Multiples, Point, chosen};
use crate::Signature;
use crate::key_table::{ENTRIES, Entries, KeyTable, ROW_BITS, ROW_DIGITS, ROWS, WINDOW, fill, times_generator};
use crate::limbs::LANES;
use crate::scalar::{BY_ORDER, BY_PRIME, ORDER, factors as quotients, halves, split};

/// Number of digits of each factor of the key.
const KEY_DIGITS: usize = 26;
const GENERATOR_WINDOW: usize = 10;
const GENERATOR_DIGITS: usize = 13;
const MULTIPLES: usize = 1 << (GENERATOR_WINDOW - 1);
/// Number of digits of a factor of G that share a table.
const TABLE_DIGITS: usize = 2;
const TABLES: usize = GENERATOR_DIGITS.div_ceil(TABLE_DIGITS);
const _: () =
    assert!(GENERATOR_WINDOW.is_multiple_of(WINDOW) && GENERATOR_WINDOW / WINDOW * (TABLE_DIGITS - 1) < ROW_DIGITS);
const _: () = assert!(KEY_DIGITS <= ROWS * ROW_DIGITS);
/// Number of groups of eight signatures that share inversions.
const GROUPS: usize = 2;
/// Number of times that points are added in pairs. Each time costs an inversion, so few points are left to other sums.
const LAYERS: usize = 3;

uint! {
const BETA: U256 = 0x7ae96a2b657c07106e64479eac3434e99cf0497512f58995c1396c28719501ee_U256;
}

/// Tables with multiples of 2^20n G, and of 2^(128 + 20n) G.
static GENERATOR: LazyLock<[[FixedMultiples<MULTIPLES>; TABLES]; 2]> = LazyLock::new(|| {
    [0, 128].map(|half| {
        std::array::from_fn(|table| {
            let base = times_generator(U256::ONE << (half + table * TABLE_DIGITS * GENERATOR_WINDOW));
            let mut entries = Box::new([[0; 10]; MULTIPLES]);
            fill(&mut entries[..], &base);
            FixedMultiples(entries)
        })
    })
});

/// Digits of the factors of Q and G for eight signatures.
struct Factors {
    key: [[[i64; LANES]; ROWS * ROW_DIGITS]; 2],
    generator: [[[i64; LANES]; TABLES * TABLE_DIGITS]; 2],
}

impl Factors {
    fn set(&mut self, lane: usize, of_generator: U256, of_key: U256) -> Option<()> {
        let (first, second) = split(of_key)?;
        for (digits, half) in self.key.iter_mut().zip([first, second]) {
            for (row, digit) in digits.iter_mut().zip(half.digits::<WINDOW, KEY_DIGITS>()) {
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

/// Return true for each signature that was certainly made with the key of its `KeyTable`; false means undecided.
pub fn verify(signatures: &[(&Signature, &KeyTable)]) -> Vec<bool> {
    let mut verified = vec![false; signatures.len()];
    if !is_supported() {
        return verified;
    }
    let is_in_range = |number: &U256| !number.is_zero() && *number < ORDER;
    let valid: Vec<usize> = (0..signatures.len())
        .filter(|index| is_in_range(&signatures[*index].0.r) && is_in_range(&signatures[*index].0.s))
        .collect();
    let mut inverted: Vec<U256> = valid.iter().map(|index| signatures[*index].0.s).collect();
    BY_ORDER.inverses(&mut inverted);
    for (some, inverted) in valid.chunks(GROUPS * LANES).zip(inverted.chunks(GROUPS * LANES)) {
        let groups: Vec<Group> = some
            .chunks(LANES)
            .zip(inverted.chunks(LANES))
            .map(|(group, inverted)| {
                Group::of(&std::array::from_fn(|lane| {
                    // unused SIMD lanes repeat the first signature of the group
                    let of = if lane < group.len() { lane } else { 0 };
                    (signatures[group[of]], inverted[of])
                }))
            })
            .collect();
        // SAFETY: `is_supported` was checked above.
        let points = SCRATCH.with_borrow_mut(|scratch| unsafe { points(&groups, scratch) });
        for (at, index) in some.iter().enumerate() {
            let (group, lane) = (at / LANES, at % LANES);
            let (signature, [x, y]) = (signatures[*index].0, points[group][lane]);
            let is_equal = x == signature.r.into_limbs() && (y[0] & 1 == 1) == signature.parity;
            verified[*index] = groups[group].usable & 1 << lane != 0 && is_equal;
        }
    }
    verified
}

/// Eight signatures: the tables of their keys, and the factors of G and Q.
struct Group<'a> {
    tables: [&'a KeyTable; LANES],
    factors: Factors,
    /// Lanes whose factor of Q was split.
    usable: u8,
}

impl<'a> Group<'a> {
    /// Compute the factors of signatures. Each comes with the inverse of its s.
    fn of(signatures: &[((&Signature, &'a KeyTable), U256); LANES]) -> Self {
        let mut factors =
            Factors { key: [[[0; LANES]; ROWS * ROW_DIGITS]; 2], generator: [[[0; LANES]; TABLES * TABLE_DIGITS]; 2] };
        let mut usable = 0u8;
        for (lane, ((signature, _), inverse)) in signatures.iter().enumerate() {
            let (negated, of_key) = quotients(signature.digest, signature.r, *inverse);
            let of_generator = if negated.is_zero() { negated } else { ORDER - negated };
            usable |= u8::from(factors.set(lane, of_generator, of_key).is_some()) << lane;
        }
        Group { tables: signatures.map(|((_, table), _)| table), factors, usable }
    }
}

/// Points that are multiplied by the same power of two, and the lanes in which they are present.
type Addends = Vec<(Affine, u8)>;

/// Memory of a thread for the points of some groups. Allocating it for each call would take a tenth of the time.
#[derive(Default)]
struct Scratch {
    addends: [Addends; GROUPS * ROW_DIGITS],
    /// For each pair of points, the difference of their x coordinates, and the product of the differences before it.
    pairs: Vec<(Field, Field)>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Return the sum of the multiples of G and Q in each lane of some groups. In exceptional cases of the group law the
/// result is (0, 0).
///
/// All multiples are affine. So most of them are added in pairs, with one inversion for all pairs of all groups. This
/// takes half as long as adding them to a point in Jacobian coordinates.
#[target_feature(enable = "avx512f,avx512dq")]
fn points(groups: &[Group<'_>], scratch: &mut Scratch) -> Vec<[[[u64; 4]; 2]; LANES]> {
    let Scratch { addends, pairs } = scratch;
    let addends = &mut addends[..groups.len() * ROW_DIGITS];
    for (group, addends) in groups.iter().zip(addends.chunks_exact_mut(ROW_DIGITS)) {
        group.list(addends);
    }
    let mut exceptional = 0;
    for _ in 0..LAYERS {
        exceptional |= add_pairs(addends, pairs);
    }
    let mut sums = Vec::with_capacity(groups.len());
    let mut product = Field::one();
    for addends in addends.chunks_exact(ROW_DIGITS) {
        let sum = sum_of(addends);
        sums.push((sum, product));
        product = product.times(&sum.z);
    }
    let mut rest = inverse(&product);
    let mut points = Vec::with_capacity(groups.len());
    for (sum, before) in sums.iter().rev() {
        let affine = sum.affine(&rest.times(before));
        rest = rest.times(&sum.z);
        let (x, y) = (affine.x.numbers(), affine.y.numbers());
        let none = sum.infinite | exceptional;
        points.push(std::array::from_fn(|lane| if none & 1 << lane == 0 { [x[lane], y[lane]] } else { [[0; 4]; 2] }));
    }
    points.reverse();
    points
}

impl Group<'_> {
    /// List the multiples to add. Those of list n are to be multiplied by 2^(n * `WINDOW`).
    #[target_feature(enable = "avx512f,avx512dq")]
    fn list(&self, addends: &mut [Addends]) {
        addends.iter_mut().for_each(Vec::clear);
        let beta = Field::everywhere(BETA.as_limbs());
        for (by_lambda, digits) in [false, true].into_iter().zip(&self.factors.key) {
            for (number, digits) in digits.iter().take(KEY_DIGITS).enumerate() {
                let (row, digits) = (number / ROW_DIGITS, Digits::of(digits));
                // SAFETY: each table has `ROWS` rows of `ENTRIES` entries.
                let mut multiple = unsafe {
                    chosen::<ENTRIES>(self.tables.map(|table| table.start().add(row * ENTRIES * 10)), &digits)
                };
                if by_lambda {
                    multiple.x = multiple.x.times(&beta);
                }
                addends[number % ROW_DIGITS].push((multiple.negated_where(digits.negative), digits.present));
            }
        }
        for (tables, digits) in GENERATOR.iter().zip(&self.factors.generator) {
            for (number, digits) in digits.iter().take(GENERATOR_DIGITS).enumerate() {
                let digits = Digits::of(digits);
                let multiple = tables[number / TABLE_DIGITS].at(&digits);
                let list = &mut addends[number % TABLE_DIGITS * (GENERATOR_WINDOW / WINDOW)];
                list.push((multiple.negated_where(digits.negative), digits.present));
            }
        }
    }
}

/// Add the points of each list in pairs, so that half of them are left. Returns the lanes in which both points of a pair
/// have the same x coordinate: all sums in these lanes are wrong. `pairs` is empty memory for the pairs.
#[target_feature(enable = "avx512f,avx512dq")]
fn add_pairs(addends: &mut [Addends], pairs: &mut Vec<(Field, Field)>) -> u8 {
    let one = Field::one();
    // for each pair, last pair first: the difference of the x coordinates, and the product of all differences before it
    let mut product = one;
    for pair in addends.iter().rev().flat_map(|list| list.chunks_exact(2).rev()) {
        let [(a, in_a), (b, in_b)] = [&pair[0], &pair[1]];
        let difference = one.or_where(in_a & in_b, &b.x.loose().minus(&a.x.loose()).carried());
        pairs.push((difference, product));
        product = product.times(&difference);
    }
    let mut rest = inverse(&product);
    for list in addends {
        let half = list.len() / 2;
        for at in 0..half {
            let (difference, before) = pairs.pop().expect("one for each pair");
            let [(a, in_a), (b, in_b)] = [list[2 * at], list[2 * at + 1]];
            let slope = b.y.loose().minus(&a.y.loose()).carried().times(&rest.times(&before));
            rest = rest.times(&difference);
            let single = b.or_where(in_a, &a);
            list[at] = (single.or_where(in_a & in_b, &a.plus(&b, &slope)), in_a | in_b);
        }
        let unpaired = (list.len() % 2 == 1).then(|| list[list.len() - 1]);
        list.truncate(half);
        list.extend(unpaired);
    }
    let products = product.numbers();
    (0..LANES).filter(|lane| products[*lane] == [0; 4]).fold(0, |lanes, lane| lanes | 1 << lane)
}

/// Return the sum of the points of all lists of a group, each multiplied by the power of two of its list.
#[target_feature(enable = "avx512f,avx512dq")]
fn sum_of(addends: &[Addends]) -> Point {
    let mut sum = Point::infinity();
    for list in addends.iter().rev() {
        for _ in 0..WINDOW {
            if sum.infinite != u8::MAX {
                sum.double();
            }
        }
        for (point, present) in list {
            sum.add(point, 0, *present, None);
        }
    }
    sum
}

/// Return the inverse of each number. Zero stays zero.
#[target_feature(enable = "avx512f,avx512dq")]
fn inverse(numbers: &Field) -> Field {
    let mut inverted = numbers.numbers().map(U256::from_limbs);
    BY_PRIME.inverses(&mut inverted);
    Field::of(&inverted.map(U256::into_limbs))
}

/// Compute the table of a public key.
pub fn multiples(key: &[U256; 2]) -> Option<Box<Entries>> {
    // SAFETY: `is_supported` is checked before the call.
    is_supported().then(|| unsafe { multiples_of(key) })
}

#[target_feature(enable = "avx512f,avx512dq")]
fn multiples_of(key: &[U256; 2]) -> Box<Entries> {
    // lane n computes row n; the other lanes repeat the last row
    let [x, y] = key.map(|number| Field::everywhere(number.as_limbs()));
    let mut sum = Point::of(&Affine { x, y });
    let mut bases = sum;
    for row in 1..ROWS {
        for _ in 0..ROW_BITS {
            sum.double();
        }
        bases = bases.or_where(u8::MAX << row, &sum);
    }
    let bases = bases.affine(&inverse(&bases.z));
    let multiples = Multiples::of(&bases, &Field::one());
    let inverse = inverse(&multiples.scale);
    let mut table = Box::new([[0; 10]; ROWS * ENTRIES]);
    for number in 0..ENTRIES {
        let entry = multiples.affine(number, &inverse);
        for (offset, limbs) in [(0, entry.x.store()), (5, entry.y.store())] {
            for (at, limb) in limbs.into_iter().enumerate() {
                for row in 0..ROWS {
                    table[row * ENTRIES + number][offset + at] = limb[row];
                }
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::super::recover::recover;
    use super::*;
    use crate::{signed, signed_by};

    fn random(number: u64) -> U256 {
        U256::from_be_bytes(keccak256(number.to_be_bytes()).0)
    }

    /// Return whether recovery gives the key: the slow path that `verify` must agree with.
    fn recovers(signature: &Signature, key: &[u8; 64]) -> bool {
        recover(std::slice::from_ref(signature), 1)[0].is_some_and(|recovered| recovered == *key)
    }

    #[test]
    fn signatures_of_the_key_are_verified_and_others_are_not() {
        if !is_supported() {
            eprintln!("skipped: this processor lacks the instructions of {}", module_path!());
            return;
        }
        let (signatures, keys): (Vec<Signature>, Vec<[u8; 64]>) =
            (0..403).map(|number| signed_by(number, number % 5)).unzip();
        let tables: Vec<KeyTable> = keys[..5].iter().map(|key| KeyTable::with(multiples, key).unwrap()).collect();
        for count in [1, 7, 8, 9, signatures.len()] {
            let own: Vec<_> = (0..count).map(|at| (&signatures[at], &tables[at % 5])).collect();
            assert_eq!(verify(&own), vec![true; count]);
            let others: Vec<_> = (0..count).map(|at| (&signatures[at], &tables[(at + 1) % 5])).collect();
            assert_eq!(verify(&others), vec![false; count]);
        }
        let changed = |change: fn(&mut Signature)| {
            let mut signature = signed_by(7, 2).0;
            change(&mut signature);
            assert_eq!(verify(&[(&signature, &tables[2])]), [false]);
            assert!(!recovers(&signature, &keys[2]));
        };
        changed(|signature| signature.parity = !signature.parity);
        changed(|signature| signature.digest += U256::ONE);
        changed(|signature| signature.r += U256::ONE);
        changed(|signature| signature.s += U256::ONE);
        changed(|signature| signature.s = U256::ZERO);
        changed(|signature| signature.r = ORDER);
    }

    /// Tests numbers at the limits of every range, with keys and points that are small multiples of the generator. So
    /// sums contain equal and opposite points.
    #[test]
    fn exceptions_of_the_group_law_are_verified_only_if_recovery_gives_the_key() {
        if !is_supported() {
            return;
        }
        let small = [1u64, 2, 3, 16, 31, 32, 33, 511, 512, 513].map(U256::from);
        let numbers: Vec<U256> = small
            .into_iter()
            .chain(small.map(|number| ORDER - number))
            .chain([U256::ZERO, U256::MAX, U256::ONE << 40, U256::ONE << 128, random(1)])
            .collect();
        let mut verified = 0;
        for secret in [1u64, 2, 3, 32, 33].map(U256::from) {
            let key: [u8; 64] = times_generator(secret).serialize_uncompressed()[1..].try_into().unwrap();
            let table = KeyTable::with(multiples, &key).unwrap();
            let mut signatures = Vec::new();
            for nonce in small {
                let r = crate::key_table::coordinates(&times_generator(nonce))[0];
                for number in &numbers {
                    for parity in [false, true] {
                        // with this s the signature is right: s = (z + r d) / k
                        let digest = if *number >= ORDER { *number - ORDER } else { *number };
                        let sum = digest.add_mod(r.mul_mod(secret, ORDER), ORDER);
                        let s = sum.mul_mod(nonce.inv_mod(ORDER).unwrap(), ORDER);
                        signatures.push(Signature { digest: *number, r, s, parity });
                        signatures.push(Signature { digest: *number, r, s: *number, parity });
                    }
                }
            }
            let pairs: Vec<_> = signatures.iter().map(|signature| (signature, &table)).collect();
            for (signature, is_verified) in signatures.iter().zip(verify(&pairs)) {
                if is_verified {
                    verified += 1;
                    let found = recover(std::slice::from_ref(signature), 1)[0];
                    assert!(found.is_none() || found == Some(key));
                    assert_eq!(crate::tests::libsecp256k1(signature), Some(key));
                }
            }
        }
        assert!(verified > 500, "{verified} of 1,250 right signatures");
    }

    /// A signature that is right for the key `secret` times G and has these factors of G and Q.
    fn with_factors(of_generator: U256, of_key: U256, secret: U256) -> Signature {
        let nonce = of_generator.add_mod(of_key.mul_mod(secret, ORDER), ORDER);
        let [r, y] = crate::key_table::coordinates(&times_generator(nonce));
        let s = r.mul_mod(of_key.inv_mod(ORDER).unwrap(), ORDER);
        Signature { digest: of_generator.mul_mod(s, ORDER), r, s, parity: y.bit(0) }
    }

    fn table_of(secret: U256) -> KeyTable {
        let key = times_generator(secret).serialize_uncompressed();
        KeyTable::with(multiples, key[1..].try_into().unwrap()).unwrap()
    }

    /// Return what `points` would return for the first lane if it ignored equal x coordinates, and the times that points
    /// are added in pairs in which there are such pairs.
    #[target_feature(enable = "avx512f,avx512dq")]
    fn unchecked(group: &Group<'_>) -> ([[u64; 4]; 2], Vec<usize>) {
        let mut addends: [Addends; ROW_DIGITS] = Default::default();
        group.list(&mut addends);
        let found = (0..LAYERS).filter(|_| add_pairs(&mut addends, &mut Vec::new()) & 1 == 1).collect();
        let sum = sum_of(&addends);
        let affine = sum.affine(&inverse(&sum.z));
        ([affine.x.numbers()[0], affine.y.numbers()[0]], found)
    }

    /// Equal and opposite points meet in each of the times that points are added in pairs, and in the last sum. Such a
    /// signature is not verified at any position of a batch, even if r is the wrong result, and costs only its lane.
    #[test]
    fn equal_and_opposite_points_are_not_verified_and_spoil_no_other_lane() {
        if !is_supported() {
            return;
        }
        const LAMBDA: U256 = uint!(0x5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72_U256);
        // 256 * 2^120 meets 1 * 2^128 in the factor of G
        let mut cases = vec![(vec![0], (U256::ONE << 129) - U256::ONE, random(2) % ORDER, random(3) % ORDER)];
        // lambda 2^(20 row) Q meets G or -G
        for (row, layers) in [(6, vec![1]), (5, vec![1]), (4, vec![2]), (1, vec![2]), (0, vec![])] {
            let of_key = LAMBDA.mul_mod(U256::ONE << (row * ROW_BITS), ORDER);
            let secret = of_key.inv_mod(ORDER).unwrap();
            cases.push((layers.clone(), U256::ONE, of_key, secret));
            cases.push((layers, U256::ONE | U256::ONE << 40, of_key, ORDER - secret));
        }
        let good = with_factors(random(4) % ORDER, random(5) % ORDER, random(6) % ORDER);
        let good_table = table_of(random(6) % ORDER);
        for (layers, of_generator, of_key, secret) in cases {
            let right = with_factors(of_generator, of_key, secret);
            assert!(crate::tests::libsecp256k1(&right).is_some());
            let table = table_of(secret);
            let group = Group::of(&[((&right, &table), right.s.inv_mod(ORDER).unwrap()); LANES]);
            // SAFETY: `is_supported` was checked above.
            let ([x, y], found) = unsafe { unchecked(&group) };
            assert_eq!(found, layers);
            let r = U256::from_limbs(x);
            let s = r.mul_mod(of_key.inv_mod(ORDER).unwrap(), ORDER);
            let forged = Signature { digest: of_generator.mul_mod(s, ORDER), r, s, parity: y[0] & 1 == 1 };
            for bad in [&right, &forged].into_iter().filter(|bad| !bad.r.is_zero()) {
                for count in 1..=2 * LANES + 1 {
                    for position in 0..count {
                        let pairs: Vec<_> = (0..count)
                            .map(|at| if at == position { (bad, &table) } else { (&good, &good_table) })
                            .collect();
                        // unused lanes repeat the first signature of a group
                        let unused = (count - position).min(LANES)..LANES;
                        let is_spoiled = |at: usize| {
                            at / (2 * LANES) == position / (2 * LANES)
                                && (at % LANES == position % LANES
                                    || position % LANES == 0 && unused.contains(&(at % LANES)))
                        };
                        let expected: Vec<bool> = (0..count).map(|at| !is_spoiled(at)).collect();
                        assert_eq!(verify(&pairs), expected, "{layers:?}, {position} of {count}");
                    }
                }
            }
        }
    }

    #[test]
    fn random_numbers_are_not_verified() {
        if !is_supported() {
            return;
        }
        let (_, key) = signed(1);
        let table = KeyTable::with(multiples, &key).unwrap();
        let signatures: Vec<Signature> = (0..500)
            .map(|number| Signature {
                digest: random(number),
                r: random(number + 5_000),
                s: random(number + 10_000),
                parity: number % 2 == 0,
            })
            .collect();
        let pairs: Vec<_> = signatures.iter().map(|signature| (signature, &table)).collect();
        assert!(verify(&pairs).iter().all(|is_verified| !is_verified));
    }
}
