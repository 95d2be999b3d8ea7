//! Channel binding of a login to its TLS session: the hash of the server's certificate.
//!
//! Source: RFC 5929, section 4.1 (tls-server-end-point). The hash function is that of the certificate's signature,
//! except that SHA-256 replaces MD5 and SHA-1.

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

use crate::der::{OBJECT_IDENTIFIER, SEQUENCE, read_element};

/// Signature algorithms by their object identifiers: RSA (PKCS #1) with MD5, SHA-1, SHA-256, SHA-384, SHA-512, and ECDSA
/// with SHA-1, SHA-256, SHA-384, SHA-512.
const ALGORITHMS: [(&[u8], &Algorithm); 9] = [
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04", &SHA256),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05", &SHA256),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b", &SHA256),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c", &SHA384),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d", &SHA512),
    (b"\x2a\x86\x48\xce\x3d\x04\x01", &SHA256),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x02", &SHA256),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x03", &SHA384),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x04", &SHA512),
];

/// The hash of a certificate in DER; `None` if the signature algorithm is not in [`ALGORITHMS`].
pub(super) fn end_point_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let identifier = signature_algorithm(certificate)?;
    let (_, algorithm) = ALGORITHMS.iter().find(|(known, _)| *known == identifier)?;
    Some(digest(algorithm, certificate).as_ref().to_vec())
}

/// Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, algorithm SEQUENCE { identifier, … }, signature }
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (fields, _) = read_element(SEQUENCE, certificate)?;
    let (_, after) = read_element(SEQUENCE, fields)?;
    let (algorithm, _) = read_element(SEQUENCE, after)?;
    read_element(OBJECT_IDENTIFIER, algorithm).map(|(identifier, _)| identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minimal certificate: a sequence in place of the certified data, ECDSA with SHA-384, an empty signature.
    const SKELETON: &[u8] =
        b"\x30\x13\x30\x02\x05\x00\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x03\x03\x01\x00";

    #[test]
    fn the_hash_function_is_that_of_the_signature() {
        assert_eq!(end_point_hash(SKELETON).map(|hash| hash.len()), Some(48));
        let sha1 = SKELETON.iter().map(|&byte| if byte == 0x03 { 0x01 } else { byte }).collect::<Vec<_>>();
        assert_eq!(end_point_hash(&sha1), None, "another identifier");
    }

    #[test]
    fn no_length_is_trusted() {
        for length in 0..SKELETON.len() - 3 {
            assert_eq!(end_point_hash(&SKELETON[..length]), None, "{length}");
        }
        assert_eq!(end_point_hash(b"\x30\x84\xff\xff\xff\xff\x30"), None);
        assert_eq!(end_point_hash(b"\x30\x80\x30"), None);
    }
}
