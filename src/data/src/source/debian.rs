//! The data sets that ship with the crate, made from Debian's package index. Their provenance is in `data/README.md`.

use stratoscope_diagnostics::Result;

use crate::dataset::Dataset;

/// Short descriptions of Debian packages with the archive section of the package as the class, one of 8: `admin`, `fonts`,
/// `games`, `graphics`, `math`, `net`, `science`, `sound`. 2000 examples for training and 400 for
/// validation, equally many of each class.
///
/// # Errors
/// None in practice: the text is part of the program, and a test reads it.
pub fn debian_sections() -> Result<(Dataset, Dataset)> {
    let train = include_str!("../../data/debian-sections/train.tsv");
    let dev = include_str!("../../data/debian-sections/dev.tsv");
    let read = |split, text| Dataset::tsv_text("debian_sections", split, text);
    let train = read("debian_sections, train", train)?;
    let dev = read("debian_sections, dev", dev)?.with_labels_of(&train)?;
    Ok((train, dev))
}

/// Pairs of short descriptions of Debian packages; the class is whether both packages are built from the same source
/// package. In the layout of MRPC. 1600 pairs for training and 400 for validation, half of them from one source.
///
/// # Errors
/// None in practice: the text is part of the program, and a test reads it.
pub fn debian_pairs() -> Result<(Dataset, Dataset)> {
    let train = include_str!("../../data/debian-pairs/train.tsv");
    let dev = include_str!("../../data/debian-pairs/dev.tsv");
    let read = |split, text| Dataset::tsv_text("debian_pairs", split, text);
    let train = read("debian_pairs, train", train)?;
    let dev = read("debian_pairs, dev", dev)?.with_labels_of(&train)?;
    let names = ["different_source", "same_source"];
    Ok((train.rename_labels(names)?, dev.rename_labels(names)?))
}

/// Requests about Debian packages, word by word, with three kinds of entities: `PACKAGE`, `SECTION` and `PURPOSE` (a short
/// description). Names and descriptions are real, the sentences around them are written for the set. 800 sentences for
/// training and 200 for validation, which have no package in common.
///
/// # Errors
/// None in practice: the text is part of the program, and a test reads it.
pub fn debian_entities() -> Result<(Dataset, Dataset)> {
    let train = include_str!("../../data/debian-entities/train.conll");
    let dev = include_str!("../../data/debian-entities/dev.conll");
    let train = Dataset::conll_text("debian_entities, train", train)?;
    let dev = Dataset::conll_text("debian_entities, dev", dev)?.with_labels_of(&train)?;
    Ok((train, dev))
}

/// Questions about paragraphs that describe three Debian packages each, as in SQuAD 2.0: the answer is a name, a section or
/// a description of the paragraph, and one question in four has none. 1280 questions for training and 400 for
/// validation, which have no package in common.
///
/// # Errors
/// None in practice: the text is part of the program, and a test reads it.
pub fn debian_questions() -> Result<(Dataset, Dataset)> {
    let train = include_str!("../../data/debian-questions/train.json");
    let dev = include_str!("../../data/debian-questions/dev.json");
    let train = Dataset::squad_text("debian_questions, train", train)?;
    let dev = Dataset::squad_text("debian_questions, dev", dev)?;
    Ok((train, dev))
}
