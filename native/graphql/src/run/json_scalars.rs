//! Scalar values as JSON text.

use alloy_primitives::{B256, U256};
use ophion_primitives::json::{data, decimal, list, quantity, wide};

use super::plan_execution::{Run, Stop, TOO_LONG, Written};
use crate::document::error_entries;

/// Number of bytes per cost unit: a field costs one unit, and a longer value costs one more unit per 32 bytes.
const WORD: usize = 32;

impl Run<'_> {
    pub fn null(&mut self) {
        self.out.extend_from_slice(b"null");
    }

    pub fn text(&mut self, text: &str) {
        error_entries::text(&mut self.out, text);
    }

    /// Write a `Long`, in hex or decimal as configured. Fields that are an `Int` in this schema and a `Long` in later
    /// schemas are written the same way.
    pub fn integer(&mut self, value: u64) -> Written {
        if self.inputs.shows_hex {
            quantity(&mut self.out, "", value);
            return Ok(());
        }
        self.decimal(value)
    }

    pub fn decimal(&mut self, value: u64) -> Written {
        decimal(&mut self.out, "", value);
        Ok(())
    }

    pub fn integer_or_null(&mut self, value: Option<u64>) -> Written {
        match value {
            Some(value) => self.integer(value),
            None => {
                self.null();
                Ok(())
            }
        }
    }

    pub fn big(&mut self, value: impl Into<U256>) -> Written {
        wide(&mut self.out, "", value);
        Ok(())
    }

    pub fn big_or_null(&mut self, value: Option<impl Into<U256>>) -> Written {
        match value {
            Some(value) => self.big(value),
            None => {
                self.null();
                Ok(())
            }
        }
    }

    pub fn bytes(&mut self, bytes: impl AsRef<[u8]>) -> Written {
        let bytes = bytes.as_ref();
        if bytes.len() > WORD {
            self.spend((bytes.len() / WORD) as u64)?;
            if self.out.len() + 2 * bytes.len() > self.bounds.max_bytes {
                return Err(Stop::Exhausted(TOO_LONG));
            }
        }
        data(&mut self.out, "", bytes);
        Ok(())
    }

    pub fn hashes(&mut self, hashes: &[B256]) -> Written {
        self.spend(hashes.len() as u64)?;
        list(&mut self.out, "", hashes, |out, hash| data(out, "", hash));
        Ok(())
    }
}
