//! Values as JSON text.

use alloy_primitives::{B256, U256};

use super::complaints;
use super::run::{Run, Written};
use crate::json_text::{data, list, wide};

impl Run<'_> {
    pub fn null(&mut self) {
        self.out.extend_from_slice(b"null");
    }

    pub fn text(&mut self, text: &str) {
        complaints::text(&mut self.out, text);
    }

    pub fn integer(&mut self, value: u64) -> Written {
        use std::io::Write;
        write!(self.out, "{value}").expect("writing to memory");
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
        data(&mut self.out, "", bytes);
        Ok(())
    }

    pub fn hashes<'h>(&mut self, hashes: impl IntoIterator<Item = &'h B256>) -> Written {
        list(&mut self.out, "", hashes, |out, hash| data(out, "", hash));
        Ok(())
    }
}
