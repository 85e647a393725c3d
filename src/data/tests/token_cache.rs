//! Tokens on disk: what is read is what the tokenizer makes, whatever happens to the files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use stratoscope_data::{
    Dataset, Encoded, EncodedExample, Encoding, Example, Kept, Masking, Piece, TokenCache, Tokenize,
};
use stratoscope_diagnostics::Result;

/// A token for each letter, and one before and behind each text; with a cache, and with more ids than letters.
struct Cached {
    cache: Option<TokenCache>,
    added: u32,
}

const BORDER: u32 = 1;
const MASK: u32 = 2;
const LETTERS: u32 = 40;

fn id(letter: char) -> u32 {
    match letter {
        '*' => MASK,
        letter => 3 + letter as u32 % (LETTERS - 3),
    }
}

impl Tokenize for Cached {
    fn encode(&self, text: &str, pair: Option<&str>, max_length: usize) -> Result<Encoding> {
        let pieces = self.encode_pieces(text, pair, max_length)?;
        let (mut encoding, _) = pieces.expect("it knows them");
        encoding.ids.iter_mut().for_each(|id| *id += self.added);
        Ok(encoding)
    }

    fn encode_pieces(
        &self,
        text: &str,
        pair: Option<&str>,
        max_length: usize,
    ) -> Result<Option<(Encoding, Vec<Option<Piece>>)>> {
        let mut tokens = vec![(BORDER, 0, None)];
        for (segment, text) in [Some(text), pair].into_iter().enumerate() {
            for (at, letter) in text.into_iter().flat_map(str::char_indices) {
                let piece = Piece {
                    range: at..at + letter.len_utf8(),
                    in_pair: segment == 1,
                    word: at as u32 / 3,
                };
                tokens.push((id(letter), segment as u32, Some(piece)));
            }
            tokens.push((BORDER, segment as u32, None));
        }
        let truncated = tokens.len().saturating_sub(max_length);
        tokens.truncate(max_length);
        let encoding = Encoding {
            ids: tokens.iter().map(|token| token.0).collect(),
            type_ids: tokens.iter().map(|token| token.1).collect(),
            truncated,
        };
        let pieces = tokens.into_iter().map(|token| token.2).collect();
        Ok(Some((encoding, pieces)))
    }

    fn decode(&self, ids: &[u32]) -> String {
        self.tokens(ids).concat()
    }

    fn tokens(&self, ids: &[u32]) -> Vec<String> {
        ids.iter().map(u32::to_string).collect()
    }

    fn pad_id(&self) -> u32 {
        0
    }

    fn unk_id(&self) -> u32 {
        BORDER
    }

    fn mask_id(&self) -> Option<u32> {
        Some(MASK)
    }

    fn vocab_size(&self) -> usize {
        (LETTERS + self.added) as usize
    }

    fn cache(&self) -> Option<TokenCache> {
        self.cache.clone()
    }
}

fn without() -> Cached {
    Cached {
        cache: None,
        added: 0,
    }
}

fn cached(folder: &Path) -> Cached {
    Cached {
        cache: Some(TokenCache::in_folder(folder.join("tokens"), [7; 32]).from_bytes(1)),
        added: 0,
    }
}

fn with_tokenizer(folder: &Path, number: u8) -> Cached {
    let cache = TokenCache::in_folder(folder.join("tokens"), [number; 32]).from_bytes(1);
    Cached {
        cache: Some(cache),
        added: 0,
    }
}

fn texts() -> Dataset {
    let text = |row: usize| ["chess ", "Änderung ", ""][row % 3].repeat(1 + row % 7);
    Dataset::from_labelled((0..300).map(|row| (text(row), ["a", "b"][row % 2])))
}

/// All that came of a tokenization.
fn made(encoded: &Encoded) -> Vec<EncodedExample> {
    let examples = (0..encoded.len()).filter_map(|at| encoded.get(at).cloned());
    examples.collect()
}

fn is_read(encoded: &Encoded) -> bool {
    matches!(encoded.kept(), Some(Kept::Read { .. }))
}

fn is_written(encoded: &Encoded) -> bool {
    matches!(encoded.kept(), Some(Kept::Written { .. }))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("tokens"));
    let mut files: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

#[test]
fn tokens_of_every_kind_of_data_are_those_of_the_tokenizer() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokenizer = cached(folder.path());
    let pairs = Dataset::from_pairs([("ab", "cd é"), ("", "x"), ("long first", "")]);
    let words = Dataset::from_words([(vec!["ab", "c"], vec!["B-X", "O"])]).expect("tags");
    let question = ("who", "it was Ada who wrote all of it", "Ada");
    let questions = Dataset::from_questions([question]).expect("an answer");
    type Way = fn(&Dataset, &Cached) -> Result<Encoded>;
    let ways: [(&str, Dataset, Way); 6] = [
        ("texts", texts(), |data, it| data.tokenize(it, 16)),
        ("pairs", pairs.clone(), |data, it| data.tokenize(it, 9)),
        ("words", words, |data, it| data.tokenize_words(it, 16)),
        ("questions", questions, |data, it| {
            data.tokenize_questions(it, 16, 4)
        }),
        ("masked", pairs, |data, it| {
            data.tokenize_masked(it, 16, Masking::default())
        }),
        ("blanks", Dataset::from_texts(["a*c"]), |data, it| {
            data.tokenize_blanks(it, 16)
        }),
    ];
    for (name, data, tokenize) in ways {
        let plain = tokenize(&data, &without()).expect(name);
        let first = tokenize(&data, &tokenizer).expect(name);
        let second = tokenize(&data, &tokenizer).expect(name);
        assert_eq!(plain.kept(), None, "{name}");
        assert!(is_written(&first), "{name}: {:?}", first.kept());
        assert!(is_read(&second), "{name}: {:?}", second.kept());
        assert_eq!(made(&first), made(&plain), "{name}");
        assert_eq!(made(&second), made(&plain), "{name}");
        assert_eq!(second.report(), plain.report(), "{name}");
    }
    for file in files(folder.path()) {
        let mode = file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn whatever_decides_the_tokens_decides_which_file_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokenizer = cached(folder.path());
    let data = texts();
    let written = |encoded: Result<Encoded>| is_written(&encoded.expect("it is tokenized"));
    assert!(written(data.tokenize(&tokenizer, 16)));
    assert!(!written(data.tokenize(&tokenizer, 16)));
    // Labels and numbers of rows are not tokens.
    assert!(!written(
        data.map(|it| it)
            .rename_labels(["x", "y"])
            .expect("two")
            .tokenize(&tokenizer, 16)
    ));
    assert!(written(data.tokenize(&tokenizer, 17)), "another length");
    let other = with_tokenizer(folder.path(), 8);
    assert!(written(data.tokenize(&other, 16)), "another tokenizer");
    let mut changed = data.clone();
    changed.examples[299].text.push('x');
    assert!(
        written(changed.tokenize(&tokenizer, 16)),
        "one text differs"
    );
    let mut moved = data.clone();
    moved.examples.swap(0, 1);
    assert!(written(moved.tokenize(&tokenizer, 16)), "another order");
    assert!(written(data.take(299).tokenize(&tokenizer, 16)), "fewer");
    let pairs = |first: &str, second: &str| Dataset::from_pairs([(first, second)]);
    assert!(written(pairs("ab", "c").tokenize(&tokenizer, 16)));
    assert!(written(pairs("a", "bc").tokenize(&tokenizer, 16)));
    assert!(written(pairs("abc", "").tokenize(&tokenizer, 16)));
    assert!(written(
        Dataset::from_texts(["abc"]).tokenize(&tokenizer, 16)
    ));
    assert_eq!(files(folder.path()).len(), 10);
}

#[test]
fn a_file_that_is_cut_off_or_changed_is_written_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokenizer = cached(folder.path());
    let data = texts().take(40);
    let expected = made(&data.tokenize(&tokenizer, 12).expect("it is tokenized"));
    let file = files(folder.path()).remove(0);
    let whole = fs::read(&file).expect("the file");
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|at| whole[..at].to_vec()).collect();
    damaged.extend((0..whole.len()).step_by(3).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    }));
    damaged.push([&whole[..], b"more"].concat());
    for bytes in damaged {
        fs::write(&file, &bytes).expect("it is ours");
        let encoded = data.tokenize(&tokenizer, 12).expect("it is tokenized");
        assert!(is_written(&encoded), "{} bytes", bytes.len());
        assert_eq!(made(&encoded), expected);
        assert!(fs::read(&file).expect("the file") == whole);
    }
    assert!(is_read(&data.tokenize(&tokenizer, 12).expect("read")));
}

#[test]
fn files_of_others_are_not_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokenizer = cached(folder.path());
    let (data, other) = (texts(), texts().skip(1));
    let expected = made(&data.tokenize(&tokenizer, 16).expect("it is tokenized"));
    let file = files(folder.path()).remove(0);
    other.tokenize(&tokenizer, 16).expect("it is tokenized");
    let of_other = files(folder.path()).into_iter().find(|it| *it != file);
    fs::copy(of_other.expect("two files"), &file).expect("it is ours");
    let encoded = data.tokenize(&tokenizer, 16).expect("it is tokenized");
    assert!(is_written(&encoded) && made(&encoded) == expected);

    // A whole file with ids that this tokenizer does not have.
    let larger = Cached {
        added: 1,
        ..cached(folder.path())
    };
    fs::remove_file(&file).expect("it is ours");
    larger.tokenize_all(&data);
    let encoded = data.tokenize(&tokenizer, 16).expect("it is tokenized");
    assert!(is_written(&encoded) && made(&encoded) == expected);

    // A folder that others can write to is neither read nor written.
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(folder.path().join("tokens"), open).expect("it is ours");
    let encoded = data.tokenize(&tokenizer, 16).expect("it is tokenized");
    let said = encoded.kept().expect("it is said").to_string();
    assert!(said.contains("other users can write there"), "{said}");
    assert_eq!(made(&encoded), expected);
}

impl Cached {
    fn tokenize_all(&self, data: &Dataset) {
        let encoded = data.tokenize(self, 16).expect("it is tokenized");
        assert!(is_written(&encoded));
    }
}

#[test]
fn a_full_disk_does_not_stop_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokenizer = cached(folder.path());
    let data = texts();
    let expected = made(&data.tokenize(&tokenizer, 16).expect("it is tokenized"));
    let file = files(folder.path()).remove(0);
    fs::remove_file(&file).expect("it is ours");
    // Whatever number the new file gets, it is a device that is full.
    let key = file.file_stem().expect("a name").to_str().expect("hex");
    for count in 0..1000 {
        let name = format!("{key}.{}-{count}.new", std::process::id());
        symlink("/dev/full", file.with_file_name(name)).expect("a link");
    }
    let encoded = data.tokenize(&tokenizer, 16).expect("it is tokenized");
    let said = encoded.kept().expect("it is said").to_string();
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("the run is not affected"), "{said}");
    assert_eq!(made(&encoded), expected);
    assert!(!file.exists(), "half a file");
    assert_eq!(files(folder.path()).len(), 999, "the new one is removed");
}

#[test]
fn a_folder_that_cannot_be_made_does_not_stop_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), "").expect("writes");
    for place in [folder.path().join("file/tokens"), "/proc/tokens".into()] {
        let cache = TokenCache::in_folder(&place, [7; 32]).from_bytes(1);
        let tokenizer = Cached {
            cache: Some(cache),
            added: 0,
        };
        let encoded = texts().tokenize(&tokenizer, 16).expect("it is tokenized");
        let is_refused = matches!(encoded.kept(), Some(Kept::NotWritten { .. }));
        assert!(is_refused, "{:?}", encoded.kept());
    }
}

#[test]
fn small_data_and_numbers_are_not_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = folder.path().join("tokens");
    let tokenizer = Cached {
        cache: Some(TokenCache::in_folder(&tokens, [7; 32])),
        added: 0,
    };
    let encoded = texts().tokenize(&tokenizer, 16).expect("it is tokenized");
    assert_eq!(encoded.kept(), None);
    let numbers = Dataset::from_arrays([[0.5, 1.0]; 4], [0, 1, 0, 1]).expect("rows");
    let encoded = numbers.tokenize(&cached(folder.path()), 16).expect("rows");
    assert_eq!(encoded.kept(), None);
    assert!(!tokens.exists());
    let long = Dataset::from_texts(["chess ".repeat(1 << 18)]);
    assert!(is_written(
        &long.tokenize(&tokenizer, 16).expect("tokenized")
    ));
}

#[test]
fn what_was_used_least_recently_goes_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = |number: usize| texts().map(move |it| Example::new(format!("{}{number}", it.text)));
    let tokenize = |number: usize, most: u64| {
        let Cached { cache, added } = cached(folder.path());
        let cache = cache.map(|cache| cache.most_bytes(most));
        data(number)
            .tokenize(&Cached { cache, added }, 64)
            .expect("it is tokenized")
    };
    assert!(is_written(&tokenize(0, u64::MAX)));
    let bytes = files(folder.path())[0].metadata().expect("is there").len();
    let most = 2 * bytes + bytes / 2;
    let old = |path: &Path, hours: u64| {
        let then = SystemTime::now() - Duration::from_secs(3600 * hours);
        let file = fs::File::options().write(true).open(path);
        file.and_then(|file| file.set_modified(then))
            .expect("it is ours");
    };
    let first = files(folder.path()).remove(0);
    old(&first, 3);
    assert!(is_written(&tokenize(1, most)));
    let second = files(folder.path()).into_iter().find(|it| *it != first);
    old(&second.expect("two files"), 2);
    // Files that were left half written go after a day.
    let (left, fresh) = (
        first.with_extension("1-1.new"),
        first.with_extension("1-2.new"),
    );
    fs::write(&left, "").expect("writes");
    fs::write(&fresh, "").expect("writes");
    old(&left, 25);
    assert!(is_read(&tokenize(0, most)), "now it was used later");
    assert!(is_written(&tokenize(2, most)));
    assert!(!left.exists() && fresh.exists());
    assert!(is_read(&tokenize(0, most)) && is_read(&tokenize(2, most)));
    assert!(is_written(&tokenize(1, most)), "it was removed");
    assert_eq!(files(folder.path()).len(), 3, "two, and one half");
    // What does not fit alone is not kept, and nothing is removed for it.
    let encoded = tokenize(3, bytes / 2);
    let said = encoded.kept().expect("it is said").to_string();
    assert!(said.contains("they take more than"), "{said}");
    assert_eq!(files(folder.path()).len(), 3);
}

#[test]
fn processes_share_the_folder() {
    const FOLDER: &str = "TOKENS_OF_TWO_PROCESSES";
    let tokenize = |folder: &Path| {
        let expected: Vec<Vec<EncodedExample>> = (0..3)
            .map(|part| made(&texts().skip(part).tokenize(&without(), 16).expect("tokens")))
            .collect();
        for turn in 0..60 {
            let part = turn % 3;
            // Room for two of the three.
            let Cached { cache, added } = cached(folder);
            let cache = cache.map(|cache| cache.most_bytes(12_000));
            let encoded = texts().skip(part).tokenize(&Cached { cache, added }, 16);
            let encoded = encoded.expect("it is tokenized");
            assert!(
                is_read(&encoded) || is_written(&encoded),
                "{:?}",
                encoded.kept()
            );
            assert!(made(&encoded) == expected[part], "turn {turn}");
        }
    };
    if let Some(folder) = std::env::var_os(FOLDER) {
        return tokenize(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut other = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "processes_share_the_folder"])
        .env(FOLDER, folder.path())
        .spawn()
        .expect("it starts");
    tokenize(folder.path());
    assert!(other.wait().expect("it ends").success());
}
