//! Names of EVM instructions in traces.

use revm::bytecode::opcode::OpCode;
use revm::primitives::hardfork::SpecId;

const DIFFICULTY: u8 = 0x44;

/// Return the name of an instruction; unassigned bytes are INVALID.
#[inline]
pub fn mnemonic(opcode: u8, spec: SpecId) -> &'static str {
    if opcode == DIFFICULTY && spec.is_enabled_in(SpecId::MERGE) {
        return "PREVRANDAO";
    }
    OpCode::new(opcode).map_or("INVALID", OpCode::as_str)
}

/// Return the name of an instruction in Besu struct logs. Instructions of later forks are INVALID.
#[inline]
pub fn besu_mnemonic(opcode: u8, spec: SpecId) -> &'static str {
    if spec.is_enabled_in(begins_with(opcode)) { mnemonic(opcode, spec) } else { "INVALID" }
}

/// Return the fork that introduced an instruction.
#[inline]
fn begins_with(opcode: u8) -> SpecId {
    use revm::bytecode::opcode as op;
    match opcode {
        op::DELEGATECALL => SpecId::HOMESTEAD,
        op::RETURNDATASIZE | op::RETURNDATACOPY | op::STATICCALL | op::REVERT => SpecId::BYZANTIUM,
        op::SHL | op::SHR | op::SAR | op::EXTCODEHASH | op::CREATE2 => SpecId::PETERSBURG,
        op::CHAINID | op::SELFBALANCE => SpecId::ISTANBUL,
        op::BASEFEE => SpecId::LONDON,
        op::PUSH0 => SpecId::SHANGHAI,
        op::BLOBHASH | op::BLOBBASEFEE | op::TLOAD | op::TSTORE | op::MCOPY => SpecId::CANCUN,
        op::CLZ => SpecId::OSAKA,
        op::SLOTNUM | op::DUPN | op::SWAPN | op::EXCHANGE => SpecId::AMSTERDAM,
        _ => SpecId::FRONTIER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_depend_on_the_fork_where_the_meaning_does() {
        assert_eq!(mnemonic(0x44, SpecId::ISTANBUL), "DIFFICULTY");
        assert_eq!(mnemonic(0x44, SpecId::CANCUN), "PREVRANDAO");
        assert_eq!(mnemonic(0x20, SpecId::CANCUN), "KECCAK256");
        assert_eq!((mnemonic(0xfe, SpecId::CANCUN), mnemonic(0x0c, SpecId::CANCUN)), ("INVALID", "INVALID"));
    }

    #[test]
    fn an_instruction_of_a_later_fork_is_none() {
        for (opcode, before, since, name) in [
            (0x5c, SpecId::SHANGHAI, SpecId::CANCUN, "TLOAD"),
            (0x5f, SpecId::LONDON, SpecId::SHANGHAI, "PUSH0"),
            (0x48, SpecId::BERLIN, SpecId::LONDON, "BASEFEE"),
            (0x46, SpecId::PETERSBURG, SpecId::ISTANBUL, "CHAINID"),
            (0x1b, SpecId::BYZANTIUM, SpecId::PETERSBURG, "SHL"),
            (0xfd, SpecId::TANGERINE, SpecId::BYZANTIUM, "REVERT"),
        ] {
            assert_eq!(besu_mnemonic(opcode, before), "INVALID", "{name}");
            assert_eq!(besu_mnemonic(opcode, since), name);
        }
        assert_eq!(besu_mnemonic(0x01, SpecId::FRONTIER), "ADD");
        assert_eq!(besu_mnemonic(0x0c, SpecId::OSAKA), "INVALID");
    }
}
