//! Gas prices of precompiled contracts, for traces of failed calls. After a failed call, the EVM only reports that all
//! gas was consumed.

use alloy_primitives::{Address, U256};
use revm::precompile::modexp;
use revm::primitives::hardfork::SpecId;

const PAIR: u64 = 192;
const ROUNDS: usize = 4;
/// Size in bytes of the MODEXP input's head, which holds the lengths of base, exponent and modulus.
const MODEXP_HEAD: usize = 96;

/// Return the gas price of a call to a precompiled contract; None if this module does not know the contract.
pub fn price(address: &Address, input: &[u8], spec: SpecId) -> Option<u64> {
    let (head, number) = address.split_at(19);
    let words = input.len().div_ceil(32) as u64;
    let is_istanbul = spec.is_enabled_in(SpecId::ISTANBUL);
    let by_fork = |before, since| if is_istanbul { since } else { before };
    match number[0] {
        _ if head.iter().any(|byte| *byte != 0) => None,
        1 => Some(3000),
        2 => Some(60 + 12 * words),
        3 => Some(600 + 120 * words),
        4 => Some(15 + 3 * words),
        5 => Some(modexp_price(input, spec)),
        6 => Some(by_fork(500, 150)),
        7 => Some(by_fork(40_000, 6_000)),
        8 => Some(by_fork(100_000, 45_000) + input.len() as u64 / PAIR * by_fork(80_000, 34_000)),
        9 => Some(input.first_chunk::<ROUNDS>().map_or(0, |rounds| u32::from_be_bytes(*rounds).into())),
        10 => Some(50_000),
        _ => None,
    }
}

fn modexp_price(input: &[u8], spec: SpecId) -> u64 {
    // Bytes after the end of the input count as zero.
    let bytes = |start: usize, length: usize| {
        let mut padded = vec![0; length];
        let there = input.get(start..).unwrap_or_default();
        let count = there.len().min(length);
        padded[..count].copy_from_slice(&there[..count]);
        U256::from_be_slice(&padded)
    };
    let length = |at: usize| u64::try_from(bytes(at, 32)).unwrap_or(u64::MAX);
    let (base, exponent, modulus) = (length(0), length(32), length(64));
    let start = usize::try_from(base).map_or(usize::MAX, |base| base.saturating_add(MODEXP_HEAD));
    let high = bytes(start, exponent.min(32) as usize);
    if spec.is_enabled_in(SpecId::OSAKA) {
        modexp::osaka_gas_calc(base, exponent, modulus, &high)
    } else if spec.is_enabled_in(SpecId::BERLIN) {
        modexp::berlin_gas_calc(base, exponent, modulus, &high)
    } else {
        modexp::byzantium_gas_calc(base, exponent, modulus, &high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_depend_on_the_input_and_the_fork() {
        let at = |number: u8| Address::with_last_byte(number);
        assert_eq!(price(&at(2), &[0; 33], SpecId::ISTANBUL), Some(84));
        assert_eq!(price(&at(8), &[0; 384], SpecId::PETERSBURG), Some(260_000));
        assert_eq!(price(&at(8), &[0; 384], SpecId::ISTANBUL), Some(113_000));
        assert_eq!(price(&at(9), &[0, 0, 1, 0], SpecId::ISTANBUL), Some(256));
        assert_eq!(price(&at(5), &[], SpecId::CANCUN), Some(200));
        assert_eq!(price(&Address::repeat_byte(4), &[], SpecId::CANCUN), None);
    }
}
