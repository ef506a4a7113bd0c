//! DATA, QUANTITY and decimal numbers as JSON text, appended to a buffer.
//!
//! Each function takes the literal text that stands before the value (comma, key and colon), and appends both.

use alloy_primitives::{Address, U256, hex};

/// Append text to the buffer unchanged.
#[inline]
pub fn raw(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Append bytes as a JSON-RPC DATA string (hex) at their full length.
#[inline]
pub fn data(out: &mut Vec<u8>, before: &str, bytes: impl AsRef<[u8]>) {
    let bytes = bytes.as_ref();
    out.reserve(before.len() + 2 * bytes.len() + 4);
    raw(out, before);
    raw(out, "\"0x");
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    hex::encode_to_slice(bytes, &mut out[start..]).expect("two digits a byte");
    out.push(b'"');
}

/// Append bytes as DATA, or null.
#[inline]
pub fn data_or_null(out: &mut Vec<u8>, before: &str, bytes: Option<impl AsRef<[u8]>>) {
    match bytes {
        Some(bytes) => data(out, before, bytes),
        None => {
            raw(out, before);
            raw(out, "null");
        }
    }
}

/// Append a number as a JSON-RPC QUANTITY (hex without leading zeros).
#[inline]
pub fn quantity(out: &mut Vec<u8>, before: &str, value: u64) {
    let digits = (64 - value.leading_zeros()).div_ceil(4).max(1) as usize;
    let mut all = [0u8; 16];
    hex::encode_to_slice(value.to_be_bytes(), &mut all).expect("two digits a byte");
    digits_of(out, before, &all[16 - digits..]);
}

/// Append a 256-bit number as a JSON-RPC QUANTITY (hex without leading zeros).
#[inline]
pub fn wide(out: &mut Vec<u8>, before: &str, value: impl Into<U256>) {
    let value = value.into();
    let digits = value.bit_len().div_ceil(4).max(1);
    let mut all = [0u8; 64];
    hex::encode_to_slice(value.to_be_bytes::<32>(), &mut all).expect("two digits a byte");
    digits_of(out, before, &all[64 - digits..]);
}

/// Append a number in decimal digits.
#[inline]
pub fn decimal(out: &mut Vec<u8>, before: &str, mut value: u64) {
    raw(out, before);
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[inline]
fn digits_of(out: &mut Vec<u8>, before: &str, digits: &[u8]) {
    out.reserve(before.len() + digits.len() + 4);
    raw(out, before);
    raw(out, "\"0x");
    out.extend_from_slice(digits);
    out.push(b'"');
}

/// Append a list in brackets with commas between items.
pub fn list<T>(
    out: &mut Vec<u8>,
    before: &str,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Vec<u8>, T),
) {
    raw(out, before);
    out.push(b'[');
    for (at, one) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        item(out, one);
    }
    out.push(b']');
}

/// Parse an address: `0x` and 40 digits.
pub fn address(text: &str) -> Option<Address> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 40)?;
    hex::decode_to_array::<_, 20>(digits).ok().map(Address::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn data_keeps_its_length() {
        assert_eq!(text(|out| data(out, "", [])), r#""0x""#);
        assert_eq!(text(|out| data(out, r#","a":"#, [0, 0x0f, 0xa0])), r#","a":"0x000fa0""#);
        assert_eq!(text(|out| data_or_null(out, r#""a":"#, None::<[u8; 1]>)), r#""a":null"#);
        let long: Vec<u8> = (0..=255).collect();
        assert_eq!(text(|out| data(out, "", &long)), format!(r#""0x{}""#, hex::encode(&long)));
    }

    #[test]
    fn quantities_have_no_leading_zeros() {
        for value in [0, 1, 0xf, 0x10, 0xff, 0x100, 0xabcdef, u64::MAX >> 1, u64::MAX] {
            assert_eq!(text(|out| quantity(out, "", value)), format!(r#""{value:#x}""#));
            assert_eq!(text(|out| wide(out, "", U256::from(value))), format!(r#""{value:#x}""#));
        }
        assert_eq!(text(|out| wide(out, "", U256::MAX)), format!(r#""0x{}""#, "f".repeat(64)));
        assert_eq!(text(|out| wide(out, "", U256::MAX >> 5_usize)), format!(r#""0x7{}""#, "f".repeat(62)));
    }

    #[test]
    fn decimal_numbers_are_written_in_full() {
        for value in [0, 7, 10, 12_345, u64::MAX] {
            assert_eq!(text(|out| decimal(out, "", value)), value.to_string());
        }
    }

    #[test]
    fn lists_have_commas_between_items() {
        let numbers = |items: &[u64]| text(|out| list(out, r#""a":"#, items, |out, item| quantity(out, "", *item)));
        assert_eq!(numbers(&[]), r#""a":[]"#);
        assert_eq!(numbers(&[1, 2]), r#""a":["0x1","0x2"]"#);
    }
}
