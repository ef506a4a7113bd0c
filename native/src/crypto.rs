//! Keccak-256 and secp256k1 as Python functions, and sender recovery for the rest of the crate.

use alloy_primitives::{Address, B256, keccak256};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rayon::prelude::*;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, SECP256K1, SecretKey};

use crate::errors::{Error, Result};

/// Recover the uncompressed public key (64 bytes) behind a signature over `digest`.
pub fn recover_key(digest: &B256, r_s: &[u8; 64], parity: bool) -> Result<[u8; 64]> {
    let id = if parity { RecoveryId::One } else { RecoveryId::Zero };
    let out_of_range = || Error::Decode("signature: r or s is out of range".into());
    if r_s[..32] == [0; 32] || r_s[32..] == [0; 32] {
        return Err(out_of_range());
    }
    let signature = RecoverableSignature::from_compact(r_s, id).map_err(|_| out_of_range())?;
    let key = SECP256K1
        .recover_ecdsa(Message::from_digest(digest.0), &signature)
        .map_err(|_| Error::Decode("signature: no public key fits it".into()))?;
    Ok(key.serialize_uncompressed()[1..].try_into().expect("an uncompressed key has 65 bytes"))
}

pub fn recover_signer(digest: &B256, r_s: &[u8; 64], parity: bool) -> Result<Address> {
    Ok(Address::from_raw_public_key(&recover_key(digest, r_s, parity)?))
}

fn secret_key(secret: &[u8]) -> Result<SecretKey> {
    let bytes: [u8; 32] = secret
        .try_into()
        .map_err(|_| Error::Decode(format!("private key: 32 bytes expected, got {}", secret.len())))?;
    SecretKey::from_byte_array(bytes)
        .map_err(|_| Error::Decode("private key: not a number of the curve's order".into()))
}

pub fn fixed<const N: usize>(what: &str, bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| Error::Decode(format!("{what}: {N} bytes expected, got {}", bytes.len())))
}

fn split_signature(signature: &[u8]) -> Result<([u8; 64], bool)> {
    let bytes: [u8; 65] = fixed("signature", signature)?;
    let parity = match bytes[64] {
        0 => false,
        1 => true,
        v => return Err(Error::Decode(format!("signature: v must be 0 or 1, got {v}"))),
    };
    Ok((bytes[..64].try_into().expect("64 of 65 bytes"), parity))
}

#[pyfunction(name = "keccak256")]
#[pyo3(signature = (data, /))]
fn py_keccak256<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, keccak256(data).as_slice())
}

#[pyfunction]
#[pyo3(signature = (secret, /))]
fn public_key<'py>(py: Python<'py>, secret: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let key = PublicKey::from_secret_key(SECP256K1, &secret_key(secret)?);
    Ok(PyBytes::new(py, &key.serialize_uncompressed()[1..]))
}

#[pyfunction]
#[pyo3(signature = (public_key, /))]
fn address_of<'py>(py: Python<'py>, public_key: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let key: [u8; 64] = fixed("public key", public_key)?;
    Ok(PyBytes::new(py, Address::from_raw_public_key(&key).as_slice()))
}

#[pyfunction]
#[pyo3(signature = (secret, digest, /))]
fn sign<'py>(py: Python<'py>, secret: &[u8], digest: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let key = secret_key(secret)?;
    let digest: [u8; 32] = fixed("digest", digest)?;
    let signed = py.detach(|| SECP256K1.sign_ecdsa_recoverable(Message::from_digest(digest), &key));
    let (id, compact) = signed.serialize_compact();
    let mut out = [0u8; 65];
    out[..64].copy_from_slice(&compact);
    out[64] = i32::from(id) as u8;
    Ok(PyBytes::new(py, &out))
}

#[pyfunction]
#[pyo3(signature = (digest, signature, /))]
fn recover<'py>(py: Python<'py>, digest: &[u8], signature: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let digest = B256::from(fixed::<32>("digest", digest)?);
    let (r_s, parity) = split_signature(signature)?;
    let key = py.detach(|| recover_key(&digest, &r_s, parity))?;
    Ok(PyBytes::new(py, &key))
}

#[pyfunction]
#[pyo3(signature = (digest, signature, /))]
fn recover_address<'py>(py: Python<'py>, digest: &[u8], signature: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let digest = B256::from(fixed::<32>("digest", digest)?);
    let (r_s, parity) = split_signature(signature)?;
    let address = py.detach(|| recover_signer(&digest, &r_s, parity))?;
    Ok(PyBytes::new(py, address.as_slice()))
}

/// Who made each of many signatures, on all cores; None for what gives nobody.
#[pyfunction]
#[pyo3(signature = (pairs, /))]
fn recover_addresses<'py>(
    py: Python<'py>,
    pairs: Vec<(PyBackedBytes, PyBackedBytes)>,
) -> Vec<Option<Bound<'py, PyBytes>>> {
    let one = |(digest, signature): &(PyBackedBytes, PyBackedBytes)| -> Option<Address> {
        let digest = B256::from(fixed::<32>("digest", digest).ok()?);
        let (r_s, parity) = split_signature(signature).ok()?;
        recover_signer(&digest, &r_s, parity).ok()
    };
    let found: Vec<Option<Address>> = py.detach(|| pairs.par_iter().map(one).collect());
    found.iter().map(|address| address.as_ref().map(|address| PyBytes::new(py, address.as_slice()))).collect()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(py_keccak256, module)?)?;
    module.add_function(wrap_pyfunction!(public_key, module)?)?;
    module.add_function(wrap_pyfunction!(address_of, module)?)?;
    module.add_function(wrap_pyfunction!(sign, module)?)?;
    module.add_function(wrap_pyfunction!(recover, module)?)?;
    module.add_function(wrap_pyfunction!(recover_address, module)?)?;
    module.add_function(wrap_pyfunction!(recover_addresses, module)?)
}
