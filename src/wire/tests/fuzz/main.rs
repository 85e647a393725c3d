//! The wire, fed with what nobody should send: valid messages whose bytes were changed, lines that
//! were dropped, repeated, exchanged or cut, numbers and nesting beyond measure.
//!
//! With `STRATOSCOPE_FULL_TESTS` set, many more cases.

mod counting;

use std::io::Read;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use stratoscope_wire::{
    Described, KeptVariable, MimeBundle, Reader, ToCells, ToKernel, WireError, Writer,
};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// What parsing a line may hold for each of its bytes. Many short keys are the worst: each takes
/// an entry of some 100 bytes in a table that has just been doubled.
const BYTES_FOR_A_BYTE: usize = 300;

/// What a reader holds whatever it reads.
const BASE_BYTES: usize = 64 << 10;

fn cases() -> ProptestConfig {
    let is_long = std::env::var_os("STRATOSCOPE_FULL_TESTS").is_some_and(|it| !it.is_empty());
    ProptestConfig::with_cases(if is_long { 200_000 } else { 2000 })
}

/// Gives as many bytes a read as the list says, again and again.
struct Pieces<'a> {
    bytes: &'a [u8],
    lengths: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl<'a> Pieces<'a> {
    fn new(bytes: &'a [u8], lengths: Vec<usize>) -> Self {
        let lengths = lengths.into_iter().cycle();
        Self { bytes, lengths }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = self.lengths.next().unwrap_or(1).min(buffer.len());
        self.bytes.read(&mut buffer[..most])
    }
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    vec(1..200_usize, 1..8)
}

/// Any JSON, with texts of any characters.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|it| Value::from(f64::from(it) / 8.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((any::<String>(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn bundle() -> impl Strategy<Value = MimeBundle> {
    vec((any::<String>(), json()), 0..4).prop_map(|entries| entries.into_iter().collect())
}

fn to_kernel() -> impl Strategy<Value = ToKernel> {
    let described = (any::<String>(), any::<u64>(), any::<Option<String>>()).prop_map(
        |(name, bytes, device)| Described {
            name,
            bytes,
            device,
        },
    );
    let kept = (
        any::<String>(),
        any::<String>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(name, type_name, is_mutable, is_new)| KeptVariable {
            name,
            type_name,
            is_mutable,
            is_new,
        });
    prop_oneof![
        (any::<u32>(), any::<u32>()).prop_map(|(version, pid)| ToKernel::Hello { version, pid }),
        (bundle(), bundle(), any::<Option<String>>(), any::<bool>()).prop_map(
            |(data, metadata, display_id, update)| ToKernel::Display {
                data,
                metadata,
                display_id,
                update,
            }
        ),
        bundle().prop_map(|data| ToKernel::Result { data }),
        any::<bool>().prop_map(|wait| ToKernel::ClearOutput { wait }),
        (
            any::<String>(),
            any::<Option<usize>>(),
            any::<Option<String>>()
        )
            .prop_map(|(message, line, location)| ToKernel::Panicked {
                message,
                line,
                location,
            }),
        (any::<String>(), any::<bool>())
            .prop_map(|(prompt, password)| ToKernel::Input { prompt, password }),
        vec(described, 0..4).prop_map(|variables| ToKernel::Described { variables }),
        vec(kept, 0..4).prop_map(|variables| ToKernel::Kept { variables }),
        (any::<u64>(), bundle()).prop_map(|(run, data)| ToKernel::ForeignOutput {
            run,
            message: Box::new(ToKernel::Result { data }),
        }),
        Just(ToKernel::Interrupted),
        any::<u64>().prop_map(|id| ToKernel::Synced { id }),
    ]
}

fn to_cells() -> impl Strategy<Value = ToCells> {
    prop_oneof![
        any::<u32>().prop_map(|version| ToCells::Hello { version }),
        any::<u64>().prop_map(|id| ToCells::Sync { id }),
        Just(ToCells::Describe),
        Just(ToCells::Interrupt),
        Just(ToCells::Shown),
        vec(any::<String>(), 0..4).prop_map(|codes| ToCells::Deny { codes }),
        any::<Option<String>>().prop_map(|text| ToCells::InputReply { text }),
    ]
}

fn line(message: &ToKernel) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(&mut bytes)
        .send(message)
        .expect("writes into memory");
    bytes
}

/// Something that is done to the bytes of some messages.
#[derive(Clone, Debug)]
enum Change {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Cut(Index),
    ExchangeLines(Index, Index),
    RepeatLine(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let odd = prop_oneof![
        vec(any::<u8>(), 1..8),
        Just(b"\n".to_vec()),
        Just(b"\xff\xfe\xc0\x80".to_vec()),
        Just(b"9".repeat(400)),
        Just(b"1e999999999".to_vec()),
        Just(b"-".to_vec()),
        Just(b"\"\\ud800\"".to_vec()),
        Just(b"[".repeat(3000)),
        Just(br#"{"a":"#.repeat(1000)),
        Just(br#"{"kind":"foreign_output","run":1,"message":"#.repeat(200)),
        Just(b"[{},".repeat(200)),
    ];
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        3 => (at(), odd).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (at(), 1..40_usize).prop_map(|(at, length)| Change::Remove(at, length)),
        2 => (at(), 1..40_usize).prop_map(|(at, length)| Change::Repeat(at, length)),
        1 => at().prop_map(Change::Cut),
        1 => (at(), at()).prop_map(|(one, other)| Change::ExchangeLines(one, other)),
        1 => at().prop_map(Change::RepeatLine),
    ]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        let within = |at: &Index, wanted: usize| {
            let from = at.index(length);
            from..(from + wanted).min(length)
        };
        let mut lines: Vec<Vec<u8>> = bytes
            .split_inclusive(|it| *it == b'\n')
            .map(Vec::from)
            .collect();
        match self {
            Self::Set(at, byte) => bytes[at.index(length)] = *byte,
            Self::Insert(at, more) => {
                let at = at.index(length);
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Remove(at, wanted) => drop(bytes.drain(within(at, *wanted))),
            Self::Repeat(at, wanted) => {
                let range = within(at, *wanted);
                let piece = bytes[range.clone()].to_vec();
                bytes.splice(range.end..range.end, piece);
            }
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::ExchangeLines(one, other) => {
                let (one, other) = (one.index(lines.len()), other.index(lines.len()));
                lines.swap(one, other);
                *bytes = lines.concat();
            }
            Self::RepeatLine(at) => {
                let at = at.index(lines.len());
                lines.insert(at, lines[at].clone());
                *bytes = lines.concat();
            }
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_sent_is_received(
        for_kernel in vec(to_kernel(), 1..6),
        for_cells in vec(to_cells(), 1..6),
        lengths in pieces(),
    ) {
        let bytes: Vec<u8> = for_kernel.iter().flat_map(line).collect();
        let mut reader = Reader::new(Pieces::new(&bytes, lengths.clone()));
        for message in &for_kernel {
            prop_assert_eq!(&reader.receive::<ToKernel>().expect("is valid"), message);
        }
        prop_assert!(matches!(reader.receive::<ToKernel>(), Err(WireError::Closed)));

        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        for message in &for_cells {
            writer.send(message).expect("writes into memory");
        }
        let mut reader = Reader::new(Pieces::new(&bytes, lengths));
        for message in &for_cells {
            prop_assert_eq!(&reader.receive::<ToCells>().expect("is valid"), message);
        }
    }

    #[test]
    fn what_was_changed_is_refused_with_a_reason_and_the_rest_is_read(
        messages in vec(to_kernel(), 1..5),
        changes in vec(change(), 1..5),
        lengths in pieces(),
    ) {
        let last = ToKernel::Synced { id: 7 };
        let mut bytes: Vec<u8> = messages.iter().flat_map(line).collect();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        // Whatever came before: after a line's end the next message is read.
        bytes.push(b'\n');
        bytes.extend(line(&last));
        let lines = bytes.split(|it| *it == b'\n').count();
        let longest = bytes.split(|it| *it == b'\n').map(<[u8]>::len).max().unwrap_or(0);

        let mut reader = Reader::new(Pieces::new(&bytes, lengths));
        let mut read = 0;
        let mut latest = None;
        loop {
            let (received, held) = counting::most_bytes(|| reader.receive::<ToKernel>());
            prop_assert!(
                held <= BASE_BYTES + BYTES_FOR_A_BYTE * longest,
                "{held} bytes for lines of {longest}"
            );
            match received {
                Ok(message) => latest = Some(message),
                Err(WireError::Closed) => break,
                Err(error @ WireError::Malformed(_)) => {
                    // In words, and not in the whole line's.
                    let diagnostic = error.to_string();
                    prop_assert!(diagnostic.len() > 50, "{}", diagnostic);
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
            read += 1;
            prop_assert!(read <= lines);
        }
        prop_assert_eq!(latest, Some(last));
    }

    #[test]
    fn a_line_beyond_the_limit_takes_no_more_than_the_limit(
        length in 1..200_000_usize,
        limit in 1..20_000_usize,
        lengths in pieces(),
    ) {
        let bytes = [vec![b'['; length], b"\n".to_vec()].concat();
        let mut reader = Reader::with_limit(Pieces::new(&bytes, lengths), limit);
        let (received, held) = counting::most_bytes(|| reader.receive::<ToKernel>());
        prop_assert_eq!(length > limit, matches!(received, Err(WireError::TooLong { .. })));
        prop_assert!(received.is_err());
        prop_assert!(held <= BASE_BYTES + 4 * limit, "{held} bytes at a limit of {limit}");
    }
}
