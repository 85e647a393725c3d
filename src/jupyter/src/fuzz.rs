//! Fuzz tests of what arrives from outside: the bytes of a connection ([`super::socket::zmtp`]) and the frames of a
//! message ([`super::envelope`]), made by changing valid ones.
//!
//! `STRATOSCOPE_FULL_TESTS` runs many more cases. The crate `wire` has such tests in its `tests/fuzz`.

#[path = "../../wire/tests/fuzz/counting.rs"]
mod counting;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::envelope::{Opener, Sealable, Sealer};
use super::signature::Signer;
use super::socket::zmtp::{MessageLimits, Violation, ZmtpValidator};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// As in the wire's tests: what parsing may hold for each byte of a message.
const BYTES_FOR_A_BYTE: usize = 300;

const BASE_BYTES: usize = 64 << 10;

fn cases() -> ProptestConfig {
    let is_long = std::env::var_os("STRATOSCOPE_FULL_TESTS").is_some_and(|it| !it.is_empty());
    ProptestConfig {
        // Failing cases become unit tests; no file of them is kept.
        failure_persistence: None,
        ..ProptestConfig::with_cases(if is_long { 200_000 } else { 2000 })
    }
}

/// Messages of a notebook: the frames behind the signature.
mod messages {
    use super::*;

    const DELIMITER: &[u8] = b"<IDS|MSG>";

    fn header() -> impl Strategy<Value = Value> {
        let kinds = select(vec![
            "execute_request",
            "kernel_info_request",
            "comm_open",
            "",
        ]);
        (kinds, any::<String>(), any::<String>()).prop_map(|(kind, id, session)| {
            json!({"msg_id": id, "msg_type": kind, "session": session, "username": "u",
                   "version": "5.3", "date": "2024-01-01T00:00:00Z"})
        })
    }

    fn content() -> impl Strategy<Value = Value> {
        (any::<String>(), any::<i64>(), any::<bool>()).prop_map(
            |(code, cursor, flag)| json!({"code": code, "cursor_pos": cursor, "silent": flag}),
        )
    }

    /// The four dictionaries of a good message.
    fn dictionaries() -> impl Strategy<Value = [Vec<u8>; 4]> {
        (header(), content()).prop_map(|(header, content)| {
            [header, json!({}), json!({}), content].map(|it| it.to_string().into_bytes())
        })
    }

    fn frames(key: &[u8], dictionaries: &[Vec<u8>; 4]) -> Vec<Vec<u8>> {
        let signature = Signer::new(key).sign(dictionaries.each_ref().map(Vec::as_slice));
        let mut frames = vec![b"peer".to_vec(), DELIMITER.to_vec(), signature.into_bytes()];
        frames.extend(dictionaries.iter().cloned());
        frames
    }

    #[derive(Clone, Debug)]
    enum Change {
        Byte(Index, Index, u8),
        Insert(Index, Index, Vec<u8>),
        Drop(Index),
        Repeat(Index),
        Exchange(Index, Index),
        Truncate(Index),
    }

    fn change() -> impl Strategy<Value = Change> {
        let odd = select(vec![
            DELIMITER.to_vec(),
            b"\xff\xfe".to_vec(),
            b"\0".to_vec(),
            b"9".repeat(500),
            b"1e999999".to_vec(),
            b"[".repeat(5000),
            br#"{"a":"#.repeat(5000),
            b"[{},".repeat(500),
            b"\"\\ud800\"".to_vec(),
        ]);
        let at = any::<Index>;
        prop_oneof![
            (at(), at(), any::<u8>()).prop_map(|(frame, at, byte)| Change::Byte(frame, at, byte)),
            (at(), at(), odd).prop_map(|(frame, at, bytes)| Change::Insert(frame, at, bytes)),
            at().prop_map(Change::Drop),
            at().prop_map(Change::Repeat),
            (at(), at()).prop_map(|(one, other)| Change::Exchange(one, other)),
            at().prop_map(Change::Truncate),
        ]
    }

    fn apply(change: &Change, frames: &mut Vec<Vec<u8>>) {
        if frames.is_empty() {
            return;
        }
        let count = frames.len();
        match change {
            Change::Byte(frame, at, byte) => {
                let frame = &mut frames[frame.index(count)];
                if !frame.is_empty() {
                    let at = at.index(frame.len());
                    frame[at] = *byte;
                }
            }
            Change::Insert(frame, at, bytes) => {
                let frame = &mut frames[frame.index(count)];
                let at = at.index(frame.len() + 1);
                frame.splice(at..at, bytes.iter().copied());
            }
            Change::Drop(frame) => drop(frames.remove(frame.index(count))),
            Change::Repeat(frame) => {
                let at = frame.index(count);
                frames.insert(at, frames[at].clone());
            }
            Change::Exchange(one, other) => frames.swap(one.index(count), other.index(count)),
            Change::Truncate(frame) => frames.truncate(frame.index(count)),
        }
    }

    /// What stands behind the first delimiter: signature and dictionaries.
    fn signed(frames: &[Vec<u8>]) -> Option<&[Vec<u8>]> {
        let delimiter = frames.iter().position(|frame| frame == DELIMITER)?;
        frames.get(delimiter + 1..delimiter + 6)
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn only_what_was_signed_is_accepted(
            dictionaries in dictionaries(),
            changes in vec(change(), 0..4),
        ) {
            let good = frames(b"secret", &dictionaries);
            let mut changed = good.clone();
            changes.iter().for_each(|change| apply(change, &mut changed));
            let size: usize = changed.iter().map(Vec::len).sum();
            let mut opener = Opener::new(Signer::new(b"secret"));
            let (opened, held) = counting::most_bytes(|| opener.open(&changed));
            prop_assert!(held <= BASE_BYTES + BYTES_FOR_A_BYTE * size, "{held} for {size} bytes");
            match opened {
                Ok(_) => {
                    let (before, after) = (signed(&good), signed(&changed));
                    let dictionaries = |it: Option<&[Vec<u8>]>| it.map(|it| it[1..].to_vec());
                    prop_assert_eq!(dictionaries(before), dictionaries(after));
                    prop_assert!(opener.open(&changed).is_err(), "not twice");
                }
                Err(error) => {
                    prop_assert!(error.to_string().len() > 10, "{}", error);
                    prop_assert!(!changes.is_empty(), "{}", error);
                }
            }
        }

        #[test]
        fn without_a_key_only_what_can_be_answered_is_accepted(
            dictionaries in dictionaries(),
            changes in vec(change(), 1..5),
        ) {
            let mut changed = frames(b"", &dictionaries);
            changes.iter().for_each(|change| apply(change, &mut changed));
            let size: usize = changed.iter().map(Vec::len).sum();
            let mut opener = Opener::new(Signer::new(b""));
            let (opened, held) = counting::most_bytes(|| opener.open(&changed));
            prop_assert!(held <= BASE_BYTES + BYTES_FOR_A_BYTE * size, "{held} for {size} bytes");
            match opened {
                Ok(request) => {
                    prop_assert_eq!(request.header_json["msg_type"].as_str(), Some(request.header.msg_type.name()));
                    prop_assert!(request.content.is_object());
                }
                Err(error) => prop_assert!(error.to_string().len() > 10, "{}", error),
            }
        }

        #[test]
        fn what_was_sealed_is_opened(
            prefix in vec(vec(any::<u8>(), 0..40), 0..3),
            parent in header(),
            content in content(),
        ) {
            prop_assume!(prefix.iter().all(|it| it != DELIMITER));
            let sealer = Sealer::new(Signer::new(b"secret"));
            let message = Sealable {
                msg_type: "status",
                metadata: "{}",
                content: content.to_string(),
            };
            let frames = sealer.seal(&prefix, &parent, &message);
            let opened = Opener::new(Signer::new(b"secret")).open(&frames);
            let request = opened.map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(request.identities, prefix);
            prop_assert_eq!(request.header.msg_type.name(), "status");
            prop_assert_eq!(request.content, content);
        }
    }
}

/// A client's bytes.
mod connections {
    use super::*;

    const LIMITS: MessageLimits = MessageLimits {
        message_bytes: 1000,
        frames: 4,
        messages: 5,
    };

    fn greeting() -> Vec<u8> {
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        greeting.to_vec()
    }

    fn frame(flags: u8, long: bool, body: &[u8]) -> Vec<u8> {
        let length = body.len() as u64;
        let head = match long || length > 255 {
            true => [&[flags | 2][..], &length.to_be_bytes()].concat(),
            false => vec![flags, length as u8],
        };
        [head, body.to_vec()].concat()
    }

    /// A handshake and messages, all of them within the limits.
    fn good() -> impl Strategy<Value = Vec<u8>> {
        let message = vec((any::<bool>(), vec(any::<u8>(), 0..250)), 1..=4);
        vec(message, 0..=5).prop_map(|messages| {
            let mut bytes = greeting();
            bytes.extend(frame(4, false, b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER"));
            for frames in messages {
                let last = frames.len() - 1;
                for (at, (long, body)) in frames.iter().enumerate() {
                    bytes.extend(frame(u8::from(at < last), *long, body));
                }
            }
            bytes
        })
    }

    /// Bytes that may come in the place of others.
    fn change() -> impl Strategy<Value = (Index, Vec<u8>)> {
        let odd = prop_oneof![
            vec(any::<u8>(), 0..12),
            any::<u64>().prop_map(|length| [&[2][..], &length.to_be_bytes()].concat()),
            Just([&[3][..], &(1_u64 << 60).to_be_bytes()].concat()),
            Just([1, 0].repeat(50)),
        ];
        (any::<Index>(), odd)
    }

    fn changed() -> impl Strategy<Value = Vec<u8>> {
        (good(), vec(change(), 1..4)).prop_map(|(mut bytes, changes)| {
            for (at, odd) in changes {
                let at = at.index(bytes.len());
                let end = (at + odd.len()).min(bytes.len());
                bytes.splice(at..end, odd);
            }
            bytes
        })
    }

    /// Reads the bytes in pieces of these lengths, as they come.
    fn validate(bytes: &[u8], lengths: &[usize]) -> (ZmtpValidator, Result<(), Violation>) {
        let mut validator = ZmtpValidator::new(LIMITS);
        let mut rest = bytes;
        for length in lengths.iter().cycle() {
            let (piece, others) = rest.split_at((*length).min(rest.len()));
            if let Err(refusal) = validator.validate(piece) {
                return (validator, Err(refusal));
            }
            assert!(validator.partial_bytes() <= LIMITS.message_bytes.max(4096));
            rest = others;
            if rest.is_empty() {
                break;
            }
        }
        (validator, Ok(()))
    }

    /// The lengths of the frames that are announced, read by other means.
    fn announced(bytes: &[u8]) -> Vec<u64> {
        let mut lengths = Vec::new();
        let mut rest = bytes.get(64..).unwrap_or_default();
        while let Some((flags, behind)) = rest.split_first() {
            let size = if flags & 2 == 0 { 1 } else { 8 };
            let Some((length, behind)) = behind.split_at_checked(size) else {
                break;
            };
            let length = length
                .iter()
                .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
            lengths.push(length);
            rest = usize::try_from(length)
                .ok()
                .and_then(|length| behind.get(length..))
                .unwrap_or_default();
        }
        lengths
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn what_keeps_the_limits_passes(
            bytes in good(),
            lengths in vec(1..300_usize, 1..8),
        ) {
            let (validator, validated) = validate(&bytes, &lengths);
            prop_assert_eq!(validated, Ok(()));
            prop_assert!(validator.is_ready());
            prop_assert_eq!(validator.current_message(), None);
            prop_assert_eq!(validator.partial_bytes(), 0);
        }

        #[test]
        fn exactly_the_limits_are_enforced(
            frames in vec((any::<bool>(), any::<bool>(), vec(any::<u8>(), 0..500)), 0..14),
        ) {
            let mut bytes = greeting();
            bytes.extend(frame(4, false, b"\x05READY"));
            let (mut count, mut size, mut messages) = (0, 0, 0);
            let mut keeps_to_limits = true;
            for (more, long, body) in &frames {
                bytes.extend(frame(u8::from(*more), *long, body));
                count += 1;
                size += body.len() as u64;
                keeps_to_limits &= count <= LIMITS.frames
                    && size <= LIMITS.message_bytes
                    && messages < LIMITS.messages;
                if !more {
                    (count, size) = (0, 0);
                    messages += 1;
                }
            }
            let (_, validated) = validate(&bytes, &[usize::MAX]);
            prop_assert_eq!(validated.is_ok(), keeps_to_limits, "{:?}", validated);
        }

        #[test]
        fn chunking_does_not_matter_and_nothing_is_stored(
            bytes in changed(),
            lengths in vec(1..300_usize, 1..8),
        ) {
            let ((_, at_once), held) = counting::most_bytes(|| validate(&bytes, &[usize::MAX]));
            prop_assert_eq!(held, 0);
            let (_, in_pieces) = validate(&bytes, &lengths);
            let (_, in_bytes) = validate(&bytes, &[1]);
            prop_assert_eq!(&at_once, &in_pieces);
            prop_assert_eq!(&at_once, &in_bytes);
            match at_once {
                Ok(()) => for length in announced(&bytes) {
                    prop_assert!(length <= LIMITS.message_bytes.max(4096), "{length}");
                }
                Err(refusal) => prop_assert!(refusal.to_string().len() > 10),
            }
        }

        #[test]
        fn arbitrary_bytes_are_refused(first in 0..=0xfe_u8, rest in vec(any::<u8>(), 0..400)) {
            let bytes = [vec![first], rest].concat();
            let (_, validated) = validate(&bytes, &[7]);
            prop_assert_eq!(validated, Err(Violation::NotZmtp));
        }
    }
}
