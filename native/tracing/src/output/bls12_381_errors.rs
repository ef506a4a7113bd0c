//! Errors of BLS12-381 contracts (EIP-2537, EIP-4844) in the wording of the call tracer.
//!
//! Points are checked in order, so the error names the first fault.

use alloy_primitives::{Address, U256, Uint, uint};
use revm::precompile::{PrecompileHalt, Precompiles};

use crate::output::precompile_errors::halt_of;

/// Modulus of the coordinate field. It is congruent to 3 modulo 4, so a square root takes one exponentiation.
const FIELD: U384 =
    uint!(0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab_U384);
/// Order of the BLS12-381 subgroup.
const ORDER: U256 = uint!(52435875175126190479447740508185965837690552500527637822603658699938581184513_U256);

type U384 = Uint<384, 6>;

const ADD_1: u8 = 0x0b;
const SUM_1: u8 = 0x0c;
const ADD_2: u8 = 0x0d;
const SUM_2: u8 = 0x0e;
const PAIRING: u8 = 0x0f;
const MAP_1: u8 = 0x10;
const MAP_2: u8 = 0x11;

/// Size of a field element in bytes.
const ELEMENT: usize = 64;
/// Size of a G1 point in bytes.
const POINT_1: usize = 2 * ELEMENT;
/// Size of a G2 point in bytes.
const POINT_2: usize = 4 * ELEMENT;
/// Size of a scalar in bytes.
const FACTOR: usize = 32;

const WRONG_LENGTH: &str = "invalid input length";
const TOO_LARGE: &str = "invalid fp.Element encoding";
const OUTSIDE_1: &str = "g1 point is not on correct subgroup";
const OUTSIDE_2: &str = "g2 point is not on correct subgroup";

type Judgement = Result<(), &'static str>;

/// Return the reason why a contract of EIP-2537 failed; None for other contracts and valid input.
pub fn curve_words(contract: &Address, input: &[u8]) -> Option<&'static str> {
    let (number, rest) = contract.split_last().expect("an address has twenty bytes");
    if rest.iter().any(|byte| *byte != 0) {
        return None;
    }
    match *number {
        ADD_1 => whole(input, 2 * POINT_1).and_then(|()| each(input, POINT_1, is_point)),
        ADD_2 => whole(input, 2 * POINT_2).and_then(|()| each(input, POINT_2, is_point)),
        SUM_1 => pieces(input, POINT_1 + FACTOR, |piece| is_inside(&piece[..POINT_1], OUTSIDE_1)),
        SUM_2 => pieces(input, POINT_2 + FACTOR, |piece| is_inside(&piece[..POINT_2], OUTSIDE_2)),
        PAIRING => pieces(input, POINT_1 + POINT_2, |piece| {
            let (one, two) = piece.split_at(POINT_1);
            let (one_is_inside, two_is_inside) = (found(one)?, found(two)?);
            if !one_is_inside {
                Err(OUTSIDE_1)
            } else if !two_is_inside {
                Err(OUTSIDE_2)
            } else {
                Ok(())
            }
        }),
        MAP_1 => whole(input, ELEMENT).and_then(|()| is_element(input)),
        MAP_2 => whole(input, 2 * ELEMENT).and_then(|()| each(input, ELEMENT, is_element)),
        _ => Ok(()),
    }
    .err()
}

/// Return the reason why a KZG proof is invalid: an invalid field element, an invalid point, or a failed verification.
pub fn proof_words(input: &[u8]) -> &'static str {
    let (head, points) = input.split_at(3 * 32);
    if head.chunks_exact(32).skip(1).any(|scalar| U256::from_be_slice(scalar) >= ORDER) {
        return "scalar is not canonical when interpreted as a big integer in big-endian";
    }
    match each(points, 48, is_short_point) {
        Err(words) => words,
        Ok(()) => "can't verify opening proof",
    }
}

fn whole(input: &[u8], length: usize) -> Judgement {
    if input.len() == length { Ok(()) } else { Err(WRONG_LENGTH) }
}

fn pieces(input: &[u8], length: usize, judge: impl Fn(&[u8]) -> Judgement) -> Judgement {
    if input.is_empty() || !input.len().is_multiple_of(length) {
        return Err(WRONG_LENGTH);
    }
    each(input, length, judge)
}

fn each(input: &[u8], length: usize, judge: impl Fn(&[u8]) -> Judgement) -> Judgement {
    input.chunks_exact(length).try_for_each(judge)
}

fn is_element(encoded: &[u8]) -> Judgement {
    let (top, number) = encoded.split_at(16);
    if top.iter().any(|byte| *byte != 0) {
        Err("invalid field element top bytes")
    } else if U384::from_be_slice(number) >= FIELD {
        Err(TOO_LARGE)
    } else {
        Ok(())
    }
}

fn is_point(encoded: &[u8]) -> Judgement {
    found(encoded).map(drop)
}

fn is_inside(encoded: &[u8], words: &'static str) -> Judgement {
    if found(encoded)? { Ok(()) } else { Err(words) }
}

/// Return whether a point is in the subgroup. The precompiled multiplication contract decides. The length of the point
/// selects G1 or G2.
fn found(encoded: &[u8]) -> Result<bool, &'static str> {
    each(encoded, ELEMENT, is_element)?;
    let contract = if encoded.len() == POINT_1 { SUM_1 } else { SUM_2 };
    let input = [encoded, &U256::ONE.to_be_bytes::<FACTOR>()].concat();
    match halt_of(Precompiles::prague(), &Address::with_last_byte(contract), &input) {
        None => Ok(true),
        Some(PrecompileHalt::Bls12381G1NotInSubgroup | PrecompileHalt::Bls12381G2NotInSubgroup) => Ok(false),
        Some(_) => Err("invalid point: not on curve"),
    }
}

/// Check a compressed G1 point of a commitment or proof. The first three bits are flags.
fn is_short_point(encoded: &[u8]) -> Judgement {
    let mut bytes = encoded.to_vec();
    bytes[0] &= 0b0001_1111;
    match encoded[0] >> 5 {
        // the flag byte announces both coordinates of the point, but one coordinate is missing
        0b000 | 0b010 => return Err("short buffer"),
        0b100 | 0b101 => {}
        0b110 if bytes.iter().all(|byte| *byte == 0) => return Ok(()),
        0b110 => return Err("invalid infinity point encoding"),
        _ => return Err("invalid point encoding"),
    }
    let x = U384::from_be_slice(&bytes);
    if x >= FIELD {
        return Err(TOO_LARGE);
    }
    let square = x.pow_mod(uint!(3_U384), FIELD).add_mod(uint!(4_U384), FIELD);
    let y = square.pow_mod((FIELD + U384::ONE) >> 2, FIELD);
    if y.mul_mod(y, FIELD) != square {
        return Err("invalid compressed coordinate: square root doesn't exist");
    }
    let mut point = [0; POINT_1];
    point[16..ELEMENT].copy_from_slice(&bytes);
    point[ELEMENT + 16..].copy_from_slice(&y.to_be_bytes::<48>());
    is_inside(&point, "invalid point: subgroup check failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test point of order three on the curve: x = 0, y = 2.
    const OF_ORDER_THREE: ([u8; POINT_1], [u8; 48]) = {
        let (mut point, mut short) = ([0; POINT_1], [0; 48]);
        point[POINT_1 - 1] = 2;
        short[0] = 0b1000_0000;
        (point, short)
    };

    fn words(contract: u8, input: &[u8]) -> Option<&'static str> {
        curve_words(&Address::with_last_byte(contract), input)
    }

    fn element(number: U384) -> Vec<u8> {
        [&[0; 16][..], &number.to_be_bytes::<48>()].concat()
    }

    #[test]
    fn inputs_of_a_wrong_length_are_named() {
        for contract in ADD_1..=MAP_2 {
            assert_eq!(words(contract, &[0; 5]), Some(WRONG_LENGTH));
            assert_eq!(words(contract, &[]), Some(WRONG_LENGTH));
        }
        assert_eq!(words(0x12, &[]), None);
    }

    #[test]
    fn elements_are_named_in_the_order_in_which_they_stand() {
        let (good, large, padded) = (element(U384::ZERO), element(FIELD), vec![1; ELEMENT]);
        assert_eq!(words(MAP_1, &good), None);
        assert_eq!(words(MAP_1, &large), Some(TOO_LARGE));
        assert_eq!(words(MAP_1, &padded), Some("invalid field element top bytes"));
        assert_eq!(words(MAP_2, &[&large[..], &padded].concat()), Some(TOO_LARGE));
        assert_eq!(words(MAP_2, &[&good[..], &padded].concat()), Some("invalid field element top bytes"));
    }

    #[test]
    fn points_are_named_in_the_order_in_which_they_stand() {
        let (three, nowhere) = (OF_ORDER_THREE.0, [element(U384::ONE), element(U384::ONE)].concat());
        let padded = vec![1; POINT_1];
        assert_eq!(words(ADD_1, &[three, three].concat()), None, "addition asks for no more than the curve");
        assert_eq!(words(ADD_1, &[&nowhere[..], &padded].concat()), Some("invalid point: not on curve"));
        assert_eq!(words(SUM_1, &[&three[..], &[0; FACTOR]].concat()), Some(OUTSIDE_1));
        let later = [&three[..], &[0; FACTOR], &padded, &[0; FACTOR]].concat();
        assert_eq!(words(SUM_1, &later), Some(OUTSIDE_1));
        assert_eq!(
            words(SUM_2, &[vec![1; POINT_2], vec![0; FACTOR]].concat()),
            Some("invalid field element top bytes")
        );
        assert_eq!(
            words(ADD_2, &[nowhere.clone(), nowhere.clone(), vec![0; POINT_2]].concat()),
            Some("invalid point: not on curve")
        );
        assert_eq!(words(PAIRING, &[&three[..], &[0; POINT_2]].concat()), Some(OUTSIDE_1));
        let both = [&three[..], &nowhere, &nowhere].concat();
        assert_eq!(words(PAIRING, &both), Some("invalid point: not on curve"), "both are points before either counts");
    }

    #[test]
    fn proofs_say_what_is_wrong_with_them_first() {
        let infinity = [&[0xc0][..], &[0; 47]].concat();
        let with = |first: &[u8]| proof_words(&[&[0; 96][..], first, &infinity].concat());
        let starting = |byte: u8| {
            let mut point = vec![0; 48];
            point[0] = byte;
            point
        };
        assert_eq!(with(&infinity), "can't verify opening proof");
        assert_eq!(with(&OF_ORDER_THREE.1), "invalid point: subgroup check failed");
        assert_eq!(with(&[0; 48]), "short buffer");
        assert_eq!(with(&starting(0x40)), "short buffer");
        for mask in [0x20, 0x60, 0xe0] {
            assert_eq!(with(&starting(mask)), "invalid point encoding");
        }
        assert_eq!(with(&starting(0xc1)), "invalid infinity point encoding");
        assert_eq!(with(&[0xff; 48]), "invalid point encoding");
        assert_eq!(with(&starting(0x9f)), TOO_LARGE);
        let mut lonely = starting(0x80);
        lonely[47] = 1;
        assert_eq!(with(&lonely), "invalid compressed coordinate: square root doesn't exist");
        let scalar = [&[0; 32][..], &[0xff; 32], &[0; 32], &lonely, &lonely].concat();
        assert_eq!(proof_words(&scalar), "scalar is not canonical when interpreted as a big integer in big-endian");
    }
}
