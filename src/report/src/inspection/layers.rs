//! How variables are folded to layers, by their names.

/// The layer of a variable or of an output: `bert.encoder.layer.3.attention.self.query.weight` is of
/// `bert.encoder.layer.3`, `bert.embeddings.LayerNorm.bias` of `bert.embeddings`, `dense_1.weight` of `dense_1`. A name
/// of one part is its own layer.
pub fn layer_of(name: &str) -> &str {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut end = 0;
    let mut parts = 0;
    for part in name.split('.') {
        end += part.len() + usize::from(parts > 0);
        parts += 1;
        if is_number(part) {
            return &name[..end];
        }
    }
    // Without a number: the first two parts, but not the variable itself.
    let kept = (parts - 1).clamp(1, 2);
    let cut = name.match_indices('.').nth(kept - 1);
    cut.map_or(name, |(at, _)| &name[..at])
}

/// Every part of a network that a name belongs to, from the whole downwards, the name itself left out.
pub(super) fn parts_of(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').map(|(at, _)| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_folded_to_layers() {
        for (name, layer) in [
            (
                "bert.encoder.layer.11.attention.self.query.weight",
                "bert.encoder.layer.11",
            ),
            ("bert.embeddings.LayerNorm.bias", "bert.embeddings"),
            ("bert.pooler.dense.weight", "bert.pooler"),
            ("classifier.weight", "classifier"),
            ("dense_1.bias", "dense_1"),
            ("layers.0.weight", "layers.0"),
            ("weight", "weight"),
            ("", ""),
            ("0", "0"),
        ] {
            assert_eq!(layer_of(name), layer, "{name}");
        }
        assert_eq!(parts_of("a.b.c").collect::<Vec<_>>(), ["a", "a.b"]);
    }
}
