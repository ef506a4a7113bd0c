//! Validates public keys: canonical encoding, and no points of low order.

use curve25519_dalek::MontgomeryPoint;

use crate::sealed_payload::Key;

/// Return whether a public key is canonical and not of low order. With a point of low order, the shared secret is zero
/// for every private key, so any key could open the box. A second encoding would let one member appear under two keys.
pub fn is_sound(key: &Key) -> bool {
    is_canonical(key) && MontgomeryPoint(*key).mul_clamped([0x42; 32]).0 != [0; 32]
}

/// Return whether the key is below the prime 2^255 - 19.
fn is_canonical(key: &Key) -> bool {
    let top = key[31];
    top < 0x7f || (top == 0x7f && (key[1..31].iter().any(|byte| *byte != 0xff) || key[0] < 0xed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Key {
        let digit = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
        std::array::from_fn(digit)
    }

    #[test]
    fn points_of_low_order_are_refused_in_every_encoding() {
        let low = [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "cdeb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b880",
            "4c9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f11d7",
            "d9ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "daffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "dbffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        ];
        for text in low {
            assert!(!is_sound(&hex(text)), "{text}");
        }
    }

    #[test]
    fn the_base_point_is_sound_in_one_encoding() {
        let mut key = [0; 32];
        key[0] = 9;
        assert!(is_sound(&key));
        key[31] |= 0x80;
        assert!(!is_sound(&key));
        // this key is the field prime plus nine, which is a second encoding of the number nine
        assert!(!is_sound(&hex("f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")));
    }
}
