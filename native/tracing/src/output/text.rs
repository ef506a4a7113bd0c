//! Numbers and error texts of traces.

use alloy_primitives::{Bytes, U256, hex};
use ophion_primitives::json::raw;
use revm::bytecode::opcode::OpCode;
use revm::interpreter::InstructionResult;

/// Return a 256-bit word as 64 hex digits in quotes, without a prefix.
#[inline]
pub fn word(bytes: [u8; 32]) -> [u8; 66] {
    let mut text = [b'"'; 66];
    hex::encode_to_slice(bytes, &mut text[1..65]).expect("two digits a byte");
    text
}

/// Append bytes as hex digits in quotes, without a prefix.
pub fn digits(out: &mut Vec<u8>, before: &str, bytes: &[u8]) {
    raw(out, before);
    let start = out.len();
    out.resize(start + 2 + 2 * bytes.len(), b'"');
    let end = out.len() - 1;
    hex::encode_to_slice(bytes, &mut out[start + 1..end]).expect("two digits a byte");
}

/// Append arbitrary text as a JSON string.
pub fn text(out: &mut Vec<u8>, before: &str, value: &str) {
    raw(out, before);
    serde_json::to_writer(out, value).expect("a buffer takes everything");
}

/// Return the name of a halt reason in struct logs.
pub fn halt_name(result: InstructionResult) -> &'static str {
    use InstructionResult as R;
    match result {
        R::StackUnderflow => "INSUFFICIENT_STACK_ITEMS",
        R::StackOverflow => "TOO_MANY_STACK_ITEMS",
        R::InvalidJump => "INVALID_JUMP_DESTINATION",
        R::OpcodeNotFound | R::InvalidFEOpcode | R::NotActivated => "INVALID_OPERATION",
        R::OutOfOffset => "INVALID_RETURN_DATA_BUFFER_ACCESS",
        R::StateChangeDuringStaticCall | R::CallNotAllowedInsideStatic => "ILLEGAL_STATE_CHANGE",
        R::CreateContractSizeLimit | R::CreateInitCodeSizeLimit => "CODE_TOO_LARGE",
        R::CreateContractStartingWithEF => "INVALID_CODE",
        _ => "INSUFFICIENT_GAS",
    }
}

pub fn is_lack_of_gas(halt: InstructionResult) -> bool {
    use InstructionResult as R;
    matches!(halt, R::OutOfGas | R::MemoryOOG | R::MemoryLimitOOG | R::InvalidOperandOOG | R::ReentrancySentryOOG)
}

/// Return the text of a halt reason in flat traces.
pub fn halt_phrase(result: InstructionResult) -> &'static str {
    use InstructionResult as R;
    match result {
        R::Revert => "Reverted",
        R::StackUnderflow => "Stack underflow",
        R::StackOverflow => "Out of stack",
        R::InvalidJump => "Bad jump destination",
        R::OpcodeNotFound | R::InvalidFEOpcode | R::NotActivated => "Bad instruction",
        R::OutOfOffset => "Out of bounds",
        R::StateChangeDuringStaticCall | R::CallNotAllowedInsideStatic => "Illegal state change",
        R::CreateContractSizeLimit | R::CreateInitCodeSizeLimit => "Code is too large",
        R::CreateContractStartingWithEF => "Code is invalid",
        R::CreateCollision => "Illegal state change",
        R::PrecompileError => "Precompile error",
        R::CallTooDeep => "Max call depth exceeded",
        R::OutOfFunds => "Insufficient balance for transfer",
        _ => "Out of gas",
    }
}

/// Return the text of a halt reason in the call tracer. `opcode` and `stack` (its height) belong to the halted
/// instruction.
pub fn halt_words(result: InstructionResult, opcode: u8, stack: usize) -> String {
    use InstructionResult as R;
    match result {
        R::Revert => "execution reverted".into(),
        R::StackUnderflow => {
            let needed = OpCode::new(opcode).map_or(0, |code| code.inputs());
            format!("stack underflow ({stack} <=> {needed})")
        }
        R::StackOverflow => format!("stack limit reached {stack} (1023)"),
        R::InvalidJump => "invalid jump destination".into(),
        // an instruction of a later fork is invalid here, but the error shows its name
        R::InvalidFEOpcode | R::OpcodeNotFound | R::NotActivated => match OpCode::new(opcode) {
            Some(known) => format!("invalid opcode: {}", known.as_str()),
            None => format!("invalid opcode: opcode {opcode:#x} not defined"),
        },
        R::OutOfOffset => "return data out of bounds".into(),
        R::StateChangeDuringStaticCall | R::CallNotAllowedInsideStatic => "write protection".into(),
        R::CreateContractSizeLimit => "max code size exceeded".into(),
        R::CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        R::CreateContractStartingWithEF => "invalid code: must not begin with 0xef".into(),
        R::CreateCollision => "contract address collision".into(),
        R::NonceOverflow => "nonce uint64 overflow".into(),
        R::CallTooDeep => "max call depth exceeded".into(),
        R::OutOfFunds => "insufficient balance for transfer".into(),
        R::ReentrancySentryOOG => "out of gas: not enough gas for reentrancy sentry".into(),
        _ => "out of gas".into(),
    }
}

/// Return the trace_* text for an error of the call tracer; None if trace_* has none.
pub fn trace_words(words: &str) -> Option<&'static str> {
    match words {
        "execution reverted" => Some("Reverted"),
        "out of gas" | "contract creation code storage out of gas" | "max code size exceeded" => Some("Out of gas"),
        "invalid jump destination" => Some("Bad jump destination"),
        "return data out of bounds" => Some("Out of bounds"),
        "precompile failed" | "invalid input length" => Some("Built-in failed"),
        _ if words.starts_with("stack limit reached") => Some("Out of stack"),
        _ if words.starts_with("invalid opcode:") => Some("Bad instruction"),
        _ if words.starts_with("stack underflow") => Some("Stack underflow"),
        _ => None,
    }
}

const ERROR_STRING: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];
const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71];

/// Decode the revert reason of Solidity's `Error(string)` or `Panic(uint256)`; None for other data.
pub fn revert_reason(output: &Bytes) -> Option<String> {
    let (selector, words) = output.split_first_chunk::<4>()?;
    match *selector {
        PANIC if words.len() == 32 => Some(panic_text(U256::from_be_slice(words))),
        ERROR_STRING => {
            let at = |start: usize| {
                let bytes = words.get(start..start.checked_add(32)?)?;
                usize::try_from(U256::from_be_slice(bytes)).ok()
            };
            let start = at(0)?;
            let length = at(start)?;
            let bytes = words.get(start + 32..(start + 32).checked_add(length)?)?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => None,
    }
}

fn panic_text(code: U256) -> String {
    let known = match u8::try_from(code) {
        Ok(0x00) => "generic panic",
        Ok(0x01) => "assert(false)",
        Ok(0x11) => "arithmetic underflow or overflow",
        Ok(0x12) => "division or modulo by zero",
        Ok(0x21) => "enum overflow",
        Ok(0x22) => "invalid encoded storage byte array accessed",
        Ok(0x31) => "out-of-bounds array access; popping on an empty array",
        Ok(0x32) => "out-of-bounds access of an array or bytesN",
        Ok(0x41) => "out of memory",
        Ok(0x51) => "uninitialized function",
        _ => return format!("unknown panic code: {code:#x}"),
    };
    known.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn words_are_written_in_full() {
        assert_eq!(word(U256::from(0xab).to_be_bytes()), format!("\"{:064x}\"", 0xab).as_bytes());
        assert_eq!(written(|out| digits(out, "x:", &[])), "x:\"\"");
        assert_eq!(written(|out| digits(out, "", &[1, 0xf0])), "\"01f0\"");
    }

    #[test]
    fn reverts_explain_themselves() {
        let mut said = ERROR_STRING.to_vec();
        said.extend(U256::from(32).to_be_bytes::<32>());
        said.extend(U256::from(2).to_be_bytes::<32>());
        said.extend(b"no");
        assert_eq!(revert_reason(&said.clone().into()).as_deref(), Some("no"));
        assert_eq!(revert_reason(&said[..68].to_vec().into()), None);
        let mut panic = PANIC.to_vec();
        panic.extend(U256::from(0x11).to_be_bytes::<32>());
        assert_eq!(revert_reason(&panic.into()).as_deref(), Some("arithmetic underflow or overflow"));
        assert_eq!(revert_reason(&Bytes::new()), None);
    }
}
