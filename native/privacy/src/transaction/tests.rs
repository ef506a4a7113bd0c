//! Tests of private transactions: published vectors and invalid input.

use alloy_primitives::{address, b256, hex};

use super::*;
use crate::contract_addresses::contract_address;

/// Public test key of the dev network's first account.
const ACCOUNT: [u8; 32] = hex!("8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63");
/// Public test key that signs the published test vector.
const PUBLISHED: [u8; 32] = hex!("853d7f0010fd86d0d7811c1f9d968ea89a24484a8127b4a483ddf5d2cfec766d");
const A1AV: [u8; 32] = hex!("035695b4cc4b0941e60551d7a19cf30603db5bfc23e5ac43a56f57f25f75486a");
const KO2B: [u8; 32] = hex!("2a8d9b56a0fe9cd94d60be4413bcb721d3a7be27ed8e28b3a6346df874ee141b");
const RAW: &[u8] = &hex!(
    "f9018c808203e8832dc6c08080b8ef608060405234801561001057600080fd5b5060d08061001f6000396000f3fe60806040526004361060485763ffffffff7c010000000000000000000000000000000000000000000000000000000060003504166360fe47b18114604d5780636d4ce63c146075575b600080fd5b348015605857600080fd5b50607360048036036020811015606d57600080fd5b50356099565b005b348015608057600080fd5b506087609e565b60408051918252519081900360200190f35b600055565b6000549056fea165627a7a72305820cb1d0935d14b589300b12fcd0ab849a7e9019c81da24d6daa4f6b2f003d1b01800292ca0bab7ae7f68afad5ade9e26177e044079bbcfd7857cf911b7a4c97027dd92e41ba06e92e391ced52de53725e3054af3908a9f2f36374d727ebc616a96a1ed2ca548a0035695b4cc4b0941e60551d7a19cf30603db5bfc23e5ac43a56f57f25f75486ae1a02a8d9b56a0fe9cd94d60be4413bcb721d3a7be27ed8e28b3a6346df874ee141b8a72657374726963746564"
);

fn unsigned(gas_price: u128, recipients: Recipients) -> Unsigned {
    Unsigned { gas_price, recipients, ..PrivateTx::decode(RAW).unwrap().fields }
}

#[test]
fn the_published_transaction() {
    let tx = PrivateTx::decode(RAW).unwrap();
    assert_eq!(tx.encode(), RAW);
    assert_eq!(tx.v, U256::from(44));
    assert_eq!(tx.chain_id(), Some(4));
    assert_eq!(
        tx.fields.signing_hash(Some(4)),
        b256!("2ccc0b0e557cd378f85365d3e9d6fc249b2abd30f569456feddaf00064c92745")
    );
    assert_eq!(tx.hash(), b256!("cf19b7e4302661d7755075a609d184ec2ecd122ecce5dd971380d54987fec07d"));
    assert_eq!(tx.recover().unwrap(), address!("b3d6f5a4491a6137277699a2d4343ef4fe3c0fdc"));
    assert_eq!(tx.fields.private_from[..], A1AV);
    assert_eq!(tx.fields.recipients, Recipients::Keys(vec![Bytes::from(KO2B)]));
    let again = tx.fields.clone().sign(&PUBLISHED, Some(4)).unwrap();
    assert_eq!(again, tx);
}

#[test]
fn for_keys_on_the_dev_chain() {
    let fields = unsigned(0, Recipients::Keys(vec![Bytes::from(KO2B)]));
    assert_eq!(
        fields.signing_hash(Some(2018)),
        b256!("89faae8c474b43ee438b08c8c896f8cfa1757aa459f791abdbfe11204f74423e")
    );
    let group = fields.group().unwrap();
    let tx = fields.sign(&ACCOUNT, Some(2018)).unwrap();
    assert_eq!(tx.v, U256::from(0xfe8));
    assert_eq!(tx.r.to_be_bytes(), hex!("81ab05ac79f9d50210f5593bd9b3d87d5c3c0ec3689710b03ed2d1d4fcb2c0f9"));
    assert_eq!(tx.s.to_be_bytes(), hex!("1f2c44bad0744d9b124422d06067893a2e1848912b118c5faaec5a0723b58625"));
    assert_eq!(tx.hash(), b256!("76e5a226280044c351b0e2695c209686047cc346bd5be5a21be949682ec73067"));
    let sender = tx.recover().unwrap();
    assert_eq!(sender, address!("fe3b557e8fb62b89f4916b721be55ceb828dbd73"));
    assert_eq!(contract_address(&sender, 0, &group), address!("ebf56429e6500e84442467292183d4d621359838"));
    assert_eq!(PrivateTx::decode(&tx.encode()).unwrap(), tx);
}

#[test]
fn for_a_group_on_the_dev_chain() {
    let group = B256::from(group_id(&[A1AV, KO2B], None));
    let fields = unsigned(0, Recipients::Group(Bytes::from(group.0)));
    assert_eq!(
        fields.signing_hash(Some(2018)),
        b256!("d4625bf285b0e0ff3466b7a77b734df52d0dcc6707c172264c4371bc445847ef")
    );
    let tx = fields.sign(&ACCOUNT, Some(2018)).unwrap();
    assert_eq!(tx.r.to_be_bytes(), hex!("f60ac0825a51e63dfed3a7459dddc6150dd043658b34a66dbf665bee59b40587"));
    assert_eq!(tx.s.to_be_bytes(), hex!("61d523315a115a28b8d5e2405c89877c34d980b85c30d680e05803e2d4e46fa1"));
    assert_eq!(tx.hash(), b256!("0350962aec7871da07c42e76b61f8b09690f0c0c0b93e8487dd598fa9cb2f182"));
    assert_eq!(PrivateTx::decode(&tx.encode()).unwrap(), tx);
}

#[test]
fn without_a_chain_id() {
    let tx = unsigned(0, Recipients::Keys(Vec::new())).sign(&ACCOUNT, None).unwrap();
    assert!(tx.v == U256::from(27) || tx.v == U256::from(28));
    assert_eq!(tx.chain_id(), None);
    assert_eq!(PrivateTx::decode(&tx.encode()).unwrap().recover().unwrap(), tx.recover().unwrap());
}

#[test]
fn signatures_of_no_kind_are_refused() {
    for v in [0u64, 1, 26, 29, 34, 35, 36] {
        let mut tx = PrivateTx::decode(RAW).unwrap();
        tx.v = U256::from(v);
        assert!(PrivateTx::decode(&tx.encode()).is_err(), "v {v}");
    }
}

#[test]
fn keys_of_other_lengths_are_kept() {
    for length in [0, 1, 44, 91] {
        let mut tx = PrivateTx::decode(RAW).unwrap();
        tx.fields.private_from = Bytes::from(vec![7; length]);
        tx.fields.recipients = Recipients::Keys(vec![Bytes::from(vec![9; length])]);
        assert_eq!(PrivateTx::decode(&tx.encode()).unwrap(), tx);
    }
}

#[test]
fn damaged_bytes_are_refused_and_never_panic() {
    for length in 0..RAW.len() {
        assert!(PrivateTx::decode(&RAW[..length]).is_err(), "cut at {length}");
    }
    let mut seed = 88172645463325252u64;
    for _ in 0..20_000 {
        let mut raw = RAW.to_vec();
        for _ in 0..3 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let at = seed as usize % raw.len();
            raw[at] = (seed >> 32) as u8;
        }
        if let Ok(tx) = PrivateTx::decode(&raw) {
            assert_eq!(tx.encode(), raw, "what is read is what was written");
            let _ = tx.recover();
        }
    }
}

#[test]
fn contract_addresses_differ_by_group() {
    let sender = address!("fe3b557e8fb62b89f4916b721be55ceb828dbd73");
    let other = b256!("9137894b84c8ee69d6849ac422d9a31ded620dea40b9444f99e31573240e82bd");
    assert_eq!(contract_address(&sender, 0, &other), address!("8220ca987f7bb7f99815d0ef64e1d8a072a2c167"));
}

#[test]
fn many_are_decoded_like_one() {
    let mut raws: Vec<Vec<u8>> = (0..40u128)
        .map(|price| unsigned(price, Recipients::Keys(Vec::new())).sign(&ACCOUNT, Some(7)).unwrap().encode())
        .collect();
    raws[3].truncate(20);
    let mut unsigned_by_anyone = PrivateTx::decode(&raws[5]).unwrap();
    unsigned_by_anyone.r = U256::ZERO;
    raws[5] = unsigned_by_anyone.encode();
    for (place, (many, raw)) in decode_all(&raws).into_iter().zip(&raws).enumerate() {
        match (many, PrivateTx::decode(raw)) {
            (Ok(many), Ok(tx)) => {
                assert_eq!(many.sender, tx.recover().ok(), "{place}");
                assert_eq!((many.hash, many.tx), (keccak256(raw), tx), "{place}");
            }
            (many, one) => assert!(many.is_err() && one.is_err() && place == 3, "{place}"),
        }
    }
}
