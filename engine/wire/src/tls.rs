//! Encrypts a socket by TLS 1.2 or 1.3, with rustls.
//!
//! The modes are MySQL's. `preferred` and `required` verify nothing, so that they work even with certificates that no
//! library would accept; the authentication takes this into account before it sends a password. The client does not
//! resume sessions, so every reconnect performs a full handshake.

use std::io;
use std::sync::Arc;

use dbdyno_schema::plan::TlsMode;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{
    Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

use crate::address::Address;
use crate::error::WireError;
use crate::mysql::errors::CR_SSL_CONNECTION_ERROR;
use crate::socket::Socket;

/// The contents of the plan's TLS files, in PEM.
#[derive(Clone, Copy, Default)]
pub struct Files<'a> {
    /// Trusted CA certificates.
    pub ca: Option<&'a [u8]>,
    /// The client's certificate chain.
    pub certificate: Option<&'a [u8]>,
    /// The client's private key.
    pub key: Option<&'a [u8]>,
}

/// Encrypts sockets; cheap to copy.
#[derive(Clone, Debug)]
pub struct TlsClient {
    mode: TlsMode,
    config: Arc<ClientConfig>,
}

impl TlsClient {
    /// Creates a client from the contents of the plan's files.
    ///
    /// # Errors
    /// All problems in the files, each as one sentence.
    pub fn new(mode: TlsMode, files: Files<'_>) -> Result<Self, Vec<String>> {
        let provider = Arc::new(ring::default_provider());
        let mut problems = Vec::new();
        let roots = mode.verifies().then(|| read_roots(files.ca, &mut problems));
        let identity = client_identity(files, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let verifier = Verifier {
            roots,
            verifies_name: mode == TlsMode::VerifyIdentity,
            algorithms: provider.signature_verification_algorithms,
        };
        client_config(provider, verifier, identity)
            .map(|config| Self { mode, config: Arc::new(config) })
            .map_err(|error| vec![format!("target.tls.certificate: it does not match its key: {error}")])
    }

    /// Whether the mode requires encryption.
    pub(crate) fn is_required(&self) -> bool {
        self.mode != TlsMode::Preferred
    }

    /// Whether the mode verifies the server's certificate.
    pub(crate) fn verifies(&self) -> bool {
        self.mode.verifies()
    }

    /// The error for a server without TLS, if the mode requires TLS.
    pub(crate) fn not_offered_error(&self, address: &Address, fix: &str) -> WireError {
        let mode = self.mode.name();
        let text = format!("{address}: the server offers no TLS, and tls mode {mode} requires it");
        refused_error(text, &format!("{fix}, or use tls mode preferred or disabled"))
    }

    /// Encrypts `socket`, which is connected to `host`.
    pub(crate) async fn encrypt(&self, socket: Socket, host: &str) -> Result<TlsStream<Socket>, WireError> {
        let name = match ServerName::try_from(host.to_owned()) {
            Ok(name) => name,
            Err(_) if self.mode != TlsMode::VerifyIdentity => {
                // The mode does not check the name. For an IP address, the handshake does not contain a name either.
                ServerName::from(std::net::Ipv4Addr::UNSPECIFIED)
            }
            Err(_) => {
                return Err(refused_error(
                    format!("{host} is not a valid name in a certificate"),
                    "connect to a DNS name or an IP address, or use tls mode verify-ca",
                ));
            }
        };
        let stream = TlsConnector::from(Arc::clone(&self.config)).connect(name, socket).await;
        stream.map_err(|error| handshake_error(&error, host))
    }
}

/// Version and cipher suite of a session, such as `TLSv1.3 TLS13_AES_256_GCM_SHA384`.
pub(crate) fn describe(connection: &ClientConnection) -> String {
    let version = connection.protocol_version().and_then(|version| version.as_str()).unwrap_or("TLS");
    let suite = connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).unwrap_or("?");
    format!("{} {suite}", version.replace('_', "."))
}

fn read_roots(pem: Option<&[u8]>, problems: &mut Vec<String>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.unwrap_or_default()) {
        match certificate.map(|certificate| roots.add(certificate)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                problems.push(format!("target.tls.ca: the file contains an invalid certificate: {error}"))
            }
            Err(error) => problems.push(format!("target.tls.ca: invalid PEM: {error}")),
        }
    }
    if roots.is_empty() && problems.is_empty() {
        problems.push("target.tls.ca: the file contains no certificate; it needs one in PEM".into());
    }
    roots
}

/// The client's certificate chain and its private key.
type ClientIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_identity(files: Files<'_>, problems: &mut Vec<String>) -> Option<ClientIdentity> {
    let (certificate, key) = (files.certificate?, files.key?);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.unwrap_or_default();
    if chain.is_empty() {
        problems.push("target.tls.certificate: the file contains no certificate; it needs one in PEM".into());
    }
    match PrivateKeyDer::from_pem_slice(key) {
        Ok(key) => Some((chain, key)),
        Err(_) => {
            problems.push(
                "target.tls.key: the file contains no readable private key; it needs one in PEM, without a passphrase"
                    .into(),
            );
            None
        }
    }
}

fn client_config(
    provider: Arc<CryptoProvider>,
    verifier: Verifier,
    identity: Option<ClientIdentity>,
) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// Verifies certificates as the mode requires.
#[derive(Debug)]
struct Verifier {
    /// The trusted CA certificates; `None` if the mode verifies nothing.
    roots: Option<RootCertStore>,
    verifies_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(roots) = &self.roots else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        if self.verifies_name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.roots {
            Some(_) => verify_tls12_signature(message, certificate, signature, &self.algorithms),
            // If the certificate is not verified, checking the signature proves nothing.
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.roots {
            Some(_) => verify_tls13_signature(message, certificate, signature, &self.algorithms),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn refused_error(text: String, fix: &str) -> WireError {
    WireError::refused(CR_SSL_CONNECTION_ERROR, text, fix)
}

/// The error of a failed handshake.
fn handshake_error(error: &io::Error, host: &str) -> WireError {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let Some(cause) = cause else {
        return refused_error(
            format!("{host}: the TLS handshake was interrupted: {error}"),
            "see the server's error log; it may not accept TLS 1.2 and 1.3, or may require a client certificate",
        );
    };
    let Error::InvalidCertificate(problem_kind) = cause else {
        return refused_error(
            format!("{host}: the TLS handshake failed: {cause}"),
            "check that the server accepts TLS 1.2 or 1.3, and the client certificate, if you use one",
        );
    };
    let (problem, fix) = certificate_problem(problem_kind);
    refused_error(format!("{host}: the server's certificate {problem}"), fix)
}

fn certificate_problem(problem_kind: &CertificateError) -> (String, &'static str) {
    match problem_kind {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            "has expired".into(),
            "renew the server's certificate, set this machine's clock, or use mode required, which ignores the date",
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("is not valid yet".into(), "set this machine's clock, or reissue the server's certificate")
        }
        CertificateError::UnknownIssuer => (
            "is not signed by a CA in target.tls.ca".into(),
            "set target.tls.ca to the certificate of the CA that signed it (on the server: SELECT @@ssl_ca)",
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            "does not contain this host in its subjectAltName".into(),
            "connect to a name in the certificate, add this host to it, or use mode verify-ca",
        ),
        CertificateError::BadEncoding => {
            ("is not an X.509 version 3 certificate".into(), "replace the certificate, or use mode required")
        }
        other => (
            format!("is not accepted: {other}"),
            "give the server a certificate that a CA has signed, or use mode required",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_in_the_files_is_reported() {
        let files = Files { ca: Some(b"nothing"), certificate: Some(b""), key: Some(b"none") };
        let problems = TlsClient::new(TlsMode::VerifyCa, files).unwrap_err();
        let keys = ["target.tls.ca:", "target.tls.certificate:", "target.tls.key:"];
        assert_eq!(problems.len(), keys.len(), "{problems:?}");
        assert!(keys.iter().zip(&problems).all(|(key, problem)| problem.starts_with(key)), "{problems:?}");
    }

    #[test]
    fn a_mode_that_verifies_nothing_needs_no_file() {
        for mode in [TlsMode::Preferred, TlsMode::Required] {
            assert_eq!(
                TlsClient::new(mode, Files::default()).unwrap().is_required(),
                mode == TlsMode::Required
            );
        }
    }
}
