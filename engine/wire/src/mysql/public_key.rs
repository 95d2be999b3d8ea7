//! The server's public RSA key, which encrypts a password if the connection is not encrypted.
//!
//! A hostile server can send anything as its key, so the parser is strict.
//! Sources: RFC 7468 (PEM), RFC 5280 section 4.1 (SubjectPublicKeyInfo), RFC 8017 sections 3.1 and 7.1 (RSA, OAEP).

use std::sync::Arc;

use mysql_common::crypto::rsa;
use num_bigint::BigUint;
use tokio_rustls::rustls::pki_types::SubjectPublicKeyInfoDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::errors::CR_AUTH_PLUGIN_CANNOT_LOAD;
use crate::WireError;
use crate::der::{BIT_STRING, INTEGER, SEQUENCE, read_element};

/// Allowed numbers of bits in a modulus. Servers generate keys of 2048 bits; more than 8192 would only cost time.
const MODULUS_BITS: std::ops::RangeInclusive<u64> = 1024..=8192;
/// Maximum bytes of an exponent, to limit the work. Nearly every key has the exponent 65537.
const EXPONENT_MAX: usize = 8;

/// The `AlgorithmIdentifier` of rsaEncryption, 1.2.840.113549.1.1.1, with its empty parameters.
const RSA: [u8; 15] =
    [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

/// A public RSA key; cheap to copy.
#[derive(Clone, Debug)]
pub struct PublicKey(Arc<rsa::PublicKey>);

impl PublicKey {
    /// Reads a key in PEM.
    ///
    /// # Errors
    /// [`WireError::Protocol`] if the text is not a public RSA key of an allowed size.
    pub fn from_pem(pem: &[u8]) -> Result<Self, WireError> {
        let invalid_key = || WireError::Protocol("no public RSA key of 1024 to 8192 bits in PEM".into());
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| invalid_key())?;
        let (modulus, exponent) = modulus_and_exponent(&der).ok_or_else(invalid_key)?;
        Ok(Self(Arc::new(rsa::PublicKey::new(modulus, exponent))))
    }

    /// Encrypts `message` with OAEP padding.
    pub(super) fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, WireError> {
        // The padding takes 42 bytes.
        if message.len() + 42 > self.0.num_octets() {
            let most = self.0.num_octets().saturating_sub(43);
            return Err(WireError::refused(
                CR_AUTH_PLUGIN_CANNOT_LOAD,
                format!("the password is too long for the server's key, which takes {most} bytes"),
                "use tls mode verify-ca or verify-identity, or another account",
            ));
        }
        let padding = rsa::Pkcs1OaepPadding::new(rsa::GetRandom);
        self.0
            .encrypt_block(message, padding)
            .map_err(|error| WireError::Protocol(format!("the password cannot be encrypted: {error}")))
    }
}

/// Modulus and exponent of a SubjectPublicKeyInfo in DER.
fn modulus_and_exponent(der: &[u8]) -> Option<(BigUint, BigUint)> {
    let (info, []) = read_element(SEQUENCE, der)? else { return None };
    let (bits, []) = read_element(BIT_STRING, info.strip_prefix(&RSA)?)? else { return None };
    let (key, []) = read_element(SEQUENCE, bits.strip_prefix(&[0])?)? else { return None };
    let (modulus, rest) = read_element(INTEGER, key)?;
    let (exponent, []) = read_element(INTEGER, rest)? else { return None };
    let (modulus, exponent) = (positive_digits(modulus)?, positive_digits(exponent)?);
    let modulus = BigUint::from_bytes_be(modulus);
    let fits = MODULUS_BITS.contains(&modulus.bits()) && modulus.bit(0) && exponent.len() <= EXPONENT_MAX;
    let exponent = BigUint::from_bytes_be(exponent);
    (fits && exponent.bit(0) && exponent > BigUint::from(1u8)).then_some((modulus, exponent))
}

/// The bytes of a DER integer without the leading zero byte; `None` if it is negative or empty.
fn positive_digits(integer: &[u8]) -> Option<&[u8]> {
    match integer {
        [0, digits @ ..] => Some(digits),
        [first, ..] if *first < 0x80 => Some(integer),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A public key that openssl generated for this test.
    pub(in crate::mysql) const PEM: &[u8] = b"-----BEGIN PUBLIC KEY-----\n\
          MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwpA8f0nwzkmgTy0PBOUi\n\
          L3ZhDrqRokcfSEUxQ87QZDFasTiSK8+7ER8AOXYmwrOVEftPfExcNwtDg/XtGfPa\n\
          9HOf7GGgbuEVm0EOP9wVcplq65Dd78VT9GRBK6UwflzhC51PK0P1YzJvaj/4jBB8\n\
          mjexss7/bWLMYm1DO34Gq7LlIwkTPX181HWQbO2eSkJR3UrkBSnjc8UG2Uj97LAB\n\
          yfPJT0DYR4xNg7TGoOvbHD9FVgXkAPJ956zyfwZwPyhQqErfZmzGw3/T+FjyxjwN\n\
          1suL2/D9wDnLpxQnnL1h6MwRt6zOFSeiEuQcJmgT9rib7GIL0pKNSe9wUo8eyIcr\n\
          5wIDAQAB\n\
          -----END PUBLIC KEY-----\n";

    #[test]
    fn a_key_of_openssl_is_read() {
        let key = PublicKey::from_pem(PEM).unwrap();
        assert_eq!(key.0.modulus().bits(), 2048);
        assert_eq!(key.0.exponent(), &BigUint::from(65_537u32));
        let (one, other) = (key.encrypt(b"secret\0").unwrap(), key.encrypt(b"secret\0").unwrap());
        assert_eq!((one.len(), other.len()), (256, 256));
        assert_ne!(one, other, "the padding must be random");
    }

    #[test]
    fn a_password_that_does_not_fit_is_refused() {
        let key = PublicKey::from_pem(PEM).unwrap();
        assert!(key.encrypt(&[7; 214]).is_ok());
        assert!(matches!(key.encrypt(&[7; 215]), Err(WireError::Refused { .. })));
    }

    #[test]
    fn invalid_keys_are_errors() {
        for pem in [
            b"".as_slice(),
            b"\x00\xff",
            &PEM[..200],
            b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
        ] {
            assert!(matches!(PublicKey::from_pem(pem), Err(WireError::Protocol(_))));
        }
        let der = SubjectPublicKeyInfoDer::from_pem_slice(PEM).unwrap();
        for cut in 0..der.len() {
            assert!(modulus_and_exponent(&der[..cut]).is_none(), "{cut}");
        }
        for position in 0..33 {
            let mut changed = der.to_vec();
            changed[position] ^= 0xff;
            assert!(
                modulus_and_exponent(&changed)
                    .is_none_or(|(modulus, _)| MODULUS_BITS.contains(&modulus.bits())),
                "{position}"
            );
        }
    }
}
