//! Signing messages: HMAC-SHA256 over the four dictionaries, in hexadecimal. Buffers are not
//! covered, by the protocol.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#wire-protocol>

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Signs and checks with the connection's key.
#[derive(Clone)]
pub struct Signer {
    mac: Option<Hmac<Sha256>>,
}

impl Signer {
    /// With an empty key, messages carry an empty signature and every one is accepted.
    pub fn new(key: &[u8]) -> Self {
        let keyed = |key| Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
        Self {
            mac: (!key.is_empty()).then(|| keyed(key)),
        }
    }

    /// The signature of the four dictionaries, in the order in which they are sent.
    pub fn sign(&self, dictionaries: [&[u8]; 4]) -> String {
        let Some(mac) = self.fed(dictionaries) else {
            return String::new();
        };
        mac.finalize()
            .into_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Whether the signature is right. Takes the same time wherever a wrong one differs.
    pub fn verify(&self, signature: &[u8], dictionaries: [&[u8]; 4]) -> bool {
        let Some(mac) = self.fed(dictionaries) else {
            return true;
        };
        decode(signature).is_some_and(|bytes| mac.verify_slice(&bytes).is_ok())
    }

    /// Whether there is a key.
    pub fn has_key(&self) -> bool {
        self.mac.is_some()
    }

    fn fed(&self, dictionaries: [&[u8]; 4]) -> Option<Hmac<Sha256>> {
        let mut mac = self.mac.clone()?;
        for dictionary in dictionaries {
            mac.update(dictionary);
        }
        Some(mac)
    }
}

fn decode(hexadecimal: &[u8]) -> Option<Vec<u8>> {
    if !hexadecimal.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| Some((byte as char).to_digit(16)? as u8);
    hexadecimal
        .chunks_exact(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [&[u8]; 4] = [b"what do ya ", b"want ", b"for ", b"nothing?"];
    /// RFC 4231, test case 2.
    const EXPECTED: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

    #[test]
    fn the_signature_is_hmac_sha256() {
        assert_eq!(Signer::new(b"Jefe").sign(PARTS), EXPECTED);
    }

    #[test]
    fn only_the_right_signature_is_accepted() {
        let check = |signature: &[u8], expected: bool| {
            assert_eq!(Signer::new(b"Jefe").verify(signature, PARTS), expected);
        };
        check(EXPECTED.as_bytes(), true);
        check(EXPECTED.to_uppercase().as_bytes(), true);
        check(b"", false);
        check(&EXPECTED.as_bytes()[..62], false);
        check(&EXPECTED.as_bytes()[..63], false);
        check(EXPECTED.replacen('5', "6", 1).as_bytes(), false);
        check("é".repeat(32).as_bytes(), false);
        assert!(!Signer::new(b"other").verify(EXPECTED.as_bytes(), PARTS));
        assert!(!Signer::new(b"Jefe").verify(EXPECTED.as_bytes(), [b"", b"", b"", b""]));
    }

    #[test]
    fn without_a_key_nothing_is_signed() {
        let signer = Signer::new(b"");
        assert_eq!(signer.sign(PARTS), "");
        assert!(signer.verify(b"", PARTS) && signer.verify(b"whatever", PARTS));
    }
}
