use super::*;
use crate::vectors::Numbers;

fn decoded(data: &[u8], piece: usize) -> Result<Vec<u8>, &'static str> {
    let (size, start) = announced_size(data)?;
    let mut decoder = Decoder::new(allocate_vec(size), size);
    for part in data[start..].chunks(piece) {
        decoder.feed(part)?;
    }
    Ok(*decoder.finish()?.into_any().downcast::<Vec<u8>>().unwrap())
}

/// Return samples of text-like, random and repetitive bytes.
fn samples() -> Vec<Vec<u8>> {
    let mut numbers = Numbers::new(11);
    let noise = numbers.bytes(70_000);
    let mut mixed = Vec::new();
    for _ in 0..400 {
        let start = numbers.below(60_000);
        let size = numbers.below(900);
        mixed.extend_from_slice(&noise[start..start + size]);
        mixed.resize(mixed.len() + numbers.below(300), 7);
    }
    let pairs: Vec<u8> = (0..100_000_u32).map(|index| (index % 3) as u8).collect();
    vec![vec![], vec![1], vec![0; 300_000], noise, mixed, pairs]
}

#[test]
fn any_cut_gives_the_same_bytes() {
    for sample in samples() {
        let packed = snap::raw::Encoder::new().compress_vec(&sample).unwrap();
        for piece in [1, 2, 3, 7, 64, 1000, 1 << 20] {
            assert_eq!(decoded(&packed, piece).as_deref(), Ok(&sample[..]), "{} in {piece}", sample.len());
        }
    }
}

#[test]
fn agrees_with_the_reference_decoder_about_corrupt_bytes() {
    let mut numbers = Numbers::new(23);
    let mut refused = 0;
    for sample in samples() {
        let packed = snap::raw::Encoder::new().compress_vec(&sample[..sample.len().min(3_000)]).unwrap();
        for _ in 0..2_000 {
            let mut spoiled = packed.clone();
            let at = numbers.below(spoiled.len());
            spoiled[at] ^= 1 << numbers.below(8);
            spoiled.truncate(1 + numbers.below(2 * spoiled.len()));
            if announced_size(&spoiled).is_ok_and(|(size, _)| size > 1 << 20) {
                continue;
            }
            let expected = snap::raw::Decoder::new().decompress_vec(&spoiled).ok();
            assert_eq!(decoded(&spoiled, 1 + numbers.below(50)).ok(), expected, "{spoiled:?}");
            refused += usize::from(expected.is_none());
        }
    }
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn every_kind_of_element() {
    // The data is a literal with two length bytes, then copies with one, two and four bytes of distance.
    let mut packed = vec![0xd8, 0x04, 61 << 2, 0x2b, 0x02];
    packed.extend((0..556).map(|index| index as u8));
    packed.extend([1 | 1 << 5, 0x00, 2 | 9 << 2, 0x05, 0x00, 3 | 28 << 2, 0x01, 0, 0, 0]);
    let size = 556 + 4 + 10 + 29 + 1;
    assert_eq!(announced_size(&packed).map(|(size, _)| size), Ok(size));
    packed.extend([0, 9]);
    assert_eq!(decoded(&packed, 3).ok(), snap::raw::Decoder::new().decompress_vec(&packed).ok());
    assert_eq!(decoded(&packed, 3).map(|found| found.len()), Ok(size));
}

#[test]
fn refuses_what_exceeds_the_announced_size() {
    for packed in [&[2, 2 << 2, 1, 2, 3][..], &[5, 0, 1, 1 | 1 << 2, 1], &[5, 0, 1, 2 | 3 << 2, 2, 0], &[5, 0, 1]] {
        assert_eq!(decoded(packed, 9), Err(CORRUPT), "{packed:?}");
    }
    assert_eq!(announced_size(&[0xff; 5]), Err(CORRUPT));
    assert_eq!(announced_size(&[0xff, 0xff]), Err(CORRUPT));
}
