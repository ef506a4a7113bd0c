//! The private transaction. A legacy transaction is a list of twelve items. The last three items are the signature. A
//! transaction with EIP-1559 fees is the prefix 0x02 and a list of fourteen items, as in web3j.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{Decodable, Encodable, Header};
use ophion_enclave::group_id;
use ophion_primitives::errors::{Error, Result};
use ophion_primitives::keys;
use ophion_primitives::signers::{TASK, recover_signers};
use ophion_storage::chain::sender_cache::senders_of;
use rayon::prelude::*;

pub const RESTRICTED: &[u8] = b"restricted";

/// Recipients of a private transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// privateFor: enclave keys, from which the group id is computed.
    Keys(Vec<Bytes>),
    /// privacyGroupId: an existing group.
    Group(Bytes),
}

/// First byte of a private transaction with EIP-1559 fees.
const DYNAMIC_FEE_TYPE: u8 = 0x02;

/// The fields that only a type 2 (EIP-1559) transaction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicFee {
    pub chain_id: u64,
    pub max_priority_fee: u128,
}

/// The fields of a private transaction that the signature covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsigned {
    /// Fees of a type 2 transaction; None for a legacy transaction.
    pub dynamic_fee: Option<DynamicFee>,
    pub nonce: u64,
    /// Gas price; for type 2, the maximum fee per gas.
    pub gas_price: u128,
    pub gas_limit: u64,
    pub to: Option<Address>,
    pub value: U256,
    pub data: Bytes,
    pub private_from: Bytes,
    pub recipients: Recipients,
    pub restriction: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateTx {
    pub fields: Unsigned,
    pub v: U256,
    pub r: U256,
    pub s: U256,
}

fn wrong(what: &str, cause: impl std::fmt::Display) -> Error {
    Error::Decode(format!("private transaction: {what}: {cause}"))
}

fn take<T: Decodable>(rest: &mut &[u8], what: &str) -> Result<T> {
    T::decode(rest).map_err(|cause| wrong(what, cause))
}

fn put_list(payload: &[u8], out: &mut Vec<u8>) {
    Header { list: true, payload_length: payload.len() }.encode(out);
    out.extend_from_slice(payload);
}

impl Recipients {
    fn decode(rest: &mut &[u8]) -> Result<Self> {
        let what = "privateFor or privacyGroupId";
        if rest.first().is_some_and(|first| *first >= 0xc0) {
            let mut keys = Header::decode_bytes(rest, true).map_err(|cause| wrong(what, cause))?;
            let mut found = Vec::new();
            while !keys.is_empty() {
                found.push(take(&mut keys, what)?);
            }
            return Ok(Recipients::Keys(found));
        }
        take(rest, what).map(Recipients::Group)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Recipients::Group(id) => id.encode(out),
            Recipients::Keys(keys) => {
                let mut payload = Vec::new();
                keys.iter().for_each(|key| key.encode(&mut payload));
                put_list(&payload, out);
            }
        }
    }
}

impl Unsigned {
    fn encode_head(&self, out: &mut Vec<u8>) {
        if let Some(fee) = &self.dynamic_fee {
            fee.chain_id.encode(out);
            self.nonce.encode(out);
            fee.max_priority_fee.encode(out);
        } else {
            self.nonce.encode(out);
        }
        self.gas_price.encode(out);
        self.gas_limit.encode(out);
        self.to.as_ref().map_or(&[][..], |to| to.as_slice()).encode(out);
        self.value.encode(out);
        self.data.encode(out);
    }

    fn encode_tail(&self, out: &mut Vec<u8>) {
        self.private_from.encode(out);
        self.recipients.encode(out);
        self.restriction.encode(out);
    }

    /// Return the hash to sign. For a legacy transaction with a chain id, the hashed list has chain id, 0 and 0 between
    /// data and privateFrom.
    pub fn signing_hash(&self, chain_id: Option<u64>) -> B256 {
        let mut payload = Vec::with_capacity(256 + self.data.len());
        self.encode_head(&mut payload);
        if let (Some(chain_id), None) = (chain_id, self.dynamic_fee) {
            chain_id.encode(&mut payload);
            payload.extend_from_slice(&[0x80, 0x80]);
        }
        self.encode_tail(&mut payload);
        keccak256(self.enveloped(&payload))
    }

    /// Encode the items as an RLP list. For a typed transaction, the type byte comes first.
    fn enveloped(&self, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(payload.len() + 10);
        if self.dynamic_fee.is_some() {
            out.push(DYNAMIC_FEE_TYPE);
        }
        put_list(payload, &mut out);
        out
    }

    pub fn sign(self, secret: &[u8], chain_id: Option<u64>) -> Result<PrivateTx> {
        let signature = keys::sign(&keys::secret_key(secret)?, self.signing_hash(chain_id).0);
        let parity = U256::from(signature[64]);
        let v = match chain_id {
            _ if self.dynamic_fee.is_some() => parity,
            Some(chain_id) => U256::from(chain_id) * U256::from(2) + U256::from(35) + parity,
            None => U256::from(27) + parity,
        };
        let (r, s) = (U256::from_be_slice(&signature[..32]), U256::from_be_slice(&signature[32..64]));
        Ok(PrivateTx { fields: self, v, r, s })
    }

    /// Return the privacy group of the transaction; None when its group id is not 32 bytes long.
    pub fn group(&self) -> Option<B256> {
        match &self.recipients {
            Recipients::Group(id) => B256::try_from(&id[..]).ok(),
            Recipients::Keys(keys) => {
                let members: Vec<&[u8]> = keys.iter().chain([&self.private_from]).map(|key| &key[..]).collect();
                Some(group_id(&members, None).into())
            }
        }
    }
}

impl PrivateTx {
    pub fn decode(raw: &[u8]) -> Result<Self> {
        let (is_dynamic, mut rest) = match raw.split_first() {
            Some((&DYNAMIC_FEE_TYPE, rest)) => (true, rest),
            _ => (false, raw),
        };
        let mut items = Header::decode_bytes(&mut rest, true).map_err(|cause| wrong("the list", cause))?;
        if !rest.is_empty() {
            return Err(wrong("the list", format!("{} bytes too many", rest.len())));
        }
        let items = &mut items;
        let chain_id = if is_dynamic { Some(take(items, "chainId")?) } else { None };
        let nonce = take(items, "nonce")?;
        let dynamic_fee = match chain_id {
            Some(chain_id) => Some(DynamicFee { chain_id, max_priority_fee: take(items, "maxPriorityFeePerGas")? }),
            None => None,
        };
        let (gas_price, gas_limit) = (take(items, "gasPrice")?, take(items, "gasLimit")?);
        let to: Bytes = take(items, "to")?;
        let to = match to.len() {
            0 => None,
            20 => Some(Address::from_slice(&to)),
            length => return Err(wrong("to", format!("20 bytes expected, got {length}"))),
        };
        let (value, data) = (take(items, "value")?, take(items, "data")?);
        let (v, r, s) = (take(items, "v")?, take(items, "r")?, take(items, "s")?);
        let private_from = take(items, "privateFrom")?;
        let recipients = Recipients::decode(items)?;
        let restriction = take(items, "restriction")?;
        if !items.is_empty() {
            return Err(wrong("the list", "too many items"));
        }
        let fields = Unsigned {
            dynamic_fee,
            nonce,
            gas_price,
            gas_limit,
            to,
            value,
            data,
            private_from,
            recipients,
            restriction,
        };
        let found = PrivateTx { fields, v, r, s };
        found.parity()?;
        Ok(found)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(320 + self.fields.data.len());
        self.fields.encode_head(&mut payload);
        self.v.encode(&mut payload);
        self.r.encode(&mut payload);
        self.s.encode(&mut payload);
        self.fields.encode_tail(&mut payload);
        self.fields.enveloped(&payload)
    }

    /// Return chain id and parity from v. In a legacy transaction, 27 or 28 means no chain id; values from 37 on
    /// include the chain id.
    fn parity(&self) -> Result<(Option<u64>, bool)> {
        let v = u128::try_from(self.v).map_err(|_| wrong("v", "too large"))?;
        if let Some(fee) = &self.fields.dynamic_fee {
            return match v {
                0 | 1 => Ok((Some(fee.chain_id), v == 1)),
                _ => Err(wrong("v", format!("{v} is neither 0 nor 1"))),
            };
        }
        match v {
            27 | 28 => Ok((None, v == 28)),
            37.. => {
                let chain_id = u64::try_from((v - 35) / 2).map_err(|_| wrong("v", "too large"))?;
                Ok((Some(chain_id), (v - 35) % 2 == 1))
            }
            _ => Err(wrong("v", format!("{v} is none"))),
        }
    }

    pub fn chain_id(&self) -> Option<u64> {
        self.parity().ok().and_then(|(chain_id, _)| chain_id)
    }

    /// Return the hash of the signed transaction. Clients do not see this hash: they use the hash of the marker.
    pub fn hash(&self) -> B256 {
        keccak256(self.encode())
    }

    pub fn recover(&self) -> Result<Address> {
        self.signed()?.signer()
    }

    /// Return the transaction's signature and the digest it signs.
    fn signed(&self) -> Result<keys::Signed> {
        let (chain_id, parity) = self.parity()?;
        let mut r_s = [0u8; 64];
        r_s[..32].copy_from_slice(&self.r.to_be_bytes::<32>());
        r_s[32..].copy_from_slice(&self.s.to_be_bytes::<32>());
        Ok(keys::Signed { digest: self.fields.signing_hash(chain_id), r_s, parity })
    }
}

/// A private transaction and its sender.
#[derive(Clone)]
pub struct Decoded {
    pub tx: PrivateTx,
    pub hash: B256,
    pub sender: Option<Address>,
}

pub fn decode(raw: &[u8]) -> Result<Decoded> {
    decode_some(&[raw]).pop().expect("one for one")
}

/// Decode transactions and recover their senders together. Known senders come from the sender cache.
fn decode_some<R: AsRef<[u8]>>(raws: &[R]) -> Vec<Result<Decoded>> {
    let txs: Vec<Result<PrivateTx>> = raws.iter().map(|raw| PrivateTx::decode(raw.as_ref())).collect();
    let decoded: Vec<&PrivateTx> = txs.iter().flatten().collect();
    let hashes: Vec<B256> =
        raws.iter().zip(&txs).filter(|(_, tx)| tx.is_ok()).map(|(raw, _)| keccak256(raw.as_ref())).collect();
    let senders = senders_of(&hashes, |unknown| {
        // `decode` has checked the parity of each signature, so `signed` cannot fail
        let signed = |place: &usize| decoded[*place].signed().expect("checked while decoding");
        recover_signers(&unknown.iter().map(signed).collect::<Vec<_>>())
    });
    let mut found = hashes.into_iter().zip(senders);
    let with_sender = |tx: Result<PrivateTx>| {
        let tx = tx?;
        let (hash, sender) = found.next().expect("one for each that is a transaction");
        Ok(Decoded { tx, hash, sender: sender.ok() })
    };
    txs.into_iter().map(with_sender).collect()
}

/// Decode many transactions in order. Above a threshold, the work runs on all cores.
pub fn decode_all<R: AsRef<[u8]> + Sync>(raws: &[R]) -> Vec<Result<Decoded>> {
    if raws.len() <= TASK { decode_some(raws) } else { raws.par_chunks(TASK).flat_map_iter(decode_some).collect() }
}

#[cfg(test)]
mod tests;
