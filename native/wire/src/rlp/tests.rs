use super::*;
use crate::vectors::Numbers;

fn pieces(data: &[u8], found: Vec<Range<usize>>) -> Vec<&[u8]> {
    found.into_iter().map(|range| &data[range]).collect()
}

#[test]
fn items_keep_their_heads() {
    let data = [0xc7, 0x01, 0x80, 0x82, 0xaa, 0xbb, 0xc1, 0x05];
    let found = split_list(&data, 10).unwrap();
    assert_eq!(pieces(&data, found), [&[0x01][..], &[0x80], &[0x82, 0xaa, 0xbb], &[0xc1, 0x05]]);
    assert_eq!(split_list(&[0xc0], 10).unwrap(), []);
    assert_eq!(split_list(&data, 3).unwrap_err().to_string(), "list: more than 3 items");
}

#[test]
fn lists_that_are_none() {
    for data in [&[][..], &[0x80], &[0xc1], &[0xc0, 0x00], &[0xc2, 0x81, 0x05], &[0xc1, 0x82], &[0xf8, 0x01, 0x01]] {
        assert!(split_list(data, 10).is_err(), "{data:?}");
    }
}

#[test]
fn transactions_travel_wrapped_or_not() {
    let raws: [&[u8]; 3] = [&[0xc2, 1, 2], &[2, 0xc1, 5], &[0x03; 60]];
    let joined = join_transactions(raws.into_iter());
    let found = split_transactions(&joined, 10).unwrap();
    assert_eq!(pieces(&joined, found), raws);
    assert_eq!(join_transactions(std::iter::empty()), [0xc0]);
}

#[test]
fn a_wrapped_transaction_begins_with_its_type() {
    for item in [&[0x80][..], &[0x82, 0xc1, 0x01], &[0x81, 0x80]] {
        let error = split_transactions(&list_of(item), 10).unwrap_err();
        assert_eq!(error.to_string(), "transactions: item 0: a typed transaction must begin with its type");
    }
}

#[test]
fn the_body_is_the_block_without_its_header() {
    let block = list_of(&[0xc1, 0x09, 0xc1, 0x05, 0xc0]);
    assert_eq!(body_of_block(&block).unwrap(), list_of(&[0xc1, 0x05, 0xc0]));
    assert!(body_of_block(&[0xc0]).is_err());
    assert!(body_of_block(&[0xc1, 0x01]).is_err());
}

#[test]
fn any_bytes_give_an_error_or_their_items() {
    let mut numbers = Numbers::new(3);
    for _ in 0..20_000 {
        let size = numbers.below(40);
        let mut data = numbers.bytes(size);
        if numbers.below(2) == 0 {
            data = list_of(&data);
        }
        if let Ok(found) = split_list(&data, 100) {
            assert_eq!(list_of(&pieces(&data, found).concat()), data);
        }
        if let Ok(found) = split_transactions(&data, 100) {
            assert_eq!(join_transactions(pieces(&data, found).into_iter()), data);
        }
        let _ = body_of_block(&data);
    }
}
