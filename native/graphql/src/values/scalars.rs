//! Input scalars: document literals or JSON variables (graphql.md 2).

use alloy_primitives::{Address, B256, Bytes, U256, hex};

/// An untyped input scalar of an argument or variable.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// A number: digits with an optional sign.
    Number(&'a str),
    Text(&'a str),
}

fn hex_digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn number_text(given: Given<'_>) -> (&str, u32) {
    match given {
        Given::Number(digits) => (digits, 10),
        Given::Text(text) => hex_digits(text).map_or((text, 10), |digits| (digits, 16)),
    }
}

fn is_digits(text: &str, radix: u32) -> bool {
    !text.is_empty() && text.chars().all(|digit| digit.is_digit(radix))
}

pub fn long(given: Given<'_>) -> Option<u64> {
    let (digits, radix) = number_text(given);
    if is_digits(digits, radix) { u64::from_str_radix(digits, radix).ok() } else { None }
}

/// Convert an input scalar to a 32-bit integer; None for text, and if the number does not fit.
pub fn int(given: Given<'_>) -> Option<i32> {
    match given {
        Given::Number(digits) => digits.parse().ok(),
        Given::Text(_) => None,
    }
}

/// Convert an input scalar to a 256-bit integer. Text with only digits is decimal; other text is hex, with or without
/// 0x.
pub fn big_int(given: Given<'_>) -> Option<U256> {
    let (digits, radix) = number_text(given);
    if is_digits(digits, radix) {
        return U256::from_str_radix(digits, u64::from(radix)).ok();
    }
    match given {
        Given::Text(text) if radix == 10 && is_digits(text, 16) => U256::from_str_radix(text, 16).ok(),
        _ => None,
    }
}

pub fn bytes(given: Given<'_>) -> Option<Bytes> {
    let Given::Text(text) = given else { return None };
    hex::decode(hex_digits(text).unwrap_or(text)).ok().map(Bytes::from)
}

pub fn address(given: Given<'_>) -> Option<Address> {
    bytes(given).filter(|bytes| bytes.len() == 20).map(|bytes| Address::from_slice(&bytes))
}

/// Convert an input scalar to 32 bytes. Shorter values are left-padded.
pub fn bytes32(given: Given<'_>) -> Option<B256> {
    let Given::Text(text) = given else { return None };
    let digits = hex_digits(text).unwrap_or(text);
    if digits.len() > 64 || !(digits.is_empty() || is_digits(digits, 16)) {
        return None;
    }
    let padded = format!("{digits:0>64}");
    hex::decode(padded).ok().map(|bytes| B256::from_slice(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Given::{Number, Text};

    #[test]
    fn long_takes_three_forms() {
        for given in [Number("25"), Text("25"), Text("0x19"), Text("0X19"), Text("0x0019")] {
            assert_eq!(long(given), Some(25), "{given:?}");
        }
        assert_eq!(long(Text("0xffffffffffffffff")), Some(u64::MAX));
        for given in [Number("-1"), Number("18446744073709551616"), Text(""), Text("0x"), Text("+5"), Text("zz")] {
            assert_eq!(long(given), None, "{given:?}");
        }
    }

    #[test]
    fn big_int_takes_any_size_up_to_256_bits() {
        assert_eq!(big_int(Number("1000000000000000000000")), Some(U256::from(10).pow(U256::from(21))));
        assert_eq!(big_int(Text("1000")), Some(U256::from(1000)));
        assert_eq!(big_int(Text("0x1000")), Some(U256::from(4096)));
        assert_eq!(big_int(Text("ff")), Some(U256::from(255)));
        assert_eq!(big_int(Text(&format!("0x1{}", "0".repeat(64)))), None);
        for given in [Number("-1"), Text(""), Text("0x"), Text("xyz"), Text("0xgg")] {
            assert_eq!(big_int(given), None, "{given:?}");
        }
    }

    #[test]
    fn hex_needs_no_prefix_and_has_its_length() {
        let account = "a94f5374fce5edbc8e2a8697c15331677e6ebf0b";
        assert_eq!(address(Text(account)), address(Text(&format!("0x{}", account.to_uppercase()))));
        assert!(address(Text(account)).is_some());
        assert_eq!(address(Text("0xa94f")), None);
        assert_eq!(address(Number("1")), None);
        assert_eq!(bytes(Text("0x")), Some(Bytes::new()));
        assert_eq!(bytes(Text("0x1")), None);
        assert_eq!(bytes32(Text("0x04")), Some(B256::with_last_byte(4)));
        assert_eq!(bytes32(Text("4")), Some(B256::with_last_byte(4)));
        assert_eq!(bytes32(Text(&"0".repeat(65))), None);
        assert_eq!(bytes32(Text("0xé")), None);
    }

    #[test]
    fn int_is_a_number_of_32_bits() {
        assert_eq!(int(Number("-1")), Some(-1));
        assert_eq!(int(Number("2147483648")), None);
        assert_eq!(int(Text("1")), None);
    }
}
