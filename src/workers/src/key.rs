//! The key of a job: one certificate, made for the job, that every process of it shows and expects.
//!
//! There is no authority and no name to trust: both sides of every connection prove that they hold the private key of
//! this very certificate before a byte is believed. Whoever holds the key may command the workers, so that the file is
//! readable by its owner only, and nothing prints it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
};
use sha2::{Digest, Sha256};

/// The name in every certificate. It identifies nothing: the certificate itself is compared.
pub(crate) const NAME: &str = "stratoscope-worker";

/// A key file is about a kilobyte.
const LARGEST_FILE: u64 = 64 << 10;

/// Tells the jobs apart; it is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JobId(pub [u8; 16]);

/// A job's certificate with its private key. A clone is the same key.
#[derive(Clone)]
pub struct JobKey {
    id: JobId,
    pem: Arc<str>,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl fmt::Debug for JobKey {
    /// The key is not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobKey(…)")
    }
}

impl JobKey {
    /// A new key.
    ///
    /// # Errors
    /// The random numbers of the system are not there.
    pub fn new() -> io::Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(other)?;
        let pem = format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem());
        Self::of_pem(&pem)
    }

    /// Reads the file that [`Self::write`] has written.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it holds no key.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let file = options
            .read(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        let found = file.metadata()?;
        // SAFETY: a system call without arguments that cannot fail.
        let user = unsafe { libc::geteuid() };
        if !found.is_file() || found.uid() != user || found.mode() & 0o077 != 0 {
            return Err(io::Error::other(
                "it must be a file of this user that nobody else may read (`chmod 600`)",
            ));
        }
        let mut pem = String::new();
        file.take(LARGEST_FILE).read_to_string(&mut pem)?;
        Self::of_pem(&pem)
    }

    /// Writes it to a new file that only this user may read.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut options = File::options();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let written = file.write_all(self.pem.as_bytes());
        if written.is_err() {
            let _ = fs::remove_file(path);
        }
        written
    }

    /// The job's number.
    pub fn id(&self) -> JobId {
        self.id
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    fn of_pem(pem: &str) -> io::Result<Self> {
        let bytes = pem.as_bytes();
        let certificate = CertificateDer::from_pem_slice(bytes)
            .map_err(|_| io::Error::other("it holds no certificate"))?;
        let key = || {
            PrivateKeyDer::from_pem_slice(bytes)
                .map_err(|_| io::Error::other("it holds no private key"))
        };
        let provider = Arc::new(ring::default_provider());
        let pinned = Arc::new(Pinned {
            certificate: certificate.clone(),
            provider: Arc::clone(&provider),
        });
        let own = vec![certificate.clone()];
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(other)?
            .with_client_cert_verifier(Arc::clone(&pinned) as Arc<dyn ClientCertVerifier>)
            .with_single_cert(own.clone(), key()?)
            .map_err(other)?;
        // Each connection is authenticated anew.
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(other)?
            .dangerous()
            .with_custom_certificate_verifier(pinned)
            .with_client_auth_cert(own, key()?)
            .map_err(other)?;
        client.resumption = rustls::client::Resumption::disabled();
        let digest = Sha256::digest(&certificate);
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        Ok(Self {
            id: JobId(id),
            pem: pem.into(),
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }
}

fn other(error: impl fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// Accepts one certificate, and only from who has its key.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn is_ours(&self, shown: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        match shown.as_ref() == self.certificate.as_ref() {
            true => Ok(()),
            false => Err(rustls::Error::General("the key of another job".to_owned())),
        }
    }

    fn signed(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn refuse_tls12<T>() -> Result<T, rustls::Error> {
        Err(rustls::Error::General("TLS 1.3 only".to_owned()))
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.is_ours(shown)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Self::refuse_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.is_ours(shown)
            .map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Self::refuse_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_written_for_its_owner_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key.pem");
        let key = JobKey::new().expect("a key");
        key.write(&path).expect("written");
        assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o600);
        assert_eq!(JobKey::read(&path).expect("read").id(), key.id());
        assert!(key.write(&path).is_err(), "no file is overwritten");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        let refused = JobKey::read(&path).expect_err("others may read it");
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(JobKey::read(&link).is_err(), "links are not followed");
        assert!(!format!("{key:?}").contains("PRIVATE"));
        assert_ne!(JobKey::new().expect("another").id(), key.id());
    }
}
